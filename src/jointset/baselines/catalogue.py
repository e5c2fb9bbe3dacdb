"""The catalogue: every row by its paper's name and ours, where its mean comes from, and how its set gets its shape."""

from __future__ import annotations

from typing import NamedTuple

from jointset.errors import require_known

PAPER = "this paper"
GIBBS = "Gibbs and Candes 2021"
ZAFFRAN = "Zaffran et al. 2022"
SUN, XU, XIE = "Sun and Yu 2024", "Xu et al. 2024", "Xu and Xie 2023"


class Entry(NamedTuple):
    """One row of the comparison.

    name: ours, `METHOD[:GEOMETRY][+WRAP]` · paper: its name in the paper · mean: where the centre comes from ·
    covariance: what gives the set its shape · tuned: how settings are chosen · adaptive: the online rule · needs:
    `graph` or `time stamps` · reference. The last four may be empty.
    """

    name: str
    paper: str
    mean: str
    covariance: str
    tuned: str = ""
    adaptive: str = ""
    needs: str = ""
    reference: str = PAPER


CATALOGUE = (
    Entry("static", "CGIF-joint", "backbone", "one covariance of the residuals", reference="Johnstone and Cox 2021"),
    Entry("factor", "FactorCGIF", "backbone", "rank-4 factors and the rest, alpha shared"),
    Entry("factor+aci", "ACI-FactorCGIF", "backbone", "rank-4 factors and the rest", adaptive="ACI", reference=GIBBS),
    Entry("group", "GroupCGIF", "backbone", "one covariance a community, alpha shared", needs="graph"),
    Entry(
        "group+agaci",
        "AgACI-GroupCGIF",
        "backbone",
        "one covariance a community",
        adaptive="AgACI",
        needs="graph",
        reference=ZAFFRAN,
    ),
    Entry("per-group-factor", "PerGroupFactorCGIF", "backbone", "factors and rest in each community", needs="graph"),
    Entry(
        "per-group-factor+aci",
        "ACI-PerGroupFactorCGIF",
        "backbone",
        "factors and rest in each community",
        adaptive="ACI",
        needs="graph",
        reference=GIBBS,
    ),
    Entry("spectral", "SpectralCGIF", "backbone", "three bands of graph frequencies, alpha shared", needs="graph"),
    Entry("ewma", "EWMA Sigma_t", "backbone", "exponentially weighted residuals, half-life 288"),
    Entry("rolling", "Rolling Sigma_t", "backbone", "the last 288 residuals"),
    Entry("time-of-day", "Time-of-day Sigma_t", "backbone", "one covariance an hour of the day", needs="time stamps"),
    Entry(
        "local",
        "Local ellipsoid",
        "backbone",
        "residuals at the 50 nearest past moments",
        reference="Messoudi et al. 2022",
    ),
    Entry("kalman", "CGIF-filtered", "own LGSSM", "linear Kalman filter on the graph"),
    Entry("kalman-tuned", "CGIF-filtered (tuned)", "own LGSSM", "linear Kalman filter on the graph", "validation NLL"),
    Entry("diag-gru", "NeuralSSM", "own GRU", "diagonal head", "MLE"),
    Entry("diag-gru+aci", "NeuralSSM + ACI", "own GRU", "diagonal head", "MLE", "ACI", reference=GIBBS),
    Entry("gcn-rank0", "GCN, rank 0", "own GCN-GRU", "diagonal head", "MLE", needs="graph"),
    Entry("gnf", "GraphNeuralSSM", "own GCN-GRU", "diagonal plus low-rank head", "MLE", needs="graph"),
    Entry(
        "gnf+aci", "GraphNeuralSSM + ACI", "own GCN-GRU", "diagonal plus low-rank head", "MLE", "ACI", "graph", GIBBS
    ),
    Entry("gnf-node", "GraphNeuralSSM (code)", "own node-wise GRU", "heads shared by nodes", "MLE", needs="graph"),
    Entry(
        "gnf-node+aci",
        "GraphNeuralSSM (code) + ACI",
        "own node-wise GRU",
        "heads shared by nodes",
        "MLE",
        "ACI",
        "graph",
        GIBBS,
    ),
    Entry("copula", "CopulaCPTS", "backbone", "marginal scores and a copula", "MLE", reference=SUN),
    Entry("copula-kde", "CopulaCPTS (text)", "backbone", "marginal scores and a kernel copula", reference=SUN),
    Entry(
        "multidim-spci",
        "MultiDimSPCI",
        "backbone",
        "one covariance, radius from past scores",
        adaptive="own",
        reference=XU,
    ),
    Entry(
        "multidim-spci-empirical",
        "MultiDimSPCI (empirical)",
        "backbone",
        "one covariance, radius from the last 100 scores",
        adaptive="own",
        reference=XU,
    ),
    Entry(
        "multidim-spci-network",
        "MultiDimSPCI (text)",
        "backbone",
        "one covariance, radius from a network",
        "pinball loss",
        "own",
        reference=XU,
    ),
    Entry(
        "spci",
        "SPCI",
        "backbone",
        "an interval a sensor from past residuals",
        adaptive="own",
        reference=XIE,
    ),
    Entry(
        "spci-empirical",
        "SPCI (empirical)",
        "backbone",
        "an interval a sensor from the last 100 residuals",
        adaptive="own",
        reference=XIE,
    ),
    Entry(
        "hopcpt",
        "HopCPT",
        "backbone",
        "an interval a sensor from similar past residuals",
        "1,000 updates, the paper has 10,000",
        "own",
        reference="Auer et al. 2023",
    ),
)
ONE_AT_A_TIME = (
    "spci",
    "spci-empirical",
    "hopcpt",
)  # each interval aims at the target by itself: together they hold far less
NAMES = tuple(dict.fromkeys(entry.name.partition("+")[0] for entry in CATALOGUE))  # methods without their wraps


def entry(name: str) -> Entry:
    """The row of a name.

    >>> entry("group+agaci").paper
    'AgACI-GroupCGIF'
    """
    known = {one.name: one for one in CATALOGUE}
    require_known(name, known, f"no row {name!r} in the catalogue")
    return known[name]
