"""Alarms on METR-LA: how many in 30 days as they were, and how soon a drop by a fifth in a neighbourhood is found.

    python benchmarks/alarms.py [METHOD] [--sensors 207] [--trials 100] [--block choose|test] [--days 30]

`test` watches the last 30 days, calibrates on the 30 days before and fits on what is left; `choose` is the same without
the last 30 days: what the alarms are made of was chosen there. Zeros are missing readings. A trial takes a moment and a
neighbourhood (a sensor at random and all it has an edge with, three or more, half of them read in the last five rows),
lowers its speeds by a fifth from that row on, and counts as found where a sustained change is raised within six rows,
as right where half or more of the sensors of the first one named are among those lowered. JOINTSET_DATA names the
folder of the data.
"""

import argparse
import json
import time
from collections import Counter
from datetime import UTC, datetime

import numpy as np

from jointset.datasets.cells import cell
from jointset.live.evidence import rank_among
from jointset.live.happenings import Happening, happening
from jointset.live.standing import ailing, engine_for
from jointset.live.standing import _light as light
from jointset.methods import predictor_for
from jointset.own_bands import studentised
from jointset.passes import laws_of
from jointset.sensor_health import observe, start_health
from jointset.streaming import take_step

ROWS, WITHIN, DROP = 288, 6, 0.8
BLOCKS = {"choose": 1, "test": 0}  # spells left out at the end


def watched(name: str, block: str, days: int) -> tuple:
    """Training, calibration and watched rows."""
    found = cell(name, missing="mask")
    values = np.where(found.raw.values == 0.0, np.nan, found.raw.values)
    panel = found.raw.with_values(values).with_graph(found.panel.adjacency)
    size = days * ROWS
    end = len(panel) - BLOCKS[block] * size
    return panel[: end - 2 * size], panel[end - 2 * size : end - size], panel[end - size : end]


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

    def trial(self, panel, lowered: np.ndarray) -> tuple[int, bool]:
        """Rows until a sustained change is raised (0: not within WITHIN), and whether it is named right."""
        predictor, state = self.predictor, self.state
        for t, values in enumerate(panel.values[:WITHIN], 1):
            y = np.where(lowered, DROP * values, values)
            step = take_step(predictor, y)
            state, changes = self.engine.step(state, happening(step, float(panel.timestamps[t - 1]), light(step.after)))
            predictor = step.after
            for one in changes:
                if one.kind == "sustained" and one.event == "raised":
                    named = [predictor.sensors.index(name) for name in one.neighbourhood]
                    return t, bool(lowered[named].mean() >= 0.5)
        return 0, False


def drawn(panel, predictor, trials: int) -> list[tuple[int, np.ndarray]]:
    """Moments and who is lowered, in the order of time."""
    rng, seen = np.random.default_rng(0), ~np.isnan(panel.values)
    near = np.eye(panel.n_sensors, dtype=bool)
    near[predictor.graph.ends[:, 0], predictor.graph.ends[:, 1]] = True
    near |= near.T
    found = []
    while len(found) < trials:
        at, places = int(rng.integers(ROWS, len(panel) - WITHIN)), np.flatnonzero(near[rng.integers(len(near))])
        if len(places) >= 3 and (seen[at - 4 : at + 1][:, places].mean(axis=1) >= 0.5).all():
            found.append((at, np.isin(np.arange(panel.n_sensors), places)))
    return sorted(found, key=lambda one: one[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", nargs="?", default="ewma")
    parser.add_argument("--sensors", type=int, default=207)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--block", choices=[*BLOCKS], default="choose")
    parser.add_argument("--days", type=int, default=30)
    asked = parser.parse_args()
    name = "metr-la" if asked.sensors == 207 else f"metr-la-{asked.sensors}"
    train, calibration, live = watched(name, asked.block, asked.days)
    begin = time.perf_counter()
    predictor = predictor_for(asked.method).fit(train).calibrate(calibration)
    fitted = time.perf_counter() - begin
    man, pos, results = Watchman(predictor), 0, []
    for at, lowered in drawn(live, predictor, asked.trials):
        if at > pos:
            man.follow(live[pos:at])
        pos = at
        results.append((*man.trial(live[at : at + WITHIN], lowered), int(lowered.sum())))
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
        "days": asked.days,
        "alarms": dict(Counter(one.kind for one in raised)),
        "trials": len(results),
        "found": float((rows > 0).mean()) if len(rows) else None,
        "right": float(np.mean([right for _, right, _ in results])) if len(rows) else None,
        "found by size": {
            f"{low}-{high}": f"{int((rows[part] > 0).sum())} of {int(part.sum())}"
            for low, high in ((3, 5), (6, 10), (11, 99))
            if (part := (sizes >= low) & (sizes <= high)).any()
        },
        "median rows until found": float(np.median(rows[rows > 0])) if (rows > 0).any() else None,
        "limits": [man.state.limit, *(man.engine.jumps.limits.tolist() if man.engine.jumps else [])],
        "fit seconds": round(fitted, 1),
        "seconds": round(time.perf_counter() - begin, 1),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
