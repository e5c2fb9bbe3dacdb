"""What the paper prints for an audit, and why ours may differ.

Values are those of its tables and text, by cell and filter; "learned" stands for GraphNeuralSSM, "linear" for
Graph-LGSSM at (0.8, 1, 1). Its empirical rates come from the learned filter on road graphs, from the linear one
elsewhere.
"""

from __future__ import annotations

from typing import Any, NamedTuple

LINEAR = ("kalman",)
LEARNED = ("gnf", "gnf-node")
THEORY = ("sigma_1", "rho_tr", "rho_M0", "rho_snr")
RATES = ("rho_dG", "rho_DL", "rho_score", "rho_ind")


class Rates(NamedTuple):
    """A row of the paper's table of contraction rates: four closed forms, four measured, and on which filter."""

    theory: tuple[float, float, float, float]
    measured: tuple[float, float, float, float]
    learned: bool = False


TABLE = {
    "metr-la-20": Rates((0.443, 0.443, 0.440, 0.443), (0.46, 0.49, 0.153, 0.85), learned=True),
    "pems-bay-50": Rates((0.441, 0.441, 0.438, 0.443), (0.46, 0.49, 0.153, 0.85), learned=True),
    "aqi-12": Rates((0.438, 0.438, 0.435, 0.440), (0.45, 0.48, 0.149, 0.85)),
    "elec-20": Rates((0.433, 0.433, 0.430, 0.436), (0.45, 0.48, 0.140, 0.86)),
    "solar-20": Rates((0.441, 0.441, 0.438, 0.443), (0.46, 0.49, 0.153, 0.85)),
    "loop-seattle-20": Rates((0.441, 0.441, 0.438, 0.443), (0.46, 0.49, 0.152, 0.85)),
    "ett-7": Rates((0.437, 0.437, 0.434, 0.438), (0.45, 0.48, 0.147, 0.86)),
    "jena-20": Rates((0.441, 0.441, 0.438, 0.443), (0.46, 0.49, 0.153, 0.85)),
    "metr-la-207": Rates((0.439, 0.418, 0.415, 0.441), (0.46, 0.50, 0.143, 0.85), learned=True),
    "pems-bay-325": Rates((0.440, 0.415, 0.412, 0.442), (0.46, 0.50, 0.149, 0.85), learned=True),
}
WHOLE = {"metr-la": "metr-la-207", "pems-bay": "pems-bay-325", "ett": "ett-7"}  # all sensors of a data set

OTHERS: dict[tuple[str, str, str], Any] = {  # (audit, cell, kind of filter)
    ("tau_int", "metr-la-20", "linear"): 13.2,
    ("tau_int", "metr-la-20", "learned"): 11.0,
    ("m_eff", "metr-la-20", "linear"): {"bernstein": 265, "geometric": 269, "m": 3500},
    ("m_eff", "metr-la-20", "learned"): {"bernstein": 318, "geometric": 304, "m": 3500},
    ("observability", "metr-la-20", "linear"): {"p5": 0.18, "p10": 0.24, "p50": 0.58, "p90": 0.97},
    ("observability", "metr-la-20", "learned"): {"p5": 0.06, "p10": 0.09, "p50": 0.41, "p90": 1.05},
    ("lipschitz", "metr-la-20", "linear"): {"p50": "at most 0.36", "p95": "at most 1.19"},
    ("lipschitz", "metr-la-20", "learned"): {"p50": "at most 0.36", "p95": "at most 1.19"},
    ("trace_ratio", "metr-la-20", "linear"): 0.62,
    ("trace_ratio", "grssf-a-30", "linear"): 0.44,
    ("warmup", "metr-la-20", "learned"): {
        "warmup": [0, 25, 50, 100, 200],
        "width_full": [3.19, 3.05, 3.04, 3.03, 3.03],
        "joint": [0.908, 0.907, 0.907, 0.907, 0.907],
    },
    ("rank", "metr-la-20", "learned"): {
        "rank": [0, 1, 2, 4, 8, 16],
        "width_full": [5.32, 3.41, 3.21, 3.04, 3.02, 3.08],
        "joint": [0.939, 0.906, 0.907, 0.907, 0.905, 0.906],
    },
    ("pit", "metr-la-20", "learned"): {"value": 0.9, "sensors": 20, "passing": 18, "ZF": 2, "RG": 0},
    ("pit", "pems-bay-50", "learned"): {"value": 0.94, "sensors": 50, "passing": 47, "ZF": 2, "RG": 1},
    ("pit", "elec-20", "learned"): {"value": 0.9, "sensors": 20, "passing": 18, "ZF": 0, "RG": 2},
    ("pit", "metr-la-207", "learned"): {"value": 0.923, "sensors": 207, "passing": 191, "ZF": 10, "RG": 6},
}
PLUG_IN = {"joint_difference": "at most 0.023", "width_difference": "at most 0.3"}


def kind_of(method: str) -> str | None:
    """`linear`, `learned`, or None for a filter the paper does not audit."""
    return "linear" if method in LINEAR else "learned" if method in LEARNED else None


def printed(audit: str, cell: str, method: str) -> Any:
    """The printed value of an audit, None where the paper has none for this cell and filter.

    >>> printed("rho_dG", "aqi-12", "kalman"), printed("rho_dG", "aqi-12", "gnf")
    (0.45, None)
    """
    cell, kind = WHOLE.get(cell, cell), kind_of(method)
    if audit == "plug_in" and cell == "metr-la-20":
        return PLUG_IN
    if kind is None:
        return None
    rates = TABLE.get(cell)
    if rates is not None and audit in RATES:
        return rates.measured[RATES.index(audit)] if rates.learned == (kind == "learned") else None
    if rates is not None and audit == "theory":
        return dict(zip(THEORY, rates.theory, strict=True)) if kind == "linear" else None
    return OTHERS.get((audit, cell, kind))


def printed_elsewhere(audit: str, cell: str, method: str) -> Any:
    """The printed rate of the same cell for the other kind of filter, to set beside ours; None where there is none."""
    rates, kind = TABLE.get(WHOLE.get(cell, cell)), kind_of(method)
    if rates is None or kind is None or audit not in RATES or rates.learned == (kind == "learned"):
        return None
    return rates.measured[RATES.index(audit)]


def compared(audit: str, record: dict[str, Any], cell: str, method: str) -> dict[str, Any]:
    """`paper`, what is printed for this cell and filter, and `note`, why ours differs; empty where there is neither."""
    if "skipped" in record:
        return {}
    value = printed(audit, cell, method)
    other = printed_elsewhere(audit, cell, method)
    found = {} if value is None else {"paper": value}
    if value is None and other is not None:
        found["paper_other_filter"] = other
    if value is None and other is None:
        return {}
    return found | ({"note": NOTES[audit]} if audit in NOTES else {})


NOTES = {
    "theory": (
        "the paper prints sigma_1 of 0.433 to 0.443; with (rho, sigma_Q, sigma_R) = (0.8, 1, 1) the top mode of every "
        "graph has f = 0.8, so that p = 1.370 and sigma_1 = 0.8 / 2.370 = 0.338 whatever the graph. The other modes "
        "forget faster, which lowers rho_tr and rho_M0 after few steps."
    ),
    "rho_dG": (
        "the paper prints 0.45 to 0.46 and calls it within 0.02 of its sigma_1; our linear filter decays at its own "
        "sigma_1 of 0.338. A learned filter forgets at the rate it has learned, which need not lie near that. "
        "The linear `value` is the rate after the fast modes have gone, `window_rate` that of the paper's whole window."
    ),
    "rho_DL": "the paper prints 0.48 to 0.50, within 0.03 of its rho_dG; ours lies as near to our rho_dG.",
    "rho_score": (
        "the paper prints 0.14 to 0.15, faster than its laws. On one input path the score is a smooth function of the "
        "law, so that both must decay at the same rate in the end, and in ours they do. Its window of steps 20 to 100 "
        "lies below the rounding of the scores (0.34^35 is 1e-16). With the noise of protocol `table`, R = 0.1 of the "
        "sensor variance, sigma_1 is 0.156, which is near the printed rate."
    ),
    "rho_ind": (
        "the paper prints 0.85 or 0.86 on every cell. Ours follows the data: 0 on GRSSF A, where the scores of the "
        "true filter are independent by construction, up to 0.97 on Jena. Only lags above the noise are fitted."
    ),
    "trace_ratio": (
        "the paper prints predicted over realised trace of 0.44 on GRSSF and 0.62 on METR-LA. On GRSSF A the filter is "
        "the model that made the data, so that the ratio has to be 1, and it is. On z-scores, (0.8, 1, 1) predicts a "
        "variance above 2 a sensor, more than the readings themselves have: the law is too wide, not too narrow."
    ),
    "pit": (
        "the paper passes 86 to 96 % of the sensors. With thousands of steps the test sees deviations of a few per "
        "cent, and no Gaussian law of real traffic is that exact; the KS distance says how large they are. On METR-LA "
        "every sensor reads zero at 13 % of the test steps (outages), which no continuous law can match."
    ),
    "plug_in": "the paper's bounds are for one cell: what reuse costs grows with sensors over calibration steps.",
    "lipschitz": "the paper gives bounds over its four audited cells, for a filter with 16 hidden units.",
    "observability": (
        "in the linear filter the mean of the law is the state itself, so that the first term alone makes the ratio at "
        "least 1; the printed 0.18 cannot come of the printed formula. For learned filters the paper audits one with "
        "16 hidden units, ours is the deployed one."
    ),
    "tau_int": "the paper takes 30 lags on 3,500 scores; ours takes the calibration block of the cell.",
    "m_eff": "the paper takes 3,500 scores; ours takes the calibration block of the cell.",
    "warmup": "the paper's filter starts at a zero state far from rest; its first 25 steps cost 5 % of width.",
}
