"""Mean backbones: means never see their own row, both paths agree, seeds do not meet, and what is learned is right."""

import functools
import subprocess
import sys

import numpy as np
import pytest

from jointset import Panel
from jointset.backbones import BACKBONES, backbone
from jointset.datasets.cells import cell
from jointset.errors import InputError
from jointset.experiments.rows import fitted_backbones
from jointset.storage import pack, unpack

QUICK = {
    "gpvar": {},
    "var": {},
    "gru": {"width": 8, "window": 8, "steps": 60},
    "transformer": {"width": 8, "window": 8, "layers": 2, "steps": 60},
    "stgnn": {"width": 6, "dilations": (1, 2, 2), "adaptive": 3, "steps": 60},
}
LINEAR = ("gpvar", "var")
LEARNED = [name for name in QUICK if name not in LINEAR]


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    import torch

    torch.set_num_threads(1)


def ring(n):
    adjacency = np.zeros((n, n))
    adjacency[np.arange(n), (np.arange(n) + 1) % n] = 1.0
    return adjacency + adjacency.T


def network(n=6, length=700, own=0.3, neighbours=0.4, seed=0, level=0.0, scale=1.0):
    """A VAR(1) on a ring, y_t = (own I + neighbours A / 2) y_{t-1} + noise of variance one, scaled and shifted."""
    rng = np.random.default_rng(seed)
    A = ring(n)
    F = own * np.eye(n) + neighbours * A / 2
    values = np.zeros((length, n))
    for t in range(1, length):
        values[t] = F @ values[t - 1] + rng.standard_normal(n)
    return Panel(level + scale * values, tuple(f"s{i}" for i in range(n)), adjacency=A)


@pytest.fixture(scope="module")
def panel():
    return network(level=40.0, scale=5.0)


@pytest.fixture(scope="module")
def quick(panel):
    """The quick backbone of a name, fitted once for all that ask."""
    return functools.cache(lambda name: backbone(name, **QUICK[name]).fit(panel))


@pytest.fixture(scope="module", params=QUICK)
def fitted(request, quick):
    return quick(request.param)


def gappy(values):
    values = values.copy()
    values[np.random.default_rng(0).random(values.shape) < 0.1] = np.nan
    values[60:80] = np.nan
    values[:3, 0] = np.nan
    return values


# ---------------------------------------------------------------------- prediction


@pytest.mark.parametrize("t", [0, 1, 7, 150])
@pytest.mark.parametrize("change", [1e6, np.nan], ids=["another reading", "missing"])
def test_a_mean_never_sees_its_own_row(fitted, panel, t, change):
    changed = panel.values.copy()
    changed[t:] = change
    np.testing.assert_array_equal(fitted.predict(changed)[: t + 1], fitted.predict(panel.values)[: t + 1])


def test_a_mean_sees_the_row_before_it_and_forgets_after_its_lags(fitted, panel):
    changed = panel.values.copy()
    changed[100] += 3.0
    moved = np.abs(fitted.predict(changed) - fitted.predict(panel.values)).max(axis=1)
    assert moved[101] > 1e-3
    assert moved[101 + fitted.lags - 1] > 0  # the oldest row of the history matters
    np.testing.assert_allclose(moved[101 + fitted.lags :], 0.0, atol=1e-9)


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "with gaps"])
def test_predicting_rows_equals_stepping(fitted, panel, gaps):
    values = (gappy(panel.values) if gaps else panel.values)[:200]
    means = fitted.predict(values)
    history = fitted.start()
    for t, y in enumerate(values):
        np.testing.assert_allclose(fitted.next_mean(history), means[t], rtol=1e-10)
        history = np.vstack([history[1:], np.where(np.isnan(y), history[-1], y)])
    assert np.isfinite(means).all()


def test_a_history_carries_a_prediction_on(fitted, panel):
    whole = fitted.predict(panel.values)
    cut = 300
    second = fitted.predict(panel.values[cut:], panel.values[cut - fitted.lags : cut])
    np.testing.assert_allclose(second, whole[cut:], rtol=1e-10)
    assert fitted.predict(panel.values[:0]).shape == (0, panel.n_sensors)


def test_long_panels_are_predicted_in_blocks_with_the_same_result(fitted, panel, monkeypatch):
    whole = fitted.predict(panel.values)
    monkeypatch.setattr("jointset.backbones.learned.CHUNK", 20_000)
    monkeypatch.setattr("jointset.backbones.stgnn.CHUNK", 1_000)
    np.testing.assert_allclose(fitted.predict(panel.values), whole, rtol=1e-10)


def test_a_fitted_backbone_survives_storage(fitted, panel):
    arrays = {}
    back = unpack(pack(fitted, arrays), arrays)
    assert type(back) is type(fitted) and back.lags == fitted.lags
    np.testing.assert_array_equal(back.predict(panel.values), fitted.predict(panel.values))


# ---------------------------------------------------------------------- learning


def ratio(fitted, test, best):
    """Error of the means against that of persistence, both less the error `best` that no forecast can avoid."""
    after = test.values[fitted.lags :]
    error = np.mean((after - fitted.predict(test.values)[fitted.lags :]) ** 2)
    persistence = np.mean((after - test.values[fitted.lags - 1 : -1]) ** 2)
    return (error - best) / (persistence - best)


@pytest.mark.parametrize("name", QUICK)
def test_learns_a_network_it_can_represent(name):
    """On a VAR(1) with known noise at least two thirds of persistence's avoidable error go."""
    train, test = network(length=2000), network(length=1000, seed=1)
    options = {} if name in LINEAR else {"steps": 150, "width": 12, "batch": 16, "rate": 1e-2}
    fitted = backbone(name, **options).fit(train)
    assert ratio(fitted, test, 1.0) < 0.33


def test_the_graph_is_used():
    """Means of a process driven by neighbours: the graph network with the graph beats the one without."""
    train, test = (network(n=8, own=0.0, neighbours=0.9, seed=s, length=1500) for s in (0, 1))
    options = {"steps": 120, "width": 8, "adaptive": 0, "dilations": (1,), "rate": 2e-2}
    with_graph, without = (backbone("stgnn", graph=g, **options).fit(train) for g in (True, False))
    assert ratio(with_graph, test, 1.0) < 0.1 < ratio(without, test, 1.0)


def test_the_adaptive_adjacency_finds_neighbours_nobody_named():
    """One sensor drives all others; without a graph only the learned adjacency can tell."""
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((3000, 5))
    values = 0.3 * noise
    values[:, 0] = noise[:, 0]
    values[1:, 1:] += 0.9 * noise[:-1, :1]
    panel = Panel(values, tuple("abcde"))
    options = {"steps": 250, "width": 8, "dilations": (1,), "rate": 2e-2}
    learned, alone = (backbone("stgnn", adaptive=e, **options).fit(panel[:2000]) for e in (4, 0))
    errors = [np.mean((values[2000:, 1:] - b.predict(values[2000:])[:, 1:]) ** 2) for b in (learned, alone)]
    assert errors[0] < 0.6 * errors[1]


@pytest.mark.parametrize("name", LEARNED)
def test_units_do_not_matter(name, panel, quick):
    """Another unit, another offset: the same means in that unit (training is on z-scores)."""
    other = panel.with_values(-100.0 + 0.1 * panel.values)
    means = backbone(name, **QUICK[name]).fit(other).predict(other.values)
    np.testing.assert_allclose(means, -100.0 + 0.1 * quick(name).predict(panel.values), atol=0.1 * 1e-2)


@pytest.mark.parametrize("name", LEARNED)
def test_a_seed_does_not_depend_on_its_company(name, panel):
    """Not even when the others stop at other times."""
    chosen = backbone(name, **QUICK[name] | {"steps": 60, "patience": 1, "rate": 2e-2, "batch": 4})
    together = chosen.fit_seeds(panel, [3, 5])
    for seed, one in zip([3, 5], together, strict=True):
        alone = chosen.fit_seeds(panel, [seed])[0]
        assert one.seed == seed
        np.testing.assert_allclose(one.predict(panel.values), alone.predict(panel.values), atol=1e-3)
    assert np.abs(together[0].predict(panel.values) - together[1].predict(panel.values)).max() > 1e-2


def test_permuted_sensors_give_permuted_means(panel):
    order = np.random.default_rng(0).permutation(panel.n_sensors)
    permuted = panel.select(order)
    for name in ("gpvar", "stgnn"):
        options = QUICK[name] | ({"adaptive": 0} if name == "stgnn" else {})
        means = backbone(name, **options).fit(panel).predict(panel.values)
        other = backbone(name, **options).fit(permuted).predict(permuted.values)
        np.testing.assert_allclose(other, means[:, order], rtol=1e-4)


@pytest.mark.parametrize("name", LEARNED)
def test_gaps_in_training_are_left_out_of_the_loss(name, panel, quick):
    holes = panel.with_values(gappy(panel.values))
    means = backbone(name, **QUICK[name]).fit(holes).predict(panel.values)
    assert np.isfinite(means).all()
    assert np.sqrt(np.mean((means - quick(name).predict(panel.values)) ** 2)) < 0.3 * panel.values.std()


@pytest.mark.parametrize("name", LEARNED)
def test_training_and_prediction_compute_the_same_means(name, panel, quick):
    """The loss in torch at the fitted weights is the squared error of the means that NumPy predicts."""
    import torch

    from jointset.backbones.training import SquaredError

    fitted = quick(name)
    weights = type(fitted.weights)(*(torch.as_tensor(w)[None] for w in fitted.weights))
    rows = panel.values[: fitted.lags + 1]
    z = torch.as_tensor((rows - fitted.mean) / fitted.scale)[None, None]
    loss, _ = SquaredError(fitted, panel.n_sensors).loss(weights, z, torch.empty(0), fitted.lags - 1, False)
    error = (rows[-1] - fitted.next_mean(rows[:-1])) / fitted.scale
    np.testing.assert_allclose(loss.item(), np.mean(error**2), rtol=1e-8)


def test_training_stops_on_the_validation_block():
    """Few rows of noise: training ends early, with weights better on later rows than those of the longest training."""
    rng = np.random.default_rng(0)
    names = tuple("abcd")
    train, validation = Panel(rng.standard_normal((120, 4)), names), Panel(rng.standard_normal((400, 4)), names)
    options = QUICK["gru"] | {"steps": 200, "rate": 2e-2, "width": 12, "patience": 2, "batch": 6}
    seen = []
    fitted = backbone("gru", **options).fit(train, validation, progress=lambda step, total, loss: seen.append(step))
    assert seen[-1] < 200
    late = backbone("gru", **options | {"patience": 1000}).fit(train, train)  # chosen on what it was trained on
    errors = [np.mean((validation.values - b.predict(validation.values)) ** 2) for b in (fitted, late)]
    assert errors[0] < errors[1]


@pytest.mark.parametrize("name", LEARNED)
def test_rows_of_a_cell_stop_on_the_last_tenth_of_training(name, monkeypatch):
    """No block but training is seen: it is cut in two, nine tenths to train on and the last one to stop on."""
    from jointset.backbones import training

    given = {}

    def told(backbone, values, validation, seeds, progress=None):
        given.update(values=backbone.mean + backbone.scale * values, held=backbone.mean + backbone.scale * validation)
        return [backbone.initial_weights(values.shape[1], np.random.default_rng(seed)) for seed in seeds]

    monkeypatch.setattr(training, "train_seeds", told)
    network = cell("grssf-a-30")
    fitted_backbones(name, network)
    np.testing.assert_allclose(given["values"], network.train.values[:5040])
    np.testing.assert_allclose(given["held"], network.train.values[5040:])
    assert len(network.train) == 5600


@pytest.mark.parametrize("name", LEARNED)
def test_never_worse_than_persistence_on_the_validation_block(name):
    """A random walk: nothing beats the last reading, and training gives at worst exactly that."""
    rng = np.random.default_rng(0)
    walk = Panel(np.cumsum(rng.standard_normal((600, 3)), axis=0), tuple("abc"))
    fitted = backbone(name, **QUICK[name] | {"rate": 1.0, "steps": 50}).fit(walk[:300], walk[300:])
    values = walk.values[300:]
    means = fitted.predict(values, walk.values[300 - fitted.lags : 300])
    before = np.vstack([walk.values[299:300], values[:-1]])
    assert np.mean((values - means) ** 2) < 1.001 * np.mean((values - before) ** 2)


# ---------------------------------------------------------------------- promises to a user


def test_unknown_names_and_options_are_refused():
    with pytest.raises(InputError, match="'lstm': choose one of gpvar, var, gru, transformer, stgnn"):
        backbone("lstm")
    with pytest.raises(InputError, match="backbone gru has no option 'dilations'"):
        backbone("gru", dilations=(1,))
    with pytest.raises(InputError, match="width 32 does not divide into 3 heads"):
        backbone("transformer", heads=3)


def test_unfitted_and_misfitting_calls_are_refused(panel):
    for name in BACKBONES:
        with pytest.raises(InputError, match="call fit"):
            backbone(name).predict(panel.values)
    fitted = backbone("gpvar").fit(panel)
    with pytest.raises(InputError, match="6 sensors"):
        fitted.predict(panel.values[:, :5])
    with pytest.raises(InputError, match=r"expected \(2, 6\)"):
        fitted.next_mean(panel.values[:3])
    with pytest.raises(InputError, match="too few"):
        backbone("gru").fit(panel[:30])
    with pytest.raises(InputError, match="validation rows"):
        backbone("gru").fit(panel, panel[:5])


def test_importing_backbones_does_not_import_torch():
    code = "import sys, jointset.backbones; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_var_finds_the_coefficients_of_a_network_and_beats_the_shared_ones():
    """Sensors that differ: the mean is a different mixture of neighbours for every one."""
    rng, n = np.random.default_rng(3), 5
    F = np.diag([0.9, 0.1, 0.5, -0.4, 0.7])
    F[0, 3] = 0.3
    values = np.zeros((4000, n))
    for t in range(1, len(values)):
        values[t] = F @ values[t - 1] + rng.standard_normal(n)
    panel = Panel(20.0 + 3.0 * values, tuple(f"s{i}" for i in range(n)), adjacency=ring(n))
    fitted = backbone("var").fit(panel[:3000])
    np.testing.assert_allclose(np.eye(n) + fitted.weights[:n].T, F, atol=0.06)
    np.testing.assert_allclose(fitted.weights[n:], 0.0, atol=0.06)
    later = panel[3000:]
    errors = [
        np.mean((later.values - one.predict(later.values)) ** 2)
        for one in (fitted, backbone("gpvar").fit(panel[:3000]))
    ]
    assert errors[0] == pytest.approx(9.0, rel=0.06) and errors[0] < 0.9 * errors[1]


def test_var_leans_on_the_last_reading_where_there_is_little_to_learn_from():
    walk = np.cumsum(np.random.default_rng(0).standard_normal((60, 12)), axis=0)
    fitted = backbone("var").fit(Panel(walk, tuple(f"s{i}" for i in range(12))))
    assert np.abs(fitted.weights).max() < 0.2


def test_var_of_many_sensors_looks_at_neighbours_and_takes_gaps(monkeypatch):
    from jointset.backbones import var

    monkeypatch.setattr(var, "DENSE", 4)
    monkeypatch.setattr(var, "NEIGHBOURS", 3)
    panel = network(n=8, length=600)
    values = panel.values.copy()
    values[np.random.default_rng(1).random(values.shape) < 0.25] = np.nan
    fitted = backbone("var").fit(panel.with_values(values))
    used = np.zeros((8, 8), dtype=bool)
    used[np.arange(8)[:, None], fitted.near] = True
    np.testing.assert_array_equal(used, ring(8) + np.eye(8) > 0)
    assert fitted.weights.shape == (6, 8) and np.isfinite(fitted.predict(values)).all()


def test_var_that_looks_at_all_neighbours_is_the_dense_one(monkeypatch):
    """With and without a graph, in all its terms: the short form is only another way to write the long one."""
    from jointset.backbones import var

    panel = daily(n=5, days=30)
    made = var.VARBackbone(ridge=1e-3, clock=True, curved=True)
    whole = made.fit(panel)
    monkeypatch.setattr(var, "DENSE", 4)
    short = made.fit(panel)
    assert short.near.shape == (5, 5) and short.lags == whole.lags == 25
    own = made.fit(Panel(panel.values, panel.sensors, timestamps=panel.timestamps, adjacency=ring(5)))
    for one in (short, own):
        np.testing.assert_allclose(one.predict(panel.values, times=panel.timestamps).shape, panel.values.shape)
    monkeypatch.setattr(var, "LAGS", 2)
    linear = var.VARBackbone(ridge=1e-3)
    near = linear.fit(panel)
    monkeypatch.setattr(var, "DENSE", 300)
    np.testing.assert_allclose(near.predict(panel.values), linear.fit(panel).predict(panel.values), atol=1e-9)


def daily(n=4, days=40, seed=0):
    """Hourly readings with a strong course of the day, a weaker one of the week, and noise that lasts an hour."""
    rng = np.random.default_rng(seed)
    hours = np.arange(24 * days)
    phase = rng.uniform(0, 6.28, n)
    course = 3.0 * np.sin(2 * np.pi * hours[:, None] / 24 + phase) + np.cos(2 * np.pi * hours[:, None] / 168)
    values = course + 0.3 * rng.standard_normal((len(hours), n))
    return Panel(values, tuple(f"s{i}" for i in range(n)), timestamps=3600 * hours)


def test_the_calendar_is_learnt_and_needs_its_times():
    from jointset.backbones.var import VARBackbone

    panel = daily()
    train, test = panel[:800], panel[800:]
    plain, clocked = VARBackbone().fit(train), VARBackbone(clock=True).fit(train)
    history = [panel.values[800 - one.lags : 800] for one in (plain, clocked)]
    errors = [
        float(np.mean((test.values - one.predict(test.values, before, test.timestamps)) ** 2))
        for one, before in zip((plain, clocked), history, strict=True)
    ]
    assert errors[1] < 1.25 * 0.09  # the noise alone has 0.09
    assert errors[1] < 0.85 * errors[0]
    with pytest.raises(InputError, match="times of the rows"):
        clocked.predict(test.values)


def test_without_stamps_or_with_few_days_there_is_no_calendar():
    from jointset.backbones.var import VARBackbone

    panel = daily()
    for rows in (Panel(panel.values, panel.sensors), panel[:40]):
        fitted = VARBackbone(clock=True).fit(rows)
        assert not fitted.follows_clock and fitted.lags == 2
        assert np.isfinite(fitted.predict(rows.values)).all()
