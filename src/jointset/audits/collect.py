"""All audits of a predictor as one dictionary, keys as the paper names them, ready for JSON."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from jointset.audits.light import light_of
from jointset.audits.printed import compared
from jointset.audits.questions import AUDITS, audits_named
from jointset.audits.subject import Skip, Subject, subject_of_cell, subject_of_model
from jointset.errors import InputError
from jointset.panel import Panel
from jointset.support.how_far import each, part
from jointset.writing import json_ready

if TYPE_CHECKING:
    from jointset.datasets.cells import Cell
    from jointset.joint_predictor import JointPredictor

Started = Callable[[str], None]


def audit(
    predictor: JointPredictor,
    panel: Panel,
    *,
    audits: Sequence[str] | None = None,
    seed: int = 0,
    progress: Started | None = None,
) -> dict[str, Any]:
    """Audit a calibrated predictor on later readings: one object for each audit, strict JSON values.

    Every object has a `verdict`, one plain sentence, or `skipped` or `failed`, why there is none. The predictor is not
    changed.

    >>> from jointset import GraphLGSSM, JointPredictor, generate_grssf
    >>> train, _, calibration, test = generate_grssf("A", n=8, length=4000).panel.split()
    >>> predictor = JointPredictor(GraphLGSSM(), standardize=False).fit(train).calibrate(calibration)
    >>> audit(predictor, test, audits=["trace_ratio"])["trace_ratio"]["verdict"]
    'the filter predicts its own errors well: ...'
    """
    return collect(subject_of_model(predictor, panel, seed=seed), audits_named(audits), progress)


def audit_cell(
    method: str,
    cell: Cell,
    *,
    audits: Sequence[str] | None = None,
    alpha: float = 0.1,
    seed: int = 0,
    training: dict[str, Any] | None = None,
    progress: Started | None = None,
) -> dict[str, Any]:
    """Fit a method on a cell as its protocol says and audit it on the calibration and test block.

    Beside our numbers stand those the paper prints for this cell and filter, and why they differ.
    """
    from jointset.experiments.rows import fitted_row

    chosen = audits_named(audits)
    if progress is not None:
        progress("fitting")
    with part(1, 2):
        predictor = fitted_row(method, cell, alpha, seed, training=training)
    subject = subject_of_cell(predictor, cell, method, seed=seed, training=training, progress=progress)
    with part(2, 2):
        found = collect(subject, chosen, progress)
    for name, record in found.items():
        record.update(compared(name, record, cell.name, method))
    return json_ready(found)


def collect(subject: Subject, names: Sequence[str], progress: Started | None = None) -> dict[str, Any]:
    """Run the audits of these names; none stops another.

    One that has no meaning for the subject has `skipped`, one that broke `failed`, each with the reason. `light` is
    its colour, None where it does not say whether to rely on the sets.
    """
    found: dict[str, Any] = {}
    for name in each(names):
        if progress is not None:
            progress(name)
        start = time.perf_counter()
        try:
            record = AUDITS[name].run(subject)
        except (Skip, InputError) as reason:  # too few rows for one audit are no reason to lose the others
            record = {"skipped": str(reason)}
        except Exception as error:
            record = {"failed": " ".join(f"{type(error).__name__}: {error}".split())}
        record = json_ready({**record, "seconds": round(time.perf_counter() - start, 3)})
        found[name] = {**record, "light": light_of(name, record)}
    return found
