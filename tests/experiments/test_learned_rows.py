"""Learned rows through cells, in both protocols: seeds in one program, wraps in one pass, other means."""

import numpy as np
import pytest

from jointset.abilities import ByRecipe
from jointset.backbones import GRUBackbone, SwappedMean
from jointset.catalogue import FILTERS, LEARNED
from jointset.datasets.cells import cell
from jointset.experiments.rows import fitted_row, run_row, run_rows

QUICK = {"steps": 12, "recipe": "fast"}
BY_RECIPE = [name for name in LEARNED if isinstance(FILTERS[name](), ByRecipe)]


@pytest.fixture(scope="module", params=["text", "table"])
def ett(request, real_data):
    real_data("ett.npz")
    return cell("ett-7", request.param)


@pytest.mark.slow
@pytest.mark.parametrize("base", BY_RECIPE)
def test_learned_rows_run_through_a_real_cell(base, ett):
    names = [base, f"{base}+aci"]
    found = {(name, seed): run for name, seed, run, _ in run_rows(names, ett, seeds=[0, 1], training=QUICK)}
    assert sorted(found) == sorted((name, seed) for name in names for seed in (0, 1))
    for (name, _), run in found.items():
        assert len(run.inside) == len(ett.test)
        assert np.isfinite(run.log_volume).all() and np.isfinite(run.width).all()
        assert abs(run.joint - 0.9) < (0.01 if name.endswith("+aci") else 0.2)
    for name in names:
        assert not np.array_equal(found[name, 0].mean, found[name, 1].mean)
    if base == "gnf-node" and ett.protocol == "table":  # all train by the same program, in both protocols
        alone = run_row(f"{base}+aci", ett, seed=1, training=QUICK)
        np.testing.assert_allclose(found[f"{base}+aci", 1].width, alone.width, rtol=2e-2)  # trained in float32
        assert abs(found[f"{base}+aci", 1].joint - alone.joint) < 0.005


@pytest.mark.slow
def test_the_default_runs_through_a_real_cell(real_data):
    """In protocol `text` on training and validation rows, its radius by ACI."""
    real_data("ett.npz")
    small = cell("ett-7", "text")
    (_, _, run, timing) = next(run_rows(["default"], small, training={"steps": 2}))
    assert len(run.inside) == len(small.test) and abs(run.joint - 0.9) < 0.01
    assert np.isfinite(run.log_volume).all() and timing.n_calibration == len(small.calibration) - 49


def test_geometries_of_a_learned_row_train_once(ett, monkeypatch):
    from jointset.filters import GNF

    trained, fit_seeds = [], GNF.fit_seeds
    monkeypatch.setattr(GNF, "fit_seeds", lambda self, *a, **k: trained.append(a[1]) or fit_seeds(self, *a, **k))
    names = ["gnf", "gnf+aci", "gnf:box", "gnf:box+dtaci"]
    found = {(name, seed): run for name, seed, run, _ in run_rows(names, ett, seeds=[0, 1], training=QUICK)}
    assert trained == [[0, 1]] and sorted(found) == sorted((name, seed) for name in names for seed in (0, 1))
    for seed in (0, 1):
        np.testing.assert_array_equal(found["gnf", seed].mean, found["gnf:box+dtaci", seed].mean)
        assert found["gnf:box", seed].width.mean() < found["gnf", seed].width.mean()
    alone = run_row("gnf:box+dtaci", ett, seed=1, training=QUICK)
    np.testing.assert_allclose(found["gnf:box+dtaci", 1].width, alone.width, rtol=2e-2)  # trained in float32


def test_the_mean_of_a_learned_row_can_be_another(ett):
    """The swap keeps the filter's covariance, takes the backbone's mean, and calibrates anew."""
    mean = GRUBackbone(width=8, steps=30).fit(ett.train)
    own = fitted_row("gnf", ett, training=QUICK)
    other = fitted_row("gnf", ett, backbone=mean, training=QUICK)
    assert isinstance(other.filter, SwappedMean) and other.filter.backbone is mean
    run, swapped = own.run(ett.test), other.run(ett.test)
    np.testing.assert_array_equal(swapped.regions.law.variance, run.regions.law.variance)
    before = ett.panel.values[: ett.blocks["test"].stop]
    rows = len(ett.test)
    np.testing.assert_allclose(swapped.mean[50:], mean.predict(before)[-rows:][50:], atol=1e-8)
    assert abs(swapped.joint - 0.9) < 0.2
    radii = other.calibration_scores, own.calibration_scores
    assert not np.array_equal(*radii)


def test_a_mean_by_name_trains_once_for_all_wraps(ett, monkeypatch):
    trained = []
    monkeypatch.setattr(
        "jointset.backbones.backbone", lambda name: trained.append(name) or GRUBackbone(width=8, steps=20)
    )
    names = ["factor", "factor+aci", "factor+pid"]
    runs = [(name, seed, run.joint) for name, seed, run, _ in run_rows(names, ett, seeds=[0, 1], backbone="gru")]
    assert trained == ["gru"] and len(runs) == 6
    assert runs[0][2] != runs[3][2] or runs[1][2] != runs[4][2]  # another seed, another mean
