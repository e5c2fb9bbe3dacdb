"""The one table of audits: what each does, asks and measures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from jointset.audits import (
    contraction,
    coverage,
    dependence,
    forgetting,
    lipschitz,
    observability,
    pit,
    plug_in,
    spectrum,
    sweeps,
    theory,
    trace_ratio,
)
from jointset.audits.records import Record
from jointset.audits.subject import Subject
from jointset.errors import require, require_known


class Audit(NamedTuple):
    """One audit: what it does, its title and question in plain words, what its number is, whether it runs unasked."""

    run: Callable[[Subject], Record]
    title: str
    question: str
    symbol: str
    always: bool = True


AUDITS = {
    "coverage": Audit(
        coverage.coverage,
        "Promised and seen",
        "does the set hold as many of these rows as it promised?",
        "the share of the rows inside their set. Chance explains a band around the target that is wider for a short "
        "calibration, for few rows, and for hits and misses that come in runs (90 % confidence)",
    ),
    "clock": Audit(
        coverage.clock,
        "By hour and weekday",
        "does the set hold at every hour and on every weekday?",
        "the lowest share inside of an hour or a weekday that chance does not explain (exact binomial intervals, 95 % "
        "for all hours together; rows of one hour of one day go together). Hours are those of the time stamps (UTC)",
    ),
    "m_eff": Audit(
        dependence.m_eff,
        "Worth of the calibration",
        "what is the calibration block worth?",
        "m_eff, the number of independent steps that say as much: steps over tau_int",
    ),
    "m_sweep": Audit(
        sweeps.m_sweep,
        "Length of the calibration",
        "does a longer calibration err less, as its effective size says?",
        "the power of m_eff with which the error of the share of hits of m scores falls; -0.5 by theory, near 0 where "
        "scores change over time",
    ),
    "tau_int": Audit(
        dependence.tau_int,
        "Runs of hits and misses",
        "how long does a hit or a miss last?",
        "tau_int, the integrated autocorrelation time: how many steps are worth one independent one; 1 is best",
    ),
    "rho_ind": Audit(
        dependence.rho_ind,
        "Memory of hits and misses",
        "how fast do hits and misses decorrelate?",
        "rho_ind, the share of the correlation of hits that is left a step later; near 1 misses come in long runs",
    ),
    "warmup": Audit(
        sweeps.warmup,
        "Warm-up of the calibration",
        "does the warm-up matter?",
        "how far the width moves over t0, the first calibration row whose score counts. This alone judges the warm-up",
    ),
    "rho_dG": Audit(
        contraction.rho_dG,
        "Forgetting a wrong start",
        "how fast do the emitted laws forget a wrong state?",
        "rho_dG, the share of the difference between two copies of the filter, started apart and fed the same "
        "readings, that is left a step later (Bures-Wasserstein distance of their laws). It says how long the sets are "
        "off after a restart from another state, not how long the warm-up has to be",
    ),
    "rho_DL": Audit(
        contraction.rho_DL,
        "Forgetting, seen over ten steps",
        "how fast, seen through ten steps of output?",
        "rho_DL, as rho_dG, from eleven laws at once; far above rho_dG something hides at first and comes out later",
    ),
    "rho_score": Audit(
        forgetting.rho_score,
        "Forgetting in the scores",
        "how fast do the scores forget a wrong state?",
        "rho_score, as rho_dG, from the distribution of the scores (1-Wasserstein distance)",
    ),
    "observability": Audit(
        observability.observability_record,
        "Hidden parts of the state",
        "does every direction of the state show in the output?",
        "p5 of the change of the next eleven laws over the change of the state; 0.1 or more: nothing hides",
    ),
    "lipschitz": Audit(
        lipschitz.lipschitz_record,
        "Scores and the state",
        "how strongly do scores react to the state?",
        "p95 of the change of the root score over the change of the state; p99 far above it means touchy steps",
    ),
    "spectrum": Audit(
        spectrum.spectrum_record,
        "Roundness of the sets",
        "how round are the sets, how far from degenerate?",
        "the condition number, the longest over the shortest axis squared; a high one is fine, variances at their "
        "floor are not",
    ),
    "trace_ratio": Audit(
        trace_ratio.trace_ratio_record,
        "Size of the errors",
        "does the filter predict the size of its own errors?",
        "predicted over realised variance; 1 is right, calibration makes up for the rest",
    ),
    "pit": Audit(
        pit.pit_record,
        "Law of every sensor",
        "is every sensor's predictive law right?",
        "the share of sensors whose predictive law passes a Kolmogorov-Smirnov test (KS distance: how far off; PIT: "
        "the place of a reading in its law, 0 to 1, evenly spread if the law is right). Coverage does not need it",
    ),
    "theory": Audit(
        theory.theory,
        "What theory says",
        "what does the theory of the filter predict?",
        "sigma_1 (linear filter), the share of an error that its slowest mode keeps a step; rho_M0, the same for a "
        "typical start",
    ),
    "plug_in": Audit(
        plug_in.plug_in_record,
        "Reuse of the calibration rows",
        "what does fitting on the calibration block cost?",
        "coverage of a static covariance from the calibration block less that of one from the training block",
    ),
    "sensitivity": Audit(
        contraction.sensitivity_record,
        "Settings of the measurement",
        "do the rates depend on how they are measured?",
        "how far rho_dG moves over the paper's grids of settings",
        always=False,
    ),
    "rank": Audit(
        sweeps.rank,
        "Rank of the covariance",
        "which rank of the covariance is enough? (trains six filters)",
        "the rank with the smallest volume",
        always=False,
    ),
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
