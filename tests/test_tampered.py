"""Model folders with wrong content: one line that says which part, never a traceback and never a wrong answer."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from typer.testing import CliRunner

from jointset import InputError, generate_grssf
from jointset.catalogue import LEARNED
from jointset.cli import app
from jointset.methods import METHODS, load_predictor, predictor_for
from jointset.predicting.stored_models import require_working

PANEL = generate_grssf("A", n=8, seed=3, length=1000).panel
Change = Callable[[dict[str, Any], dict[str, np.ndarray]], object]


@functools.cache
def made(method: str) -> Any:
    """A fitted and calibrated predictor of a method."""
    learned = method.partition("+")[0] in LEARNED
    predictor: Any = predictor_for(method, training={"steps": 2, "seed": 0} if learned else None)
    if method == "hopcpt":
        rule = dataclasses.replace(predictor.filter.rule, updates=2)
        predictor.filter = dataclasses.replace(predictor.filter, rule=rule)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return predictor.fit(PANEL[:500]).calibrate(PANEL[500:])


def apply(folder: Path, change: Change) -> None:
    """Change the parts or the arrays of a folder, with a checksum that fits."""
    (path,) = folder.glob("arrays-*")
    header, arrays = json.loads((folder / "model.json").read_text()), load_file(path)
    text = change(header["parts"], arrays)
    save_file(arrays, path)
    header["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "model.json").write_text(text if isinstance(text, str) else json.dumps(header))


def put(*place: str, value: Any) -> Change:
    """Put a value in the place of a part or a field."""

    def change(parts: dict[str, Any], arrays: Any) -> None:
        tree = parts
        for name in place[:-1]:
            tree = tree[name]["fields"] if "fields" in tree[name] else tree[name]
        tree[place[-1]] = value

    return change


def array(name: str, make: Callable[[np.ndarray], np.ndarray]) -> Change:
    """Put another array in the place of one."""

    def change(parts: Any, arrays: dict[str, np.ndarray]) -> None:
        arrays[name] = np.ascontiguousarray(make(arrays[name]))

    return change


def hole(value: float) -> Callable[[np.ndarray], np.ndarray]:
    """The array with one entry replaced."""

    def make(given: np.ndarray) -> np.ndarray:
        flat = given.copy().ravel()
        flat[0] = value
        return flat.reshape(given.shape)

    return make


def part(name: str, **fields: Any) -> dict[str, Any]:
    return {"class": name, "fields": fields}


NAN, INF = {"float": "nan"}, {"float": "inf"}
DEEP = "[" * 5000 + "]" * 5000
KALMAN: dict[str, tuple[Change, str]] = {
    "no scale": (lambda parts, _: parts.pop("scale"), "part 'scale' is missing"),
    "no filter": (lambda parts, _: parts.pop("filter"), "part 'filter' is missing"),
    "no watch": (lambda parts, _: parts.pop("watch"), "part 'watch' is missing"),
    "no field": (lambda parts, _: parts["calibration_state"]["fields"].pop("radius"), "calibration_state.*radius"),
    "no fields": (lambda parts, _: parts["filter"].pop("fields"), "filter"),
    "fields as a list": (put("filter", value={"class": "GraphLGSSM", "fields": [1, 2]}), "filter"),
    "class as a list": (put("filter", value={"class": ["GraphLGSSM"], "fields": {}}), "unknown part"),
    "class as a number": (put("filter", value={"class": 7, "fields": {}}), "unknown part '7'"),
    "strange class": (put("filter", value=part("Popen", args="ls")), "unknown part 'Popen'"),
    "filter of another role": (put("filter", value=part("Split", alpha=0.1)), "filter"),
    "score of another role": (put("score", value=part("Split", alpha=0.1)), "score"),
    "rule of another role": (put("calibration", value=part("Mahalanobis")), "calibration"),
    "state of another filter": (put("filter_state", value=part("SplitState", radius=1.0, steps=0)), "does not work"),
    "state of another rule": (put("calibration_state", value=part("KalmanState", mean=1)), "calibration_state.mean"),
    "watch of another kind": (put("watch", value=part("Split", alpha=0.1)), "watch"),
    "watch as a number": (put("watch", value=3), "watch"),
    "filter as text": (put("filter", value="kalman"), "filter"),
    "filter as nothing": (put("filter", value=None), "filter"),
    "rho as text": (put("filter", "rho", value="0.8"), "filter.rho"),
    "rho as NaN": (put("filter", "rho", value=NAN), "filter: rho"),
    "rho as a list": (put("filter", "rho", value=[0.8]), "filter.rho"),
    "adjacency as a number": (put("filter", "adjacency", value=1.0), "filter.adjacency"),
    "alpha out of range": (put("calibration", "alpha", value=1.5), "alpha"),
    "alpha as text": (put("calibration", "alpha", value="0.1"), "calibration.alpha"),
    "alpha as NaN": (put("calibration", "alpha", value=NAN), "alpha"),
    "steps as a fraction": (put("calibration_state", "steps", value=0.5), "calibration_state.steps"),
    "radius NaN": (put("calibration_state", "radius", value=NAN), "calibration_state.radius"),
    "radius negative": (put("calibration_state", "radius", value=-1.0), "radius"),
    "radius as text": (put("calibration_state", "radius", value="7"), "calibration_state.radius"),
    "warm-up as text": (put("warmup", value="50"), "warmup"),
    "warm-up as truth": (put("warmup", value=True), "warmup"),
    "warm-up zero": (put("warmup", value=0), "warmup"),
    "standardize as a number": (put("standardize", value=1), "standardize"),
    "sensors as text": (put("sensors", value="abcdefgh"), "sensors"),
    "sensors as numbers": (put("sensors", value=list(range(8))), "sensors"),
    "too few sensors": (put("sensors", value=["a", "b"]), "shift"),
    "a sensor twice": (put("sensors", value=["a"] * 8), "duplicated sensor"),
    "a sensor no printer knows": (put("sensors", value=["\ud800", *"abcdefg"]), "sensors"),
    "sensors as an object": (put("sensors", value={"a": 1}), "sensors"),
    "time as text": (put("last_time", value="now"), "last_time"),
    "float of no kind": (put("calibration_state", "radius", value={"float": "seven"}), "radius"),
    "float as a list": (put("calibration_state", "radius", value={"float": []}), "radius"),
    "array of no name": (put("shift", value={"array": "nowhere"}), "array 'nowhere' is missing"),
    "array as a list": (put("shift", value={"array": ["shift"]}), "shift"),
    "array missing": (lambda _, arrays: arrays.pop("scale"), "array 'scale' is missing"),
    "shift as a list": (put("shift", value=[0.0] * 8), "shift"),
    "shift NaN": (array("shift", hole(np.nan)), "shift"),
    "shift infinite": (array("shift", hole(np.inf)), "shift"),
    "shift of another size": (array("shift", lambda a: a[:3]), "shift"),
    "shift as a matrix": (array("shift", lambda a: a.reshape(2, 4)), "shift"),
    "scale NaN": (array("scale", hole(np.nan)), "scale"),
    "scale infinite": (array("scale", hole(-np.inf)), "scale"),
    "scale zero": (array("scale", hole(0.0)), "scale"),
    "scale negative": (array("scale", hole(-1.0)), "scale"),
    "scale of whole numbers": (array("scale", lambda a: np.full(8, 2, dtype=np.uint8)), "scale"),
    "adjacency NaN": (array("filter.adjacency", hole(np.nan)), "filter.adjacency"),
    "adjacency of another size": (array("filter.adjacency", lambda a: a[:4, :4]), "do not fit together"),
    "adjacency huge": (array("filter.adjacency", lambda a: np.ones(1_000_000)), "does not work"),
    "state NaN": (array("filter_state.mean", hole(np.nan)), "filter_state.mean"),
    "state infinite": (array("filter_state.mean", hole(np.inf)), "filter_state.mean"),
    "state of another size": (array("filter_state.mean", lambda a: np.ones(9)), "do not fit together"),
    "scores NaN": (array("calibration_scores", hole(np.nan)), "calibration_scores"),
    "watch of a matrix": (array("watch.reference.scores", lambda a: a[:4].reshape(2, 2)), "does not work|watch"),
    "scores of the watch gone": (array("watch.reference.scores", lambda a: a[:0]), "watch"),
    "limit of the watch 0": (put("watch", "reference", "limit", value=0), "does not work"),
    "deep nesting": (lambda *_: '{"format": 2, "parts": ' + DEEP + "}", "model.json"),
    "deep part": (put("filter_state", value=json.loads("[" * 600 + "]" * 600)), "model.json|does not work"),
    "huge number": (lambda *_: '{"format": ' + "9" * 5000 + "}", "model.json"),
    "infinite format": (lambda *_: '{"format": 1e999, "parts": {}}', "model.json"),
    "no JSON number": (lambda *_: '{"format": NaN, "parts": {}}', "model.json"),
    "parts as a list": (lambda *_: '{"format": 1, "parts": []}', "no parts"),
    "arrays elsewhere": (lambda *_: '{"format": 2, "arrays": "../../secret", "parts": {}}', "names no arrays"),
    "arrays as a number": (lambda *_: '{"format": 2, "arrays": 7, "parts": {}}', "names no arrays"),
}
CASES: dict[str, dict[str, tuple[Change, str]]] = {
    "kalman": KALMAN,
    "kalman+aci": {
        "pool of another kind": (put("calibration_state", "pool", value=3), "calibration_state.pool"),
        "pool NaN": (array("calibration_state.pool.scores", hole(np.nan)), "calibration_state.pool.scores"),
        "clip of three": (put("calibration", "clip", value=[0.1, 0.2, 0.3]), "calibration.clip"),
        "level NaN": (put("calibration_state", "level", value=NAN), "calibration_state.level"),
    },
    "ewma:box": {
        "backbone of another role": (put("filter", "backbone", value=part("Split", alpha=0.1)), "must be a MeanModel"),
        "covariance NaN": (array("filter_state.shape.base", hole(np.nan)), "filter_state.shape.base"),
        "covariance not positive": (array("filter_state.shape.base", lambda a: -a), "bounds of the next set"),
        "history of another size": (array("filter_state.history", lambda a: a[:, :3]), "history"),
    },
    "factor": {
        "bases as one": (put("filter", "shape", "bases", value={"array": "shift"}), "filter.shape.bases"),
        "shares as text": (put("calibration", "shares", value=["a", "b"]), "calibration.shares"),
    },
    "gnf-node": {
        "weights NaN": (array("filter.weights.head_bias", hole(np.nan)), "filter.weights.head_bias"),
        "weights of another size": (array("filter.weights.gate_weight", lambda a: a[:2]), "does not work"),
        "weights of another cell": (put("filter", "weights", value=3), "does not work"),
    },
    "copula": {
        "rule of another kind": (put("filter", "rule", value=part("Split", alpha=0.1)), "rule|does not work"),
        "state missing": (lambda parts, _: parts.pop("filter_state"), "part 'filter_state' is missing"),
        "radius negative": (array("filter_state.ahead.0", lambda a: -a), "negative"),
        "radius NaN": (array("filter_state.ahead.0", hole(np.nan)), "not finite|NaN"),
        "history gone": (array("filter_state.history", lambda a: a[:0]), "history"),
        "scale NaN": (array("scale", hole(np.nan)), "scale"),
    },
}


@pytest.mark.parametrize(("method", "case"), [(method, case) for method, cases in CASES.items() for case in cases])
def test_a_tampered_folder_is_refused_in_one_line(method: str, case: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    made(method).save(folder)
    change, message = CASES[method][case]
    apply(folder, change)
    with pytest.raises(InputError, match=message) as caught:
        load_predictor(folder)
    assert "\n" not in str(caught.value) and str(folder) in str(caught.value) and len(str(caught.value)) < 500


def test_the_command_line_says_the_same(tmp_path: Path) -> None:
    made("kalman").save(tmp_path / "model")
    apply(tmp_path / "model", KALMAN["scale NaN"][0])
    for command in (["predict"], ["stream"], ["audit"]):
        arguments = [*command, str(tmp_path / "model"), *(["none.csv"] if command == ["audit"] else [])]
        done = CliRunner().invoke(app, arguments, input="")
        assert done.exit_code == 2 and len(done.stderr.strip().splitlines()) == 1 and "scale" in done.stderr


@pytest.mark.parametrize("method", [*METHODS, "kalman:box+pid", "factor+aci", "ewma+agaci", "copula+aci", "spci+dtaci"])
def test_every_method_passes_the_checks_with_gaps_in_its_last_rows(method: str, tmp_path: Path) -> None:
    predictor = made(method).copy()
    values = PANEL.values[-20:].copy()
    values[5:8, :3] = values[-1] = np.nan
    for y in values:
        predictor.update(y)
    predictor.save(tmp_path)
    loaded = load_predictor(tmp_path)
    np.testing.assert_array_equal(loaded.predict().bounds, predictor.predict().bounds)


class Turning:
    """A predictor whose set is sound until its first reading."""

    sensors, centre = ("a",), 0.0

    def predict(self) -> Any:
        return SimpleNamespace(center=np.array([self.centre]), bounds=(np.array([-1.0]), np.array([1.0])))

    def update(self, y: Any) -> None:
        self.centre = np.nan


def test_a_model_that_its_next_reading_would_break_is_refused() -> None:
    predictor: Any = Turning()
    with pytest.raises(InputError, match="centre of the next set is not finite"):
        require_working(predictor, adapts=True)
    assert predictor.centre == 0.0
