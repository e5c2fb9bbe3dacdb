"""Joint sets beside intervals of single sensors from other libraries, around the same mean, on real cells.

Usage: `python benchmarks/beside_others.py [--sktime] [--rows N] [CELL ...]`, with MAPIE and, for `--sktime`, sktime at
hand: `pip install --no-deps --target peers mapie sktime scikit-base`, then `PYTHONPATH=peers`.

The mean of every row is the last reading, so that sets differ in shape and size alone. Shapes are fitted on the rows
before the calibration block (protocol `text`), sizes on that block, the same for all, and everything is counted on the
test block. Libraries that give one interval a sensor are asked for 1 - alpha each, as they come, and
for 1 - alpha / N (Bonferroni). Seconds are those of a processor, for calibration and the sets of the whole test block.
sktime refits its forecaster at every calibration row, so `--sktime` adds a second table, of the last N rows of the
calibration block for all (210 unless told). It is asked once a sensor, as its half-width does not change afterwards.
"""

import argparse
import time
import warnings
from datetime import date
from importlib.metadata import version

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin

from jointset.adapters import JointRegressor
from jointset.datasets.cells import cell
from jointset.published.copula import copula_radii
from jointset.runs import log_mean

ALPHA = 0.1
CELLS = ("metr-la-20", "aqi-12", "elec-20")


class LastReading(RegressorMixin, BaseEstimator):
    """The mean of the next row is the row that is given; of one sensor, its own."""

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return X[:, 0] if X.shape[1] == 1 else X


def rows_of(name, rows):
    """Last readings and readings of the rows to fit on, to calibrate on and to test on."""
    found = cell(name)
    values = found.panel.values
    calibration, test = found.blocks["calibration"], found.blocks["test"]
    first = max(calibration.stop - rows, calibration.start) if rows else calibration.start
    cuts = slice(1, calibration.start), slice(first, calibration.stop), test
    return [(values[cut.start - 1 : cut.stop - 1], values[cut]) for cut in cuts]


def box(half, X, Y):
    """Joint coverage and sizes of one box, given by its half-widths."""
    held = (np.abs(Y - X) <= half).all(axis=1).mean()
    return {"joint": held, "width_full": np.mean(2 * half), "log_mean_volume": np.mean(np.log(2 * half))}


def by_copula(train, calibration, test, share):
    """CopulaCPTS: half-widths that hold together, from ranks."""
    X, Y = calibration
    return box(copula_radii(np.abs(Y - X), ALPHA), *test)


def by_mapie(train, calibration, test, share):
    """MAPIE's split-conformal interval of every sensor."""
    from mapie.regression import SplitConformalRegressor

    held, half = np.ones(len(test[0]), bool), []
    for i in range(test[0].shape[1]):
        one = LastReading().fit(train[0][:, [i]], train[1][:, i])
        model = SplitConformalRegressor(one, confidence_level=1 - ALPHA * share, prefit=True)
        model.conformalize(calibration[0][:, [i]], calibration[1][:, i])
        _, ends = model.predict_interval(test[0][:, [i]])
        held &= (test[1][:, i] >= ends[:, 0, 0]) & (test[1][:, i] <= ends[:, 1, 0])
        half.append(np.mean(ends[:, 1, 0] - ends[:, 0, 0]) / 2)
    return box(np.array(half), *test) | {"joint": held.mean()}


def by_sktime(train, calibration, test, share):
    """The half-width of sktime's conformal interval of every sensor after the calibration rows."""
    from sktime.forecasting.conformal import ConformalIntervals
    from sktime.forecasting.naive import NaiveForecaster

    half = []
    for i in range(test[0].shape[1]):
        y = pd.Series(np.append(calibration[0][0, i], calibration[1][:, i]))
        model = ConformalIntervals(NaiveForecaster("last"), method="conformal", initial_window=1).fit(y, fh=[1])
        ends = model.predict_interval(fh=[1], coverage=1 - ALPHA * share).to_numpy()[0]
        half.append((ends[1] - ends[0]) / 2)
    return box(np.array(half), *test)


def by_jointset(geometry, rule):
    """One set for the whole row: `JointRegressor` around the same mean."""

    def measured(train, calibration, test, share):
        X, Y = (np.concatenate(parts) for parts in zip(train, calibration, strict=True))
        model = JointRegressor(
            LastReading(), geometry=geometry, rule=rule, alpha=ALPHA, calibration_share=len(calibration[0]) / len(X)
        ).fit(X, Y)
        outcomes = model.update(*test)
        sets = model.score_.region(model._law(test[0]), outcomes.radius)
        sizes = {"width_full": np.mean(sets.width_full), "log_mean_volume": log_mean(sets.log_volume)}
        return {"joint": np.mean(outcomes.inside), **sizes}

    return measured


ROWS = {
    "MAPIE, 90 % for each sensor": (by_mapie, False),
    "MAPIE, Bonferroni": (by_mapie, True),
    "sktime ConformalIntervals, Bonferroni": (by_sktime, True),
    "CopulaCPTS": (by_copula, False),
    "jointset, box": (by_jointset("box", "split"), False),
    "jointset, box, auto": (by_jointset("box", "auto"), False),
    "jointset, ellipsoid": (by_jointset("ellipsoid", "split"), False),
    "jointset, ellipsoid, auto": (by_jointset("ellipsoid", "auto"), False),
}


def show_table(cells, rows, titles):
    """The rows of a table, a cell after the other; of all calibration rows where `rows` is 0."""
    which = f"cell, {rows} calibration rows" if rows else "cell"
    print(
        f"\n| {which} | set | joint coverage | log mean volume | mean full width | seconds |\n|---|---|---|---|---|---|"
    )
    for name in cells:
        train, calibration, test = rows_of(name, rows)
        for title in titles:
            measure, corrected = ROWS[title]
            start = time.process_time()
            found = measure(train, calibration, test, 1 / test[0].shape[1] if corrected else 1.0)
            numbers = [found["joint"], found["log_mean_volume"], found["width_full"], time.process_time() - start]
            print(f"| {name} | {title} | {' | '.join(f'{number:.3f}' for number in numbers)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("cells", nargs="*", default=CELLS)
    parser.add_argument("--sktime", action="store_true")
    parser.add_argument("--rows", type=int, default=210)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    libraries = ("jointset", "mapie", "sktime")[: 3 if asked.sktime else 2]
    print(", ".join([f"{date.today()}", *(f"{library} {version(library)}" for library in libraries)]))
    show_table(asked.cells, 0, [title for title, (measure, _) in ROWS.items() if measure is not by_sktime])
    if asked.sktime:
        show_table(asked.cells, asked.rows, list(ROWS))
