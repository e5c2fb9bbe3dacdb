"""How the default method grows with the number of sensors: training, a live step, memory.

    python benchmarks/scale.py [--device cuda] [--whole 1000] [--steps 2] [--instant] [SENSORS ...]

A simulated road network: sensors at random places of a square, each joined to its three nearest, readings that follow
their neighbours with common waves; 1,000 rows at five minutes. Of the learned members: milliseconds of a training step
(3,500 of them train both), from runs of 20 and 60 steps, and of a live step (a law and an update) on one core. Up to
`--whole` sensors also the whole `default`, all members with the same weight (after so few steps they would get none):
seconds that its fit takes beside the training of the members, milliseconds of `predict` and `update`. With `--instant`
`quick` instead, which is `var` above 300 sensors: seconds of processor time of its fit, milliseconds of a live step.
With `--steps S` nothing but the whole `default`, trained for S steps and S / 4 more: processor time of a training step,
of the rest of the fit and of a calibration on 200 rows; then, of the model read from its folder by another process, a
live step and the peak of that process's memory. Every size in a process of its own; memory is that process's peak, on
the host.
"""

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import numpy as np
from scipy.sparse import csr_array, identity
from scipy.spatial import cKDTree

from jointset import JointPredictor, NodeNet, Panel
from jointset.filters import members as learned
from jointset.filters import pool
from jointset.filters.default import DefaultFilter
from jointset.filters.quick import quick

TRAIN, CALIBRATE, LIVE = 1000, 200, 400


def roads(n, seed=0):
    """Adjacency (N, N), symmetric, of three nearest neighbours each."""
    places = np.random.default_rng(seed).random((n, 2))
    near = cKDTree(places).query(places, 4)[1][:, 1:]
    A = csr_array((np.ones(3 * n), (np.repeat(np.arange(n), 3), near.ravel())), shape=(n, n))
    return ((A + A.T) > 0).astype(float)


def readings(A, rows, seed=1):
    """Rows that follow their neighbours, with two waves of the day that all share in part."""
    rng, n = np.random.default_rng(seed), A.shape[0]
    S = 0.5 * identity(n, format="csr") + 0.45 * csr_array(A / A.sum(axis=1)[:, None])
    share, y, out = rng.normal(size=(2, n)), np.zeros(n), np.empty((rows, n))
    for t in range(rows):
        y = S @ y + 0.3 * rng.standard_normal(n)
        out[t] = y + np.array([np.sin(2 * np.pi * t / 288), np.cos(2 * np.pi * t / 288)]) @ share
    return out


def network(n):
    """The panel of a size."""
    A = roads(n)
    values = readings(A, TRAIN + CALIBRATE + LIVE)
    return Panel(values, [f"s{i}" for i in range(n)], 300 * np.arange(len(values)), adjacency=A)


def seconds(act):
    """Of an act, and what it gives."""
    start = time.perf_counter()
    given = act()
    return time.perf_counter() - start, given


def median_ms(act, rows):
    """Processor time of an act on every row."""
    spent = []
    for y in rows:
        start = time.process_time()
        act(y)
        spent.append(time.process_time() - start)
    return 1e3 * float(np.median(spent))


def members(panel, device):
    """Milliseconds of a training step and of a live step of the learned members."""
    net = NodeNet(device=device, steps=20)
    net.fit(panel[:TRAIN])  # whatever is made once
    (short, _), (long, fitted) = (seconds(lambda s=s: replace(net, steps=s).fit(panel[:TRAIN])) for s in (20, 60))
    state = [fitted.run(panel.values[: TRAIN // 4], fitted.start())[1]]

    def live(y):
        fitted.law(state[0])
        state[0] = fitted.step(state[0], y)

    return 1e3 * (long - short) / 40, median_ms(live, panel.values[-LIVE:])


def whole(panel, device, step):
    """Seconds of a fit beside the training of the members, milliseconds of a live step."""
    pool.best_weights = lambda laws, sizes, y, tried: tried[1]
    predictor = JointPredictor(DefaultFilter(device=device, steps=40))
    fit, _ = seconds(lambda: predictor.fit(panel[:TRAIN]))
    predictor.calibrate(panel[TRAIN : TRAIN + CALIBRATE])

    def live(y):
        predictor.predict()
        predictor.update(y)

    return fit - 50 * step / 1e3, median_ms(live, panel.values[-LIVE:])


def few_steps(panel, device, steps, folder):
    """Seconds of processor time of a training step, of the rest of a fit, and of a calibration; the model is saved."""
    search, trained, training = pool.best_weights, learned.trained_members, []
    pool.best_weights = lambda *given: (search(*given), given[3][1])[1]  # its time counts, all get the same weight

    def timed(*given):
        start = time.process_time()
        found = trained(*given)
        training.append(time.process_time() - start)
        return found

    learned.trained_members = timed
    start = time.process_time()
    predictor = JointPredictor(DefaultFilter(device=device, steps=steps)).fit(panel[:TRAIN])
    fit = time.process_time() - start
    predictor.calibrate(panel[TRAIN : TRAIN + CALIBRATE])
    whole = time.process_time() - start
    predictor.save(folder)
    return sum(training) / (steps + learned.further_steps(steps)), fit - sum(training), whole - fit


def streamed(folder, rows):
    """Milliseconds of a live step of a stored model, and the peak of memory, in a process of their own."""
    predictor = JointPredictor.load(folder)

    def live(y):
        predictor.predict()
        predictor.update(y)

    return median_ms(live, rows), peak()


def whole_line(n, device, steps, folder):
    """Cells of the line of a size with few training steps, and the rows that the model is to be streamed."""
    warnings.simplefilter("ignore")
    panel = network(n)
    cells = [f"{x:.1f}" for x in few_steps(panel, device, steps, folder)]
    return [f"{n:,}", *cells, f"{peak():,.0f}"], panel.values[-LIVE:]


def peak():
    """Megabytes of memory that this process had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def instant(panel):
    """Seconds of processor time of a fit of `quick`, milliseconds of a live step."""
    start = time.process_time()
    predictor = JointPredictor(quick()).fit(panel[:TRAIN])
    fit = time.process_time() - start
    predictor.calibrate(panel[TRAIN : TRAIN + CALIBRATE])

    def live(y):
        predictor.predict()
        predictor.update(y)

    return fit, median_ms(live, panel.values[-LIVE:])


def line(n, device, most):
    """The line of a size; `most` None: that of `quick`."""
    warnings.simplefilter("ignore")
    panel = network(n)
    cells = [f"{n:,}"]
    if most is None:
        cells += [f"{x:.1f}" for x in instant(panel)]
    else:
        step, live = members(panel, device)
        cells += [f"{step:.1f}", f"{live:.1f}"]
        cells += [f"{x:.1f}" for x in whole(panel, device, step)] if n <= most else ["", ""]
    cells.append(f"{peak():,.0f}")
    return f"| {' | '.join(cells)} |"


def main():
    """A line a size."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sensors", nargs="*", type=int, default=[100, 207, 500])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--whole", type=int, default=1000)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--instant", action="store_true")
    args = parser.parse_args()
    titles = "training step, ms | members live, ms | rest of the fit, s | `default` live, ms | memory, MB"
    titles = "fit of `quick`, s | live step, ms | memory, MB" if args.instant else titles
    if args.steps:
        titles = "training step, s | rest of the fit, s | calibration, s | memory, MB"
        titles += " | model, MB | live step, ms | memory of a stream, MB"
    print(f"| sensors | {titles} |\n|---|{'---|' * (titles.count('|') + 1)}", flush=True)
    for n in args.sensors:
        if args.steps:
            print(few_steps_line(n, args), flush=True)
            continue
        print(apart(line, n, args.device, None if args.instant else args.whole), flush=True)


def few_steps_line(n, args):
    """The line of a size with few training steps: a fit in one process, a stream in another."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        cells, rows = apart(whole_line, n, args.device, args.steps, model)
        size = sum(file.stat().st_size for file in model.rglob("*") if file.is_file()) / 2**20
        live, memory = apart(streamed, model, rows)
    return f"| {' | '.join([*cells, f'{size:.1f}', f'{live:.1f}', f'{memory:,.0f}'])} |"


def apart(act, *given):
    """What an act gives, in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as process:
        return process.apply(act, given)


if __name__ == "__main__":
    main()
