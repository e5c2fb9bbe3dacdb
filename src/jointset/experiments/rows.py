"""Rows run through a benchmark cell as its protocol says: one at a time, or all wraps and seeds of one in one pass.

What is shared is made once. Seeds of a learned filter or backbone train in one program; the wraps of a row
(`ewma`, `ewma+aci`, `ewma+pid`) have the same laws and scores and differ in the rule that turns scores into radii.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack

from jointset.abilities import SeveralSeeds
from jointset.calibration.any_rule import AnyRule
from jointset.catalogue import FILTERS, LEARNED, PUBLISHED, ROWS, TABLE, without_wrap
from jointset.contracts import Filter, MeanModel
from jointset.errors import require, suggest
from jointset.filters.telling import fitted
from jointset.horizons.calibrating_ahead import horizon_for
from jointset.joint_predictor import JointPredictor, Run
from jointset.methods import Name, filter_row, parse, published_row, row, row_rule, rule_of
from jointset.panel import Panel
from jointset.scores import Mahalanobis, RootMahalanobis
from jointset.support.how_far import each, part, telling

if TYPE_CHECKING:
    from jointset.datasets.cells import Cell

WARM = 50  # steps before the calibration block on which a filter is warmed up in protocol `table`
Backbones = str | MeanModel | Sequence[MeanModel]  # one by name, one for all seeds, or one for each
Means = Sequence[MeanModel | None] | None
PILOTS = ("validation", "train", "calibration")  # blocks a shape may be fitted on instead of the protocol's own


class How(TypedDict, total=False):
    """How a row is made other than its protocol says; see `run_row`."""

    backbone: Backbones | None
    pilot: str | None
    training: dict[str, Any] | None


class Timing(NamedTuple):
    """Seconds of fitting and calibrating, and of the pass through the test block, as if the row had run alone.

    Seeds that train in one program share its time equally. With them comes what is to be known of the calibration.
    """

    fit_seconds: float
    predict_seconds: float
    n_calibration: int  # scores the radius comes from
    note: str = ""


def run_row(
    method: str,
    cell: Cell,
    alpha: float = 0.1,
    seed: int = 0,
    *,
    regions: bool = False,
    **how: Unpack[How],
) -> Run:
    """A row fitted, calibrated and tested on the blocks of a cell, as the cell's protocol says.

    `seed` is that of training; the spectral groups of `table` are drawn with the cell's own. A `backbone`, by name or
    as an object, replaces the graph autoregression in rows that have one; around a filter's covariance it replaces the
    filter's mean. `pilot` names the block a row's shape is fitted on instead of the protocol's: `train`, `validation`
    (with either, calibration scores are fresh) or `calibration` (plug-in). `training` holds settings of learned filters
    (recipe, steps, rank, device); its device is that of learned backbones too.
    """
    predictor = fitted_row(method, cell, alpha, seed, **how)
    return predictor.run(cell.test, regions=regions)


def run_rows(
    names: Sequence[str],
    cell: Cell,
    alpha: float = 0.1,
    seeds: Sequence[int] = (0,),
    *,
    backbone: Backbones | None = None,
    pilot: str | None = None,
    training: dict[str, Any] | None = None,
    horizon: int = 1,
    progress: Callable[[int, int, float], None] | None = None,
) -> Iterator[tuple[str, int, Run, Timing]]:
    """Runs of one method's names, for every seed: each the run that `run_row` gives for it alone.

    Arguments as in `run_row`. Wraps of one geometry share a fit and a pass; geometries of a filter share its
    training. What does not depend on the seed is run once and given for every seed. `progress` is told step, number
    of steps and loss while a learned filter trains.

    >>> from jointset.datasets.cells import cell
    >>> [(name, round(run.joint, 2)) for name, _, run, _ in run_rows(["ewma", "ewma+aci"], cell("grssf-a-30"))]
    [('ewma', 0.91), ('ewma+aci', 0.9)]
    """
    names = list(names)
    methods = sorted({parse(name).method for name in names})
    require(len(methods) == 1, f"rows of one pass must share their method, got {', '.join(methods)}: pass them apart")
    apart = [name for name in names if parse(name).wrap is None] if methods[0] in PUBLISHED else []
    together = [name for name in names if name not in apart]
    if apart and together:  # a published row without a wrap is calibrated on all rows, with one on half of them
        means = fitted_backbones(backbone or "gpvar", cell, seeds, training)
        rows = partial(run_rows, backbone=means, pilot=pilot, horizon=horizon)
        yield from (found for some in each((apart, together)) for found in rows(some, cell, alpha, seeds))
        return
    filters, before = None, 0.0
    if methods[0] in FILTERS:
        begin = time.perf_counter()
        with part(1, 1 if methods[0] in LEARNED else 2):  # training is nearly all
            filters = fitted_filters(methods[0], cell, seeds, training, progress)
        before = (time.perf_counter() - begin) / len(filters)
    options: dict[str, Any] = {"backbone": backbone, "pilot": pilot, "training": training, "filters": filters}
    for base in each([*dict.fromkeys(without_wrap(name) for name in names)]):
        wraps = [name for name in names if without_wrap(name) == base]
        for chosen, predictor, seconds in fitted_rows(wraps[0], cell, alpha, seeds, **options):
            if horizon > 1:
                predictor.horizon = horizon_for(predictor, cell.calibration, horizon)
            others = [predictor.rewrapped(_rule_of(name, cell, alpha)) for name in wraps[1:]]
            notes = [one.note for one in (predictor, *others)]
            with part(2, 2):
                runs = predictor.run_with(others, cell.test, regions=False)
            for seed in chosen:
                for name, note, (run, predicted) in zip(wraps, notes, runs, strict=True):
                    yield name, seed, run, Timing(before + seconds, predicted, predictor.n_calibration, note)


def _rule_of(name: str, cell: Cell, alpha: float) -> AnyRule:
    if parse(name).method in ROWS:
        return row(name, protocol=cell.protocol, alpha=alpha, seed=cell.seed).calibration
    return row_rule(rule_of(parse(name)), alpha, cell.protocol)


def fitted_row(method: str, cell: Cell, alpha: float = 0.1, seed: int = 0, **how: Unpack[How]) -> JointPredictor:
    """The calibrated predictor of a row, at the start of the cell's test block; arguments as in `run_row`."""
    return next(fitted_rows(method, cell, alpha, (seed,), **how))[1]


def fitted_rows(
    method: str,
    cell: Cell,
    alpha: float = 0.1,
    seeds: Sequence[int] = (0,),
    *,
    backbone: Backbones | None = None,
    pilot: str | None = None,
    training: dict[str, Any] | None = None,
    filters: list[Filter[Any]] | None = None,
) -> Iterator[tuple[tuple[int, ...], JointPredictor, float]]:
    """Calibrated predictors, the seeds each of them is for, and the seconds it took to fit and calibrate it.

    `filters`: those of `fitted_filters` for a filter's row, where they are there already.
    """
    begin, seeds = time.perf_counter(), tuple(seeds)
    base = parse(method).method
    means = None if backbone is None else fitted_backbones(backbone, cell, seeds, training)
    if base in ROWS:
        prepared = _residual_rows(method, cell, alpha, seeds, means, pilot)
    elif base in PUBLISHED:
        prepared = _published_rows(method, cell, alpha, seeds, means)
    else:
        filters = filters or fitted_filters(base, cell, seeds, training)
        prepared = _filter_rows(method, cell, alpha, seeds, means, filters)
    before = (time.perf_counter() - begin) / len(prepared)
    for chosen, make in each(prepared):
        begin = time.perf_counter()
        with part(1, 2):
            predictor = make()
        yield chosen, predictor, before + time.perf_counter() - begin


def fitted_backbones(
    backbone: Backbones, cell: Cell, seeds: Sequence[int] = (0,), training: dict[str, Any] | None = None
) -> list[MeanModel]:
    """Mean backbones fitted on the training block of a cell, one for each seed, trained in one program.

    A name gives one for each seed (of a linear one the same for all); an object is fitted with its own seed, or taken
    as it is when fitted already; a list must have one for each seed.
    """
    from jointset.backbones import LearnedBackbone
    from jointset.backbones import backbone as backbone_named

    if isinstance(backbone, Sequence) and not isinstance(backbone, str):
        require(len(backbone) == len(seeds), f"{len(backbone)} backbones for {len(seeds)} seeds: give one for each")
        return [one if one.fitted else one.fit(cell.fitting) for one in backbone]
    if isinstance(backbone, str):
        backbone = backbone_named(backbone)
        if isinstance(backbone, LearnedBackbone):
            backbone = replace(backbone, device=(training or {}).get("device", backbone.device))
            return [*backbone.fit_seeds(cell.fitting, list(seeds))]
    return [backbone if backbone.fitted else backbone.fit(cell.fitting)] * len(seeds)


def fitted_filters(
    method: str,
    cell: Cell,
    seeds: Sequence[int] = (0,),
    training: dict[str, Any] | None = None,
    progress: Callable[[int, int, float], None] | None = None,
) -> list[Filter[Any]]:
    """Filters fitted on the rows of a cell that its protocol names, one for each seed, trained in one program."""
    filter_ = filter_row(Name(method, None, None), protocol=cell.protocol, training=training).filter
    rows = _fitting_block(cell, method)
    if method not in LEARNED:
        return [fitted(filter_, rows, telling())] * len(seeds)
    if isinstance(filter_, SeveralSeeds):
        return list(filter_.fit_seeds(rows, list(seeds), progress=progress or telling()))
    return [fitted(replace(filter_, seed=seed), rows, telling()) for seed in each(seeds)]


def _fitting_block(cell: Cell, method: str) -> Panel:
    """Those rows in the units that a filter is fitted in."""
    return _filter_block(cell, method) if cell.scaled else cell.fitting


def _filter_block(cell: Cell, method: str) -> Panel:
    """The rows a filter is fitted on: training, in `table` with the pilot block, in `text` with validation if asked."""
    more = cell.protocol == "table" or (cell.protocol == "text" and TABLE[method].pilot == "validation")
    return cell.panel[: cell.blocks["calibration"].start] if more else cell.train


Prepared = list[tuple[tuple[int, ...], Callable[[], JointPredictor]]]  # seeds, and what makes their predictor


def _by_mean(seeds: tuple[int, ...], means: Means) -> list[tuple[tuple[int, ...], MeanModel | None]]:
    """Seeds that share a mean, and that mean."""
    if means is None or all(mean is means[0] for mean in means):
        return [(seeds, None if means is None else means[0])]
    return [((seed,), mean) for seed, mean in zip(seeds, means, strict=True)]


def _residual_rows(
    method: str, cell: Cell, alpha: float, seeds: tuple[int, ...], means: Means, pilot: str | None
) -> Prepared:
    """Rows of a backbone's residuals: nothing in them depends on a seed but a learned mean."""
    table = cell.protocol == "table"
    block = pilot_block(parse(method).method, cell.protocol, pilot)

    def make(mean: MeanModel | None) -> JointPredictor:
        predictor = row(
            method,
            protocol=cell.protocol,
            alpha=alpha,
            warmup=1 if table else 50,
            standardize=not cell.scaled,
            seed=cell.seed,
            backbone=mean,
        )
        if mean is not None:
            predictor.filter = replace(predictor.filter, frozen=True)
        skip = {"pilot": 0, "calibration": predictor.warmup - 1}.get(block)
        pilot_rows = None if block == "train" else cell.block(block)
        predictor.fit(cell.train, pilot_rows, skip=skip).calibrate(cell.calibration)
        if table:
            predictor.restart()
        return predictor

    return [(chosen, partial(make, mean)) for chosen, mean in _by_mean(seeds, means)]


def pilot_block(method: str, protocol: str, asked: str | None = None) -> str:
    """The block whose residuals give a row its shape: the protocol's own, or the one asked for.

    `validation` is the block between training and calibration, which protocol `table` calls `pilot`.
    """
    between = "pilot" if protocol == "table" else "validation"
    if asked:
        require(asked in (*PILOTS, between), f"unknown pilot block {asked!r}: {suggest(asked, PILOTS)}")
        return between if asked == "validation" else asked
    if protocol in ("table", "fit"):
        return {"table": "pilot", "fit": "train"}[protocol]
    return TABLE[method].pilot


def _published_rows(method: str, cell: Cell, alpha: float, seeds: tuple[int, ...], means: Means) -> Prepared:
    """Published methods; each seed draws its own split, trees or weights around the same mean.

    In `table` no calibration score is dropped, and the mean restarts in every block, as in all other rows.
    """
    table = cell.protocol == "table"
    options: dict[str, Any] = {"alpha": alpha, "warmup": 1 if table else 50, "standardize": not cell.scaled}

    def make(seed: int, mean: MeanModel | None) -> JointPredictor:
        wrap = row_rule(name.wrap, alpha, cell.protocol)
        published = published_row(name, wrap=wrap, seed=seed, backbone=mean, **options)
        published.filter = replace(published.filter, cold=table)
        published.fit(cell.train, frozen=mean is not None).calibrate(cell.calibration)
        if table:
            published.restart()
        return published

    name, means = parse(method), means or [None] * len(seeds)
    return [((seed,), partial(make, seed, mean)) for seed, mean in zip(seeds, means, strict=True)]


def _filter_rows(
    method: str,
    cell: Cell,
    alpha: float,
    seeds: tuple[int, ...],
    means: Means,
    filters: list[Filter[Any]],
) -> Prepared:
    """Fitted filters, with their own mean or a backbone's; in `table` the end of the pilot block warms them up."""
    from jointset.backbones import SwappedMean

    name, table = parse(method), cell.protocol == "table"
    start, stop = cell.blocks["calibration"].start, cell.blocks["calibration"].stop
    warm = min(WARM, start) if table else 0
    block = _filter_block(cell, name.method)
    unfitted = filter_row(name, protocol=cell.protocol, alpha=alpha)

    def make(filter_: Filter[Any], mean: MeanModel | None) -> JointPredictor:
        predictor = unfitted.copy()
        predictor.standardize, predictor.calibration = not cell.scaled, row_rule(rule_of(name), alpha, cell.protocol)
        if table and isinstance(predictor.score, Mahalanobis):
            predictor.score = RootMahalanobis()
        if table:
            predictor.warmup = warm + 1  # no calibration score is dropped
        predictor.filter = filter_ if mean is None else SwappedMean(filter_, mean, frozen=True)
        return predictor.fit(block, frozen=True).calibrate(cell.panel[start - warm : stop])

    if all(filter_ is filters[0] for filter_ in filters):  # nothing in it depends on a seed
        return [(chosen, partial(make, filters[0], mean)) for chosen, mean in _by_mean(seeds, means)]
    pairs = zip(seeds, filters, means or [None] * len(seeds), strict=True)
    return [((seed,), partial(make, filter_, mean)) for seed, filter_, mean in pairs]
