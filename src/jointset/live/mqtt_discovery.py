"""What Home Assistant is told, so that the entities of a network appear there by themselves."""

from __future__ import annotations

import re
from typing import Any

from jointset.live.mqtt_topics import Topics

ENTITIES: dict[str, tuple[str, dict[str, str]]] = {  # by name: the component, and what is its own
    "score": ("sensor", {"value_template": "{{ value_json.score }}", "state_class": "measurement"}),
    "radius": ("sensor", {"value_template": "{{ value_json.radius }}", "state_class": "measurement"}),
    "inside": (
        "binary_sensor",
        {"value_template": "{{ 'ON' if value_json.inside == false else 'OFF' }}", "name": "outside its set"},
    ),
    "alarm": (
        "binary_sensor",
        {"value_template": "{{ 'ON' if value_json.count else 'OFF' }}", "device_class": "problem"},
    ),
}


def discovery(topics: Topics, network: str, prefix: str) -> dict[str, dict[str, Any]]:
    """Messages by their topics: `PREFIX/COMPONENT/jointset_NETWORK/NAME/config`.

    >>> list(discovery(Topics("jointset", {"city": ()}, {}), "city", "homeassistant"))[0]
    'homeassistant/sensor/jointset_city/score/config'
    """
    node = f"jointset_{re.sub('[^A-Za-z0-9_-]', '_', network)}"
    device = {"identifiers": [node], "name": f"jointset {network}", "manufacturer": "jointset"}
    found = {}
    for name, (component, own) in ENTITIES.items():
        state = topics.under(network, "alarms/open" if name == "alarm" else "score")
        entity: dict[str, Any] = {
            "name": name,
            "unique_id": f"{node}_{name}",
            "state_topic": state,
            "availability_topic": f"{topics.base}/status",
            "device": device,
            **own,
        }
        if name == "alarm":
            entity["json_attributes_topic"] = state
        found[f"{prefix}/{component}/{node}/{name}/config"] = entity
    return found
