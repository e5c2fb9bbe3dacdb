"""Mean backbones by their names."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from jointset.backbones.gpvar import GPVARBackbone
from jointset.backbones.gru import GRUBackbone
from jointset.backbones.interface import Backbone
from jointset.backbones.stgnn import STGNNBackbone
from jointset.backbones.transformer import TransformerBackbone
from jointset.backbones.var import VARBackbone
from jointset.errors import require

BACKBONES: dict[str, type[Backbone]] = {
    "gpvar": GPVARBackbone,
    "var": VARBackbone,
    "gru": GRUBackbone,
    "transformer": TransformerBackbone,
    "stgnn": STGNNBackbone,
}
# what fit sets, not the user
RESULTS = {"weights", "constant", "mean", "spread", "near", "calendar", "day", "scale", "shift", "model", "known"}


def backbone(name: str, **options: Any) -> Backbone:
    """The backbone of a name, with other settings where given.

    >>> backbone("gru", width=16).width
    16
    """
    require(name in BACKBONES, f"unknown mean backbone {name!r}: choose one of {', '.join(BACKBONES)}")
    known = [f.name for f in fields(BACKBONES[name]) if f.name not in RESULTS]  # type: ignore[arg-type]
    for option in options:
        require(option in known, f"backbone {name} has no option {option!r}: it has {', '.join(known)}")
    return BACKBONES[name](**options)
