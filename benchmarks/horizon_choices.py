"""What the law and the radii of steps ahead were chosen by, on training rows alone.

    python benchmarks/horizon_choices.py [CELL ...]

`var` is fitted on the first 70 % of the training block (protocol `text`). Of the rest the first half gives the errors
that covariances come from, the second is measured: the error of means, iterated or direct; the log-volume a reading of
ellipsoids that hold 90 % of the windows of 12 steps. Rules are run with `static` on four pairs of consecutive blocks,
each the calibration and the test of one.
"""

import sys
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import numpy as np
from scipy.special import gammaln

from jointset.calibration.late import LateACI
from jointset.calibration.pool import start_pool
from jointset.datasets.cells import cell
from jointset.filters.held_out import blocks_of_laws
from jointset.filters.var import VARFilter
from jointset.horizons import direct
from jointset.horizons.passes_ahead import AheadPass
from jointset.methods import predictor_for
from jointset.predicting.passes import laws_of

H = 12


def iterated(backbone, panel, starts):
    """Means (W, H, N) of windows by the one-step mean fed with its own means."""
    means, values, times = [], panel.values, panel.timestamps
    for t in starts:
        past, found = values[t - backbone.lags : t], []
        for h in range(H):
            found.append(backbone.predict_next(past, times[t + h : t + h + 1])[0])
            past = np.concatenate([past[1:], found[-1][None]])
        means.append(found)
    return np.array(means)


def log_volume(errors, scales, covariance):
    """Log-volume a reading of the ellipsoids of this shape that hold 90 % of the errors (W, H, N)."""
    size, root = errors[0].size, np.linalg.cholesky(covariance)
    white = np.linalg.solve(root, (errors / scales).reshape(len(errors), -1).T)
    radius = np.quantile((white**2).sum(axis=0), 0.9)
    ball = 0.5 * np.log(np.pi) - gammaln(size / 2 + 1) / size
    return np.log(root.diagonal()).sum() / size + 0.5 * np.log(radius) + ball + np.log(scales).mean()


def shapes(z):
    """Covariances (H N, H N) of errors in units of their scales (W, H, N), by name."""
    flat = z.reshape(len(z), -1)
    whole = flat.T @ flat / len(flat)
    yield "one matrix, shrunk by 0.02", 0.98 * whole + 0.02 * np.diag(whole.diagonal())
    sensors, steps = np.einsum("thi,thj->ij", z, z), np.einsum("thi,tki->hk", z, z)
    yield "steps times sensors", np.kron(steps, sensors) / np.trace(steps) / len(z)
    basis, covariances = direct._modes(z, len(z) / H)
    size = whole.shape[0]
    modes = np.einsum("ai,ihk,bi->hakb", basis, covariances, basis, optimize=True).reshape(size, size)
    yield "directions with steps of their own", modes


def laws(panel):
    """Tables of means and of covariances."""
    cut = int(0.7 * len(panel))
    middle = (cut + len(panel)) // 2
    var = VARFilter().fit(panel[:cut])
    found = [(law.mean, law.variance) for _, law in blocks_of_laws(var, panel)]
    means, variances = (np.concatenate(part) for part in zip(*found, strict=True))
    learned = direct.learn_direct(direct.Seen(panel[:cut], means[:cut], variances[:cut]), H, 600)

    def errors(starts):
        before = np.stack([panel.values[starts - 1], panel.values[starts - 2]], axis=1)
        law = learned.law(means[starts], variances[starts], before, panel.timestamps[starts])
        return panel.values[starts[:, None] + np.arange(H)] - law.center

    some = np.arange(cut, len(panel) - H, 37)
    by_step = iterated(var.backbone, panel, some) - panel.values[some[:, None] + np.arange(H)]
    for name, e in (("iterated", by_step), ("direct", errors(some))):
        print(f"rmse, {name}:", " ".join(f"{x:.3f}" for x in np.sqrt((e**2).mean(axis=(0, 2)))))
    early, late = np.arange(cut, middle - H), np.arange(middle, len(panel) - H)
    known, measured = errors(early), errors(late)
    slope, usual = direct._slopes(known, variances[early])
    for name, s in (("scales that stand still", 0.0 * slope), ("scales that follow the law's", slope)):
        own, other = (np.exp(0.5 * s[:, None] * (np.log(variances[at]) - usual)[:, None, :]) for at in (early, late))
        level = np.sqrt(((known / own) ** 2).mean(axis=0))
        for shape, covariance in shapes(known / own / level):
            print(f"log-volume, {name}, {shape}: {log_volume(measured, other * level, covariance):.3f}")


@dataclass(frozen=True)
class Frozen(LateACI):
    """The rule on calibration scores that never leave."""

    def start(self, scores):
        return start_pool(scores, "frozen", 0)


@dataclass(frozen=True)
class Clipped(Frozen):
    """The same, levels and radii clipped as `ACI` does."""

    def moved(self, level, missed):
        return max(super().moved(level, missed), 1e-4)

    def radius(self, pool, level, late):
        return min(super().radius(pool, level, late), float(pool.scores[-1]))


def rules(panel):
    """Coverage of four blocks at steps 1, 6, 12 and all together, and mean log-volumes, for each rule."""
    first, size = int(0.45 * len(panel)), int(0.11 * len(panel))
    predictor = predictor_for("static+aci", standardize=False).fit(panel[:first])
    predictor.calibrate(panel[first : first + size], horizon=H)
    for name, rule in (("calibration scores", Clipped()), ("with a tail", Frozen()), ("the last scores", LateACI())):
        coverage, volumes = [], []
        for block in range(4):
            start = first + block * size
            predictor.calibrate(panel[start : start + size], horizon=H)
            predictor.horizon = replace(predictor.horizon.rewrapped(rule), windows=(), rows=panel.values[:0])
            test = panel[start + size : start + 2 * size]
            walk = AheadPass(predictor, predictor.horizon, test.values, test.timestamps)
            for law, _, _ in laws_of(predictor, test, predictor.filter_state):
                walk.see(law)
            ahead = walk.finish()[0]
            coverage.append(ahead.coverage[[0, 5, 11, 12]])
            volumes.append(ahead.log_volume[:, [0, 5, 11, 12]].mean(axis=0))
        told = "; ".join(" ".join(f"{c:.3f}" for c in block) for block in coverage)
        print(f"rule, {name}: {told}; log-volume {' '.join(f'{v:.3f}' for v in np.mean(volumes, axis=0))}")


def main(names):
    """All of it for every cell."""
    for name in names:
        print(f"# {name}")
        panel = cell(name, "text").train
        laws(panel)
        rules(panel)


if __name__ == "__main__":
    main(sys.argv[1:] or ("metr-la-20", "aqi-12"))
