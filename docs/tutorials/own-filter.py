# %% [markdown]
# # Bring your own filter
#
# You have a forecaster that knows your network. Give it the four verbs of a filter, and jointset makes calibrated joint sets from it, streams
# with it, saves it and compares it with every other method. Ours here is double exponential smoothing, a level and a trend for each sensor.

# %%
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jointset import DenseLaw, JointPredictor, MaxStudentised, generate_grssf, plot, predictor
from jointset.checks import calibrated, check_calibrated
from jointset.storage import storable


@storable
@dataclass(frozen=True)
class Holt:
    """A level and a damped trend for each sensor; the covariance is that of past errors."""

    level: float = 0.5
    trend: float = 0.1
    damping: float = 0.8
    covariance: Any = None  # an array, set by fit

    def fit(self, panel):
        unit = replace(self, covariance=np.eye(panel.n_sensors))
        laws, _ = unit.run(panel.values, unit.start())
        return replace(self, covariance=np.cov((panel.values - laws.mean).T))

    def start(self):  # levels above, trends below
        return np.zeros((2, len(self.covariance)))

    def law(self, state):  # of the next reading, before it is seen
        return DenseLaw(state[0] + self.damping * state[1], self.covariance)

    def step(self, state, y):  # the state after a reading; a missing sensor moves as expected
        ahead = state[0] + self.damping * state[1]
        error = np.where(np.isnan(y), 0.0, y - ahead)
        return np.stack([ahead + self.level * error, self.damping * state[1] + self.trend * error])

    def run(self, values, state):  # the same, for whole blocks
        means = np.empty_like(values)
        for t, y in enumerate(values):
            means[t] = self.law(state).mean
            state = self.step(state, y)
        return DenseLaw(means, self.covariance), state


# %% [markdown]
# The contract that all methods keep is a function; it says what is wrong, if something is.

# %%
check_calibrated(calibrated(lambda: JointPredictor(Holt())), "holt")
print("kept")

# %% [markdown]
# Its sets beside those of methods that are there, on a simulated network whose truth is known.

# %%
panel = generate_grssf("A", n=12, length=3000).panel
train, calibration, test = panel.split((0.6, 0.2, 0.2))
methods = {
    "holt": JointPredictor(Holt()),
    "holt, box": JointPredictor(Holt(), MaxStudentised()),
    "ewma": predictor("ewma"),
    "kalman": predictor("kalman"),
}
runs = {name: one.fit(train).calibrate(calibration).run(test) for name, one in methods.items()}
for name, run in runs.items():
    print(
        f"{name:10s} inside {run.joint:.1%}, width {run.width_full.mean():5.2f}, log-volume {run.log_volume.mean():.3f}"
    )

# %% [markdown]
# The promise holds for each of them; what a filter knows decides the size. This network has no trend, so ours pays for looking for one, and
# boxes win on width by geometry alone. Your filter saves and loads like ours (`methods["holt"].save("model")`), and as an entry point of a
# package it has a name in `jointset fit` and `jointset bench` ([comparing methods](../benchmark.md)).

# %%
import matplotlib.pyplot as plt

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
plot.score(runs["holt"], left)
left.tick_params(axis="x", labelrotation=30)
for name, run in runs.items():
    inside = np.convolve(run.inside, np.full(100, 0.01), "valid")  # of the last 100 rows
    right.errorbar(run.log_volume.mean(), run.joint, [[run.joint - inside.min()], [inside.max() - run.joint]], fmt="o")
    below = name == "ewma"  # beside kalman: a label each way
    right.annotate(name, (run.log_volume.mean(), run.joint), (6, -12 if below else 4), textcoords="offset points")
right.axhline(0.9, color="#333333", linewidth=0.8, linestyle=":")
right.margins(x=0.25)
right.set(xlabel="log-volume a sensor", ylabel="inside: all rows, worst and best 100 in a row")
