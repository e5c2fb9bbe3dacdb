"""The Python door: a predictor by name, a saved model by its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jointset.joint_predictor import JointPredictor


def load(path: str | Path) -> JointPredictor:
    """A saved model of any method; it goes on exactly where it was saved."""
    return JointPredictor.load(path)


def predictor(
    name: str, *, alpha: float = 0.1, warmup: int = 50, standardize: bool = True, **training: Any
) -> JointPredictor:
    """An unfitted predictor by name, `METHOD[:GEOMETRY][+WRAP]`; `jointset methods` lists them.

    `training` are settings of the learned methods: `seed`, `device`, `steps`, `recipe`.

    >>> predictor("ewma:box+aci", alpha=0.05)
    JointPredictor(ewma, boxes, ACI at 95 %; fitted on nothing yet)
    """
    from jointset.methods import predictor_for, require_trained  # other packages are asked, which takes time

    require_trained(name, training)
    return predictor_for(name, alpha=alpha, warmup=warmup, standardize=standardize, training=training or None)
