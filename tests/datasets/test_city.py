"""The simulated city: rush hours, incidents that spread along the roads, faults of single detectors."""

import numpy as np
import pytest

from jointset import InputError
from jointset.datasets.city import CLEARING, DAY, RAMP, Fault, Incident, hops, simulate_city, streets, with_trouble
from jointset.inputs.communities import components

WEEK = simulate_city(7 * DAY, seed=3)


def test_the_roads_are_one_network_on_a_map():
    names, at, adjacency = streets()
    assert len(set(names)) == len(names) == 48 and len(components(adjacency)) == 1
    assert len(np.unique(at.round(5), axis=0)) == 48 and (adjacency == adjacency.T).all()


def test_working_days_have_rush_hours_and_weekends_none():
    hour = (WEEK.timestamps % 86_400) // 3600
    mean = [WEEK.values[np.isin(hour, (7, 8)) & chosen].mean() for chosen in (days(0, 5), days(5, 7))]
    night = WEEK.values[hour == 2].mean()
    assert mean[0] < 0.92 * night and mean[1] == pytest.approx(night, rel=0.02)


def days(first, last):
    day = (WEEK.timestamps - WEEK.timestamps[0]) // 86_400
    return (day >= first) & (day < last)


def test_an_incident_slows_its_detector_most_and_those_further_than_two_edges_not_at_all():
    rows = slice(100 + RAMP - 1, 130 - CLEARING)
    slow = with_trouble(WEEK, [Incident(100, 30, "ring-4", 0.5)])
    left = (slow.values / WEEK.values)[rows].mean(axis=0)
    far = hops(WEEK, "ring-4")
    assert left[far == 0] == pytest.approx(0.5, abs=0.01)
    assert left[far == 1] == pytest.approx(0.675, abs=0.01) and left[far == 2] == pytest.approx(0.789, abs=0.01)
    np.testing.assert_array_equal(slow.values[:, far > 2], WEEK.values[:, far > 2])
    np.testing.assert_array_equal(slow.values[130:], WEEK.values[130:])


def test_faults_freeze_or_silence_one_detector():
    broken = with_trouble(WEEK, [], [Fault(10, 5, "east-1", "stuck"), Fault(50, 4, "west-2", "silent")])
    east, west = WEEK.sensors.index("east-1"), WEEK.sensors.index("west-2")
    assert (broken.values[10:15, east] == WEEK.values[10, east]).all() and np.isnan(broken.values[50:54, west]).all()
    assert np.isnan(broken.values).sum() == 4


def test_the_same_seed_is_the_same_city():
    np.testing.assert_array_equal(simulate_city(50, seed=3).values, simulate_city(50, seed=3).values)
    with pytest.raises(InputError, match="at least one row"):
        simulate_city(0)
