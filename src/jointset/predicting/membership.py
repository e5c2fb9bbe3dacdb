"""A model with another set of sensors: some renamed, some gone, some new, and nothing learned again.

A sensor that left is never read again: the law of the rest is the marginal one, exactly. A new one
can join where the weights of a filter serve all sensors alike, with the level and scale of its neighbours unless rows
tell them. The state of all others goes on. `jointset.filters.kept` does both.

Radii change with the number of sensors. Without rows, the calibration scores are brought to the new number by the ratio
of the quantiles that a normal law has at the level of the sets, and the rule starts from them; with rows of the new
set of sensors the model is calibrated on these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from jointset.abilities import expecting, message_start
from jointset.calibration.any_rule import next_time, started
from jointset.contracts import Array, Law, Readings
from jointset.errors import InputError, require, require_known
from jointset.filters.kept import KeptFilter, grown, kept
from jointset.inputs.graph_edges import edges_of
from jointset.inputs.labels import panel_of
from jointset.inputs.sensor_health import Health
from jointset.inputs.sensor_places import Places
from jointset.laws import DenseLaw, LowRankLaw
from jointset.panel import Panel
from jointset.predicting.passes import Progress
from jointset.score_abilities import Leaning, OfOneLaw

if TYPE_CHECKING:
    from jointset.joint_predictor import JointPredictor

Edges = Mapping[str, Mapping[str, float]]


def with_sensors(
    predictor: JointPredictor,
    drop: Iterable[str] = (),
    rename: Mapping[str, str] | None = None,
    add: Iterable[str] | Edges = (),
    rows: Readings | None = None,
    progress: Progress | None = None,
) -> JointPredictor:
    """Another predictor without some sensors, with new names, and with new sensors at the end.

    Names to drop and to rename are those of the model. `add` gives the new sensors, where it is a mapping each with its
    neighbours (names after renaming) and the weights of its edges. `rows` of the new set of sensors give level and
    scale of the new ones, and calibrate; `progress` is told how many of them are done. Sets of the next steps need rows
    to be calibrated on: without, or with too few, a model whose sensors come or go has none.
    """
    drop, rename = tuple(drop), dict(rename or {})
    edges: Edges = add if isinstance(add, Mapping) else {name: {} for name in add}
    _check(predictor.sensors, drop, rename, edges)
    if drop or edges:
        _require_one_law(predictor)
    gone = frozenset(predictor.sensors.index(name) for name in drop)  # places, as others may take their names
    other = predictor.copy()
    other.sensors = tuple(rename.get(name, name) for name in predictor.sensors)
    if edges:
        other = _joined(other, edges, rows, gone)
    if drop:
        other = _without(other, gone)
        other.left_out += tuple(name for name in drop if name not in other.sensors)
    if rows is not None:
        calibrate_as_before(other, rows, 1 if predictor.horizon is None else predictor.horizon.steps, progress)
    elif edges or drop:
        _bring_scores(predictor, other)
    return other


def calibrate_as_before(
    predictor: JointPredictor, rows: Readings, steps: int, progress: Progress | None = None
) -> None:
    """Calibrate, with the sets of the next steps where the rows are enough for them."""
    try:
        predictor.calibrate(rows, horizon=steps, progress=progress)
    except InputError:
        if steps == 1:
            raise
        predictor.calibrate(rows, progress=progress)


def _check(sensors: tuple[str, ...], drop: tuple[str, ...], rename: dict[str, str], add: Edges) -> None:
    """Refuse names that the model lacks, names that meet, and a model without sensors."""
    for name in (*drop, *rename):
        require_known(name, sensors, f"the model has no sensor {name!r}")
    left = [rename.get(name, name) for name in sensors if name not in drop]
    require(bool(left), "all sensors of the model would be left out: keep at least one")
    names = [*left, *add]
    twice = next((name for name in names if names.count(name) > 1), None)
    require(twice is None, f"two sensors would be called {twice!r}: give one of them another name")
    for name, neighbours in add.items():
        for other in neighbours:
            require_known(other, names, f"{name!r} has an edge to {other!r}, which the model has not")


def _require_one_law(predictor: JointPredictor) -> None:
    """Refuse sets that are no function of one normal law: they cannot be told for another set of sensors."""
    law = predictor.filter.law(predictor.filter_state)
    whole = isinstance(law, (DenseLaw, LowRankLaw))
    start = message_start(predictor.filter)
    require(
        whole and isinstance(predictor.score, OfOneLaw),
        f"{start}its sets are made for all its sensors together: fit it again on those there are now; until then a "
        "sensor that left counts as missing, and --ignore-unknown ignores a new one",
    )


# ---------------------------------------------------------------------- joining and leaving


def _joined(predictor: JointPredictor, edges: Edges, rows: Readings | None, gone: frozenset[int]) -> JointPredictor:
    """With new sensors at the end; those at some places will go, and no edge leads to them."""
    require(
        not isinstance(predictor.filter, KeptFilter),
        "sensors have left this model: add new ones in the same step as old ones are dropped, or fit it again",
    )
    n, names = len(predictor.sensors), (*predictor.sensors, *edges)
    place = {name: i for i, name in enumerate(names) if i not in gone}
    A = np.zeros((len(names), len(names)))
    known = getattr(predictor.filter, "adjacency", None)
    A[:n, :n] = predictor.graph.adjacency(n) if predictor.graph is not None else 0.0 if known is None else known
    for name, neighbours in edges.items():
        for near, weight in neighbours.items():
            i, j = place[name], place[near]
            A[i, j] = A[j, i] = weight
    filter_, state = grown(predictor.filter, predictor.filter_state, A)
    origin = np.concatenate([np.arange(n), np.full(len(edges), -1)])
    other = _chosen(predictor, origin, names, A)
    other.filter, other.filter_state = filter_, state
    weights = A[n:, :n] + 1e-9  # all sensors alike where a new one has no neighbour
    weights /= weights.sum(axis=1, keepdims=True)
    other.shift[n:], other.scale[n:] = weights @ predictor.shift, weights @ predictor.scale
    if rows is not None and predictor.standardize:
        _level(other, panel_of(rows), n)
    if other.usual is not None:
        other.usual = other.usual._replace(mean=np.where(origin < 0, other.shift, other.usual.mean))
    return other


def _level(predictor: JointPredictor, panel: Panel, first: int) -> None:
    """Give sensors from a place on the level and scale of their readings, where there are enough of them."""
    for place, name in enumerate(predictor.sensors[first:], first):
        read = panel.values[:, panel.sensors.index(name)] if name in panel.sensors else np.empty(0)
        read = read[~np.isnan(read)]
        if len(read) > 1 and read.std() > 0:
            predictor.shift[place], predictor.scale[place] = read.mean(), read.std()


def _without(predictor: JointPredictor, gone: frozenset[int]) -> JointPredictor:
    """Without the sensors at some places."""
    left = np.array([i for i in range(len(predictor.sensors)) if i not in gone])
    A = None if predictor.graph is None else predictor.graph.adjacency(len(predictor.sensors))[np.ix_(left, left)]
    other = _chosen(predictor, left, tuple(predictor.sensors[i] for i in left), A)
    other.filter = kept(predictor.filter, left, len(predictor.sensors))
    return other


def _chosen(predictor: JointPredictor, origin: Array, names: tuple[str, ...], A: Array | None) -> JointPredictor:
    """What is known of every sensor, for sensors at these places (M,), -1 for a new one."""
    other, new = predictor.copy(), origin < 0

    def pick(values: Array, unknown: Any) -> Array:
        return np.where(new, unknown, values[origin])

    other.sensors, other.graph = names, edges_of(A)
    other.shift, other.scale = pick(predictor.shift, 0.0), pick(predictor.scale, 1.0)
    if predictor.usual is not None:
        usual = predictor.usual
        own = None if usual.own is None else pick(usual.own, np.median(usual.own))
        same, gap = pick(usual.longest_same, 0), pick(usual.longest_gap, 0)
        mean = pick(usual.mean, np.nan)
        other.usual = usual._replace(mean=mean, longest_same=same, longest_gap=gap, own=own, jumps=None)
    if predictor.health is not None:
        health = predictor.health
        other.health = Health(pick(health.value, np.nan), pick(health.same, 0), pick(health.gap, 0), health.empty)
    if predictor.fill_quantiles is not None:
        fills = predictor.fill_quantiles
        sizes = pick(fills.sensors, 1.0), pick(fills.others, np.median(fills.others))
        other.fill_quantiles = fills._replace(sensors=sizes[0], others=sizes[1])
    if isinstance(other.score, Leaning) and other.score.lean is not None:
        other.score = other.score.leaning(other.score.lean.chosen(origin))
    other.places = predictor.places and _places(predictor.places, origin, len(predictor.sensors))
    other.filling = other.horizon = other.reuse = other._pending = None
    other.calibrated_on = other.trained_on = other.shaped_on = None
    return other


def _places(places: Places, origin: Array, total: int) -> Places:
    """Where the sensors are drawn."""
    known, instead = places.coordinates, places.instead
    old = origin >= 0
    if instead is not None:
        near = np.zeros((len(origin), len(origin)))
        near[np.ix_(old, old)] = instead.adjacency(total)[np.ix_(origin[old], origin[old])]
        instead = edges_of(near)
    return Places(known[origin] if known is not None and old.all() else None, instead)


# ---------------------------------------------------------------------- scores


def _bring_scores(before: JointPredictor, after: JointPredictor) -> None:
    """Calibration scores on the scale of another number of sensors, and the rule started from them."""
    after.calibration_scores = before.calibration_scores * _ratio(before, after)
    after.scale_gaps()
    state = started(after.calibration, after.calibration_scores, before.calibration_times)
    when = next_time(before.calibration_state)
    after.calibration_state = state if when is None else expecting(after.calibration, state, when)
    after.start_watch()
    after._pending = None


def _ratio(before: JointPredictor, after: JointPredictor) -> float:
    """How much larger scores are at the level of the sets, by a normal law."""
    score = cast("OfOneLaw", after.score)  # `_require_one_law`
    laws = (cast("Law", one.filter.law(one.filter_state)) for one in (before, after))
    old, new = (score.typical(law, 1.0 - before.alpha) for law in laws)
    return new / old


# ---------------------------------------------------------------------- how they are


def health_table(predictor: JointPredictor) -> list[dict[str, Any]]:
    """Name, level, sd, number of neighbours and health of every sensor, in the order of the model."""
    ill, health = predictor.ailing(), predictor.health
    near = None if predictor.graph is None else predictor.graph.adjacency(len(predictor.sensors)) > 0
    table = []
    for i, name in enumerate(predictor.sensors):
        words = "well"
        if health is None:
            words = "not known: an older model"
        elif name in ill["silent"]:
            words = f"silent for {int(health.gap[i])} rows"
        elif name in ill["stuck"]:
            words = f"stuck at {health.value[i]:g} for {int(health.same[i])} readings"
        elif health.gap[i]:
            words = f"missing for {int(health.gap[i])} row{'s' * (health.gap[i] > 1)}"
        count = None if near is None else int((near[i] | near[:, i]).sum())
        level = {"level": float(f"{predictor.shift[i]:.4g}"), "sd": float(f"{predictor.scale[i]:.4g}")}
        table.append({"sensor": name, **level, "neighbours": count, "health": words})
    return table
