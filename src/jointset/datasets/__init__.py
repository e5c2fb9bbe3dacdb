"""Data sets: the paper's sensor networks, their preparation as cells, and the embedded synthetic family."""

from jointset.datasets.cells import Cell, cell
from jointset.datasets.grssf import Grssf, Truth, generate_grssf

__all__ = ["Cell", "Grssf", "Truth", "cell", "generate_grssf"]
