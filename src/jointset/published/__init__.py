"""Published joint and per-sensor conformal methods as rows: CopulaCPTS, MultiDimSPCI, SPCI, HopCPT, CoRel.

Each follows its authors' code by default, CoRel apart, which is a linear form of its own; where the paper's text
describes another construction, that is a variant with a name of its own (`copula-kde`, `multidim-spci-network`).
"""

from jointset.published.copula import CopulaCPTS
from jointset.published.corel import CoRel
from jointset.published.filter import PublishedFilter
from jointset.published.hopcpt import HopCPT
from jointset.published.multidim import MultiDimSPCI
from jointset.published.sets import Annulus, IntervalBox
from jointset.published.spci import SPCI

__all__ = ["SPCI", "Annulus", "CoRel", "CopulaCPTS", "HopCPT", "IntervalBox", "MultiDimSPCI", "PublishedFilter"]
