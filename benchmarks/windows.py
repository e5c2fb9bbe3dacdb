"""Every window and every hour: does `+auto` hold what it promises, on real cells, after a jump, and against anyone?

Run: python benchmarks/windows.py [--calibration] [--jump METHOD] [--parts] [CELL ...]    (CELLS; `none`: no cell)

With --calibration the halves of calibration blocks stand for calibration and test: where constants were chosen. With
--jump only the jump is run, under METHOD, which trains ten times where it learns; with --parts what the parts
of `+auto` cost on exchangeable Student-t3 scores of one sensor and of five.
Prints a line for each promise with what was found. Weights kept in JOINTSET_WEIGHTS are used; else `default` trains.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import chi2, f

from jointset.abilities import follows_clock
from jointset.bench.measures import coin, steadiness, worst_hour, worst_window
from jointset.calibration import RULES, auto, calibration
from jointset.datasets.cells import Cell, cell
from jointset.experiments.rows import run_rows
from jointset.runs import Run

CELLS = ("ett-7", "aqi-12", "elec-20", "solar-12", "jena-20", "metr-la-20")
WRAPS = ("aci", "clock-aci", "auto-alone", "auto")
SEEDS = (0, 1, 2)
SIZES = ("log_volume", "log_mean_volume")
BEST = ((0.9, ""), (0.87, ", 0.87 of large sets"), (0.84, ", 0.84"), (0.81, ", 0.81"))
ALPHA, HOUR, DAY = 0.1, 3600, 86_400
COLUMNS = ("joint", "worst 500", "coin", "P90/coin", "lowest hour", "coin", "log-volume", "log mean volume")


def told(words: str, holds: bool) -> None:
    """One line for one promise."""
    print(f"{'holds' if holds else 'FAILS'}  {words}", flush=True)


def figures(run: Run) -> dict[str, float]:
    """Of a run: how coverage holds over time and by the hour, and sizes."""
    inside, hours = run.inside, np.asarray(run.timestamps) % DAY // HOUR
    ideal, found = coin(len(inside), ALPHA), steadiness(inside, ALPHA)
    rng = np.random.default_rng(0)
    coins = np.mean([worst_hour(hours, rng.random(len(hours)) >= ALPHA) for _ in range(200)])
    peak = run.log_volume.max()
    return {
        "joint": float(inside.mean()),
        "worst": worst_window(inside),
        "worst_coin": ideal["worst_window"],
        "gap": found["gap_100_p90"] / ideal["gap_100_p90"],
        "hour": worst_hour(hours, inside),
        "hour_coin": float(coins),
        "log_volume": float(run.log_volume.mean()),
        "log_mean_volume": float(peak + np.log(np.exp(run.log_volume - peak).mean())),
    }


def best_by_hour(run: Run, large: float = 1 - ALPHA) -> Run:
    """The same laws with the best radius of every hour, read off these very rows: known to nobody beforehand.

    Hours whose sets are larger than the median hour's cover the share `large`, the others what makes it 90 % in all.
    """
    hours, radius = np.asarray(run.timestamps) % DAY // HOUR, np.empty(len(run.score))
    present = np.unique(hours)
    sizes = run.log_volume - 0.5 * np.log(run.radius)
    quantiles = {hour: np.quantile(run.score[hours == hour], 1 - ALPHA) for hour in present}
    size = np.array([sizes[hours == hour].mean() + 0.5 * np.log(quantiles[hour]) for hour in present])
    for hour, is_large in zip(present, size > np.median(size), strict=True):
        own = np.sort(run.score[hours == hour])
        share = large if is_large else 2 * (1 - ALPHA) - large
        radius[hours == hour] = own[int(np.ceil(share * len(own))) - 1]
    grown = run.log_volume + 0.5 * np.log(radius / run.radius)  # ellipsoids grow with the root of their radius
    return replace(run, radius=radius, inside=run.score <= radius, log_volume=grown)


def without_test(whole: Cell) -> Cell:
    """A cell whose calibration block is cut into a calibration and a test block."""
    rows = whole.blocks["calibration"]
    middle = (rows.start + rows.stop) // 2
    return replace(
        whole, blocks={**whole.blocks, "calibration": slice(rows.start, middle), "test": slice(middle, rows.stop)}
    )


def on_cell(name: str, held_out: bool = False) -> None:
    """The four wraps of `default` on the test block of a cell, means of SEEDS; sizes are beside those of `+aci`."""
    names, found = [f"default+{wrap}" for wrap in WRAPS], {}
    rows = without_test(cell(name, "text")) if held_out else cell(name, "text")
    for method, seed, run, _ in run_rows(names, rows, ALPHA, SEEDS):
        found[method, seed] = figures(run)
        if method == names[0]:
            found |= {
                (f"best radius of every hour{more}", seed): figures(best_by_hour(run, share)) for share, more in BEST
            }
    for (_, seed), row in found.items():
        for size in SIZES:
            row[f"{size} beside"] = row[size] - found[names[0], seed][size]
    print(f"\n{name}: {' / '.join(COLUMNS)}")
    for method in dict.fromkeys(name for name, _ in found):
        mean = {key: np.mean([found[method, seed][key] for seed in SEEDS]) for key in found[method, SEEDS[0]]}
        shown = [f"{mean[key]:.3f}" for key in ("joint", "worst", "worst_coin", "gap", "hour", "hour_coin")]
        shown += [f"{mean[f'{size} beside']:+.3f}" for size in SIZES]
        print(f"| `{method}` | {' / '.join(shown)} |")

    def each(words: str, key: str, low: float, high: float) -> None:
        own = [found["default+auto", seed][key] for seed in SEEDS]
        told(f"{name}: {words}: {', '.join(f'{one:.3f}' for one in own)}", all(low <= one <= high for one in own))

    each("worst 500 at least 0.87", "worst", 0.87, 1.0)
    each("joint in 0.895-0.905", "joint", 0.895, 0.905)
    each("P90 of the 100-step gap at most 1.15 coins", "gap", 0.0, 1.15)
    each("no hour below 0.80", "hour", 0.80, 1.0)
    each("mean log-volume at most 0.02 above aci", "log_volume beside", -np.inf, 0.02)
    each("log mean volume at most 0.02 above aci", "log_mean_volume beside", -np.inf, 0.02)


def after_a_jump(method: str = "kalman") -> None:
    """GRSSF E, N = 30, protocol `text`: the noise of the states doubles in the middle of the test block."""
    rows = []
    for seed in range(10):
        _, _, run, _ = next(iter(run_rows([f"{method}+auto"], cell("grssf-e-30", "text", seed), ALPHA, (seed,))))
        middle = len(run.score) // 2
        known = np.repeat([np.quantile(part, 1 - ALPHA) for part in np.split(run.score, [middle])], middle)
        cost = np.log(run.radius / known).mean() / 2
        rows.append([run.inside.mean(), run.inside[middle : middle + 200].mean(), np.isfinite(run.radius).all(), cost])
    whole, soon, finite, cost = np.mean(rows, axis=0)
    print(f"\nGRSSF E, {method}+auto, means of {len(rows)} seeds; lowest {np.min(rows, axis=0)[:2].round(3)}")
    told(f"whole block at least 0.88: {whole:.3f}", whole >= 0.88)
    told(f"first 200 steps after the jump at least 0.80: {soon:.3f}", soon >= 0.80)
    told("every radius finite", bool(finite == 1.0))
    told(f"mean log-volume at most 0.05 above the two best radii: {cost:+.3f}", cost <= 0.05)


def on_exchangeable_scores() -> None:
    """Mean width beside that of the one radius that covers as much of the law of the scores, which Split would need."""
    print("\nExchangeable scores, hourly and every five minutes: width beside Split")
    laws = {f"{n} sensors": chi2(n) for n in (1, 5, 30)} | {f"{n} sensors, Student-t3": f(n, 3) for n in (1, 5)}
    for cadence in (HOUR, 300):
        for name, law in laws.items():
            cost = width_cost("auto", law, cadence)
            told(f"{name}, a row every {cadence} s: at most 1 % wider: {cost:+.2f} %", cost <= 1.0)


def width_cost(wrap: str, law: Any, cadence: int) -> float:
    """Per cent of width that a rule costs on exchangeable scores of this law, mean of ten seeds."""
    costs = []
    for seed in range(10):
        rng, rule = np.random.default_rng(seed), calibration(wrap)
        known, scores = law.rvs(1500, random_state=rng), law.rvs(5000, random_state=rng)
        times = cadence * np.arange(6500)
        before, after = ((times[:1500],), (times[1500:],)) if follows_clock(rule) else ((), ())
        radii, _ = rule.run(rule.start(known, *before), scores, *after)
        costs.append(100 * (np.sqrt(radii).mean() / np.sqrt(law.ppf(law.cdf(radii).mean())) - 1))
    return float(np.mean(costs))


def parts_of_the_cost() -> None:
    """What of `+auto` costs how much where tails are heavy: without the clock, then with one answer less at a time."""
    cases = {
        "auto": ("auto", {}),
        "without the clock": ("auto-alone", {}),
        "... and the answer to the last 30 misses": ("auto-alone", {"PROMPT": 0.0}),
        "... and the answer to the misses so far": ("auto-alone", {"FEEDBACK": 1e-12}),
        "aci": ("aci", {}),
    }
    for name, (wrap, settings) in cases.items():
        kept = {key: getattr(auto, key) for key in settings}
        for key, value in settings.items():
            setattr(auto, key, value)
        found = ", ".join(f"{width_cost(wrap, f(n, 3), HOUR):.2f} %" for n in (1, 5))
        for key, value in kept.items():
            setattr(auto, key, value)
        print(f"{name}: {found}", flush=True)


def adversary(kind: str, radius: float, when: int, rng: np.random.Generator) -> float:
    """Score chosen after the radius is seen, between 1e-3 and 1e9."""
    outside, inside = min(1.001 * radius, 1e9), max(0.5 * radius, 1e-3)
    out = {
        "always out": True,
        "always in": False,
        "out by night": when % DAY < DAY // 2,
        "blocks": when // HOUR // 300 % 2 == 0,
        "coin": rng.random() < 0.5,
    }
    return outside if out[kind] else inside


def against_an_adversary(steps: int = 100_000) -> None:
    print(f"\nAdversaries, {steps} hourly steps: share of misses, largest radius")
    for kind in ("always out", "always in", "out by night", "blocks", "coin"):
        rng, rule = np.random.default_rng(0), calibration("auto")
        state, misses, largest = rule.start(rng.chisquare(3, 500), HOUR * np.arange(500)), 0, 0.0
        for _ in range(steps):
            radius = rule.radius(state)
            score = adversary(kind, radius, state.next, rng)
            misses, largest = misses + (score > radius), max(largest, radius)
            state = rule.update(state, score)
        share = misses / steps
        holds = abs(share - ALPHA) <= 0.005 and bool(np.isfinite(largest))
        told(f"{kind}: within 0.005 of {ALPHA}: {share:.4f}, {largest:.3g}", holds)


def speed(steps: int = 5_000) -> None:
    """Scores a minute of processor time through a run, and the time of one live radius and update: medians."""
    rng = np.random.default_rng(0)
    known, scores, times = rng.chisquare(20, 2000), rng.chisquare(20, steps), HOUR * np.arange(2000 + steps)
    print("\nSpeed")
    for name in (*RULES, "clock-aci", "clock-split"):
        rule, took = calibration(name), []
        start = rule.start(known, times[:2000]) if follows_clock(rule) else rule.start(known)
        for part in np.split(scores, 10):
            begin = time.process_time()
            rule.run(start, part)
            took.append((time.process_time() - begin) / len(part))
        live, state = [], start
        for score in scores[:1000].tolist():
            begin = time.process_time_ns()
            rule.radius(state)
            state = rule.update(state, score)
            live.append(time.process_time_ns() - begin)
        minute, once = 60 / max(np.median(took), 1e-9), np.median(live) / 1e3
        told(f"{name}: at least 1e6 scores a minute: {minute:.2g}", minute >= 1e6)
        told(f"{name}: a live update at most 50 us: {once:.0f}", once <= 50)


def main(cells: list[str], held_out: bool) -> None:
    for name in cells:
        on_cell(name, held_out)
    after_a_jump()
    on_exchangeable_scores()
    against_an_adversary()
    speed()


if __name__ == "__main__":
    asked = sys.argv[1:]
    if "--parts" in asked:
        parts_of_the_cost()
    elif "--jump" in asked:
        after_a_jump(asked[asked.index("--jump") + 1])
    else:
        cells = [name for name in asked if name != "--calibration"] or list(CELLS)
        main([name for name in cells if name != "none"], "--calibration" in asked)
