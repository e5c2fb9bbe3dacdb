"""What the commands show and write of the sets for the next H steps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from jointset.next_set import next_sets, times_ahead
from jointset.terminal import number, show_json, show_table

if TYPE_CHECKING:
    import pandas as pd

    from jointset.horizons.passes_ahead import AheadRun
    from jointset.horizons.sets_ahead import AheadSets
    from jointset.joint_predictor import JointPredictor
    from jointset.predicting.limits import Limits


def show_run_ahead(run: AheadRun, predictor: JointPredictor) -> None:
    """Coverage and sizes of the sets for steps ahead on some rows, and what the calibration is worth."""
    rows = [
        [str(one["step"]), f"{100 * one['joint']:.1f} %", number(one["log_volume"]), f"{one['rmse']:.4g}"]
        for one in run.summary()
    ]
    show_table(("step", "joint", "log-volume", "rmse"), rows, f"{run.steps} steps ahead")
    if predictor.horizon is not None:
        note = predictor.horizon.note
        typer.echo(f"{note[0].upper()}{note[1:]}.")


def show_sets(
    predictor: JointPredictor, sets: AheadSets, as_json: bool, limits: Limits, tested: AheadRun | None = None
) -> None:
    """The sets of the next steps: as JSON all of them, as a table the first and the last step of every sensor."""
    if as_json:
        show_json(next_sets(predictor, sets, limits) | ({} if tested is None else {"tested": tested.summary()}))
        return
    alone, last = sets.own_bounds, sets.horizon - 1
    (lower, upper), mean = limits.clip(alone or sets.bounds), limits.inside(sets.mean)
    ends = (("lower", lower), ("mean", mean), ("upper", upper))
    shown = [(f"{name} +{h + 1}", part[h]) for h in (0, last) for name, part in ends]
    cells = [[name, *(f"{part[i]:.4g}" for _, part in shown)] for i, name in enumerate(sets.sensors)]
    title = f"The next {sets.horizon} steps" + (", own bands" if alone else "")
    show_table(("sensor", *(name for name, _ in shown)), cells, title)
    volumes = ", ".join(f"{x:.3g}" for x in sets.steps.log_volume)
    typer.echo(f"log-volume of the set of each step: {volumes}; of all steps at once: {sets.together.log_volume:.3g}")
    what = "the reading of that one sensor" if alone else "the whole row of the step"
    told = "; there these are own_lower and own_upper" if alone else ""
    typer.echo(f"lower and upper hold {what} as often as the sets hold theirs; --json and --out have all sets{told}.")


def write_sets(predictor: JointPredictor, sets: AheadSets, path: Path, limits: Limits) -> None:
    """A line for every step and sensor: step, time, sensor, and the ends of both kinds of set."""
    from jointset.writing import write_table

    write_table(table_of(predictor, sets, limits), path)


def table_of(predictor: JointPredictor, sets: AheadSets, limits: Limits) -> pd.DataFrame:
    """The sets as a table, the ends cut off at the limits."""
    table = sets.to_pandas()
    for column in table.columns:
        table[column] = limits.inside(table[column].to_numpy())
    table = table.reset_index()
    stamps = times_ahead(predictor, sets.horizon)
    if stamps is not None:
        table.insert(1, "time", [stamps[step - 1] for step in table["step"]])
    return table
