"""The protocols of a benchmark cell: which sensors it holds, how its steps are split, what becomes of gaps and units.

`fit` is what `jointset fit` does to a file, and the default for files: 70 % of the steps to fit on, 20 % to calibrate
and 10 % to test, gaps left open, readings in their own units, shapes fitted on the training rows. `text` is what the
paper describes: four blocks, gaps filled, z-scores, the k sensors of largest mean magnitude (or variance) in the
training block, all test steps. `table` is what its printed tables were made with: sensors by the variance of the whole
series, the top k for seed 0 and a draw from the top 2k for the others, and the first 4,000 test steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.errors import require, require_known
from jointset.panel import Panel

PAPER = (0.7, 0.1, 0.1, 0.1)
COLUMNS = 32  # sensors looked at together, so that no copy of a whole panel is made
Size = Literal["magnitude", "variance"]


class Protocol(NamedTuple):
    """Names and shares of the blocks in time order, how many test steps count (None: all), and whether it is a paper's.

    Of a paper: gaps are filled, readings scaled once for all, and a file without a graph gets one from correlations.
    """

    name: str
    blocks: tuple[str, ...]
    fractions: tuple[float, ...] = PAPER
    test_steps: int | None = None
    printed: bool = True


PROTOCOLS = {
    "fit": Protocol("fit", ("train", "calibration", "test"), (0.7, 0.2, 0.1), printed=False),
    "text": Protocol("text", ("train", "validation", "calibration", "test")),
    "table": Protocol("table", ("train", "pilot", "calibration", "test"), test_steps=4000),
}


def default_protocol(name: str) -> str:
    """The protocol of a cell where none is asked for: `fit` for a file, `text` for a data set.

    >>> default_protocol("file:speeds.csv"), default_protocol("metr-la-20")
    ('fit', 'text')
    """
    return "fit" if name.startswith("file:") else "text"


def protocol_named(name: str) -> Protocol:
    """A protocol by name."""
    require_known(name, PROTOCOLS, f"unknown protocol {name!r}")
    return PROTOCOLS[name]


def block_slices(protocol: Protocol, panel: Panel) -> dict[str, slice]:
    """Steps of the blocks, as `Panel.split` cuts them; `table` ends its test block early.

    >>> block_slices(PROTOCOLS["text"], Panel(np.zeros((100, 1)), ["a"]))["test"]
    slice(90, 100, None)
    """
    lengths = [len(block) for block in panel.split(protocol.fractions)]
    shares = ", ".join(f"{100 * share:.0f}" for share in protocol.fractions)
    require(min(lengths) > 0, f"{panel.T} steps do not fill blocks of {shares} %: give at least 10")
    ends = np.cumsum([0, *lengths]).tolist()
    slices = {name: slice(*ends[i : i + 2]) for i, name in enumerate(protocol.blocks)}
    if protocol.test_steps is not None:
        test = slices["test"]
        slices["test"] = slice(test.start, min(test.stop, test.start + protocol.test_steps))
    return slices


def choose_sensors(protocol: Protocol, panel: Panel, k: int, seed: int = 0, by: Size = "magnitude") -> Array:
    """Sorted indices (k,) of the sensors of a cell; `by` ranks them in protocol `text` (training block only).

    Ties go to the first name in `text`, so that a permuted panel gives the same sensors, and to the first column in
    `table`, as its authors' code does.
    """
    require(1 <= k <= panel.n_sensors, f"{k} sensors asked for, {panel.n_sensors} are at hand: ask for fewer")
    if protocol.name == "table":
        order = np.argsort(-per_sensor(panel.values, _variance), kind="stable")
        if seed == 0:
            return np.sort(order[:k])
        return np.sort(np.random.default_rng(seed).choice(order[: 2 * k], k, replace=False))
    train = panel.values[: len(panel.split(protocol.fractions)[0])]
    size = per_sensor(train, _magnitude if by == "magnitude" else _variance)
    ranked = sorted(range(panel.n_sensors), key=lambda i: (-size[i], panel.sensors[i]))
    return np.sort(ranked[:k])


def per_sensor(values: Array, measure: Callable[[Array], Array]) -> Array:
    """A number for every sensor (N,), a few columns of values (T, N) at a time."""
    return np.concatenate([measure(values[:, j : j + COLUMNS]) for j in range(0, values.shape[1], COLUMNS)])


def _magnitude(values: Array) -> Array:
    """Mean |Y| (N,) of the readings there are; 0 for a sensor without any."""
    seen = ~np.isnan(values)
    return np.divide(np.abs(values).sum(0, where=seen), seen.sum(0), out=np.zeros(values.shape[1]), where=seen.any(0))


def _variance(values: Array) -> Array:
    """Population variance (N,) of the readings there are; 0 for a sensor without any."""
    seen = ~np.isnan(values)
    out = np.zeros(values.shape[1])
    some = seen.any(axis=0)
    out[some] = np.var(values[:, some], axis=0, where=seen[:, some])
    return out
