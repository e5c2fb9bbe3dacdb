# %% [markdown]
# # A traffic incident
#
# 48 loop detectors on a ring road and four roads into the centre of a simulated city, a speed every five minutes. On one evening traffic
# breaks down near one detector. We want to hear of it early, and to hear *where*.

# %%
import numpy as np

from jointset import plot, predictor
from jointset.datasets.city import DAY, Incident, simulate_city, with_trouble

city = simulate_city(8 * DAY)
train, calibration, evening = city[: 5 * DAY], city[5 * DAY : 7 * DAY], city[7 * DAY :]
incident = Incident(first=196, rows=30, sensor="ring-8", depth=0.4)
evening = with_trouble(evening, [incident])
print(evening.describe())

# %% [markdown]
# A method is fitted on quiet days and calibrated on days it has not seen. `var` is a regression on the last rows; nothing is trained.

# %%
model = predictor("var+aci").fit(train).calibrate(calibration)
quiet = model.copy().run(evening[: incident.first])
print(f"before the incident {quiet.joint:.1%} of the rows were inside their set (asked: 90 %)")

# %% [markdown]
# Now row by row, as a stream would. `contributions` says how much of the strangeness goes away without a sensor.

# %%
live, blame = model.copy(), np.zeros(len(model.sensors))
live.run(evening[: incident.first])
for t, row in enumerate(evening.values[incident.first : incident.first + 8]):
    shares = live.contributions(row)
    outcome = live.update(row)
    worst = live.sensors[shares.argmax()]
    print(f"{5 * t:3d} minutes: score {outcome.score:7.0f}, radius {outcome.radius:4.0f}, most to blame {worst}")
    blame = shares if t == 2 else blame

# %% [markdown]
# The score leaves the radius within minutes. The map shows who is to blame ten minutes after the beginning, the band what that detector read.

# %%
import matplotlib.pyplot as plt

run = model.run(evening)
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 3.8), layout="constrained")
near = slice(incident.first - 40, incident.first + 50)
plot.score(run, left)
left.set_xlim(*np.array(evening.timestamps, dtype="datetime64[s]")[[near.start, near.stop]])
plot.map(live, dict(zip(live.sensors, blame, strict=True)), middle)
middle.set_title("to blame, after ten minutes")
plot.band(run, incident.sensor, right)
right.set_xlim(left.get_xlim())
for ax in (left, right):
    ax.tick_params(axis="x", labelrotation=30)
