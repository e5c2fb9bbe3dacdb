"""Alarms on METR-LA: how many in 30 days as they were, and how soon a drop by a fifth in a neighbourhood is found.

    python benchmarks/alarms.py [METHOD] [--sensors 207] [--trials 100] [--block choose|turned|test|cell] [--days 30]

`test` watches the last 30 days, calibrates on the 30 days before and fits on what is left; `choose` is the same without
the last 30 days: what the alarms are made of was chosen there. `turned` is `choose` with the days to calibrate on and
those watched changed over. `cell` has the blocks of protocol `table`: 95 days to fit on, 12 to calibrate on, 12
watched. Zeros are missing readings where calibrated and watched. A trial takes a moment and a neighbourhood (a sensor
at random and all it has an edge with, three or more, half of them read in the last five rows), lowers its speeds by a
fifth from that row on, and counts as found where a sustained change is raised within six rows, as right where half or
more of the sensors of the first one named are among those lowered; how many are raised near it is counted for twelve
rows. `place known` is what the same statistic would find if somebody said which neighbourhood to look at: its limit
then comes from that neighbourhood alone. JOINTSET_DATA names the folder of the data.
"""

import argparse
import json
import time
from collections import Counter
from datetime import UTC, datetime

import numpy as np

from jointset.datasets.cells import cell
from jointset.experiments.rows import fitted_row
from jointset.inputs.jumps import follow, jumps_of, start_jumps
from jointset.live.displaced import SCALE
from jointset.live.evidence import JUMPS, gumbel_level, rank_among
from jointset.live.happenings import Happening, happening
from jointset.live.standing import ailing, engine_for
from jointset.live.standing import _light as light
from jointset.methods import predictor_for
from jointset.calibration.own_bands import studentised
from jointset.predicting.passes import laws_of
from jointset.inputs.sensor_health import observe, start_health
from jointset.streaming import take_step

ROWS, WITHIN, COUNTED, DROP = 288, 6, 12, 0.8
BLOCKS = {"choose": 1, "turned": 1, "test": 0}  # spells left out at the end


def fitted(name: str, method: str, block: str, days: int) -> tuple:
    """A calibrated predictor, the rows of that, the rows to watch, and what a speed of 0 is among them (N,)."""
    if block != "cell":
        train, calibration, live = watched(name, block, days)
        predictor = predictor_for(method).fit(train)
        return predictor.calibrate(calibration), calibration, live, np.zeros(live.n_sensors)
    found = cell(name, "table")
    zero, values = found.raw.values == 0.0, found.panel.values
    panel = found.panel.with_values(np.where(zero, np.nan, values))
    calibration = panel[found.blocks["calibration"]]
    predictor = fitted_row(method, found, 0.1, 0).calibrate(calibration)
    return predictor, calibration, panel[found.blocks["test"]], values[zero.argmax(axis=0), np.arange(values.shape[1])]


def watched(name: str, block: str, days: int) -> tuple:
    """Training, calibration and watched rows."""
    found = cell(name, missing="mask")
    values = np.where(found.raw.values == 0.0, np.nan, found.raw.values)
    panel = found.raw.with_values(values).with_graph(found.panel.adjacency)
    size = days * ROWS
    end = len(panel) - BLOCKS[block] * size
    first, second = panel[end - 2 * size : end - size], panel[end - size : end]
    return panel[: end - 2 * size], *((second, first) if block == "turned" else (first, second))


def own_limits(predictor, engine, calibration) -> np.ndarray:
    """Limits of drops (K,) of each neighbourhood by itself, at the same rate of false alarms."""
    around, weights, usual = engine.jumps.around, engine.jumps.weights, engine.jumps.usual
    state, course = start_jumps(usual), []
    for law, rows, _ in laws_of(predictor, calibration, predictor.filter.start()):
        for errors in studentised(law, rows):
            state = follow(around, weights, usual, state, errors)
            course.append(jumps_of(around, state)[1])
    days = np.array(course[: len(course) // ROWS * ROWS]).reshape(-1, ROWS, len(around)).max(axis=1)
    return np.array([gumbel_level(largest, engine.config.days_between / JUMPS, SCALE) for largest in days.T])


class Watchman:
    """A predictor, its engine and the health of its sensors, moved on in chunks."""

    def __init__(self, predictor) -> None:
        self.predictor = predictor
        self.engine = engine_for(predictor, 300)
        self.state = self.engine.start(predictor.calibration_scores)
        self.health, self.changes = start_health(len(predictor.sensors)), []

    def follow(self, panel) -> None:
        """Through rows as they were."""
        before, names = self.predictor, self.predictor.sensors
        laws, watch = laws_of(before, panel, before.filter_state), before.watch
        after = before.copy()
        run = after.run(panel, regions=False)
        start = 0
        for law, rows, _ in laws:
            errors = studentised(law, rows)
            for t, y in enumerate(rows, start):
                score, inside = float(run.score[t]), bool(run.inside[t])
                shares = np.zeros(len(y))
                if not np.isnan(score) and (not inside or rank_among(self.state.reference, score) < 0.25):
                    shares = before.score.contributions(law[t - start], y)
                watch = watch.update(score, inside)
                self.health = observe(self.health, y)
                ill = ailing(self.health, before.usual, names)
                before.watch = watch
                now = Happening(
                    float(panel.timestamps[t]), score, float(run.radius[t]), None if np.isnan(score) else inside,
                    np.nan, shares, tuple(ill["silent"]), tuple(ill["stuck"]), light(before), errors[t - start],
                )  # fmt: skip
                self.state, changes = self.engine.step(self.state, now)
                self.changes += changes
            start += len(rows)
        self.predictor = after

    def trial(self, panel, lowered: np.ndarray, zero: np.ndarray) -> tuple[int, bool, int, float]:
        """Rows until a change is raised (0: not within WITHIN), whether it is named right, and how many are raised.

        Also the largest J of a drop of the very neighbourhood.
        """
        predictor, state, first, right, count, most = self.predictor, self.state, 0, False, 0, 0.0
        around = self.engine.jumps.around
        mine = (around.members > 0) == lowered
        for t, values in enumerate(panel.values[:COUNTED], 1):
            y = np.where(lowered, zero + DROP * (values - zero), values)
            step = take_step(predictor, y)
            state, changes = self.engine.step(state, happening(step, float(panel.timestamps[t - 1]), light(step.after)))
            predictor = step.after
            if t <= WITHIN:
                most = max(most, float(jumps_of(around, state.local.sums)[1][mine.all(axis=1)].max()))
            for one in changes:
                if one.kind in ("sustained", "sensor") and one.event == "raised":
                    share = lowered[[predictor.sensors.index(name) for name in one.neighbourhood]].mean()
                    count += int(share > 0)
                    if one.kind == "sustained" and not first and t <= WITHIN:
                        first, right = t, bool(share >= 0.5)
            if not first and t == WITHIN:
                break
        return first, right, count, most


def drawn(panel, predictor, trials: int, seed: int) -> list[tuple[int, np.ndarray]]:
    """Moments and who is lowered, in the order of time."""
    rng, seen = np.random.default_rng(seed), ~np.isnan(panel.values)
    near = np.eye(panel.n_sensors, dtype=bool)
    near[predictor.graph.ends[:, 0], predictor.graph.ends[:, 1]] = True
    near |= near.T
    found = []
    while len(found) < trials:
        at, places = int(rng.integers(ROWS, len(panel) - COUNTED)), np.flatnonzero(near[rng.integers(len(near))])
        if len(places) >= 3 and (seen[at - 4 : at + 1][:, places].mean(axis=1) >= 0.5).all():
            found.append((at, np.isin(np.arange(panel.n_sensors), places)))
    return sorted(found, key=lambda one: one[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", nargs="?", default="ewma")
    parser.add_argument("--sensors", type=int, default=207)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--block", choices=[*BLOCKS, "cell"], default="choose")
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0, help="of moments and neighbourhoods")
    asked = parser.parse_args()
    name = "metr-la" if asked.sensors == 207 else f"metr-la-{asked.sensors}"
    begin = time.perf_counter()
    predictor, calibration, live, zero = fitted(name, asked.method, asked.block, asked.days)
    seconds = time.perf_counter() - begin
    man, pos, results, known = Watchman(predictor), 0, [], []
    limits = own_limits(predictor, man.engine, calibration)
    for at, lowered in drawn(live, predictor, asked.trials, asked.seed):
        if at > pos:
            man.follow(live[pos:at])
        pos = at
        *result, most = man.trial(live[at : at + COUNTED], lowered, zero)
        results.append((*result, int(lowered.sum())))
        known.append(most >= limits[((man.engine.jumps.around.members > 0) == lowered).all(axis=1)].min())
    man.follow(live[pos:])
    raised = [one for one in man.changes if one.event == "raised"]
    for one in raised:
        if one.kind == "sustained":
            print(f"  {datetime.fromtimestamp(one.time, UTC):%Y-%m-%d %H:%M} {one.words}")
    rows, sizes = np.array([found for found, *_ in results]), np.array([size for *_, size in results])
    found = {
        "cell": name,
        "method": asked.method,
        "block": asked.block,
        "days": round(len(live) / ROWS, 1),
        "alarms": dict(Counter(one.kind for one in raised)),
        "trials": len(results),
        "found": float((rows > 0).mean()) if len(rows) else None,
        "place known": float(np.mean(known)) if known else None,
        "right": float(np.mean([right for _, right, *_ in results])) if len(rows) else None,
        "found by size": {
            f"{low}-{high}": f"{int((rows[part] > 0).sum())} of {int(part.sum())}"
            for low, high in ((3, 5), (6, 10), (11, 99))
            if (part := (sizes >= low) & (sizes <= high)).any()
        },
        "alarms of those found": dict(Counter(count for row, _, count, _ in results if row)),
        "median rows until found": float(np.median(rows[rows > 0])) if (rows > 0).any() else None,
        "limits": [man.state.limit, *(man.engine.jumps.limits.tolist() if man.engine.jumps else [])],
        "fit seconds": round(seconds, 1),
        "seconds": round(time.perf_counter() - begin, 1),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
