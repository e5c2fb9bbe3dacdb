"""Mean backbones: one-step means under one interface, `fit(panel)`, `predict(values)`, `next_mean(history)`.

`gpvar` is linear and shared by all sensors, `var` linear in all of them; `gru` and `transformer` see the whole vector
and no graph; `stgnn` sees each node's history and its neighbours'. Training needs torch, which is imported only then.
"""

from typing import TYPE_CHECKING

from jointset.late_names import late_names

if TYPE_CHECKING:
    from jointset.backbones.by_name import BACKBONES, backbone
    from jointset.backbones.gpvar import GPVARBackbone
    from jointset.backbones.gru import GRUBackbone
    from jointset.backbones.interface import Backbone
    from jointset.backbones.learned import LearnedBackbone
    from jointset.backbones.stgnn import STGNNBackbone
    from jointset.backbones.swap import SwappedMean, SwappedState
    from jointset.backbones.transformer import TransformerBackbone
    from jointset.backbones.var import VARBackbone

MODULES = {
    "by_name": "BACKBONES backbone",
    "gpvar": "GPVARBackbone",
    "gru": "GRUBackbone",
    "interface": "Backbone",
    "learned": "LearnedBackbone",
    "stgnn": "STGNNBackbone",
    "swap": "SwappedMean SwappedState",
    "transformer": "TransformerBackbone",
    "var": "VARBackbone",
}
__all__ = [
    "BACKBONES",
    "Backbone",
    "GPVARBackbone",
    "GRUBackbone",
    "LearnedBackbone",
    "STGNNBackbone",
    "SwappedMean",
    "SwappedState",
    "TransformerBackbone",
    "VARBackbone",
    "backbone",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = late_names(__name__, MODULES)
