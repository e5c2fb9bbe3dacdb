"""The verdicts of `trust()` held against what came: how often coverage lay in the band, and when the alarm was on.

    python benchmarks/trust.py --runs 500 --seeds 20              # simulated networks, tracks A to E
    python benchmarks/trust.py --runs 0 --cells aqi-12,jena-20    # cells with changes of their own
    python benchmarks/trust.py --runs 0 --slow 300                # scores alone, whose spread wanders slowly
    python benchmarks/trust.py --runs 0 --halves aqi-12,jena-20   # real cells without their test rows
    python benchmarks/trust.py --runs 100 --rule auto             # any of these under a rule that adapts

Stationary tracks A to C: share of runs whose coverage of the 800 test steps lies in the band of so many (stated: 0.90),
mean half-width of that band, share of runs with an alarm of either kind. Elsewhere: steps whose last 200 had a coverage
of 0.75 or less, the longest stretch of them without an alarm, steps with an alarm, and the first of these (median over
seeds). `static` has its shape from validation rows on tracks A to E, else from the calibration rows (plug-in).
"""

import argparse
import time
import warnings

import numpy as np
from scipy.signal import lfilter

from jointset.calibration import calibration
from jointset.calibration.any_rule import course, started
from jointset.datasets.cells import cell
from jointset.experiments.rows import fitted_row
from jointset.predicting.calibrating import watch_from
from jointset.trust import RECENT

TRACKS = {"kalman": None, "kalman-tuned": None, "static": "validation", "ewma": None}  # method: block of its shape
CELLS = dict.fromkeys(("kalman", "kalman-tuned", "static", "time-of-day", "ewma"))
SLOW = (  # size, rho, quick
    (0.0, 0.0, 0.0),
    (0.1, 0.98, 0.0),
    (0.1, 0.99, 0.0),
    (0.1, 0.995, 0.0),
    (0.2, 0.99, 0.0),
    (0.4, 0.99, 0.0),
    (0.5, 0.99, 0.5),
    (0.7, 0.995, 0.8),
)
HALVES = ("static", "time-of-day", "ewma", "kalman-tuned", "var", "quick")
LOW = 0.75


def followed(predictor, test) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Alarm of the scores and of coverage after every test step (T,), and whether its reading was inside (T,)."""
    watch, run = predictor.watch, predictor.run(test, regions=False)
    return *alarmed(watch, run.score, run.inside), run.inside


def alarmed(watch, scores: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Whether the alarm of the scores and that of coverage are on after every step (2, T)."""
    on = np.zeros((2, len(scores)), bool)
    for t, (score, hit) in enumerate(zip(scores.tolist(), inside.tolist(), strict=True)):
        watch = watch.update(score, hit)
        on[:, t] = max(watch.high, watch.low) >= watch.reference.limit, watch.alarms()[1]
    return on


def rolling(inside: np.ndarray) -> np.ndarray:
    """Coverage of the last 200 steps (T,), NaN before there are so many."""
    total = np.cumsum(np.concatenate([[0], inside]))
    return np.concatenate([np.full(RECENT - 1, np.nan), (total[RECENT:] - total[:-RECENT]) / RECENT])


def longest_stretch(true: np.ndarray) -> int:
    """Most entries in a row that are true.

    >>> longest_stretch(np.array([True, False, True, True]))
    2
    """
    ends = np.flatnonzero(~np.concatenate([[False], true, [False]]))
    return int(np.diff(ends).max()) - 1


def stationary(track: str, sensors: int, runs: int, rule: str) -> None:
    """One line a method: shares over many networks of a stationary track."""
    found: dict[str, list] = {method: [] for method in TRACKS}
    for seed in range(runs):
        place = cell(f"grssf-{track}-{sensors}", seed=seed)
        for method, pilot in TRACKS.items():
            predictor = fitted_row(f"{method}+{rule}", place, pilot=pilot)
            drift, few, inside = followed(predictor, place.test)
            low, high = predictor.trust().band_over(len(inside))
            joint = inside.mean()
            found[method].append((joint, low <= joint <= high, (high - low) / 2, drift.any(), few.any()))
    for method, rows in found.items():
        joint, held, half, drift, few = np.mean(rows, axis=0)
        either = np.mean([a or b for *_, a, b in rows])
        line(track.upper(), method, runs, *(f"{x:.3f}" for x in (joint, held, half, either, drift, few)))


def wandering(size: float, rho: float, quick: float, m: int, runs: int, name: str, n: int = 1000) -> None:
    """Scores times exp(size v), v an autoregression: share of the runs in the band, and with an alarm of the scores.

    They are those of ten sensors, chi-square, or where `quick` is not 0 exp(u), u an autoregression too.
    """
    rng, found, rule = np.random.default_rng(1), [], calibration(name, 0.1)
    for _ in range(runs):
        v, u = (
            lfilter([np.sqrt(1 - one**2)], [1, -one], rng.standard_normal(3000 + m + n))[3000:] for one in (rho, quick)
        )
        scores = np.exp(size * v) * (np.exp(u) if quick else rng.chisquare(10, m + n))
        state = started(rule, scores[:m])
        watch, (run, _) = watch_from(rule, state, scores[:m]), course(rule, state, scores[m:])
        inside = run.score <= run.radius
        low, high = watch.trust(0.0).band_over(n)
        drift = alarmed(watch, scores[m:], inside)[0].any()
        found.append((low <= inside.mean() <= high, (high - low) / 2, drift))
    held, half, drift = np.mean(found, axis=0)
    line(size, rho, quick, m, runs, f"{held:.3f}", f"{half:.3f}", f"{drift:.3f}")


def on_halves(name: str, rule: str) -> tuple[int, int]:
    """Bands from the first half of a calibration block held against the second: how many hold, and of how many."""
    place, held = cell(name), 0
    middle = len(place.calibration) // 2
    for method in HALVES:
        predictor = fitted_row(f"{method}+{rule}", place).calibrate(place.calibration[:middle])
        trust, run = predictor.trust(), predictor.run(place.calibration[middle:], regions=False)
        low, high = trust.band_over(len(run.score))
        held += low <= run.joint <= high
        line(name, method, f"{run.joint:.3f}", f"{low:.3f} to {high:.3f}", "in" if low <= run.joint <= high else "out")
    return held, len(HALVES)


def changing(name: str, methods: dict[str, str | None], seeds: int, rule: str) -> None:
    """One line a method: how the alarm follows coverage; the longest stretch is the longest over seeds."""
    for method, pilot in methods.items():
        rows = []
        for seed in range(seeds):
            place = cell(name, seed=seed)
            drift, few, inside = followed(fitted_row(f"{method}+{rule}", place, pilot=pilot), place.test)
            on, bad = drift | few, rolling(inside) <= LOW
            first = int(on.argmax()) if on.any() else np.nan
            rows.append((inside.mean(), bad.sum(), longest_stretch(bad & ~on), on.sum(), first))
        joint, bad_steps, _, alarmed, _ = np.mean(rows, axis=0)
        firsts = [row[-1] for row in rows if row[-1] == row[-1]]
        first = f"{np.median(firsts):.0f}" if firsts else "never"
        line(name, method, seeds, f"{joint:.3f}", f"{bad_steps:.0f}", max(r[2] for r in rows), f"{alarmed:.0f}", first)


def line(*entries) -> None:
    """A row of a table in Markdown."""
    print("| " + " | ".join(str(entry) for entry in entries) + " |", flush=True)


def head(*entries: str) -> None:
    """First two rows of such a table."""
    print()
    line(*entries)
    print("|" + "---|" * len(entries))


def main() -> None:
    """All that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=500, help="networks of each stationary track; 0: no networks")
    parser.add_argument("--sensors", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=20, help="networks of each track with a change")
    parser.add_argument("--cells", default="", help="cells with changes, separated by commas")
    parser.add_argument("--slow", type=int, default=0, help="runs of each series of scores whose spread wanders")
    parser.add_argument("--halves", default="", help="cells whose calibration block is cut into two")
    parser.add_argument("--rule", default="split", help="of the radius, such as auto or aci")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    begin = time.perf_counter()
    if options.runs:
        head("track", "method", "runs", "coverage", "in the band", "half-width", "alarms", "of scores", "of coverage")
        for track in "abc":
            stationary(track, options.sensors, options.runs, options.rule)
    head("cell", "method", "runs", "coverage", "steps too low", "longest without alarm", "steps with alarm", "first")
    if options.runs:
        for track in "de":
            changing(f"grssf-{track}-{options.sensors}", TRACKS, options.seeds, options.rule)
        changing("grssf-a-120", {"static": "calibration"}, options.seeds, options.rule)
    for name in filter(None, options.cells.split(",")):
        changing(name, CELLS, 1, options.rule)
    if options.slow:
        head("size", "rho", "quick", "calibration scores", "runs", "in the band", "half-width", "alarms of scores")
        for m in (750, 3000):
            for size, rho, quick in SLOW:
                wandering(size, rho, quick, m, options.slow, options.rule)
    if options.halves:
        head("cell", "method", "coverage of the second half", "band", "")
        held = np.sum([on_halves(name, options.rule) for name in options.halves.split(",")], axis=0)
        print(f"\n{held[0]} of {held[1]} in the band")
    print(f"\n{time.perf_counter() - begin:.0f} seconds")


if __name__ == "__main__":
    main()
