"""A headless Chromium for tests of pages, driven by chromedriver over the WebDriver protocol."""

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",  # for root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the protocol's key for a reference to an element
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # chromedriver is on this machine: no proxy


def missing():
    """What is not installed, or an empty string."""
    gone = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"{' and '.join(gone)} not found: apt-get install chromium chromium-driver" if gone else ""


needed = pytest.mark.skipif(bool(missing()), reason=missing() or "Chromium is there")


class Browser:
    """One window. `run` executes a function body in the page, `click` and `keys` act as a user does."""

    def __init__(self, address, profile):
        self.address = address
        options = {"binary": shutil.which("chromium"), "args": [*FLAGS, f"--user-data-dir={profile}"]}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        made = self._send("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = f"/session/{made['sessionId']}"

    def open(self, path, width=1280, height=900):
        """Open a file or an address at a window width; what the console said before is dropped."""
        self.send("goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": _screen(width, height)})
        self.send("url", {"url": path if isinstance(path, str) else path.resolve().as_uri()})

    def run(self, body, *arguments):
        """What the body of a function gives, run in the page."""
        return self.send("execute/sync", {"script": body, "args": list(arguments)})

    def find(self, selector):
        """The first element of a CSS selector."""
        return self.send("element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        """Click an element."""
        self.send(f"element/{self.find(selector)}/click", {})

    def keys(self, selector, text):
        """Type into an element."""
        self.send(f"element/{self.find(selector)}/value", {"text": text})

    def settled(self, condition, seconds=15.0):
        """Wait until an expression holds in the page."""
        until = time.monotonic() + seconds
        while not self.run(f"return Boolean({condition})"):
            assert time.monotonic() < until, f"never: {condition}"
            time.sleep(0.05)

    def console(self):
        """Warnings and errors of the page since it was last asked."""
        return [line["message"] for line in self.send("se/log", {"type": "browser"}) if line["level"] != "INFO"]

    def screenshot(self, path):
        """Picture of the whole page."""
        self.send("goog/cdp/execute", {"cmd": "Page.enable", "params": {}})
        asked = {"format": "png", "captureBeyondViewport": True}
        taken = self.send("goog/cdp/execute", {"cmd": "Page.captureScreenshot", "params": asked})
        path.write_bytes(base64.b64decode(taken["data"]))

    def send(self, command, content):
        """One command of the session."""
        return self._send("POST", f"{self.session}/{command}", content)

    def close(self):
        """End the session and with it the browser."""
        self._send("DELETE", self.session)

    def _send(self, verb, path, content=None):
        body = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(self.address + path, body, {"Content-Type": "application/json"}, method=verb)
        try:
            with OPENER.open(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None


@contextmanager
def browser(folder):
    """A browser with a fresh profile in a folder, ended with the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [shutil.which("chromedriver"), f"--port={port}", f"--log-path={folder / 'driver.log'}"]
    driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        address = f"http://127.0.0.1:{port}"
        _wait(address)
        window = Browser(address, folder / "profile")
        try:
            yield window
        finally:
            window.close()
    finally:
        driver.terminate()
        driver.wait(timeout=20)


def _wait(address, seconds=60):
    until = time.monotonic() + seconds
    while True:
        try:
            with OPENER.open(f"{address}/status", timeout=5):
                return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def _screen(width, height):
    return {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
