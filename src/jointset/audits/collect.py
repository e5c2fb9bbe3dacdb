"""All audits of a predictor as one dictionary, keys as the paper names them, ready for JSON."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jointset
from jointset.audits import memory, records
from jointset.audits.printed import compared
from jointset.audits.records import Record
from jointset.audits.subject import Skip, Subject, subject_of_cell, subject_of_model
from jointset.errors import InputError, require, require_known
from jointset.panel import Panel
from jointset.writing import json_ready, new_folder, whole_file

if TYPE_CHECKING:
    from jointset.datasets.cells import Cell

FOLDER = "_audits"
Started = Callable[[str], None]


class Audit(NamedTuple):
    """One audit: what it does, the question it answers, and whether it runs without being asked for."""

    run: Callable[[Subject], Record]
    question: str
    always: bool = True


AUDITS = {
    "rho_dG": Audit(memory.rho_dG, "how fast do the emitted laws forget a wrong state?"),
    "rho_DL": Audit(memory.rho_DL, "how fast, seen through ten steps of output?"),
    "observability": Audit(memory.observability, "does every direction of the state show in the output?"),
    "rho_score": Audit(memory.rho_score, "how fast do the scores forget a wrong state?"),
    "rho_ind": Audit(memory.rho_ind, "how fast do hits and misses decorrelate?"),
    "tau_int": Audit(memory.tau_int, "how long does a hit or a miss last?"),
    "m_eff": Audit(memory.m_eff, "what is the calibration block worth?"),
    "lipschitz": Audit(records.lipschitz, "how strongly do scores react to the state?"),
    "spectrum": Audit(records.spectrum, "how round are the sets, how far from degenerate?"),
    "trace_ratio": Audit(records.trace_ratio, "does the filter predict the size of its own errors?"),
    "plug_in": Audit(records.plug_in, "what does fitting on the calibration block cost?"),
    "pit": Audit(records.pit, "is every sensor's predictive law right?"),
    "warmup": Audit(records.warmup, "does the warm-up matter?"),
    "theory": Audit(memory.theory, "what does the theory of the linear filter predict?"),
    "sensitivity": Audit(memory.sensitivity, "do the rates depend on how they are measured?", always=False),
    "rank": Audit(records.rank, "which rank of the covariance is enough? (trains six filters)", always=False),
}
DEFAULT = tuple(name for name, entry in AUDITS.items() if entry.always)


def audits_named(names: Sequence[str] | None) -> tuple[str, ...]:
    """The audits of these names in the order of AUDITS; without names all that need no further training.

    >>> audits_named(["pit", "rho_dG"])
    ('rho_dG', 'pit')
    """
    if names is None:
        return DEFAULT
    for name in names:
        require_known(name, AUDITS, f"unknown audit {name!r}")
    require(len(names) > 0, f"no audit named: choose among {', '.join(AUDITS)}")
    return tuple(name for name in AUDITS if name in names)


def audit(
    predictor: Any,
    panel: Panel,
    *,
    audits: Sequence[str] | None = None,
    seed: int = 0,
    progress: Started | None = None,
) -> dict[str, Any]:
    """Audit a calibrated predictor on later readings: one object for each audit, strict JSON values.

    Every object has a `verdict`, one plain sentence, or `skipped`, why there is none. The predictor is not changed.

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
    from jointset.baselines.rows import fitted_row

    chosen = audits_named(audits)
    if progress is not None:
        progress("fitting")
    predictor = fitted_row(method, cell, alpha, seed, training=training)
    subject = subject_of_cell(predictor, cell, method, seed=seed, training=training, progress=progress)
    found = collect(subject, chosen, progress)
    for name, record in found.items():
        record.update(compared(name, record, cell.name, method))
    return json_ready(found)


def collect(subject: Subject, names: Sequence[str], progress: Started | None = None) -> dict[str, Any]:
    """Run the audits of these names; those that have no meaning for the subject say why."""
    found: dict[str, Any] = {}
    for name in names:
        if progress is not None:
            progress(name)
        start = time.perf_counter()
        try:
            record = AUDITS[name].run(subject)
        except (Skip, InputError) as reason:  # too few rows for one audit are no reason to lose the others
            record = {"skipped": str(reason)}
        found[name] = {**record, "seconds": round(time.perf_counter() - start, 3)}
    return json_ready(found)


# ---------------------------------------------------------------------- files


def about(subject: str, method: str, **facts: Any) -> dict[str, Any]:
    """What a file of audits is about; stands before the audits."""
    started = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return {"cell": subject, "filter": method, **facts, "version": jointset.__version__, "started": started}


def audit_file(folder: str | Path, cell: str, method: str) -> Path:
    """Where the audits of a cell and a filter lie.

    >>> str(audit_file("out", "metr-la-20", "gnf-node"))
    'out/_audits/metr-la-20--gnf-node.json'
    """
    plain = [re.sub(r"[^A-Za-z0-9.+_-]+", "-", part).strip("-") for part in (cell, method)]
    return Path(folder) / FOLDER / f"{'--'.join(plain)}.json"


def write_audits(path: Path, content: dict[str, Any]) -> None:
    """Write a file of audits, whole or not at all."""
    new_folder(path.parent)
    with whole_file(path) as unfinished:
        unfinished.write_text(json.dumps(json_ready(content), indent=1, allow_nan=False) + "\n", encoding="utf-8")


def read_audit_file(path: Path) -> dict[str, Any]:
    """The audits of a file with what they are about; empty where there is no file."""
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON ({error}): delete it, or use --again") from None
    require(isinstance(content, dict), f"{path} holds no audits: delete it, or use --again")
    return content
