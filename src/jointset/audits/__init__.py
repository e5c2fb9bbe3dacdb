"""Audits: real protocols on a frozen filter that tell when to trust its prediction set.

Every audit is a function of a fitted filter or a calibrated predictor and readings; it returns numbers and curves,
prints nothing and writes nothing. Names are imported on first use, so `import jointset.audits` costs nothing. A
function named like its module comes from there: `from jointset.audits.contraction import contraction`.
"""

from jointset.late_names import late_names

MODULES = {
    "questions": "AUDITS",
    "collect": "audit audit_cell",
    "light": "overall",
    "contraction": "Contraction sensitivity",
    "coupling": "coupled perturbed trajectories",
    "dependence": """EffectiveSizes IndicatorDependence IntegratedTime autocovariance effective_sizes
        indicator_dependence integrated_time""",
    "forgetting": "Forgetting robustness score_forgetting wasserstein_1",
    "observability": "Observability",
}
__getattr__, __dir__ = late_names(__name__, MODULES)
