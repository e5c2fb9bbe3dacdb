"""The picture at the head of the README: a real incident on the roads of Los Angeles (METR-LA) and who is to blame.

    python benchmarks/incident.py [--at "2012-06-08 07:30"] [--out docs/pictures/incident.png]

`ewma` is fitted on all rows but the last 60 days, calibrated on the next 30 and follows the rows from there; the alarm
that is drawn is the first sustained change raised from an hour before `--at` to an hour after it. Zeros are missing
readings. Takes about two minutes. JOINTSET_DATA names the folder of the data.
"""

import argparse
from datetime import UTC, datetime
from pathlib import Path

import matplotlib
import numpy as np
from alarms import ROWS, Watchman, watched
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from PIL import Image

from jointset.errors import require
from jointset.inputs.jumps import STAY
from jointset.methods import predictor_for
from jointset.report.figures import STYLE

BEFORE, AFTER = 24, 24  # rows drawn around the alarm
SHOWN = 6  # speeds drawn
INK, FAINT, BLAME = "#1c2733", "#c9d2da", "#b2182b"


def found_at(panel, train, calibration, when: int):
    """The predictor a row before the alarm, the alarm, and its row."""
    predictor = predictor_for("ewma").fit(train).calibrate(calibration)
    man, start = Watchman(predictor), int(np.searchsorted(panel.timestamps, when)) - ROWS // 24
    man.follow(panel[:start])
    for row in range(start, start + ROWS // 12):
        told = len(man.changes)
        man.follow(panel[row : row + 1])
        for one in man.changes[told:]:
            if one.kind == "sustained" and one.event == "raised":
                return one, row
    require(False, "no sustained change was raised there: give another --at")


def draw(panel, one, row: int, out: Path) -> None:
    """Map with what each detector lost since before the incident, and the speeds of those to blame."""
    jumped = row - STAY
    before, now = mean_read(panel.values[jumped - 3 : jumped]), mean_read(panel.values[jumped : row + 1])
    who = [panel.sensors.index(name) for name in one.neighbourhood]
    hurt = sorted(who, key=lambda i: now[i] - before[i])[:SHOWN]
    times = panel.timestamps.astype("datetime64[s]")
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(10.6, 4.7), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.25, 1.0))
        draw_map(left, panel, now - before, who)
        part = slice(row - BEFORE, row + AFTER)
        others = np.delete(np.arange(panel.n_sensors), who)
        usual = np.nanmedian(panel.values[part][:, others], axis=1)
        right.plot(times[part], usual, color=FAINT, lw=2.4, label="all others, median")
        for k, i in enumerate(hurt):
            look = {"color": BLAME, "lw": 1.4, "alpha": 1.0 - 0.12 * k, "label": panel.sensors[i]}
            right.plot(times[part], panel.values[part, i], **look)
        right.axvline(times[row], color=INK, lw=1.2, ls=(0, (4, 2)))
        right.text(times[row], 76, " alarm", va="top")
        right.set(ylabel="mph", ylim=(0, 78), title="what they read")
        right.xaxis.set_major_locator(matplotlib.dates.HourLocator())
        right.xaxis.set_major_formatter(matplotlib.dates.DateFormatter("%H:%M"))
        right.legend(loc="lower left", fontsize=8.5, labelspacing=0.3)
        when = datetime.fromtimestamp(one.time, UTC)
        title = f"Los Angeles, {when:%A} {when.day} {when:%B %Y, %H:%M}. Alarm: {one.words.split(':')[0]}"
        figure.suptitle(title, x=0.01, ha="left", fontsize=13)
        figure.savefig(out, dpi=120)
    Image.open(out).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(out, optimize=True)


def mean_read(rows):
    """Means of columns, of what was read; NaN where nothing was."""
    read = ~np.isnan(rows)
    return np.where(read, rows, 0.0).sum(axis=0) / np.where(read.any(axis=0), read.sum(axis=0), np.nan)


def draw_map(ax, panel, lost, who) -> None:
    """Detectors where they are, coloured by what they lost; rings around those to blame."""
    where = panel.coordinates[:, ::-1]
    A = np.maximum(panel.adjacency, panel.adjacency.T)
    near = np.argsort(-A, axis=1)[:, :2]
    ends = {tuple(sorted((i, int(j)))) for i in range(len(A)) for j in near[i] if A[i, j] > 0}
    ax.add_collection(LineCollection([where[list(pair)] for pair in ends], colors=FAINT, linewidths=1.2, zorder=1))
    colours = {"c": np.nan_to_num(lost), "cmap": "RdBu", "vmin": -35, "vmax": 35}
    dots = ax.scatter(*where.T, s=26, edgecolors="#7a8794", linewidths=0.4, zorder=2, **colours)
    ax.scatter(*where[who].T, s=110, facecolors="none", edgecolors=INK, linewidths=1.3, zorder=3)
    ax.figure.colorbar(dots, ax=ax, shrink=0.6, label="mph, against before", location="left")
    ax.set_aspect(1.0 / np.cos(np.radians(where[:, 1].mean())), "datalim")
    ax.set_axis_off()
    ax.set_title(f"207 detectors; rings: the {len(who)} that are named")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at", default="2012-06-08 07:30")
    parser.add_argument("--block", choices=["choose", "test"], default="test")
    parser.add_argument("--out", type=Path, default=Path("docs/pictures/incident.png"))
    asked = parser.parse_args()
    train, calibration, live = watched("metr-la", asked.block, 30)
    when = int(datetime.fromisoformat(asked.at).replace(tzinfo=UTC).timestamp())
    one, row = found_at(live, train, calibration, when)
    draw(live, one, row, asked.out)
    print(one.words)
    print(f"{asked.out}: {asked.out.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
