"""The fan of one sensor: its last readings, and where the sets of the next H steps reach."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from jointset.contracts import Array
from jointset.errors import require_known
from jointset.horizons.sets_ahead import AheadSets
from jointset.plot import INK
from jointset.predicting.limits import UNLIMITED, Limits
from jointset.report.figures import STYLE, new_figure
from jointset.support.atomic import whole_file

OWN, ONE, ALL = "#5aa2d8", "#a9cdea", "#dbe9f5"  # bands of a sensor alone, of the set of each step, of that of all
MEAN = "#0b3c6f"
PAST = 48  # readings shown before the sets


def fan(sets: AheadSets, sensor: str, past: Array | None = None, *, ax: Any = None, limits: Limits = UNLIMITED) -> Any:
    """Axes with the fan of one sensor; `past` (T, N) holds the last rows, the newest last, as the model was given them.

    The dark band holds the sensor by itself. The others are the shadows of sets that hold all sensors of a step, or of
    all steps: the more readings a set holds, the further it reaches along one of them. The axes follow the dark two.
    """
    require_known(sensor, sets.sensors, f"no sensor {sensor!r} in the model")
    place, steps = sets.sensors.index(sensor), np.arange(1, sets.horizon + 1)
    with matplotlib.rc_context(STYLE):
        ax = new_figure(6.4, 3.2).subplots() if ax is None else ax
        bands = [(sets.bounds_together, ALL, "set of all steps"), (sets.bounds, ONE, "set of each step")]
        bands += [] if sets.own_bounds is None else [(sets.own_bounds, OWN, "this sensor alone")]
        for bounds, color, label in bands:
            lower, upper = (end[:, place] for end in limits.clip(bounds))
            ax.fill_between(steps, lower, upper, color=color, linewidth=0, label=label)
        ax.plot(steps, limits.inside(sets.mean[:, place]), color=MEAN, linewidth=1.6, label="mean")
        if past is not None and len(past):
            shown = np.asarray(past)[-PAST:, place]
            ax.plot(np.arange(1 - len(shown), 1), shown, color=INK, linewidth=1.1, label="read")
        seen = [sets.mean[:, place], *(end[:, place] for bounds, _, _ in bands[1:] for end in limits.clip(bounds))]
        seen += [] if past is None else [np.asarray(past)[-PAST:, place]]
        low, high = np.nanmin(np.concatenate(seen)), np.nanmax(np.concatenate(seen))
        ax.set_ylim(low - 0.05 * (high - low), high + 0.3 * (high - low))
        ax.axvline(0.5, color="#bbbbbb", linewidth=0.8)
        ax.set_title(sensor, parse_math=False)
        ax.set_xlabel("steps from now")
        ax.legend(loc="upper left", ncols=2)
    return ax


def write_fans(
    folder: Path, sets: AheadSets, past: Array | None, limits: Limits, sensors: Sequence[str] | None = None
) -> list[Path]:
    """A picture FOLDER/NNN-SENSOR.png for every sensor; their places."""
    written = []
    for sensor in sensors or sets.sensors:
        plain = "".join(c if c.isalnum() or c in "-_." else "_" for c in sensor)
        path = folder / f"{sets.sensors.index(sensor):03d}-{plain}.png"
        with whole_file(path) as unfinished:
            fan(sets, sensor, past, limits=limits).figure.savefig(unfinished, format="png")
        written.append(path)
    return written
