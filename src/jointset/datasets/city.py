"""A simulated city: loop detectors on a ring and four roads into the centre, with rush hours, incidents and faults.

Speeds are a free flow, less two rush hours on working days, plus a state that spreads along the roads as in GRSSF
(H_{t+1} = F H_t + xi, F = rho times the normalised shift of the roads) and noise of the detector. An incident slows the
traffic at a detector and, less, at its neighbours; a fault freezes a detector or makes it fall silent. What happened
when is known, so that what is found can be held against it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from jointset.algebra.recursion import first_order
from jointset.contracts import Array
from jointset.errors import require
from jointset.graph import modes, normalized_shift
from jointset.panel import Panel

CADENCE = 300  # seconds
DAY = 86_400 // CADENCE  # rows
START = 1_767_571_200  # Monday 2026-01-05, 00:00 UTC
ROADS = ("north", "east", "south", "west")
ON_ROAD, ON_RING = 7, 20  # detectors
CENTRE, ACROSS = (50.0, 8.0), 0.05  # degrees
RHO, STATE, NOISE = 0.8, 1.6, 1.0  # of the state, km/h, km/h
RAMP, CLEARING = 3, 8  # rows until an incident is at its worst, and until it is over


class Incident(NamedTuple):
    """Slow traffic around a detector for some rows; `depth` is the share of the speed that is lost at the detector."""

    first: int
    rows: int
    sensor: str
    depth: float = 0.5


class Fault(NamedTuple):
    """A detector that reads one value (`stuck`) or nothing (`silent`) for some rows."""

    first: int
    rows: int
    sensor: str
    kind: Literal["stuck", "silent"]


def simulate_city(rows: int, seed: int = 0, start: int = START) -> Panel:
    """A city of 48 detectors without incidents: speeds in km/h every five minutes.

    >>> panel = simulate_city(288)
    >>> panel.n_sensors, panel.sensors[0], panel.sensors[-1]
    (48, 'north-1', 'ring-20')
    """
    require(rows >= 1, f"a city needs at least one row, got {rows}")
    names, at, adjacency = streets()
    rng = np.random.default_rng(seed)
    free = np.where([name.startswith("ring") for name in names], 82.0, 58.0) + rng.normal(0.0, 3.0, len(names))
    busy = rng.uniform(0.05, 0.18, (2, len(names)))  # share of the speed lost in the morning and in the evening
    times = start + CADENCE * np.arange(rows)
    f, basis = modes(RHO * normalized_shift(adjacency))
    noise = rng.normal(0.0, STATE, (rows + DAY, len(names)))
    state = (first_order(f, (noise @ basis).T).T @ basis.T)[DAY:]
    speed = free * (1.0 - rush(times) @ busy) + state + rng.normal(0.0, NOISE, state.shape)
    return Panel(np.maximum(speed, 2.0).round(1), names, times, adjacency, coordinates=at)


def streets() -> tuple[tuple[str, ...], Array, Array]:
    """Names, places (N, 2) and neighbours (N, N) of the detectors."""
    names, at = [], []
    for turn, road in enumerate(ROADS):
        for k in range(ON_ROAD):
            bend = 0.18 * np.sin(1.3 * k + turn)
            reach, angle = (k + 0.7) / (ON_ROAD - 0.5) * 1.45, np.pi / 2 * turn + bend
            names.append(f"{road}-{k + 1}")
            at.append((reach * np.cos(angle), reach * np.sin(angle)))
    for k in range(ON_RING):
        angle = 2 * np.pi * (k + 0.5) / ON_RING
        names.append(f"ring-{k + 1}")
        at.append(((1.0 + 0.06 * np.cos(3 * angle)) * np.cos(angle), (1.0 + 0.06 * np.sin(2 * angle)) * np.sin(angle)))
    places = np.array(at)
    linked = [(a, a + 1) for a in range(len(ROADS) * ON_ROAD - 1) if (a + 1) % ON_ROAD]
    linked += [(a * ON_ROAD, b * ON_ROAD) for a in range(len(ROADS)) for b in range(a)]  # all roads meet
    ring = np.arange(ON_RING) + len(ROADS) * ON_ROAD
    linked += list(zip(ring, np.roll(ring, -1), strict=True))
    for turn in range(len(ROADS)):  # junctions of the ring with the roads
        along = np.arange(turn * ON_ROAD, (turn + 1) * ON_ROAD)
        near = np.linalg.norm(places[along][:, None] - places[ring][None], axis=2)
        a, b = np.unravel_index(near.argmin(), near.shape)
        linked.append((int(along[a]), int(ring[b])))
    adjacency = np.zeros((len(names), len(names)))
    for i, j in linked:
        adjacency[i, j] = adjacency[j, i] = 1.0
    degrees = np.stack([places[:, 0], places[:, 1] / np.cos(np.radians(CENTRE[0]))], axis=1) * ACROSS
    return tuple(names), degrees + np.array(CENTRE), adjacency


def rush(times: Array) -> Array:
    """How much of the morning and of the evening rush there is (T, 2); none at weekends."""
    hour = times % 86_400 / 3600
    working = (times // 86_400 + 3) % 7 < 5
    peaks = np.stack([np.exp(-(((hour - peak) / 2.2) ** 2)) for peak in (8.0, 17.5)], axis=1)
    return peaks * working[:, None]


def with_trouble(panel: Panel, incidents: Sequence[Incident] = (), faults: Sequence[Fault] = ()) -> Panel:
    """The city with incidents and faults; rows are counted from the first of the panel."""
    values, names = panel.values.copy(), list(panel.sensors)
    for one in incidents:
        reach = hops(panel, one.sensor)
        share = one.depth * np.where(reach <= 2, 0.65 ** np.maximum(reach, 0), 0.0)
        rows = np.arange(one.first, min(one.first + one.rows, len(panel)))
        left = one.first + one.rows - rows
        worst = np.minimum(np.minimum((rows - one.first + 1) / RAMP, left / CLEARING), 1.0)
        values[rows] *= 1.0 - worst[:, None] * share
    for fault in faults:
        spell, place = slice(fault.first, fault.first + fault.rows), names.index(fault.sensor)
        values[spell, place] = values[fault.first, place] if fault.kind == "stuck" else np.nan
    return panel.with_values(values.round(1))


def hops(panel: Panel, sensor: str) -> Array:
    """Edges (N,) from a detector to each; N where there is no way."""
    assert panel.adjacency is not None
    linked, n = panel.adjacency > 0, panel.n_sensors
    far = np.full(n, n)
    near = np.zeros(n, bool)
    near[panel.sensors.index(sensor)] = True
    for step in range(n):
        far[near & (far == n)] = step
        near = near | linked[near].any(axis=0)
    return far
