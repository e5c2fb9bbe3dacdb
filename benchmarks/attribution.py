"""Who is named when a fault is put into rows on purpose: share of faults in which the right one comes first.

    python benchmarks/attribution.py                                   # METR-LA-20, AQI-12 and simulated networks
    python benchmarks/attribution.py --cells metr-la-20 --methods quick,ewma --faults 200

A fault moves one sensor, or a sensor and its neighbours in the same direction, by 3 sd: of its readings in the training
rows, or of the announced law. `one row` asks at the first row of the fault; `three rows` adds up what is said in three
rows that it lasts, while the filter takes them in. `contributions` and `attribution` name a sensor, `neighbourhoods` a
neighbourhood; beside them what a look at |residual| / sd would have named. Rows are drawn from the test block.
"""

import argparse

from table import show  # first: sets the number of threads

import numpy as np

from jointset import Panel
from jointset.datasets.cells import cell
from jointset.graph_edges import closed_neighbourhoods
from jointset.methods import predictor_for
from jointset.joint_predictor import JointPredictor

SIZE, LASTING = 3.0, 3  # sd of a fault, rows of one that lasts
MOST = {"train": 8000, "calibration": 2000, "test": 2000}  # rows of a block


def blocks(name: str) -> list[Panel]:
    """Training, calibration and test rows of a cell; the last ones, of the test block the first."""
    place = cell(name)
    train, calibration, test = (place.panel[place.blocks[key]] for key in MOST)
    return [train[-MOST["train"] :], calibration[-MOST["calibration"] :], test[: MOST["test"]]]


def moved(rows: np.ndarray, places: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Rows with these sensors moved."""
    rows = rows.copy()
    rows[:, places] += by[places]
    return rows


def named(predictor: JointPredictor, rows: np.ndarray) -> dict[str, list[str]]:
    """The sensor that every way of asking names after the first row, and after all."""
    one, sums, found = predictor.copy(), np.zeros((3, len(predictor.sensors))), {}
    for t, y in enumerate(rows):
        law = one.predict().law
        ratios = np.nan_to_num(np.abs(y - law.mean) / np.sqrt(law.variance))
        sums += [one.contributions(y), one.attribution(y), ratios**2]
        if t in (0, len(rows) - 1):
            for way, parts in zip(("contributions", "attribution", "|residual| / sd"), sums, strict=True):
                found.setdefault(way, []).append(one.sensors[int(parts.argmax())])
        one.update(y)
    return found


def around(predictor: JointPredictor, rows: np.ndarray) -> list[str]:
    """The centre of the neighbourhood that is named after the first row, and after all."""
    one, sums, found = predictor.copy(), dict.fromkeys(predictor.sensors, 0.0), []
    for t, y in enumerate(rows):
        for place in one.neighbourhoods(y):
            sums[place.sensor] += place.drop
        if t in (0, len(rows) - 1):
            found.append(max(sums, key=sums.__getitem__))
        one.update(y)
    return found


def measure(name: str, method: str, faults: int) -> None:
    """One line for every way of asking and measure of 3 sd."""
    train, calibration, test = blocks(name)
    predictor = predictor_for(method).fit(train).calibrate(calibration)
    rng, n, here = np.random.default_rng(0), train.n_sensors, 0
    complete = np.flatnonzero(~np.isnan(test.values).any(axis=1)[: len(test) - LASTING])
    hoods = closed_neighbourhoods(predictor.graph, n)
    hits: dict[tuple[str, str], list[list[bool]]] = {}
    for t in np.sort(rng.choice(complete, min(faults, len(complete)), replace=False)).tolist():
        predictor.run(test[here:t], regions=False)
        here = t
        sds = {"readings": predictor.scale, "law": np.sqrt(predictor.predict().law.variance)}
        i, (centre, places) = int(rng.integers(n)), hoods[int(rng.integers(len(hoods)))]
        sign, rows = rng.choice([-SIZE, SIZE]), test.values[t : t + LASTING]
        for of, sd in sds.items():
            for way, who in named(predictor, moved(rows, np.array([i]), sign * sd)).items():
                hits.setdefault((way, of), []).append([one == test.sensors[i] for one in who])
            who = around(predictor, moved(rows, places, sign * sd))
            hits.setdefault(("neighbourhoods", of), []).append([one == test.sensors[centre] for one in who])
    shares = {key: np.mean(found, axis=0) for key, found in hits.items()}
    lines = [
        (f"{way}, 3 sd of the {of}", f"{a:.2f} one row", f"{b:.2f} three rows") for (way, of), (a, b) in shares.items()
    ]
    sizes = sorted(len(places) for _, places in hoods)
    show(f"{name}, {method}: {n} sensors, {len(hoods)} neighbourhoods of {sizes[0]} to {sizes[-1]}", sorted(lines))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", default="metr-la-20,aqi-12,grssf-a-30,grssf-b-60")
    parser.add_argument("--methods", default="quick,ewma")
    parser.add_argument("--faults", type=int, default=200)
    asked = parser.parse_args()
    for name in asked.cells.split(","):
        for method in asked.methods.split(","):
            measure(name, method, asked.faults)
