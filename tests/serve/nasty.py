"""Requests that nobody should send: made by hand, and made at random from the OpenAPI document."""

import json
import random

PIECES = [
    *("", " ", "\x00", "null", "true", "NaN", "-Infinity", "1e999", "{}", "[]", "[[]]", "{", '"', "time", "values"),
    *("'; DROP TABLE log;--", "../../etc/passwd", "%2e%2e%2f", "\ud7ff", "😀", "9" * 400, "-1", "0", "1e-400", "s000"),
    *("a" * 5_000, "\r\n\r\n", "<script>", "${x}", "=cmd|' /C calc'!A0", "2012-03-01T00:05:00Z", "0000-00-00"),
    *("99999-01-01", "1969-12-31T23:59:60Z", "\u202e", "\ufeff"),
]
KNOWN = ["application/json", "application/x-ndjson", "text/csv", "text/plain"]
TYPES = [*KNOWN, "", "application/xml", "multipart/form-data", "a/b;c=d"]
CODINGS = [None, None, None, "gzip", "br", "identity", "gzip, gzip"]


def value(chance, depth=0):
    """A JSON value that may be anything."""
    kind = chance.randrange(9 if depth < 4 else 6)
    if kind == 0:
        return chance.choice([None, True, False])
    if kind == 1:
        return chance.choice([0, -1, 2**63, -(2**70), 1, 300, 1_700_000_000, 1_700_000_000_000])
    if kind == 2:
        return chance.choice([0.0, -0.0, 1e308, 5e-324, -1e100, 3.5, float("nan"), float("inf")])
    if kind in (3, 4, 5):
        return chance.choice(PIECES)
    if kind == 6:
        return [value(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {chance.choice(PIECES): value(chance, depth + 1) for _ in range(chance.randrange(4))}


def row(chance, sensors):
    """A row with something wrong, most of the time."""
    values = {name: chance.choice([0.1, None, 1e300, "x", [], value(chance)]) for name in chance.sample(sensors, 3)}
    if chance.random() < 0.3:
        values[chance.choice(PIECES)] = 1.0
    found = {"time": value(chance), "values": chance.choice([values, value(chance)])}
    return {key: found[key] for key in found if chance.random() < 0.95}


def body(chance, sensors):
    """The bytes of a body."""
    kind = chance.randrange(6)
    if kind == 0:
        return chance.randbytes(chance.randrange(200))
    if kind == 1:
        return json.dumps(value(chance)).encode("utf-8", "surrogatepass")
    if kind == 2:
        return json.dumps([row(chance, sensors) for _ in range(chance.randrange(4))]).encode("utf-8", "surrogatepass")
    if kind == 3:
        whole = json.dumps(row(chance, sensors)).encode("utf-8", "surrogatepass")
        return whole[: chance.randrange(len(whole) + 1)]
    marks = [",", " ", "=", "\n", '"', "\\", ";", "\t", *sensors[:3], *PIECES, "time,sensor,value\n", "traffic,sensor="]
    return "".join(chance.choice(marks) for _ in range(chance.randrange(30))).encode("utf-8", "surrogatepass")


def operations(document, name):
    """(method, path) of a document, its first parameter filled with the name of a network."""
    return [
        (method.upper(), path.replace("{name}", name))
        for path, methods in document["paths"].items()
        for method in methods
    ]  # fmt: skip


def parameters(document):
    """Names of all query parameters."""
    return sorted(
        {
            one["name"]
            for methods in document["paths"].values()
            for about in methods.values()
            for one in about.get("parameters", ())
            if one["in"] == "query"
        }
    )


def request(chance, document, name, sensors):
    """Method, path, query, headers and body of a request at random."""
    method, path = chance.choice(operations(document, chance.choice([name, name, name, "nobody", "%00", ".."])))
    path = path.replace("{alarm}", chance.choice(["1", "x", "%2e%2e", "a" * 100]))
    if chance.random() < 0.1:
        method = chance.choice(["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE"])
    query = {chance.choice(parameters(document)): chance.choice(PIECES) for _ in range(chance.randrange(3))}
    headers = {"content-type": chance.choice(TYPES)}
    coding = chance.choice(CODINGS)
    if coding is not None:
        headers["content-encoding"] = coding
    return method, path, query, headers, body(chance, sensors) if method != "GET" else b""


def sent(client, made):
    """The answer to such a request."""
    method, path, query, headers, content = made
    clean = {key: text.encode("utf-8", "replace").decode() for key, text in query.items()}
    return client.request(method, path, params=clean, headers=headers, content=content)


def chances(seed):
    return random.Random(seed)
