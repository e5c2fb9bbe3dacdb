"""The service behind TLS with a certificate of its own; files it cannot use are refused before anything is opened."""

import http.client
import json
import shutil
import socket
import ssl
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

pytest.importorskip("fastapi")

from jointset.cli import app

OPENSSL = shutil.which("openssl")
pytestmark = pytest.mark.skipif(OPENSSL is None, reason="openssl is not installed: it makes the certificate")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A self-signed certificate of 127.0.0.1, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    made = [OPENSSL, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made += ["-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=127.0.0.1"]
    subprocess.run([*made, "-addext", "subjectAltName=IP:127.0.0.1"], cwd=folder, check=True, capture_output=True)
    (folder / "key.pem").chmod(0o600)
    return folder / "cert.pem", folder / "key.pem"


def refused(model, tmp_path, cert, key):
    given = ["serve", f"city={model}", "--store", tmp_path / "s", "--tls-cert", cert, "--tls-key", key]
    result = CliRunner().invoke(app, list(map(str, given)))
    assert result.exit_code == 2 and not (tmp_path / "s").exists()
    assert "Traceback" not in result.output
    return " ".join(result.output.split())


def test_files_that_cannot_be_used_are_one_line(model, tmp_path, files):
    cert, key = files
    assert "No such file" in refused(model, tmp_path, cert, tmp_path / "nothing.pem")
    (tmp_path / "bad.pem").write_text("no certificate")
    assert "give a PEM certificate" in refused(model, tmp_path, tmp_path / "bad.pem", key)
    other = tmp_path / "other.pem"
    subprocess.run([OPENSSL, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", other], check=True)
    assert "its own key" in refused(model, tmp_path, cert, other)
    locked = tmp_path / "locked.pem"
    made = [OPENSSL, "ec", "-in", key, "-aes256", "-passout", "pass:secret", "-out", locked]
    subprocess.run(made, check=True, capture_output=True)
    assert "encrypted" in refused(model, tmp_path, cert, locked)
    open_key = tmp_path / "open.pem"
    open_key.write_bytes(key.read_bytes())
    open_key.chmod(0o644)
    assert "chmod 600" in refused(model, tmp_path, cert, open_key)


def test_readings_come_and_go_over_tls(model, rows, tmp_path, files):
    cert, key = files
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    given = [f"city={model}", "--store", tmp_path / "s", "--port", port, "--tls-cert", cert, "--tls-key", key]
    command = [sys.executable, "-c", "from jointset.cli import main; main()", "serve", *map(str, given)]
    service = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        trusting = ssl.create_default_context(cafile=cert)
        status, _ = asked_until_ready(port, trusting)
        assert status == 200
        status, body = asked(port, trusting, "POST", "/city/observations", json.dumps(rows[0]).encode())
        assert status == 200 and json.loads(body)["row"] == 1
        with pytest.raises(ssl.SSLCertVerificationError):
            asked(port, ssl.create_default_context(), "GET", "/health")
        plain = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        plain.request("GET", "/health")
        with pytest.raises((http.client.HTTPException, OSError)):
            plain.getresponse()
    finally:
        service.terminate()
        service.wait(30)


def asked(port, context, method, path, body=b""):
    line = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=context)
    try:
        line.request(method, path, body, {"content-type": "application/json"})
        answer = line.getresponse()
        return answer.status, answer.read()
    finally:
        line.close()


def asked_until_ready(port, context):
    end = time.monotonic() + 60
    while True:
        try:
            return asked(port, context, "GET", "/ready")
        except ConnectionError:
            assert time.monotonic() < end, "the service did not come up"
            time.sleep(0.05)
