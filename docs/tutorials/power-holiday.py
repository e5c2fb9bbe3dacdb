# %% [markdown]
# # Power and a holiday
#
# Eight substations with the course of a working day. Then comes a holiday in the middle of a week: every station reads less, all
# together. What does the set say, and how soon does it recover?

# %%
import numpy as np
import pandas as pd

from jointset import Panel, plot, predictor

rng = np.random.default_rng(2)
days, stations = 84, [f"substation {letter}" for letter in "ABCDEFGH"]
times = pd.date_range("2026-03-02", periods=24 * days, freq="h", tz="UTC")  # a Monday
hour, weekend = times.hour.to_numpy(), times.day_of_week.to_numpy() >= 5
course = np.exp(-(((hour - 9) / 3.0) ** 2)) + 0.9 * np.exp(-(((hour - 18) / 3.0) ** 2))
holiday = times.normalize() == pd.Timestamp("2026-05-21", tz="UTC")  # a Thursday
working = np.where(weekend | holiday, 0.35, 1.0)
size = rng.uniform(30, 60, len(stations))
common = np.zeros(len(times))
for t in range(1, len(times)):
    common[t] = 0.9 * common[t - 1] + 0.02 * rng.normal()
load = size * (1 + (0.6 * course * working + common)[:, None]) + 0.03 * size * rng.normal(
    size=(len(times), len(stations))
)
panel = Panel.from_pandas(pd.DataFrame(load, index=times, columns=stations))
train, calibration, later = (
    panel.between(stop="2026-04-27"),
    panel.between("2026-04-27", "2026-05-18"),
    panel.between("2026-05-18"),
)
print(len(train), len(calibration), len(later), "hours to fit, to calibrate, to watch")

# %% [markdown]
# `var` knows the clock, not the calendar of holidays. One fixed radius and one that adapts:

# %%
runs = {}
for rule in ("split", "auto"):
    model = predictor(f"var+{rule}").fit(train).calibrate(calibration)
    runs[rule] = model.run(later)
day = pd.to_datetime(later.to_pandas().index).normalize()
table = pd.DataFrame({rule: pd.Series(run.inside).groupby(day).mean() for rule, run in runs.items()})
print(table.round(2).head(6).to_string())

# %% [markdown]
# The holiday falls out of the set in the hours of a rush that does not come, and the radius that adapts is back on the day after. Hardly a
# reading is beyond the ends of the set along its own station: the row is strange as a row.

# %%
run = runs["auto"]
there = day == pd.Timestamp("2026-05-21", tz="UTC")
own = (run.values[there] < run.lower[there]) | (run.values[there] > run.upper[there])
print(f"hours of the holiday outside the joint set: {(~run.inside[there]).sum()} of 24")
print(f"readings beyond the ends of the set along their own station: {own.sum()} of {own.size}")

# %%
import matplotlib.pyplot as plt

figure, (top, below) = plt.subplots(2, 1, figsize=(11, 5.2), sharex=True, layout="constrained")
plot.band(run, "substation A", top)
plot.score(run, below)
for ax in (top, below):
    ax.axvspan(np.datetime64("2026-05-21"), np.datetime64("2026-05-22"), color="#f5d76e", alpha=0.35, linewidth=0)
top.set_xlim(np.datetime64("2026-05-18"), np.datetime64("2026-05-25"))
top.legend(loc="upper left", ncols=4, frameon=False)
