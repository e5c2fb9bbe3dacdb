"""Requests that nobody should send crash nothing, get no 5xx and no trace, and change nothing when refused."""

import pytest

pytest.importorskip("fastapi")

from nasty import chances, request, sent

COUNT = 400  # the benchmark sends more


def test_requests_at_random(served, rows):
    client, network = served.client, served.network
    client.post("/city/observations", json=rows[:10])
    document, chance = client.get("/openapi.json").json(), chances(0)
    bad = []
    for _ in range(COUNT):
        made = request(chance, document, "city", network.sensors)
        before = network.standing, network.held
        answer = sent(client, made)
        if answer.status_code >= 500 or b"Traceback" in answer.content:
            bad.append((answer.status_code, made, answer.text[:200]))
        if answer.status_code >= 400 and (network.standing, network.held) != before:
            bad.append(("changed", made))
        if answer.status_code >= 400 and made[0] != "HEAD" and "\n" in answer.json()["error"]:
            bad.append(("lines", made))
    assert bad == []
    assert client.post("/city/observations", json=rows[10]).status_code == 200


def test_the_openapi_document_by_schemathesis(served):
    """Cases that schemathesis makes from the document: valid ones and broken ones."""
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, given, settings

    client = served.client
    schema = schemathesis.openapi.from_dict(client.get("/openapi.json").json())
    seen = []

    for found in schema.get_all_operations():
        operation = found.ok()

        @given(case=operation.as_strategy())
        @settings(max_examples=8, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        def ask(case):
            path = case.formatted_path.replace(str((case.path_parameters or {}).get("name", "\0")), "city", 1)
            given_ = case.as_transport_kwargs(base_url="http://127.0.0.1")
            kept = {key: given_[key] for key in ("headers", "params", "cookies", "json", "data") if given_.get(key)}
            answer = client.request(case.method, path, **kept)
            seen.append(answer.status_code)
            assert answer.status_code < 500, (case.method, path, kept, answer.text)
            assert b"Traceback" not in answer.content

        ask()
    assert len(seen) > 60 and min(seen) == 200
