"""Comparison rows, built from the same parts as the filters."""

from jointset.backbones.gpvar import GPVAR
from jointset.baselines.static import StaticFilter

__all__ = ["GPVAR", "StaticFilter"]
