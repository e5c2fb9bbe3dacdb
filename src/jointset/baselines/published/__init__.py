"""Published joint and per-sensor conformal methods as rows: CopulaCPTS, MultiDimSPCI, SPCI and HopCPT.

Each follows its authors' code by default; where the paper's text describes another construction, that is a variant
with a name of its own (`copula-kde`, `multidim-spci-network`).
"""

from jointset.baselines.published.copula import CopulaCPTS
from jointset.baselines.published.hopcpt import HopCPT
from jointset.baselines.published.multidim import MultiDimSPCI
from jointset.baselines.published.rows import PublishedFilter
from jointset.baselines.published.shapes import Annulus, IntervalBox
from jointset.baselines.published.spci import SPCI

__all__ = ["SPCI", "Annulus", "CopulaCPTS", "HopCPT", "IntervalBox", "MultiDimSPCI", "PublishedFilter"]
