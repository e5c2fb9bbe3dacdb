"""All audits together: complete, strict, the same for the same seed, and silent about nothing they could not do."""

import json
import math

import numpy as np
import pytest

from jointset import GraphLGSSM, InputError, JointPredictor, generate_grssf
from jointset.audits.collect import audit, audit_cell
from jointset.audits.contraction import contraction_words
from jointset.audits.dependence import effective_size_words
from jointset.audits.printed import NOTES, RATES, printed
from jointset.audits.questions import AUDITS, DEFAULT, audits_named
from jointset.audits.records import rate_words
from jointset.datasets.cells import cell
from jointset.methods import predictor_for, row

PAPER = "rho_dG rho_DL observability rho_score rho_ind tau_int m_eff lipschitz spectrum trace_ratio plug_in pit warmup"


@pytest.fixture(scope="module")
def blocks():
    return generate_grssf("A", n=8, seed=0, length=6000).panel.split()


@pytest.fixture(scope="module")
def predictor(blocks):
    train, _, calibration, _ = blocks
    return JointPredictor(GraphLGSSM(), standardize=False).fit(train).calibrate(calibration)


@pytest.fixture(scope="module")
def found(predictor, blocks):
    return audit(predictor, blocks[3])


@pytest.fixture(scope="module")
def network():
    return cell("grssf-a-30")


def numbers(value):
    if isinstance(value, dict):
        return [x for item in value.values() for x in numbers(item)]
    if isinstance(value, list):
        return [x for item in value for x in numbers(item)]
    return [value] if isinstance(value, float) else []


def test_every_audit_of_the_paper_is_there_under_its_name(found):
    assert {*PAPER.split(), "rank", "theory"} <= set(AUDITS)
    assert set(found) == set(DEFAULT) == set(AUDITS) - {"rank", "sensitivity"}


def test_every_audit_ends_in_a_sentence_or_says_why_not(found):
    for name, record in found.items():
        assert ("verdict" in record) != ("skipped" in record), name
        text = record.get("verdict") or record["skipped"]
        assert text and "\n" not in text and "nan" not in text.split(), name
    assert {name for name, record in found.items() if "skipped" in record} == {"plug_in"}  # needs the training block


def test_the_result_is_strict_json_and_curves_can_be_drawn(found):
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert all(math.isfinite(x) for x in numbers(found))
    for record in found.values():
        if "curve" in record:
            curve = record["curve"]
            assert len(curve["x"]) == len(curve["y"]) > 1 and curve["label"]
            assert curve["se"] is None or len(curve["se"]) == len(curve["x"])
    for name in ("rho_dG", "rho_DL", "rho_score", "rho_ind", "tau_int"):
        assert "curve" in found[name], name


def test_the_linear_filter_shows_what_theory_says(found):
    """On its own model: contraction at sigma_1, independent hits, right laws, the variance it predicts."""
    sigma = found["theory"]["sigma_1"]
    assert sigma == pytest.approx(0.33756, abs=1e-5)
    assert found["rho_dG"]["value"] == pytest.approx(sigma, abs=0.01)
    assert found["rho_dG"]["apart"] == 0 and found["rho_dG"]["forgotten_after"] <= 5  # sigma_1^5 < 1 %
    assert found["rho_DL"]["value"] == pytest.approx(sigma, abs=0.01)
    assert found["theory"]["rho_tr"] <= found["theory"]["rho_M0"] + 0.02 <= sigma + 0.02
    assert found["observability"]["p5"] >= 1.0  # the mean of the law is the state itself
    assert found["m_eff"]["value"] > 0.6 * found["m_eff"]["m"]
    assert found["pit"]["passing"] == 8
    assert found["trace_ratio"]["ratio"] == pytest.approx(1.0, abs=0.05)


def test_auditing_changes_nothing_and_the_seed_decides(predictor, blocks, found):
    state, radius = predictor.filter_state, predictor.predict().radius
    again = audit(predictor, blocks[3], audits=["rho_dG", "lipschitz"])
    for name in again:
        assert again[name] | {"seconds": 0} == found[name] | {"seconds": 0}
    other = audit(predictor, blocks[3], audits=["lipschitz"], seed=1)
    assert other["lipschitz"]["mean"] != found["lipschitz"]["mean"]
    assert predictor.filter_state is state and predictor.predict().radius == radius


def test_settings_of_the_measurement_hardly_move_the_rates(predictor, blocks):
    record = audit(predictor, blocks[0], audits=["sensitivity"])["sensitivity"]
    assert record["moves_rho_dG"] < 0.05 and len(record["rho_dG"]) == 7
    assert "rho_score" in record["verdict"]


def test_rows_without_a_state_skip_what_needs_one(blocks):
    train, pilot, calibration, test = blocks
    made = row("ewma").fit(train, pilot).calibrate(calibration)
    found = audit(made, test)
    skipped = {name for name, record in found.items() if "skipped" in record}
    assert skipped == {"rho_dG", "rho_DL", "observability", "rho_score", "lipschitz", "theory", "plug_in"}
    assert "ewma has none" in found["rho_dG"]["skipped"]
    pool = predictor_for("quick").fit(train[:400]).calibrate(calibration)  # a class without a name of its own
    assert "this method has none" in audit(pool, test[:200], audits=["rho_dG"])["rho_dG"]["skipped"]
    components = row("factor").fit(train, pilot).calibrate(calibration)
    done = {name for name, record in audit(components, test).items() if "skipped" not in record}
    assert done == {"coverage", "clock"}


def test_gaps_in_the_readings_are_audited_too(predictor, blocks):
    rng = np.random.default_rng(0)
    test = blocks[3]
    holes = np.where(rng.random(test.values.shape) < 0.05, np.nan, test.values)
    found = audit(predictor, test.with_values(holes))
    assert {name for name, record in found.items() if "skipped" in record} == {"plug_in"}
    assert found["trace_ratio"]["ratio"] == pytest.approx(1.0, abs=0.06)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda p, panel: audit(p, panel[:50]), "50 rows are too few to audit: at least 120"),
        (lambda p, panel: audit(p, panel.select(panel.sensors[::-1])), "other sensors, or another order"),
        (lambda p, panel: audit(p, panel, audits=["rho_dg"]), "unknown audit 'rho_dg': did you mean 'rho_dG'"),
        (lambda p, panel: audit(p, panel, audits=[]), "no audit named"),
        (lambda p, panel: audit(JointPredictor(GraphLGSSM()).fit(panel), panel), "not calibrated"),
    ],
)
def test_bad_input_is_refused_in_one_line(predictor, blocks, wrong, message):
    with pytest.raises(InputError, match=message) as refusal:
        wrong(predictor, blocks[3])
    assert "\n" not in str(refusal.value)


def test_a_cell_is_audited_on_its_own_blocks_with_the_printed_values_beside(network):
    found = audit_cell("kalman", network, audits=["trace_ratio", "plug_in", "m_eff"])
    assert list(found) == ["m_eff", "trace_ratio", "plug_in"]
    assert found["m_eff"]["m"] == len(network.calibration) - 49
    assert found["trace_ratio"]["paper"] == 0.44 and "has to be 1" in found["trace_ratio"]["note"]


def test_a_learned_filter_is_audited():
    pytest.importorskip("torch")
    small = cell("grssf-a-8")
    names = ["rho_dG", "rho_score", "observability", "lipschitz", "spectrum", "theory"]
    found = audit_cell("gnf-node", small, audits=names, training={"steps": 20})
    assert all("verdict" in record for record in found.values())
    assert found["spectrum"]["floor"] == 1e-4 and 0 < found["rho_dG"]["value"] < 1


def test_printed_values_belong_to_the_filter_they_were_measured_on():
    assert printed("theory", "metr-la-20", "kalman")["sigma_1"] == 0.443
    assert printed("rho_dG", "metr-la-20", "kalman") is None and printed("rho_dG", "metr-la-20", "gnf-node") == 0.46
    assert printed("rho_dG", "metr-la", "gnf") == printed("rho_dG", "metr-la-207", "gnf")
    assert printed("rho_dG", "my-cell", "kalman") is None and printed("theory", "jena-20", "static") is None
    assert {*RATES, *NOTES} <= set(AUDITS)
    told = {
        audit for audit in AUDITS for method in ("kalman", "gnf") if printed(audit, "metr-la-20", method) is not None
    }
    assert told == {*RATES, "theory", "tau_int", "m_eff", "observability", "lipschitz", "trace_ratio"} | {
        *("warmup", "rank", "pit", "plug_in")
    }
    assert printed("pit", "metr-la-207", "gnf") == {"value": 0.923, "sensors": 207, "passing": 191, "ZF": 10, "RG": 6}
    assert printed("warmup", "metr-la-20", "gnf")["width_full"] == [3.19, 3.05, 3.04, 3.03, 3.03]
    assert printed("trace_ratio", "grssf-a-30", "kalman") == 0.44 and printed("trace_ratio", "x", "kalman") is None


def test_words():
    assert audits_named(None) == DEFAULT
    assert "worth about 310 independent ones" in effective_size_words(3427, 310.0, 0.1)
    told = contraction_words("rho_dG", 0.9, "x", math.nan, 3, 30, 200)
    assert "3 of 30 wrong starts still show after 200 steps" in told
    assert "does not forget" in contraction_words("rho_dG", 1.0, "x", math.nan, 30, 30, 200)
    assert "nothing can be said" in effective_size_words(100, float("nan"), 0.1)


def test_a_rate_from_numpy_numbers_is_told_in_words():
    told = rate_words("rho_M0", np.float64(0.5), "a small error", np.float64(7.0))
    assert told == "a small error is below 1 % after 7 steps and shrinks to 50 % a step (rho_M0 0.500)"
