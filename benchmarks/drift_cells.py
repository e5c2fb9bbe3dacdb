"""Who holds which window at which size, on the real cells: the tables and the picture of docs/drift.md.

python benchmarks/drift_cells.py [FOLDER ...]     # folders of `jointset bench`; none: from docs/data/drift.csv

A row holds its windows when its joint coverage is at target, the worst 500 steps are covered no less than those of an
independent coin, and the 90 % quantile of the 100-step gap is at most 1.15 times the coin's.
"""

import sys
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jointset.bench.measures import coin
from jointset.bench.results import read_results
from jointset.catalogue import TABLE
from jointset.methods import parse, rule_of

DOCS = Path(__file__).parents[1] / "docs"
DATA, PICTURE = DOCS / "data" / "drift.csv", DOCS / "images" / "drift-sizes.png"
KEPT = ("cell", "method", "n_test", "joint", "worst_window", "gap_100_p90", "off_30", "log_mean_volume", "joint_score")
WRAPS = {
    "split": "#999999",
    "aci": "#1f77b4",
    "dtaci": "#17becf",
    "pid": "#d62728",
    "window": "#9467bd",
    "auto": "#2ca02c",
}
ROWS = {  # of the picture, ellipsoids
    **{"static": "s", "time-of-day": "D", "ewma": "^", "kalman-tuned": "v"},
    **{"staci": "P", "msr": "X", "space": "o", "default": "*"},
}
ALPHA, TARGET, SLACK = 0.1, 0.895, 1.15


def rows_of(folders: list[str]) -> pd.DataFrame:
    """The last row of every method and cell, protocol `text`, around its own or the usual mean."""
    table = pd.concat([read_results(folder) for folder in folders])
    usual = table["backbone"].isin(["gpvar", "own"]) & table["pilot"].eq("") & table["seed"].eq(0)
    table = table[usual & table["protocol"].eq("text") & table["status"].eq("ok") & table["gap_100_p90"].notna()]
    table = table.sort_values("started", kind="stable").drop_duplicates(["cell", "method"], keep="last")
    return table[[*KEPT]].round(4).sort_values(["cell", "method"], kind="stable")


def with_names(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the wraps compared, with base, wrap, geometry, what the coin has, and whether the windows hold."""
    names = [parse(name) for name in table["method"]]
    table = table.assign(
        base=[name.method for name in names],
        wrap=[rule_of(name) for name in names],
        box=[(name.geometry or TABLE[name.method].geometries[0]) == "box" for name in names],
    )
    table = table[table["wrap"].isin(WRAPS)]
    coins = [coin(int(steps), ALPHA) for steps in table["n_test"]]
    table = table.assign(
        ratio=table["gap_100_p90"] / [one["gap_100_p90"] for one in coins], worst=[one["worst_window"] for one in coins]
    )
    table = table.assign(at=table["joint"] >= TARGET)
    steady = (table["worst_window"] >= table["worst"] - 0.0005) & (table["ratio"] <= SLACK)
    return table.assign(holds=table["at"] & steady)


def smallest(part: pd.DataFrame) -> str:
    """The row with the smallest sets: name, log mean volume, gap in those of the coin, worst 500."""
    if part.empty:
        return "none"
    row = part.loc[part["log_mean_volume"].idxmin()]
    return f"`{row['method']}` {row['log_mean_volume']:.3f} ({row['ratio']:.2f}, {row['worst_window']:.3f})"


def who_holds(table: pd.DataFrame) -> None:
    """A line a cell: how many hold, the smallest at target, the smallest that hold."""
    print(
        "| cell | hold | smallest at target | smallest that holds | smallest that holds, boxes |\n|---|---|---|---|---|"
    )
    for cell, part in table.groupby("cell"):
        ellipsoids = part[~part["box"]]
        holding = part[part["holds"]]
        entries = (ellipsoids[ellipsoids["at"]], holding[~holding["box"]], holding[holding["box"]])
        print(f"| {cell} | {len(holding)} of {len(part)} | {' | '.join(smallest(one) for one in entries)} |")


def by_wrap(table: pd.DataFrame) -> None:
    """A line a wrap, all rows and cells: how many hold, medians of the gap and of the score against +aci."""
    known = table[~table["box"]]
    usual = known[known["wrap"].eq("aci")].set_index(["cell", "base"])
    print(
        "\n| wrap | hold | lowest joint | lowest worst 500 | gap | size | joint score |\n|---|---|---|---|---|---|---|"
    )
    for wrap in WRAPS:
        part = known[known["wrap"].eq(wrap)].set_index(["cell", "base"])
        more = (part["log_mean_volume"] - usual["log_mean_volume"].reindex(part.index)).median()
        score = (part["joint_score"] / usual["joint_score"].reindex(part.index)).median()
        print(
            f"| `+{wrap}` | {part['holds'].sum()} of {len(part)} | {part['joint'].min():.3f} | "
            f"{part['worst_window'].min():.3f} | {part['ratio'].median():.2f} | {more:+.3f} | {score:.3f} |"
        )


def new_rows(table: pd.DataFrame) -> None:
    """A line a row and cell: under split, ACI and auto."""
    shown = ("split", "aci", "window", "auto")
    print(f"\n| row | cell | {' | '.join(f'`+{wrap}`' for wrap in shown)} |\n|---|---|{'---|' * len(shown)}")
    for base in ("static", "staci", "msr", "space", "corel"):
        for cell, part in table[table["base"].eq(base) & ~table["method"].str.contains(":")].groupby("cell"):
            found = part.set_index("wrap")
            entries = []
            for wrap in shown:
                row = found.loc[wrap]
                size = f"{row['log_mean_volume']:.3f} / {row['joint_score']:.2f}"
                entries.append(f"{row['joint']:.3f} / {row['worst_window']:.3f} / {size}")
            print(f"| `{base}` | {cell} | {' | '.join(entries)} |")


def picture(table: pd.DataFrame) -> Figure:
    """Size against the gap of 100 steps, a panel a cell; colours are wraps, markers rows."""
    figure = Figure(figsize=(13, 8.2), layout="constrained")
    for ax, (cell, part) in zip(
        figure.subplots(2, 3).flat, table[table["base"].isin(ROWS)].groupby("cell"), strict=True
    ):
        part = part[~part["box"]]
        low, high = part["log_mean_volume"].min(), part["log_mean_volume"].quantile(0.95)
        ax.axvspan(0.0, SLACK, color="#eef7ee", zorder=0)
        ax.axvline(1.0, color="#555555", linewidth=0.8, linestyle=":")
        for row in part.itertuples():
            face = WRAPS[row.wrap] if row.at else "white"
            style = {"marker": ROWS[row.base], "s": 110 if row.base == "default" else 55, "linewidths": 1.1}
            height = min(row.log_mean_volume, high + 0.1 * (high - low))
            ax.scatter(row.ratio, height, facecolor=face, edgecolor=WRAPS[row.wrap], alpha=0.85, **style)
        ax.set(xscale="log", title=cell, xlabel="P90 of the 100-step gap / that of a coin", ylabel="log mean volume")
        ax.set_xticks([0.5, 1, 2, 4, 8], ["0.5", "1", "2", "4", "8"])
        ax.minorticks_off()
        ax.grid(alpha=0.25)
    marks = [Line2D([], [], marker=m, color="#333333", linestyle="", label=row) for row, m in ROWS.items()]
    marks += [Line2D([], [], marker="o", color=c, linestyle="", label=f"+{wrap}") for wrap, c in WRAPS.items()]
    marks += [Line2D([], [], marker="o", color="#333333", markerfacecolor="white", linestyle="", label="below target")]
    figure.legend(handles=marks, loc="outside lower center", ncols=8, frameon=False)
    return figure


def main() -> None:
    if sys.argv[1:]:
        rows_of(sys.argv[1:]).to_csv(DATA, index=False)
    table = with_names(pd.read_csv(DATA))
    who_holds(table)
    by_wrap(table)
    new_rows(table)
    picture(table).savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    main()
