"""A browser that tests can use with real input: moves of a mouse, keys, other screens."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

with suppress(ImportError):  # not on Windows
    import fcntl

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE_S = 60


class Browser:
    """Chromium with one page, led through the pipe of its DevTools protocol."""

    def __init__(self, chromium: Sequence[str], profile: Path) -> None:
        """Start it; it reads commands from its file descriptor 3 and answers on 4."""
        commands_out, self._commands = os.pipe()
        self._answers, answers_in = os.pipe()
        theirs = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (commands_out, answers_in)]
        with_pipe = ["/bin/bash", "-c", f'exec "$@" 3<&{theirs[0]} 4>&{theirs[1]}', "bash"]
        self._process = subprocess.Popen(
            [*with_pipe, *chromium, "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"],
            pass_fds=theirs,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for fd in (commands_out, answers_in, *theirs):
            os.close(fd)
        self._unread, self._n_commands, self._session = b"", 0, ""
        (page,) = [target for target in self.call("Target.getTargets")["targetInfos"] if target["type"] == "page"]
        self._session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        self.call("Page.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of a command."""
        self._n_commands += 1
        command = {"id": self._n_commands, "method": method, "params": parameters}
        command |= {"sessionId": self._session} if self._session else {}
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        while True:
            answer = self._next_message()
            if answer.get("id") == self._n_commands:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result

    def _next_message(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            part = os.read(self._answers, 1 << 16)
            assert part, "the browser has ended"
            self._unread += part
        message, _, self._unread = self._unread.partition(b"\0")
        parsed: dict[str, Any] = json.loads(message)
        return parsed

    def evaluate(self, script: str) -> Any:
        """The value of an expression on the page, awaited."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def open(self, address: str) -> None:
        """Go to an attention page, and wait until it is ready."""
        self.call("Page.navigate", url="about:blank")  # else another fragment would not load the page anew
        self.call("Page.navigate", url=address)
        give_up = time.monotonic() + PATIENCE_S
        while not self.evaluate("Boolean(document.documentElement?.dataset.ready) && location.protocol === 'file:'"):
            assert time.monotonic() < give_up, self.evaluate("document.documentElement.dataset.error ?? 'no answer'")
            time.sleep(0.02)

    def resize(self, width: int, height: int, *, is_phone: bool = False) -> None:
        """The size of the window; a phone has a touch screen and no mouse."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=is_phone
        )
        self.call("Emulation.setTouchEmulationEnabled", enabled=is_phone)

    def prefer(self, scheme: str) -> None:
        """``light`` or ``dark``."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def move_mouse(self, x: float, y: float) -> None:
        """A real move, which makes the events that a hand makes."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def tap(self, x: float, y: float) -> None:
        """A finger."""
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self.frame()

    def press(self, key: str) -> None:
        """A key."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowUp": 38, "ArrowDown": 40}
        event = {"key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
        text = {"text": "\r"} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **event, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)
        self.frame()

    def frame(self) -> None:
        """Wait until what was done is painted."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")

    def seconds_of_work(self) -> float:
        """How long the page's thread has computed: script, styles, layout, painting; not waiting for a processor."""
        metrics = {each["name"]: each["value"] for each in self.call("Performance.getMetrics")["metrics"]}
        return float(metrics["TaskDuration"])

    def screenshot(self) -> bytes:
        """A PNG of the window."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def close(self) -> None:
        """End the browser."""
        self._session = ""
        with suppress(AssertionError, BrokenPipeError):  # it may end before it answers
            self.call("Browser.close")
        self._process.wait(PATIENCE_S)
        os.close(self._commands)
        os.close(self._answers)


@pytest.fixture(scope="session")
def chromium() -> list[str]:
    """The command that starts it without a window."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("no chromium on this machine")
    return [path, *FLAGS]


@pytest.fixture(scope="module")
def browser(chromium: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(chromium, tmp_path_factory.mktemp("profile"))
    try:
        browser.call("Performance.enable", timeDomain="threadTicks")
        yield browser
    finally:
        browser.close()
