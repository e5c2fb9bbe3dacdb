"""Counters and gauges of the service as Prometheus reads them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from jointset.live.happenings import KINDS

if TYPE_CHECKING:
    from jointset.live.network import Network

COUNTERS = {
    "requests": "requests taken",
    "refused": "requests refused for what they held",
    "rows": "rows that counted",
    "late": "rows kept as late",
    "repeated": "rows sent again",
    "commits": "commits to the disk",
    "failed": "commits that failed",
    "mqtt_received": "messages of MQTT received",
    "mqtt_refused": "of these refused, as they held no reading",
}
GAUGES: dict[str, tuple[str, Callable[[Any], float]]] = {
    "row": ("last number of the log", lambda n: n.standing.number),
    "latest_seconds": ("time of the last row that counted", lambda n: n.standing.clock.latest or math.nan),
    "score": ("score of the last row", lambda n: n.last_score),
    "radius": ("radius of the next set", lambda n: n.standing.predictor.radius),
    "scored_rows": ("rows with a score since the store began", lambda n: n.standing.scored),
    "inside_rows": ("of these inside their set", lambda n: n.standing.inside),
    "target_coverage": ("coverage promised", lambda n: 1.0 - n.standing.predictor.alpha),
    "silent_sensors": ("sensors without a reading for too long", lambda n: len(n.standing.ailing()["silent"])),
    "stuck_sensors": ("sensors that stand still for too long", lambda n: len(n.standing.ailing()["stuck"])),
    "held_steps": ("steps that wait for the rest of their readings", lambda n: len(n.held)),
    "ready": ("1 where the last commit went well", lambda n: float(n.trouble is None)),
    "store_bytes": ("size of the store", lambda n: n.store.size()),
}


def metrics_text(networks: Sequence[Network]) -> str:
    """The text of all metrics."""
    lines = []
    for name, words in COUNTERS.items():
        lines += _family(f"{name}_total", "counter", words, [({"network": n.name}, n.counts[name]) for n in networks])
    for name, (words, value) in GAUGES.items():
        lines += _family(name, "gauge", words, [({"network": n.name}, value(n)) for n in networks])
    found = []
    for n in networks:
        opened = Counter(one.kind for one in n.standing.alarms.open)
        found += [({"network": n.name, "kind": kind}, opened[kind]) for kind in KINDS]
    lines += _family("open_alarms", "gauge", "alarms that are open", found)
    return "\n".join(lines) + "\n"


def _family(name: str, kind: str, words: str, samples: Sequence[tuple[dict[str, str], float]]) -> list[str]:
    """The lines of one metric."""
    lines = [f"# HELP jointset_{name} {words}", f"# TYPE jointset_{name} {kind}"]
    for labels, value in samples:
        label = ",".join(f'{key}="{text}"' for key, text in labels.items())
        lines.append(f"jointset_{name}{{{label}}} {_number(value)}")
    return lines


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)
