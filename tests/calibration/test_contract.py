"""What every calibration rule promises, checked for each of them."""

import dataclasses
import json
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointset.calibration import (
    ACI,
    ECI,
    FORMS,
    PID,
    RULES,
    SAOCP,
    SFOGD,
    AgACI,
    Auto,
    Contina,
    Decaying,
    DtACI,
    ResCP,
    Split,
    Window,
    calibration,
)
from jointset.errors import InputError
from jointset.storage import pack, unpack

WHOLE = (-math.inf, math.inf)
VARIANTS = {
    "split": Split(),
    "aci": ACI(gamma=0.05),
    "aci-unclipped": ACI(gamma=0.3, clip=None),
    "aci-clamped": ACI(gamma=0.3, clip=WHOLE),
    "aci-momentum": ACI(gamma=0.1, momentum=0.9),
    "aci-pool-and-recent": ACI(gamma=0.05, lookback=7),
    "aci-rolling": ACI(gamma=0.05, pool="rolling", lookback=30, quantile="linear", clip=None),
    "agaci": AgACI(gammas=(0.01, 0.05, 0.3)),
    "agaci-range": AgACI(rates="range", lookback=5),
    "agaci-variance": AgACI(rates="variance", ceiling=1000.0),
    "dtaci": DtACI(),
    "dtaci-authors": DtACI(pool="rolling", lookback=30, quantile="linear", clip=None, eta_lookback=20),
    "pid": PID(),
    "pid-tracking": PID(K_I=0.0, lr=1.0, scaled=False),
    "pid-saturating": PID(C_sat=0.05, burnin=1),
    "pid-theta": PID(scorecaster="theta", burnin=10),
    "sfogd": SFOGD(),
    "saocp": SAOCP(),
    "decaying": Decaying(),
    "eci": ECI(lr=0.5),
    "eci-cutoff": ECI(form="cutoff", window=10),
    "eci-integral": ECI(form="integral", accumulate=True),
    "window": Window(longest=100, gamma=0.05),
    "auto": Auto(),
    "contina": Contina(lr=0.05),
    "contina-plain": Contina(adaptive=False),
    "rescp": ResCP(),
    "rescp-few": ResCP(temperature=0.1, lookback=20),
    "split-tail": Split(tail=True),
    "aci-tail": ACI(gamma=0.05, tail=True),
    "aci-tail-unclipped": ACI(gamma=0.3, clip=None, tail=True, lookback=7),
    "agaci-tail": AgACI(gammas=(0.01, 0.3), tail=True),
    "dtaci-tail": DtACI(tail=True),
}
rules = pytest.mark.parametrize("rule", VARIANTS.values(), ids=VARIANTS.keys())
streams = st.lists(st.floats(0, 20) | st.sampled_from([math.nan, math.inf, 0.0, 5.0]), min_size=0, max_size=60).map(
    lambda values: np.array(values, dtype=float)
)


def same(a, b) -> bool:
    """Bit-equality of two states, arrays included."""
    left, right = {}, {}
    trees = json.dumps(pack(a, left)), json.dumps(pack(b, right))
    return trees[0] == trees[1] and all(left[k].tobytes() == right[k].tobytes() for k in left | right)


def step(rule, state, scores):
    radii = []
    for score in scores.tolist():
        radii.append(rule.radius(state))
        state = rule.update(state, score)
    return np.array(radii, dtype=float), state


def started(rule, m=50, seed=0):
    return rule.start(np.random.default_rng(seed).chisquare(3, m))


@rules
@settings(max_examples=25)
@given(first=streams, second=streams)
def test_whole_sequence_path_equals_stepping_also_from_the_middle(rule, first, second):
    together, end = step(rule, started(rule), np.concatenate((first, second)))
    head, middle = rule.run(started(rule), first)
    tail, last = step(rule, middle, second)
    assert np.concatenate((head, tail)).tobytes() == together.tobytes()
    assert same(last, end)
    assert same(rule.run(middle, second)[1], end)


@rules
def test_long_run_equals_stepping(rule):
    scores = np.random.default_rng(1).chisquare(3, 1500) * np.repeat([1.0, 3.0, 0.2], 500)
    stepped, end = step(rule, started(rule), scores)
    radii, last = rule.run(started(rule), scores)
    assert radii.tobytes() == stepped.tobytes()
    assert same(last, end)


@rules
def test_a_state_is_a_value(rule):
    state = started(rule)
    before = json.dumps(pack(state, {}))
    first = rule.run(state, np.linspace(0, 30, 40))[0]
    rule.update(state, 99.0)
    assert json.dumps(pack(state, {})) == before
    assert rule.run(state, np.linspace(0, 30, 40))[0].tobytes() == first.tobytes()


@rules
def test_start_keeps_no_hold_on_the_callers_array(rule):
    scores = np.random.default_rng(2).chisquare(3, 50)
    state = rule.start(scores)
    expected = rule.run(state, np.linspace(0, 9, 30))[0]
    scores[:] = 1e6
    assert rule.run(state, np.linspace(0, 9, 30))[0].tobytes() == expected.tobytes()


@rules
def test_missing_scores_change_nothing_but_still_get_a_radius(rule):
    scores = np.random.default_rng(3).chisquare(3, 60)
    holes = np.insert(scores, [0, 10, 10, 60], math.nan)
    radii, end = rule.run(started(rule), scores)
    with_holes, also = rule.run(started(rule), holes)
    assert same(end, also)
    assert with_holes[~np.isnan(holes)].tobytes() == radii.tobytes()
    assert not np.isnan(with_holes).any()


@rules
def test_infinite_scores_leave_no_nan(rule):
    scores = np.where(np.arange(300) % 3 == 0, math.inf, 1.0)
    state = rule.start(np.append(np.random.default_rng(4).chisquare(3, 40), [math.inf] * 3))
    radii, state = rule.run(state, scores)
    assert not np.isnan(radii).any()
    assert not math.isnan(rule.radius(state))


@rules
def test_radius_comes_before_its_score(rule):
    scores = np.random.default_rng(5).chisquare(3, 40)
    changed = scores.copy()
    changed[20:] = 50.0
    one, other = (rule.run(started(rule), values)[0] for values in (scores, changed))
    assert one[:21].tobytes() == other[:21].tobytes()


@rules
def test_rule_and_state_survive_storage(rule):
    state = rule.run(started(rule), np.array([1.0, math.inf, 30.0, math.nan, 2.0]))[1]
    for value in (rule, state):
        arrays = {}
        tree = json.loads(json.dumps(pack(value, arrays)))
        assert same(unpack(tree, arrays), value)
    arrays = {}
    again = unpack(json.loads(json.dumps(pack(state, arrays))), arrays)
    scores = np.linspace(0, 20, 50)
    assert rule.run(again, scores)[0].tobytes() == rule.run(state, scores)[0].tobytes()


@rules
def test_infinite_share_is_the_share_of_infinite_radii_or_more(rule):
    """Clipping and clamping count too, so the share is at least that of the radii that came out infinite."""
    assert rule.infinite_share(started(rule)) == 0.0
    scores = np.repeat([30.0, 0.0], 200)
    radii, state = rule.run(started(rule), scores)
    assert np.isinf(radii).mean() <= rule.infinite_share(state) <= 1.0


@rules
def test_nan_calibration_scores_are_refused(rule):
    with pytest.raises(InputError, match=r"1 of 3 calibration scores are NaN"):
        rule.start(np.array([1.0, math.nan, 2.0]))


@rules
def test_configurations_are_frozen(rule):
    with pytest.raises(dataclasses.FrozenInstanceError):
        rule.alpha = 0.2


@pytest.mark.parametrize("name", RULES)
def test_every_rule_is_reached_by_name(name):
    rule = calibration(name, alpha=0.2)
    assert type(getattr(rule, "rule", rule)) is RULES[name]  # auto goes by the clock
    rules = [RULES[name](alpha=alpha) for alpha in (0.05, 0.1, 0.2, 0.5)]
    radii = [rule.radius(started(rule, m=2000)) for rule in rules]  # some start from 0 and need time
    assert all(larger > smaller for larger, smaller in pairwise(radii))


@pytest.mark.parametrize("name", FORMS)
def test_other_forms_are_reached_by_name(name):
    base, options = FORMS[name]
    assert calibration(name, alpha=0.2) == RULES[base](alpha=0.2, **options)
