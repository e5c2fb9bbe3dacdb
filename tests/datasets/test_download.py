"""Downloads from a real HTTP server on this machine that breaks off, ignores ranges, changes files or is busy."""

import hashlib
import socket
import threading
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from jointset.datasets import download as module
from jointset.datasets.download import DownloadError, download, progress_bar
from jointset.errors import InputError

CONTENT = np.random.default_rng(0).bytes(300_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@dataclass
class Resource:
    """A file on the server and how it misbehaves; lists are used up one request at a time."""

    content: bytes = CONTENT
    etag: str | None = '"v1"'
    ranges: bool = True
    kind: str = "application/octet-stream"
    statuses: deque = field(default_factory=deque)  # answers before the first good one: (status, headers)
    cuts: deque = field(default_factory=deque)  # bytes after which the connection is closed
    silences: deque = field(default_factory=deque)  # events to wait for before the answer
    length: bool = True
    asked: list = field(default_factory=list)  # headers of every request
    sent: int = 0  # bytes of content sent in all


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        resource = self.server.files.get(self.path)
        self.close_connection = True
        if resource is None:
            return self.answer(404, {"Content-Length": "0"})
        resource.asked.append(dict(self.headers))
        if resource.silences:
            resource.silences.popleft().wait(5)
        if resource.statuses:
            status, headers = resource.statuses.popleft()
            return self.answer(status, {"Content-Length": "0", **headers})
        start, size = self.start_of(resource), len(resource.content)
        if start is not None and start >= size:
            return self.answer(416, {"Content-Range": f"bytes */{size}", "Content-Length": "0"})
        headers = {"Content-Type": resource.kind}
        if resource.etag:
            headers["ETag"] = resource.etag
        if start is not None:
            headers["Content-Range"] = f"bytes {start}-{size - 1}/{size}"
        body = resource.content[start or 0 :]
        if resource.length:
            headers["Content-Length"] = str(len(body))
        self.answer(200 if start is None else 206, headers)
        body = body[: resource.cuts.popleft()] if resource.cuts else body
        resource.sent += len(body)  # before the bytes leave: the client may be done first
        self.wfile.write(body)

    def start_of(self, resource):
        asked = self.headers.get("Range")
        if asked is None or not resource.ranges or self.headers.get("If-Range", resource.etag) != resource.etag:
            return None
        return int(asked.removeprefix("bytes=").removesuffix("-"))

    def answer(self, status, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A client that hangs up is part of the tests."""


class Site:
    """The server as tests see it: put a file, get its address."""

    def __init__(self):
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.files = {}
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def put(self, name="data.bin", **how):
        self.server.files[f"/{name}"] = resource = Resource(**how)
        return self.url(name), resource

    def url(self, name):
        return f"http://127.0.0.1:{self.server.server_port}/{name}"


@pytest.fixture
def site():
    site = Site()
    yield site
    site.server.shutdown()
    site.server.server_close()


@pytest.fixture
def pauses(monkeypatch):
    """Seconds that the code wanted to wait; it does not."""
    asked = []
    monkeypatch.setattr(module, "sleep", asked.append)
    return asked


@pytest.fixture
def target(tmp_path):
    return tmp_path / "cache" / "data.bin"


def left_behind(target):
    return sorted(path.name for path in target.parent.iterdir()) if target.parent.exists() else []


def test_file_arrives_whole_and_progress_is_told(site, target):
    url, resource = site.put()
    seen = []
    assert download(url, target, sha256=SHA256, size=len(CONTENT), progress=lambda *told: seen.append(told)) == target
    assert target.read_bytes() == CONTENT
    assert left_behind(target) == ["data.bin"]
    assert len(resource.asked) == 1
    assert [done for _, done, _ in seen] == sorted({done for _, done, _ in seen})
    assert seen[-1] == ("data.bin", len(CONTENT), len(CONTENT))


def test_broken_connection_is_resumed_and_no_byte_is_sent_twice(site, target, pauses):
    url, resource = site.put(cuts=deque([100_000, 50_000]))
    download(url, target, sha256=SHA256)
    assert target.read_bytes() == CONTENT
    assert resource.sent == len(CONTENT)
    assert [asked.get("Range") for asked in resource.asked] == [None, "bytes=100000-", "bytes=150000-"]
    assert resource.asked[1]["If-Range"] == '"v1"'
    assert len(pauses) == 2


def test_a_later_run_resumes_what_an_earlier_one_left(site, target, pauses):
    url, resource = site.put(cuts=deque([120_000]))
    with pytest.raises(DownloadError):
        download(url, target, tries=1)
    assert left_behind(target) == ["data.bin.part", "data.bin.part.tag"]
    download(url, target, sha256=SHA256)
    assert target.read_bytes() == CONTENT
    assert resource.sent == len(CONTENT)
    assert left_behind(target) == ["data.bin"]


def test_server_without_ranges_is_read_from_the_start(site, target, pauses):
    url, resource = site.put(ranges=False, cuts=deque([100_000]))
    download(url, target, sha256=SHA256)
    assert target.read_bytes() == CONTENT
    assert resource.sent == len(CONTENT) + 100_000


def test_a_file_that_changed_meanwhile_is_not_mixed(site, target, pauses):
    url, _ = site.put(cuts=deque([100_000]))
    with pytest.raises(DownloadError):
        download(url, target, tries=1)
    url, resource = site.put(content=CONTENT[::-1], etag='"v2"')
    download(url, target)
    assert target.read_bytes() == CONTENT[::-1]
    assert resource.asked[0]["If-Range"] == '"v1"'


def test_a_part_of_unknown_version_is_not_trusted(site, target, pauses):
    url, resource = site.put(etag=None, cuts=deque([100_000]))
    download(url, target)
    assert target.read_bytes() == CONTENT
    assert all("Range" not in asked for asked in resource.asked)


def test_a_part_that_was_whole_is_only_renamed(site, target):
    url, resource = site.put()
    target.parent.mkdir()
    target.with_name("data.bin.part").write_bytes(CONTENT)
    target.with_name("data.bin.part.tag").write_text('"v1"')
    download(url, target, sha256=SHA256)
    assert target.read_bytes() == CONTENT
    assert resource.sent == 0


def test_wrong_checksum_leaves_nothing_and_keeps_the_old_file(site, target):
    url, _ = site.put()
    target.parent.mkdir()
    target.write_bytes(b"old")
    wrong = "0" * 64
    with pytest.raises(InputError, match=f"expected SHA-256 {wrong}, found {SHA256}"):
        download(url, target, sha256=wrong)
    assert target.read_bytes() == b"old"
    assert left_behind(target) == ["data.bin"]


@pytest.mark.parametrize("length", [True, False])
def test_wrong_size_is_refused(site, target, length):
    url, _ = site.put(length=length)
    with pytest.raises(InputError, match=f"expected 5 bytes, .* {len(CONTENT)}"):
        download(url, target, size=5)
    assert not target.exists()


@pytest.mark.parametrize("status", [403, 404, 410])
def test_refusals_are_final_and_name_what_to_place_where(site, target, pauses, status):
    url, resource = site.put(statuses=deque([(status, {})]))
    with pytest.raises(DownloadError) as caught:
        download(url, target)
    message = str(caught.value)
    assert url in message
    assert f"HTTP {status}" in message
    assert f"place it as data.bin in {target.parent}" in message
    assert "\n" not in message
    assert len(resource.asked) == 1
    assert not pauses
    assert left_behind(target) == []


def test_busy_server_is_tried_again_after_growing_pauses(site, target, pauses):
    url, resource = site.put(statuses=deque([(500, {}), (503, {}), (429, {"Retry-After": "7"}), (502, {})]))
    download(url, target, sha256=SHA256)
    assert len(resource.asked) == 5
    assert 0.5 <= pauses[0] <= 1.5
    assert 1 <= pauses[1] <= 3
    assert pauses[2] == 7
    assert 4 <= pauses[3] <= 12


def test_a_server_that_stays_busy_is_given_up(site, target, pauses):
    url, resource = site.put(statuses=deque([(500, {})] * 9))
    with pytest.raises(DownloadError, match=r"HTTP 500, 5 tries.*place it as data.bin in"):
        download(url, target)
    assert len(resource.asked) == 5
    assert not target.exists()


def test_tries_that_get_further_do_not_count(site, target, pauses):
    url, _ = site.put(cuts=deque([20_000] * 8))
    download(url, target, sha256=SHA256, tries=2)
    assert target.read_bytes() == CONTENT


def test_a_silent_server_times_out_and_is_tried_again(site, target, pauses):
    woken = threading.Event()
    url, resource = site.put(silences=deque([woken]))
    download(url, target, sha256=SHA256, timeout=0.3)
    woken.set()
    assert target.read_bytes() == CONTENT
    assert len(resource.asked) == 2


def test_without_a_network_the_message_comes_at_once(target, pauses):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(DownloadError, match=r"cannot download http://127.0.0.1.*place it as data.bin in") as caught:
        download(f"http://127.0.0.1:{port}/data.bin", target)
    assert "\n" not in str(caught.value)
    assert not pauses


def test_a_web_page_is_no_data(site, target):
    url, _ = site.put(content=b"<html>quota exceeded</html>", kind="text/html; charset=utf-8")
    with pytest.raises(DownloadError, match="a web page came"):
        download(url, target)
    assert left_behind(target) == []


@pytest.mark.parametrize("length", [True, False])
def test_more_than_the_limit_is_refused(site, target, length):
    url, _ = site.put(length=length)
    with pytest.raises(DownloadError, match=r"limit of 1000|more than 1000 bytes"):
        download(url, target, limit=1000)
    assert not target.exists()


def test_a_full_disk_is_told_before_anything_is_written(site, target, monkeypatch):
    url, _ = site.put()
    monkeypatch.setattr(module.shutil, "disk_usage", lambda folder: type("usage", (), {"free": 10}))
    with pytest.raises(DownloadError, match="300000 bytes to come, 10 free"):
        download(url, target)
    assert left_behind(target) == []


@pytest.mark.parametrize("url", ["http://example.com/x", "ftp://example.com/x", "file:///etc/passwd", "https://"])
def test_only_https_is_safe(url, target):
    with pytest.raises(InputError, match="only https"):
        download(url, target)


def test_redirects_are_followed_but_not_off_https(site, target):
    site.put()
    moved, _ = site.put("moved", statuses=deque([(302, {"Location": "/data.bin"})]))
    download(moved, target, sha256=SHA256)
    assert target.read_bytes() == CONTENT
    away, _ = site.put("away", statuses=deque([(302, {"Location": "http://example.com/data.bin"})]))
    with pytest.raises(DownloadError, match=r"redirects to http://example.com/data.bin, which is not https"):
        download(away, target.with_name("other"))


def test_proxies_of_the_environment_are_used_but_not_for_this_machine(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")

    def proxies(url):
        handlers = module._opener(url).handlers
        return [handler.proxies for handler in handlers if isinstance(handler, module.ProxyHandler)]

    assert proxies("https://example.com")[0]["https"] == "http://proxy.example:3128"
    assert not any(proxies("http://127.0.0.1:80"))


def test_bar_is_silent_off_a_terminal(capfd):
    with progress_bar() as show:
        show("data.bin", 5, None)
        show("data.bin", 10, 10)
    assert capfd.readouterr() == ("", "")
