"""Data sets: the embedded synthetic family."""

from jointset.datasets.grssf import Grssf, Truth, generate_grssf

__all__ = ["Grssf", "Truth", "generate_grssf"]
