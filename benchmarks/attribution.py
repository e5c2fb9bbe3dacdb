"""Who is named when a fault is put into rows on purpose: share of faults in which the right one comes first.

    python benchmarks/attribution.py                                   # METR-LA-20, AQI-12 and simulated networks
    python benchmarks/attribution.py --cells metr-la-20 --methods quick,ewma --faults 200
    python benchmarks/attribution.py --bound                           # what the best rule there is can name

A fault moves one sensor, or a sensor and its neighbours in the same direction, by 3 sd: of its readings in the training
rows, or of the announced law. `one row` asks at the first row of the fault; `three rows` adds up what is said in three
rows that it lasts, while the filter takes them in. `contributions` and `attribution` name a sensor, `neighbourhoods` a
neighbourhood; beside them what a look at |residual| / sd would have named. Rows are drawn from the test block. With
`--bound`, simulated networks and one row: the rule that names the likeliest sensor under the true law, knowing the size
of the fault, than which none is right more often; and `contributions` under the same law.
"""

import argparse

from table import show  # first: sets the number of threads

import numpy as np

from jointset import Panel, generate_grssf
from jointset.datasets.cells import cell
from jointset.inputs.graph_edges import closed_neighbourhoods
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


def true_law(track: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Covariance (N, N) of the next reading of a simulated network under its own filter, and sd (N,) of readings."""
    truth = generate_grssf(track, n=n, length=100).truth
    F, Q, R = truth.transition, truth.process_covariance, truth.observation_covariance
    P, spread = Q, Q
    for _ in range(300):
        P, spread = F @ (P - P @ np.linalg.solve(P + R, P)) @ F.T + Q, F @ spread @ F.T + Q
    return P + R, np.sqrt((spread + R).diagonal())


def bound(track: str, n: int, size: float, draws: int = 20_000) -> None:
    """Share of faults of one sensor in one row that the best rule names, and `contributions`."""
    S, readings = true_law(track, n)
    P, rng = np.linalg.inv(S), np.random.default_rng(0)
    i, e = rng.integers(n, size=draws), rng.standard_normal((draws, n)) @ np.linalg.cholesky(S).T
    for of, sd in {"readings": readings, "law": np.sqrt(S.diagonal())}.items():
        a, pulled = size * sd, (e + np.eye(n)[i] * (size * sd)) @ P  # either sign alike: the law is symmetric
        likeliest = np.logaddexp(a * pulled, -a * pulled) - 0.5 * a**2 * P.diagonal()
        right = [float((found.argmax(1) == i).mean()) for found in (likeliest, pulled**2 / P.diagonal())]
        print(f"grssf-{track.lower()}-{n}, {size:g} sd of the {of}: best {right[0]:.3f}, contributions {right[1]:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", default="metr-la-20,aqi-12,grssf-a-30,grssf-b-60")
    parser.add_argument("--methods", default="quick,ewma")
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--bound", action="store_true", help="of the best rule, on simulated networks")
    asked = parser.parse_args()
    for track, n in (("A", 30), ("B", 60)) if asked.bound else ():
        for size in (SIZE, 3.5, 4.0, 4.5):
            bound(track, n, size)
    if asked.bound:
        raise SystemExit
    for name in asked.cells.split(","):
        for method in asked.methods.split(","):
            measure(name, method, asked.faults)
