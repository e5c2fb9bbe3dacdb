"""Coverage by the clock: counts that add up, findings that are found, noise that is not."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from typer.testing import CliRunner

from jointset import Panel
from jointset.audits.dependence import hits_words, integrated_time_words, season_of
from jointset.audits.light import light_of
from jointset.cli import app
from jointset.predicting.clock_coverage import _interval, clock_coverage

HOUR, DAY = 3600, 86_400
MONDAY = 4 * DAY  # 1970-01-05


def clock(days, cadence=HOUR):
    return MONDAY + cadence * np.arange(days * DAY // cadence)


def test_counts_agree_with_pandas():
    rng = np.random.default_rng(0)
    times, inside = clock(40, 900), rng.random(40 * 96) < 0.9
    found = clock_coverage(times, inside)
    frame = pd.DataFrame({"inside": inside}, index=pd.to_datetime(times, unit="s", utc=True))
    by_hour = frame.groupby(frame.index.hour).inside
    by_day = frame.groupby(frame.index.day_of_week).inside
    assert np.array_equal(found.hour.rows, by_hour.size()) and np.array_equal(found.hour.hits, by_hour.sum())
    assert np.array_equal(found.weekday.share, by_day.mean()) and list(found.weekday.groups) == list(range(7))
    assert found.rows.shape == found.hits.shape == (7, 24) and found.rows.sum() == len(times)
    assert np.array_equal(found.hits.sum(axis=0), found.hour.hits)


def test_rows_without_a_reading_or_a_clock_count_for_nothing():
    times, inside = clock(10), np.ones(240, bool)
    seen = np.arange(240) % 24 != 3
    found = clock_coverage(times, inside, seen)
    assert 3 not in found.hour.groups and found.rows.sum() == 230
    assert clock_coverage(None, inside) is None
    assert clock_coverage(times[::24], inside[::24]) is None  # one reading a day has no hours
    assert clock_coverage(times[:0], inside[:0]) is None


def test_an_hour_that_is_missed_is_found_and_named():
    rng = np.random.default_rng(1)
    times = clock(200)
    share = np.where(times % DAY // HOUR == 5, 0.31, np.where(times % DAY // HOUR < 4, 1.0, 0.93))
    found = clock_coverage(times, rng.random(len(times)) < share)
    assert found.hour.groups[found.hour.lowest] == 5 and found.hour.high[5] < 0.6
    assert re.fullmatch(r"by the hour \d\d % at 05 h to 100 % at 00 h", found.words), found.words
    assert found.worst < 0.5


def test_hours_that_are_never_missed_are_named_too():
    rng = np.random.default_rng(8)
    times = clock(365)
    found = clock_coverage(times, rng.random(len(times)) < np.where(times % DAY // HOUR == 2, 1.0, 0.9))
    assert found.words == "by the hour up to 100 % at 02 h" and np.isnan(found.worst)


def test_a_weekday_that_is_missed_is_found_and_named():
    rng = np.random.default_rng(2)
    times = clock(140)
    share = np.where((times // DAY + 3) % 7 == 6, 0.6, 0.95)
    found = clock_coverage(times, rng.random(len(times)) < share)
    assert found.weekday.lowest == 6 and "% on Sundays" in found.words


@pytest.mark.parametrize("persistence", [0.0, 0.97])
def test_noise_is_no_finding_even_when_misses_come_in_runs(persistence):
    """Hits that do not depend on the hour, independent or in runs of half an hour to hours at 5-minute steps."""
    rng, found = np.random.default_rng(3), 0
    times = clock(21, 300)
    for _ in range(60):
        state = rng.standard_normal(len(times))
        if persistence:
            for t in range(1, len(times)):
                state[t] = persistence * state[t - 1] + np.sqrt(1 - persistence**2) * state[t]
        found += bool(clock_coverage(times, state < 1.2816).words)
    assert found <= 9  # two families at 5 % each: 6 expected at most, 9 or fewer in 94 of 100 such tests


def test_intervals_of_shares_are_the_exact_ones():
    rows, hits = np.full(5, 12), np.array([0, 1, 7, 11, 12])
    exact = [binomtest(int(k), 12).proportion_ci(0.95, "exact") for k in hits]
    low, high = _interval(hits, rows, 1.0, 0.05)
    np.testing.assert_allclose(low, [one.low for one in exact], atol=1e-12)
    np.testing.assert_allclose(high, [one.high for one in exact], atol=1e-12)


def test_intervals_hold_the_true_share_of_all_hours_together():
    rng, kept = np.random.default_rng(4), 0
    times = clock(50)
    share = 0.5 + 0.4 * np.sin(2 * np.pi * np.arange(24) / 24)
    for _ in range(200):
        found = clock_coverage(times, rng.random(len(times)) < share[times % DAY // HOUR]).hour
        kept += bool(((found.low <= share) & (share <= found.high)).all())
    assert kept >= 185


# ---------------------------------------------------------------------- seasonal lags


def test_a_daily_peak_is_seen_by_the_verdict_on_dependence():
    rng = np.random.default_rng(5)
    hour = np.arange(24 * 60) % 24
    inside = rng.random(len(hour)) < np.where(hour == 5, 0.2, 0.99)
    season = season_of(inside.astype(float), HOUR)
    assert season["daily"].lag == 24 and season["daily"].correlation > 0.4 and season["weekly"].lag == 168
    told = integrated_time_words(1.2, 1.1, 30, season)
    assert "repeat every day" in told and "lag 24" in told and "almost independently" not in told
    assert "repeat every day" in hits_words(0.98, 30, season) and "no rate" in hits_words(0.98, 30, season)
    assert light_of("tau_int", {"season": {"daily": {"lag": 24, "correlation": 0.5, "clear": True}}}) == "amber"


def test_independent_hits_and_steps_without_a_clock_have_no_season():
    inside = (np.random.default_rng(6).random(24 * 60) < 0.9).astype(float)
    season = season_of(inside, HOUR)
    assert not any(one.clear for one in season.values())
    assert "almost independently" in integrated_time_words(1.0, 1.0, 30, season)
    assert season_of(inside, None) == {} and season_of(inside[:60], HOUR) == {}  # not three days
    assert season_of(inside, 2 * DAY) == {}  # a week is no whole number of steps
    assert set(season_of(inside, DAY)) == {"weekly"}


# ---------------------------------------------------------------------- what a user sees


@pytest.fixture(scope="module")
def city(tmp_path_factory):
    """Hourly counts of five places: calm nights, a rush at 05 h that no stationary law expects."""
    rng, place = np.random.default_rng(7), tmp_path_factory.mktemp("city")
    times = clock(200)
    spread = np.where(times % DAY // HOUR == 5, 6.0, np.where(times % DAY // HOUR < 4, 0.2, 1.0))
    values = spread[:, None] * rng.standard_normal((len(times), 5)) + rng.standard_normal((len(times), 1)) * 0.1
    frame = Panel(values, list("abcde"), timestamps=times).to_pandas()
    frame.to_csv(place / "city.csv")
    cut = int(0.8 * len(frame))
    frame[:cut].to_csv(place / "early.csv")
    frame[cut:].to_csv(place / "late.csv")
    return place


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


def test_fit_and_predict_say_at_which_hours_the_set_fails(city):
    fitted = run("fit", city / "city.csv", "--out", city / "model", "--method", "kalman")
    line = next(line for line in fitted.stdout.splitlines() if "contained the whole reading" in line)
    assert re.search(r"of the time \(target 90 %\); by the hour \d+ % at 05 h to 100 % at 0\d h", line), line
    run("fit", city / "early.csv", "--out", city / "younger", "--method", "kalman")
    assert "% at 05 h" in run("predict", city / "younger", city / "late.csv").stdout


def test_audit_draws_the_hours_and_turns_red(city):
    run("fit", city / "early.csv", "--out", city / "audited", "--method", "kalman")
    page = city / "page.html"
    done = run("audit", city / "audited", city / "late.csv", "--json", "--html", page, "--audits", "clock,tau_int")
    content = json.loads(done.stdout)
    record = content["clock"]
    assert record["light"] == content["light"] == "red" and record["value"] < 0.5
    assert np.shape(record["hits"]) == np.shape(record["rows"]) == (7, 24)
    assert "% at 05 h" in record["verdict"] and record["hours"]["05"]["rows"] == 40
    assert content["tau_int"]["season"]["daily"]["correlation"] > 0.3
    assert "repeat every day" in content["tau_int"]["verdict"]
    text = page.read_text()
    assert text.count('<table class="heat') == 1 and text.count("<tr>") == 25
    clockless = pd.read_csv(city / "late.csv").drop(columns="time")
    clockless.to_csv(city / "clockless.csv", index=False)
    done = run("audit", city / "audited", city / "clockless.csv", "--json", "--audits", "clock")
    assert "time stamps" in json.loads(done.stdout)["clock"]["skipped"]
