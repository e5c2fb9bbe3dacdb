"""Root-score quotients: bounded by the theory for the linear filter, blind to nothing but the state."""

import numpy as np
import pytest

from jointset import GraphLGSSM, InputError, generate_grssf
from jointset.audits.lipschitz import root_score_lipschitz


@pytest.fixture(scope="module")
def linear():
    panel = generate_grssf("A", n=12, seed=0, length=400).panel
    return GraphLGSSM().fit(panel), panel.values


def test_linear_quotients_never_exceed_the_whitening_norm(linear):
    """|S(h + d) - S(h)| <= |Sigma^-1/2 d|, so M_G = 1 / sqrt(lambda_min) bounds every quotient."""
    f, values = linear
    found = root_score_lipschitz(f, values, f.start(), steps=40)
    bound = 1.0 / np.sqrt(np.linalg.eigvalsh(f.emitted.matrix)[0])
    assert 0 < found.p50 <= found.p95 <= found.p99 <= found.largest <= bound * (1 + 1e-6)


def test_small_steps_give_the_gradient(linear):
    """In the limit the quotient in direction u is |u' Sigma^-1 e| / S; its mean square over u is |grad|^2 / N."""
    f, values = linear
    found = root_score_lipschitz(f, values, f.start(), warmup=0, steps=1, directions=4000, scales=(1e-5,))
    e = values[0] - f.start().mean
    gradient = f.emitted.precision @ e / np.sqrt(e @ f.emitted.precision @ e)
    assert np.mean(found.quotients**2) == pytest.approx(gradient @ gradient / 12, rel=0.1)


def test_the_same_seed_gives_the_same_numbers_and_gaps_are_passed_over(linear):
    f, values = linear
    holes = values.copy()
    holes[::3] = np.nan
    a, b = (root_score_lipschitz(f, holes, f.start(), steps=30, seed=4) for _ in range(2))
    np.testing.assert_array_equal(a.quotients, b.quotients)
    assert np.isfinite(a.quotients).all() and len(a.quotients) < 30


def test_rows_without_readings_are_refused(linear):
    f, values = linear
    with pytest.raises(InputError, match="no row with a reading"):
        root_score_lipschitz(f, np.full_like(values, np.nan), f.start(), steps=5)
