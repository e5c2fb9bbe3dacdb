"""One file over HTTPS: resumed where it stopped, checked, and renamed only when it is whole.

A download goes to `NAME.part`; `NAME.part.tag` keeps the server's mark of the version (ETag or date), so that a later
try asks only for the bytes that lack and only of that same version. Timeouts, broken connections and busy servers are
tried again after a growing pause; what cannot succeed ends with one line that names the file to place by hand.
Proxies are those of the environment (`https_proxy`, `no_proxy`).
"""

from __future__ import annotations

import hashlib
import ipaddress
import random
import re
import shutil
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from email.message import Message
from http.client import HTTPException
from pathlib import Path
from time import sleep
from typing import Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener

from jointset.errors import InputError, require

CHUNK = 1 << 16
LIMIT = 4 << 30  # bytes; no data set here comes near it
TRIES = 5  # in a row without a new byte
LONGEST_PAUSE = 60.0  # seconds
PASSING = {408, 425, 429, 500, 502, 503, 504}  # HTTP answers that another try may change
CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


class DownloadError(InputError):
    """A file could not be had; the message says where to place it by hand."""


class _Passing(Exception):
    """Trouble that another try may not meet."""

    def __init__(self, reason: str, pause: float | None = None) -> None:
        super().__init__(reason)
        self.pause = pause  # seconds the server asked for


class _Final(Exception):
    """Trouble that another try would meet again."""


class Progress(Protocol):
    """Called with the file's name, the bytes had so far, and the bytes in all where known."""

    def __call__(self, name: str, done: int, total: int | None) -> None: ...  # noqa: D102


def download(
    url: str,
    target: str | Path,
    *,
    sha256: str | None = None,
    size: int | None = None,
    limit: int = LIMIT,
    tries: int = TRIES,
    timeout: float = 60.0,
    progress: Progress | None = None,
) -> Path:
    """Fetch a URL to the file `target`, which appears only when it is whole and matches `sha256` and `size`.

    `tries` counts tries in a row that bring no new byte; `timeout` is for one silence of the server, in seconds.
    """
    target = Path(target)
    _require_safe(url)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    report = progress or (lambda name, done, total: None)
    failed = 0
    while True:
        before = _size(part)
        try:
            _once(url, part, size, limit, timeout, lambda done, total: report(target.name, done, total))
            break
        except _Final as error:
            raise DownloadError(_by_hand(url, target, error)) from None
        except _Passing as error:
            failed = 1 if _size(part) > before else failed + 1
            if failed >= tries:
                raise DownloadError(_by_hand(url, target, f"{error}, {failed} tries")) from None
            sleep(_pause(failed, error.pause))
    _require_content(url, part, sha256, size)
    part.replace(target)
    _tag(part).unlink(missing_ok=True)
    return target


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Progress shown as a bar on stderr, only on a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    bar = Bar(*columns, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal)
    with nullcontext() if bar.disable else bar:  # older rich ends even a bar that is not shown with an empty line
        tasks: dict[str, Any] = {}

        def show(name: str, done: int, total: int | None) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name, total=total)
            bar.update(tasks[name], completed=done, total=total)

        yield show


def sha256_of(path: Path) -> str:
    """SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _require_safe(url: str) -> None:
    """Refuse anything but https; plain http is for this machine alone."""
    parts = urlsplit(url)
    safe = parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(parts.hostname or ""))
    require(safe and bool(parts.hostname), f"will not download {url}: only https addresses are safe")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _SafeRedirects(HTTPRedirectHandler):
    """Redirects, as long as they stay on https."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:
        try:
            _require_safe(newurl)
        except InputError:
            fp.close()
            raise _Final(f"it redirects to {newurl}, which is not https") from None
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener(url: str) -> OpenerDirector:
    local = [ProxyHandler({})] if _is_loopback(urlsplit(url).hostname or "") else []
    return build_opener(_SafeRedirects, *local)


def _once(url: str, part: Path, size: int | None, limit: int, timeout: float, report: object) -> None:
    """One try: ask for the bytes that lack, and append them."""
    start, headers = _resume(part)
    request = Request(url, headers={"User-Agent": "jointset", "Accept-Encoding": "identity", **headers})
    try:
        with _opener(url).open(request, timeout=timeout) as response:
            _receive(response, part, start, size, limit, report)
    except HTTPError as error:
        error.close()
        if error.code == 416:  # nothing lacks (the last run ended before the rename), or the part is no part
            if error.headers.get("Content-Range") == f"bytes */{start}":
                return
            _discard(part)
            raise _Passing("the server could not resume") from None
        if error.code in PASSING:
            raise _Passing(f"HTTP {error.code}", _seconds(error.headers.get("Retry-After"))) from None
        raise _Final(f"HTTP {error.code} {error.reason}".strip()) from None
    except URLError as error:
        raise _judged(error.reason) from None
    except (OSError, HTTPException) as error:
        raise _judged(error) from None


def _judged(reason: object) -> Exception:
    """Whether a network error may pass: silence and cuts do, no network and bad certificates do not."""
    text = str(reason) or type(reason).__name__
    cut = (TimeoutError, ConnectionResetError, ConnectionAbortedError, BrokenPipeError, HTTPException, ssl.SSLError)
    if isinstance(reason, cut) and not isinstance(reason, ssl.SSLCertVerificationError):
        return _Passing(text)
    return _Final(text)


def _resume(part: Path) -> tuple[int, dict[str, str]]:
    """Bytes already here and the headers that ask for the rest of the same version."""
    start, tag = _size(part), _tag(part)
    if not start or not tag.exists():
        _discard(part)  # without a mark of its version, a part may belong to another file
        return 0, {}
    return start, {"Range": f"bytes={start}-", "If-Range": tag.read_text().strip()}


def _receive(response: Any, part: Path, start: int, size: int | None, limit: int, report: Any) -> None:
    resumed = response.status == 206
    total = _total(response, start) if resumed else _length(response.headers)
    if response.headers.get_content_type() == "text/html":
        raise _Final("a web page came in place of the file")
    if size is not None and total is not None and total != size:
        raise _Final(f"expected {size} bytes, the server has {total}")
    done = start if resumed else 0
    _require_room(part.parent, total, done, limit)
    if not resumed:
        _discard(part)
        if mark := _mark(response.headers):
            _tag(part).write_text(mark)
    with part.open("ab") as file:
        while chunk := response.read(CHUNK):
            file.write(chunk)
            done += len(chunk)
            if done > limit:
                raise _Final(f"more than {limit} bytes came")
            report(done, total)
    if total is not None and done < total:
        raise _Passing(f"the connection closed after {done} of {total} bytes")


def _total(response: Any, start: int) -> int | None:
    """Size of the whole file from a 206 answer, which must go on where the part ends."""
    match = CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if match is None or int(match[1]) != start:
        raise _Passing("the server resumed at another place")
    return None if match[2] == "*" else int(match[2])


def _length(headers: Message) -> int | None:
    text = headers.get("Content-Length", "")
    return int(text) if text.isdigit() else None


def _mark(headers: Message) -> str | None:
    """What `If-Range` takes: a strong ETag, else the date of the last change."""
    etag = headers.get("ETag", "")
    return etag if etag.startswith('"') else headers.get("Last-Modified")


def _require_room(folder: Path, total: int | None, done: int, limit: int) -> None:
    if total is None:
        return
    if total > limit:
        raise _Final(f"the server offers {total} bytes, more than the limit of {limit}")
    free = shutil.disk_usage(folder).free
    if total - done > free:
        raise _Final(f"{total - done} bytes to come, {free} free on the disk")


def _require_content(url: str, part: Path, sha256: str | None, size: int | None) -> None:
    """Refuse, and delete, a file that is not the expected one."""
    found = _size(part)
    wrong = f"expected {size} bytes, found {found}" if size is not None and found != size else ""
    if not wrong and sha256 is not None and (digest := sha256_of(part)) != sha256.lower():
        wrong = f"expected SHA-256 {sha256}, found {digest}"
    if wrong:
        _discard(part)
        raise DownloadError(f"{url} is not the known file: {wrong}; it was deleted, try again or report it")


def _by_hand(url: str, target: Path, reason: object) -> str:
    place = f"place it as {target.name} in {target.parent}"
    return f"cannot download {url} ({reason}): get it some other way and {place}"


def _pause(failed: int, asked: float | None) -> float:
    """Seconds before the next try: what the server asked for, else 1, 2, 4, ... with jitter."""
    wished = asked if asked is not None else 2.0 ** (failed - 1) * random.SystemRandom().uniform(0.5, 1.5)
    return min(wished, LONGEST_PAUSE)


def _seconds(retry_after: str | None) -> float | None:
    return float(retry_after) if retry_after and retry_after.strip().isdigit() else None


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _tag(part: Path) -> Path:
    return part.with_name(f"{part.name}.tag")


def _discard(part: Path) -> None:
    part.unlink(missing_ok=True)
    _tag(part).unlink(missing_ok=True)
