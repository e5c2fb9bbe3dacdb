"""Markdown tables of a results folder for docs/results.md: every cell, every row, lost ones too.

    python benchmarks/results_page.py RESULTS > tables.md

One table a cell and protocol, rows from the smallest log-volume up; those at target (joint >= 0.895) in bold. Then the
audits of the folder.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import numpy as np

from jointset.bench.results import read_results

SIZES = ("width_full", "joint", "worst_window", "log_volume", "infinite_share")


def rows_of(folder: str):
    table = read_results(folder)
    table = table[(table.status == "ok") & (table.limit_steps == 0)]
    means = table.groupby(["protocol", "cell", "n", "n_test", "backbone", "method"])
    spread = means["width_full"].std().fillna(0.0)
    return means[[*SIZES]].mean().assign(spread=spread, seeds=means["seed"].nunique()).reset_index()


AUDITS = (
    "rho_dG",
    "rho_DL",
    "observability",
    "rho_score",
    "rho_ind",
    "tau_int",
    "m_eff",
    "trace_ratio",
    "pit",
    "theory",
)


def audits(folder: str) -> None:
    """One line for each audited filter: the value of every audit."""
    print("\n### Audits, protocol `text`, seed 0\n")
    print("| cell | filter |", " | ".join(AUDITS), "|")
    print("|---|---|" + "---|" * len(AUDITS))
    for file in sorted(Path(folder).glob("_audits/*.json")):
        found = json.loads(file.read_text())
        values = [found.get(name, {}).get("value") for name in AUDITS]
        words = ["-" if x is None else f"{x:,.0f}" if abs(x) >= 30 else f"{x:.3g}" for x in values]
        print("|", " | ".join([*file.stem.split("--"), *words]), "|")


def main() -> None:
    rows = rows_of(sys.argv[1])
    for (protocol, cell, n, steps), members in rows.groupby(["protocol", "cell", "n", "n_test"], sort=False):
        print(f"\n### {cell}, protocol `{protocol}`: {n} sensors, {steps:,} test steps\n")
        print("| method | mean | seeds | width_full | joint | worst 500 | log-volume | clipped |")
        print("|---|---|---|---|---|---|---|---|")
        for _, row in members.sort_values("log_volume").iterrows():
            bold = "**" if row.joint >= 0.895 else ""
            volume = f"{row.log_volume:.3f}" if np.isfinite(row.log_volume) else "-∞"
            width = f"{row.width_full:.3f}" + (f" ± {row.spread:.3f}" if row.spread > 0 else "")
            clipped = f"{100 * row.infinite_share:.1f} %" if row.infinite_share else ""
            cells = (f"{bold}{row.method}{bold}", row.backbone, row.seeds, width, f"{bold}{row.joint:.3f}{bold}")
            print("|", " | ".join(map(str, (*cells, f"{row.worst_window:.3f}", volume, clipped))), "|")
    audits(sys.argv[1])


if __name__ == "__main__":
    main()
