"""A translator in the browser: the page of an exported model, run by transformers.js in headless Chromium.

    npm install --ignore-scripts @huggingface/transformers      # anywhere; NODE_MODULES is its folder
    python benchmarks/browser.py RUN/model NODE_MODULES --text TEXT.txt --site site

It exports the model, puts the page and its files into ``site`` (a folder that any web server can serve), opens it
without a connection to other hosts, compares the ids with those of our greedy search, and writes
``site/screenshot.png``.
"""

from __future__ import annotations

import argparse
import base64
import functools
import http.server
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from transduce import Translator
from transduce.config import GreedySearchConfig
from transduce.exchange import export_model
from transduce.text import BOS_ID, EOS_ID

PAGE = Path(__file__).parent / "browser" / "index.html"
LIBRARY = "@huggingface/transformers/dist/transformers.min.js"
RUNTIME = "onnxruntime-web/dist"


def main() -> None:
    """Build the site, run it, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("node_modules", type=Path)
    parser.add_argument("--text", type=Path, required=True, help="a file of a few lines")
    parser.add_argument("--site", type=Path, required=True, help="the new folder of the page")
    parser.add_argument("--dtype", choices=["fp32", "q8"], default="fp32")
    parser.add_argument("--browser", default="chromium")
    arguments = parser.parse_args()
    build_site(arguments.model, arguments.node_modules, arguments.site)
    lines = arguments.text.read_text("utf-8").splitlines()
    shown = ids_in_browser(arguments.site, lines, dtype=arguments.dtype, browser=arguments.browser)
    ours = our_ids(arguments.model, lines)
    equal = sum(mine == other for mine, other in zip(ours, shown, strict=True))
    print(json.dumps({"dtype": arguments.dtype, "sentences": len(lines), "equal_greedy": equal}))


def build_site(model: Path, node_modules: Path, site: Path) -> None:
    """Write the page, the library, its runtime and the exported model to a new folder."""
    site.mkdir()
    shutil.copy(PAGE, site)
    shutil.copy(node_modules / LIBRARY, site)
    for name in ("asyncify", "jsep"):
        for file in (node_modules / RUNTIME).glob(f"ort-wasm-simd-threaded.{name}.*"):
            shutil.copy(file, site)
    export_model(model, "onnx", site / "model")


def ids_in_browser(site: Path, lines: list[str], *, dtype: str, browser: str) -> list[list[int]]:
    """Open the page, wait for the translation, take a screenshot; return the ids of each line without special ones."""
    handler = functools.partial(QuietHandler, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/index.html?dtype={dtype}&text={quote(chr(10).join(lines))}"
    with Chromium(browser) as page:
        page.send("Page.navigate", url=url)
        state = page.wait_for("['done', 'error'].includes(document.title) && document.title")
        image = page.send("Page.captureScreenshot", format="png")["data"]
        (site / "screenshot.png").write_bytes(base64.b64decode(image))
        if state != "done":
            raise SystemExit(f"the page failed: {page.value('document.body.innerText')}")
        rows: list[list[int]] = json.loads(page.value("document.getElementById('target').dataset.ids"))
    server.shutdown()
    return [[id for id in row if id not in (BOS_ID, EOS_ID)] for row in rows]


class Chromium:
    """A headless browser with one page, spoken to by the DevTools protocol over a pair of pipes."""

    def __init__(self, program: str) -> None:
        self.program, self.number, self.session = program, 0, None

    def __enter__(self) -> Self:
        self.profile = tempfile.TemporaryDirectory()
        commands, self.commands = os.pipe()
        self.answers, answers = os.pipe()
        arguments = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--window-size=900,760",
            f"--user-data-dir={self.profile.name}", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        ]  # fmt: skip
        # The browser reads descriptor 3 and writes descriptor 4.
        script = f'exec "$@" 3<&{commands} 4>&{answers}'
        self.process = subprocess.Popen(
            ["bash", "-c", script, "browser", self.program, *arguments], pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(commands)
        os.close(answers)
        self.stream = os.fdopen(self.answers, "rb")
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()
        self.stream.close()
        os.close(self.commands)
        self.profile.cleanup()

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:  # events come in between
            answer = json.loads(self._read())
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])

    def _read(self) -> bytes:
        parts = bytearray()
        while (byte := self.stream.read(1)) != b"\0":
            if not byte:
                raise RuntimeError(f"{self.program} has ended")
            parts += byte
        return bytes(parts)

    def value(self, expression: str) -> Any:
        """Evaluate JavaScript."""
        return self.send("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def wait_for(self, expression: str, *, seconds: float = 180.0) -> Any:
        """Evaluate JavaScript until it is true; return its value."""
        end = time.monotonic() + seconds
        while not (value := self.value(expression)):
            if time.monotonic() > end:
                raise TimeoutError(f"{expression} was not true within {seconds:g} s")
            time.sleep(0.2)
        return value


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files without a log."""

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing."""


def our_ids(model: Path, lines: list[str]) -> list[list[int]]:
    """Return the ids of our greedy search."""
    results = Translator.load(model)._text_search(lines, GreedySearchConfig(), is_scored=False)
    assert results is not None
    return [list(result.hypotheses[0].ids) for result in results]


if __name__ == "__main__":
    main()
