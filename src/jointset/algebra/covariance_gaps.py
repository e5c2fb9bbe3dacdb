"""Rows with gaps: the marginal law of the sensors that were read, of one row and of many under one covariance.

With few sensors missing that of one row comes from what is known of the whole (`Bordered`, O(N^2) for each missing
one), else from the block that was read (`Cut`). Many rows take one small factorisation for every pattern of missing
sensors (`PartialRows`).

Let P be the precision of all sensors and K = P_MM its block of the m that a row lacks. A missing residual set to what
the others let expect, -K^-1 (P e)_M, makes the distance on all sensors that on those that were read; the determinant of
what was read is det S det K, its precision P less P_oM K^-1 P_Mo. So a row costs m^3 and a product with S^-1/2, not a
factorisation of its own. Where more than half are missing, the block that was read is the smaller one, and is inverted.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from jointset.algebra.triangles import cholesky, solve_lower
from jointset.contracts import Array

if TYPE_CHECKING:
    from jointset.algebra.covariance import Covariance


class Cut:
    """The sensors that were read by themselves: their block S_oo of a covariance."""

    def __init__(self, whole: Covariance, missing: Array) -> None:
        self.places = np.flatnonzero(~missing)
        self.block = whole.select(self.places).factorised()
        self.n = len(missing)

    @property
    def log_det(self) -> Array:
        """log det S_oo."""
        return self.block.log_det

    def distance(self, e: Array) -> Array:
        """Squared distance of a residual (N,)."""
        return self.block.distance(e[self.places])

    def precision_terms(self, e: Array) -> tuple[Array, Array]:
        """S_oo^-1 e (N,), 0 where missing, and the diagonal of S_oo^-1, 1 where missing."""
        solved, precision = np.zeros(self.n), np.ones(self.n)
        solved[self.places], precision[self.places] = self.block.precision_terms(e[self.places])
        return solved, precision


class Bordered:
    """The sensors that were read, from the whole covariance and K = (S^-1)_MM of the k missing ones.

    A missing residual set to what the others let expect, -K^-1 (S^-1 e)_M, makes the distance on all sensors that on
    those that were read; det S_oo = det S det K, and S_oo^-1 is S^-1 less its columns through K (Schur complement).
    """

    def __init__(self, whole: Covariance, missing: Array) -> None:
        self.whole, self.missing = whole, missing
        self.units = whole.units(np.flatnonzero(missing))
        self.solved = whole.solve_coordinates(self.units)  # S^-1 of the missing sensors (k, N)
        self.root = cholesky(self.units @ self.solved.T)

    @property
    def log_det(self) -> Array:
        """log det S_oo."""
        return self.whole.log_det + 2.0 * np.log(self.root.diagonal()).sum()

    def _filled(self, e: Array) -> Array:
        """Coordinates of a residual (N,) with its missing entries as expected."""
        from scipy.linalg import cho_solve  # here, so that importing jointset stays fast

        x = self.whole.coordinates(e)
        return x - cho_solve((self.root, True), self.solved @ x) @ self.units

    def distance(self, e: Array) -> Array:
        """Squared distance of a residual (N,)."""
        return self.whole.coordinate_distance(self._filled(e))

    def precision_terms(self, e: Array) -> tuple[Array, Array]:
        """S_oo^-1 e (N,), 0 where missing, and the diagonal of S_oo^-1, 1 where missing."""
        solved = self.whole.from_coordinates(self.whole.solve_coordinates(self._filled(e)))
        lost = solve_lower(self.root, self.whole.from_coordinates(self.solved))
        precision = self.whole.precision_diagonal - (lost**2).sum(0)
        return np.where(self.missing, 0.0, solved), np.where(self.missing, 1.0, precision)


Marginal = Cut | Bordered


class PartialRows:
    """The marginal laws of rows that lack some sensors (T, N), for residuals (T, N) that are zero there."""

    def __init__(self, whole: Covariance, missing: Array) -> None:
        self.whole, self.missing = whole, missing
        self.patterns, self.which = patterns_of(missing)

    @cached_property
    def _groups(self) -> list[tuple[Array, Array, Array, bool]]:
        """Patterns (u,) with as many places (u, k), their blocks (u, k, k), and whether those are cut from P."""
        found = []
        for patterns, places in same_count(self.patterns):
            few = 2 * places.shape[1] <= self.patterns.shape[1]
            if not few:
                places = np.nonzero(~self.patterns[patterns])[1].reshape(len(patterns), -1)
            matrix = self.whole.precision if few else self.whole.matrix
            blocks = matrix[places[:, :, None], places[:, None, :]]
            found.append((patterns, places, blocks, few))
        return found

    def _rows(self) -> Iterator[tuple[Array, Array, int]]:
        """Rows (g,) of every group, and which of its patterns each has (g,); the number of the group."""
        group, number = np.empty((2, len(self.patterns)), dtype=int)
        for i, (patterns, *_) in enumerate(self._groups):
            group[patterns], number[patterns] = i, np.arange(len(patterns))
        group, number = group[self.which], number[self.which]
        for i in range(len(self._groups)):
            rows = np.flatnonzero(group == i)
            yield rows, number[rows], i

    @cached_property
    def log_det(self) -> Array:
        """Log-determinants (T,) of what was read."""
        out = np.empty(len(self.patterns))
        for patterns, _, blocks, few in self._groups:
            out[patterns] = np.linalg.slogdet(blocks)[1] + (self.whole.log_det if few else 0.0)
        return out[self.which]

    def _solved(self, e: Array) -> Iterator[tuple[tuple[Array, Array], Array, bool]]:
        """By group the places (g, k) of rows, K^-1 (P e)_M or S_oo^-1 e_o (g, k) there, and whether it is the first."""
        pulled = e @ self.whole.precision
        for rows, own, i in self._rows():
            _, places, blocks, few = self._groups[i]
            at = (rows[:, None], places[own])
            right = (pulled if few else e)[at]
            if 2 * len(blocks) > len(rows):  # few rows a pattern: no inverse pays
                yield at, np.linalg.solve(blocks[own], right[..., None])[..., 0], few
            else:
                yield at, np.einsum("gij,gj->gi", np.linalg.inv(blocks)[own], right), few

    def distance(self, e: Array) -> Array:
        """Squared distances (T,)."""
        out, filled, from_whole = np.empty(len(e)), e.copy(), np.ones(len(e), dtype=bool)
        for at, solved, few in self._solved(e):
            if few:
                filled[at] = -solved
            else:
                rows = at[0][:, 0]
                out[rows], from_whole[rows] = np.einsum("gi,gi->g", solved, e[at]), False
        out[from_whole] = self.whole.distance(filled[from_whole])
        return out

    def filled(self, e: Array) -> Array:
        """Residuals (T, N) with what the others let expect in the place of the missing ones."""
        filled, weights, most = e.copy(), np.zeros(e.shape), np.zeros(len(e), dtype=bool)
        for at, solved, few in self._solved(e):
            if few:
                filled[at] = -solved
            else:
                weights[at], most[at[0][:, 0]] = solved, True
        expected = weights[most] @ self.whole.matrix
        filled[most] = np.where(self.missing[most], expected, e[most])
        return filled

    def precision_terms(self, e: Array) -> tuple[Array, Array]:
        """S_oo^-1 e (T, N), 0 where missing, and the diagonals of S_oo^-1, 1 where missing."""
        P, diagonal = self.whole.precision, self.whole.precision_diagonal
        pulled = e @ P
        solved, precision = np.zeros(e.shape), np.ones(e.shape)
        for rows, own, i in self._rows():
            _, places, blocks, few = self._groups[i]
            inverses, at = np.linalg.inv(blocks), (rows[:, None], places[own])
            if few:
                columns = P[places]  # (u, k, N)
                lost = np.einsum("uki,ukl,uli->ui", columns, inverses, columns, optimize=True)
                expected = np.einsum("gij,gj->gi", inverses[own], pulled[at])
                solved[rows] = pulled[rows] - np.einsum("gk,gki->gi", expected, columns[own])
                precision[rows] = diagonal - lost[own]
            else:
                solved[at] = np.einsum("gij,gj->gi", inverses[own], e[at])
                precision[at] = np.einsum("gii->gi", inverses[own])
        return np.where(self.missing, 0.0, solved), np.where(self.missing, 1.0, precision)


def patterns_of(missing: Array) -> tuple[Array, Array]:
    """The patterns (u, N) of missing sensors among rows (T, N), and which of them each row has (T,).

    >>> patterns, which = patterns_of(np.array([[True, False], [False, False], [True, False]]))
    >>> patterns[which].tolist()
    [[True, False], [False, False], [True, False]]
    """
    packed = np.packbits(missing, axis=1)
    words = -(-packed.shape[1] // 8)
    padded = np.zeros((len(missing), 8 * words), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    keys = padded.view(np.uint64) if words == 1 else padded.view([("", np.uint64)] * words)
    _, first, which = np.unique(keys.ravel(), return_index=True, return_inverse=True)
    return missing[first], which.ravel()


def same_count(patterns: Array) -> Iterator[tuple[Array, Array]]:
    """Patterns (u, N) by how many sensors they lack: which ones (v,), and the places that each lacks (v, k)."""
    counts = patterns.sum(axis=1)
    order = np.argsort(counts, kind="stable")
    places, at = np.flatnonzero(patterns[order]) % patterns.shape[1], 0
    for chosen in np.split(order, np.flatnonzero(np.diff(counts[order])) + 1) if len(order) else ():
        k, begin = int(counts[chosen[0]]), at
        at += k * len(chosen)
        yield chosen, places[begin:at].reshape(len(chosen), k)
