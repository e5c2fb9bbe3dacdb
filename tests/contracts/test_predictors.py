"""Every method by name keeps the contract of `jointset.checks`, some in another geometry or under a wrap."""

import numpy as np
import pytest

from jointset import ACI, AgACI, BlockMaximum, GraphLGSSM, JointPredictor
from jointset.backbones import SwappedMean, backbone
from jointset.checks import calibrated, check_calibrated, check_fresh_process, check_predictor, promises
from jointset.filters import GNF
from jointset.filters.static import StaticFilter
from jointset.methods import METHODS
from jointset.published import SPCI, MultiDimSPCI

OTHERS = ("ewma:box+aci", "local:box", "kalman:box+pid", "time-of-day:box", "static+dtaci")
SEVERAL_RADII = ("factor+aci", "group+agaci", "spectral+dtaci", "per-group-factor+pid")
SCALED = ("copula+split", "copula+aci", "multidim-spci-empirical+agaci", "spci-empirical+dtaci", "hopcpt+pid")
BY_CLOCK = ("ewma+clock", "group+clock-aci", "copula+clock-dtaci")
FORMS = {  # that have no name
    "local ellipsoids": lambda: MultiDimSPCI("empirical", neighbors=60),
    "local ellipsoids, scaled": lambda: MultiDimSPCI("empirical", neighbors=60, wrap=ACI(0.1)),
    "new forests": lambda: MultiDimSPCI(refit=5),
    "shared level": lambda: SPCI("empirical", bonferroni=True),
    "blocks": lambda: JointPredictor(GraphLGSSM(), BlockMaximum((np.arange(3), np.arange(3, 8))), AgACI(0.1)),
}
MEANS = {  # around which the sets of another filter are put
    "gpvar": lambda: backbone("gpvar"),
    "gru": lambda: backbone("gru", width=8, window=6, steps=5),
    "stgnn": lambda: backbone("stgnn", width=4, dilations=(1, 2), adaptive=2, steps=5),
}
FORMS |= {
    "gnf around gpvar": lambda: JointPredictor(SwappedMean(GNF(steps=5), MEANS["gpvar"]())),
    "gnf around gru": lambda: JointPredictor(SwappedMean(GNF(steps=5), MEANS["gru"]())),
    "static around stgnn": lambda: JointPredictor(SwappedMean(StaticFilter(), MEANS["stgnn"]())),
}
NAMES = (*METHODS, *OTHERS, *SEVERAL_RADII, *SCALED, *BY_CLOCK, *FORMS)


@pytest.fixture(scope="module")
def predictors():
    made = {}

    def make(name):
        if name not in made:
            made[name] = calibrated(FORMS.get(name, name))
        return made[name]

    return make


@pytest.mark.parametrize("name", NAMES)
def test_a_method_keeps_the_contract(name, predictors):
    check_calibrated(predictors(name), name)


def test_every_saved_model_goes_on_in_another_process(predictors):
    check_fresh_process({name: predictors(name) for name in NAMES})


def test_one_call_checks_a_method_by_its_name_or_by_its_maker():
    check_predictor("ewma:box+aci")
    check_predictor(FORMS["blocks"])


# ---------------------------------------------------------------------- the checks bite


class Instead:
    """A part of a predictor with some of its functions replaced; each is given the true one first."""

    def __init__(self, part, **replaced):
        self.part, self.replaced = part, replaced

    def with_gaps(self, gaps):
        return Instead(self.part.with_gaps(gaps), **self.replaced)

    def __getattr__(self, name):
        true = getattr(self.part, name)
        return (lambda *args: self.replaced[name](true, *args)) if name in self.replaced else true


def peek(run, values, state):
    laws, after = run(values, state)
    return laws.rescale(1e-6 * np.nan_to_num(values), np.ones(values.shape[1])), after


def wider(run, values, state):
    laws, after = run(values, state)
    return laws.rescale(np.zeros(values.shape[1]), np.full(values.shape[1], 1.0 + 1e-6)), after


def in_place(step, state, y):
    after = step(state, y)
    for old, new in zip(state, after, strict=True):
        if isinstance(old, np.ndarray):
            old[...] = new
    return state


def complete_rows_only(region, law, radius):
    return Instead(region(law, radius), contains=lambda true, y: true(y) & ~np.isnan(y).any(axis=-1))


def move_the_law(contributions, law, y):
    law.mean[...] += 1.0
    return contributions(law, y)


def count_every_row(run, scores, inside):
    return run(np.nan_to_num(scores), inside)


def gaps_as_zeros(true, state, scores):
    return true(state, np.nan_to_num(scores))


BREAKS = {
    "sets_do_not_see_their_reading": ("filter", {"run": peek}),
    "steps_are_the_run": ("filter", {"run": wider}),
    "two_runs_are_one": ("filter", {"run": lambda run, values, state: (run(values, state)[0], state)}),
    "asking_changes_nothing": ("score", {"contributions": move_the_law}),
    "trust_gives_a_verdict": ("watch", {"run": count_every_row}),
    "a_stream_answers_as_the_run": ("filter", {"run": wider}),
    "a_copy_is_independent": ("filter", {"step": in_place}),
    "the_sensor_that_left_is_named": ("score", {"contributions": lambda true, law, y: -true(law, y)}),
    "gaps_are_scored": ("score", {"score": lambda true, law, y: true(law, y) + 0 * np.sum(y, axis=-1)}),
    "inside_is_score_at_most_radius": ("score", {"region": lambda true, law, radius: true(law, radius * 0.5)}),
    "sets_have_a_size": ("score", {"region": lambda true, law, radius: true(law, radius * np.inf)}),
    "the_middle_is_inside": ("score", {"region": complete_rows_only}),
    "an_empty_row_moves_no_radius": (
        "calibration",
        {"update": gaps_as_zeros, "run": gaps_as_zeros, "strides": lambda true, state: None},
    ),
}


@pytest.mark.parametrize("check", BREAKS)
def test_a_broken_promise_is_found(check, predictors):
    broken = predictors("static+aci").copy()
    part, replaced = BREAKS[check]
    setattr(broken, part, Instead(getattr(broken, part), **replaced))
    broken._pending = None
    getattr(promises, check)(predictors("static+aci").copy())
    with pytest.raises(AssertionError):
        getattr(promises, check)(broken)


def test_input_that_is_not_refused_is_found(predictors):
    broken = predictors("static+aci").copy()
    broken._reading = lambda y: np.zeros(len(broken.sensors))
    with pytest.raises(AssertionError, match="a reading of another length is not refused"):
        promises.refused_input_changes_nothing(broken)


def restarted(predictor):
    predictor.restart()
    return predictor


def test_a_model_that_forgets_is_found(predictors, monkeypatch):
    broken = predictors("static+aci").copy()
    load = promises.load_predictor
    monkeypatch.setattr(promises, "load_predictor", lambda path: restarted(load(path)))
    with pytest.raises(AssertionError, match="a loaded model has another next set"):
        promises.a_saved_model_goes_on(broken)
