"""A browser without a window, driven over its own debugging protocol, with nothing but the standard library.

Chromium reads commands from file descriptor 3 and answers on 4: JSON, each message ended by a zero byte. `make test`
installs Chromium where that is possible (see `.ci/browser`); `$BROWSER_FOR_TESTS` names another one of its family.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE = 60.0
"""Seconds that an answer may take: the machine may be busy."""

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-extensions", "--remote-debugging-pipe",
)  # fmt: skip


def find_browser() -> str | None:
    """The path of a browser that can be driven; None where there is none."""
    return next(filter(None, map(shutil.which, filter(None, (os.environ.get("BROWSER_FOR_TESTS"), *NAMES)))), None)


class BrowserError(Exception):
    """The browser refused a command, or did not answer."""


class Browser:
    """One browser process. Use it in a `with` statement."""

    def __init__(self, path: str) -> None:
        self._profile = tempfile.mkdtemp(prefix="browser")
        commands, self._write = os.pipe()
        self._read, answers = os.pipe()
        # Out of the way of 3 and 4, which the child gets.
        given = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (commands, answers)]
        null = os.open(os.devnull, os.O_RDWR)
        actions = [(os.POSIX_SPAWN_DUP2, null, number) for number in (0, 1, 2)]
        actions += [(os.POSIX_SPAWN_DUP2, given[0], 3), (os.POSIX_SPAWN_DUP2, given[1], 4)]
        words = [path, *FLAGS, f"--user-data-dir={self._profile}", "about:blank"]
        self.process = os.posix_spawn(path, words, dict(os.environ), file_actions=actions, setpgroup=0)
        for end in (commands, answers, *given, null):
            os.close(end)
        self._rest = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self._read)
        os.close(self._write)
        shutil.rmtree(self._profile, ignore_errors=True)

    def send(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """The answer to one command. Raises `BrowserError` for a refusal, or none in time."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next(method)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def wait(self, session: str, event: str) -> None:
        """Until `event` has come, now or earlier."""
        while not any(item.get("method") == event and item.get("sessionId") == session for item in self.events):
            self.events.append(self._next(event))

    def _next(self, awaited: str) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            chunk = os.read(self._read, 1 << 20) if ready else b""
            if not chunk:
                raise BrowserError(f"no answer while waiting for {awaited}")
            self._rest += chunk
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def open(self, url: str, width: int = 1280, height: int = 900, dark: bool = False, touch: bool = False) -> Page:
        """A new page of that size in CSS pixels, loaded."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.send(f"{domain}.enable")
        page.resize(width, height, touch)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        page.send("Emulation.setEmulatedMedia", features=scheme)
        page.send("Page.navigate", url=url)
        self.wait(session, "Page.loadEventFired")
        return page


class Page:
    """One page. Coordinates are CSS pixels of its window."""

    def __init__(self, browser: Browser, session: str) -> None:
        self.browser = browser
        self.session = session

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        return self.browser.send(method, self.session, **params)

    def resize(self, width: int, height: int, touch: bool = False) -> None:
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)
        self.send("Emulation.setTouchEmulationEnabled", enabled=touch)

    def run(self, script: str) -> Any:
        """The value of an expression, as JSON has it; a promise's value. Raises `BrowserError` for what it throws."""
        found = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise BrowserError(f"{script}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def settle(self) -> None:
        """Until what was asked for has been drawn."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def until(self, script: str) -> Any:
        """The value of an expression once it is true."""
        deadline = time.monotonic() + PATIENCE
        while True:
            found = self.run(script)
            if found:
                return found
            if time.monotonic() > deadline:
                raise BrowserError(f"never true: {script}")
            time.sleep(0.02)

    # --- a person ---
    def point(self, x: float, y: float) -> None:
        """Moves the mouse there."""
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y, pointerType="mouse")
        self.settle()

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.settle()

    def tap(self, x: float, y: float) -> None:
        """With a finger."""
        self.send("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.send("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self.settle()

    def press(self, key: str, code: int = 0, text: str = "") -> None:
        """A key by its name; `code`: its number, which the browser needs for keys that move the focus."""
        for kind in ("keyDown", "keyUp"):
            given = {"text": text} if text and kind == "keyDown" else {}
            self.send("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **given)
        self.settle()

    # --- what it did ---
    @property
    def complaints(self) -> list[str]:
        """Errors and warnings in the console, and exceptions that nothing caught."""
        return self._told(
            lambda name, params: (
                name == "Runtime.exceptionThrown"
                or (name == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"))
                or (name == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"))
            )
        )

    @property
    def requests(self) -> list[str]:
        """The addresses that it asked for."""
        self.run("1")
        found = [item for item in self.browser.events if item.get("sessionId") == self.session]
        return [e["params"]["request"]["url"] for e in found if e["method"] == "Network.requestWillBeSent"]

    def _told(self, counts: Callable[[str, Any], bool]) -> list[str]:
        self.run("1")
        found = [item for item in self.browser.events if item.get("sessionId") == self.session]
        return [json.dumps(item["params"]) for item in found if counts(item["method"], item["params"])]

    def picture(self, path: Path, whole: bool = True) -> None:
        """A screenshot as a PNG file: of the whole page, or of the window."""
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))
