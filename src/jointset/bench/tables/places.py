"""Rows and columns of a described table, opened up to what a folder holds: variants of a method, seeds, best rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from jointset.bench.tables.grids import ANY_SEED, BEST_BACKBONE, BEST_NON_FILTER, Grid
from jointset.bench.tables.measured import At, Measured, Summary, has_own_mean
from jointset.paper import printed, printed_places
from jointset.paper_rows import methods_of_row


def candidates(method: str, protocol: str) -> tuple[str, ...]:
    """Our methods for a row of the paper, the one meant first.

    >>> candidates("gnf+aci", "table"), candidates("static", "text")
    (('gnf-node+aci', 'gnf+aci'), ('static',))
    """
    return (method, "kalman") if method == "kalman-tuned" else methods_of_row(method, protocol)


@cache
def non_filters() -> tuple[str, ...]:
    """The rows of the catalogue whose mean is a backbone's."""
    from jointset.paper_rows import CATALOGUE

    return tuple(entry.name for entry in CATALOGUE if not has_own_mean(entry.name))


def printed_place(at: At) -> str:
    """Key of a place among the paper's numbers."""
    backbone = f"@{at.backbone}" if at.backbone else ""
    seed = f"#{at.seed}" if at.seed is not None else ""
    return f"{at.cell}{backbone}{seed}"


class Places:
    """What was measured at the places of a grid, and what the paper prints there."""

    def __init__(self, grid: Grid, measured: Measured, paper: bool) -> None:
        self.grid, self.measured, self.paper = grid, measured, paper
        columns = [one for key in grid.columns for one in self._opened(key, grid.rows)]
        rows = [one for key in grid.rows for one in self._opened(key, grid.columns)]
        self.rows = [row for row in rows if any(self.told(row.joined(column)) for column in columns)]
        self.columns = [column for column in columns if any(self.told(row.joined(column)) for row in rows)]

    def find(self, at: At) -> Summary | None:
        """What was measured at a place, the best of a kind included."""
        if at.method == BEST_NON_FILTER:
            name = self.best_non_filter(at)
            return None if name is None else self.measured.find(at._replace(method=name))
        if at.backbone == BEST_BACKBONE:
            key = (at.cell, at.method, at.variant or "", at.limit_steps or 0)
            rows = self.measured.summaries.items()
            return self._best(one for (cell, _, *rest), one in rows if (cell, *rest) == key)
        return self.measured.find(at)

    def told(self, at: At) -> bool:
        """Whether there is a measured number, or a printed one that is asked for, at a place."""
        return self.find(at) is not None or (self.paper and bool(self.printed(at)))

    def printed(self, at: At) -> dict[str, str]:
        """What the paper prints at a place; only the first of several variants of a row is what it means."""
        return dict(printed(self.grid.name, str(at.method), printed_place(at)))

    def best_non_filter(self, at: At) -> str | None:
        """Name of the tightest row at target whose mean is the gpvar backbone's."""
        found = self._non_filters(at)
        best = self._best(found.values(), only_at_target=True)
        return next((name for name, one in found.items() if one is best), None)

    def none_at_target(self, at: At) -> bool:
        """Whether a place asks for the best non-filter row, and rows were run there but none is at target."""
        ran = self._non_filters(at).values() if at.method == BEST_NON_FILTER else ()
        return any(one.seeds for one in ran) and self.best_non_filter(at) is None

    def _non_filters(self, at: At) -> dict[str, Summary]:
        return {name: one for name in non_filters() if (one := self.measured.find(at._replace(method=name)))}

    def _best(self, summaries: Iterable[Summary], only_at_target: bool = False) -> Summary | None:
        """The tightest of those at target, else the tightest."""
        ran = [one for one in summaries if one.number(self.grid.rank_key) is not None]
        good = [one for one in ran if one.at_target()]
        pool = good if good or only_at_target else ran
        return min(pool, key=lambda one: one.number(self.grid.rank_key) or 0, default=None)

    def _opened(self, key: At, others: Sequence[At]) -> list[At]:
        """A row or column as it is described, opened into the variants or seeds that are there."""
        if key.seed == ANY_SEED:
            cell = str(key.cell)
            asked = [place.partition("#") for name in ("gnf", "static") for place in printed_places("seeds", name)]
            shown = [int(seed) for name, _, seed in asked if name == cell] if self.paper else []
            return [key._replace(seed=seed) for seed in sorted({*self.measured.seeds(cell), *shown})]
        if key.method is None:
            return [key]
        best = key.method == BEST_NON_FILTER
        names = non_filters() if best else candidates(key.method, self.measured.protocol)
        places = [key._replace(method=None).joined(other) for other in others]
        runs = self.measured.variants(names, [place for one in places for place in self._concrete(one)])
        if best:  # of whole runs where there are any, else of quick looks
            limits = sorted({run.limit_steps or 0 for run in runs})
            return [key._replace(limit_steps=limit) for limit in limits if limit and limits[0]] or [key]
        opened = [run.joined(key) for run in runs]
        return opened or ([key._replace(method=names[0])] if self.paper else [])

    def _concrete(self, place: At) -> list[At]:
        """A place without `any seed` and `best backbone`: the places it stands for."""
        place = place._replace(seed=None) if place.seed == ANY_SEED else place
        if place.backbone != BEST_BACKBONE:
            return [place]
        return [place._replace(backbone=name) for name in sorted({key[1] for key in self.measured.summaries})]
