"""Translators in a browser: the page of ``export --to wasm`` and transformers.js, in headless Chromium, one thread.

    npm install --ignore-scripts @huggingface/transformers      # anywhere; NODE_MODULES is its folder
    python benchmarks/browser.py RUN/model NODE_MODULES --text TEXT.txt --site site

It exports the model for both, puts the files into ``site``, and opens them without a connection to other hosts: the
bytes that are loaded, the time until the model is ready, tokens a second of greedy search, a line at a time (in the
first round, and the median of the others), and how many lines get the ids of our greedy search in the same precision
(fp32 for transformers.js).
"""

from __future__ import annotations

import argparse
import functools
import http.server
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode

from machine import machine
from needed import need

from transduce import Translator
from transduce.config import GreedySearchConfig, InferencePrecision
from transduce.exchange import export_model, export_page

PAGE = Path(__file__).parent / "browser" / "index.html"
LIBRARY = "@huggingface/transformers/dist/transformers.min.js"
RUNTIME = "onnxruntime-web/dist"
PRECISIONS: dict[str, InferencePrecision] = {"fp32": "fp32", "q8": "int8"}


def main() -> None:
    """Build the site, run both, print a line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("node_modules", type=Path)
    parser.add_argument("--text", type=Path, required=True, help="a file of a few lines")
    parser.add_argument("--site", type=Path, required=True, help="the new folder of the pages")
    parser.add_argument("--dtype", choices=[*PRECISIONS], default="q8")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--browser", default="chromium")
    arguments = parser.parse_args()
    need(parser, programs=[arguments.browser], how="name a Chromium with --browser")
    for name in (LIBRARY, RUNTIME):
        if not (arguments.node_modules / name).exists():
            parser.error(f"{arguments.node_modules / name} does not exist: npm install @huggingface/transformers")
    if arguments.site.exists():
        parser.error(f"{arguments.site} already exists; --site should be a new folder")
    precision = PRECISIONS[arguments.dtype]
    print(json.dumps(machine()), file=sys.stderr)
    build_site(arguments.model, arguments.node_modules, arguments.site, precision=precision)
    lines = arguments.text.read_text("utf-8").splitlines()
    for system, reference in (("transduce", precision), ("transformers.js", "fp32")):
        query = {"system": system, "dtype": arguments.dtype, "text": "\n".join(lines), "rounds": arguments.rounds}
        shown = measured_in_browser(arguments.site, query, browser=arguments.browser)
        expected = our_ids(arguments.model, lines, precision=reference)
        equal = sum(mine == other for mine, other in zip(expected, shown["ids"], strict=True))
        first, *others = shown["tokens_per_s"]
        row = {
            "system": system, "dtype": arguments.dtype, "megabytes": round(shown["bytes"] / 1e6, 1),
            "load_s": round(shown["load_ms"] / 1000, 2), "tokens_per_s_at_first": round(first),
            "tokens_per_s": round(statistics.median(others or [first])), "sentences": len(lines),
            "equal_greedy": equal,
        }  # fmt: skip
        print(json.dumps(row), flush=True)


def build_site(model: Path, node_modules: Path, site: Path, *, precision: InferencePrecision) -> None:
    """Write our page, the other library with its exported model, and what opens them to a new folder."""
    site.mkdir()
    shutil.copy(PAGE, site)
    shutil.copy(node_modules / LIBRARY, site)
    for file in (node_modules / RUNTIME).glob("ort-wasm-simd-threaded*"):
        if file.suffix in (".mjs", ".wasm"):
            shutil.copy(file, site)
    export_model(model, "onnx", site / "onnx")
    export_page(model, site / "page", precision=precision)


def measured_in_browser(site: Path, query: dict[str, Any], *, browser: str) -> dict[str, Any]:
    """Open the page and return what it has measured."""
    handler = functools.partial(QuietHandler, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with Chromium(browser) as page:
        page.send("Page.navigate", url=f"http://127.0.0.1:{server.server_port}/index.html?{urlencode(query)}")
        state = page.wait_for("['done', 'error'].includes(document.title) && document.title")
        result = json.loads(page.value("document.getElementById('result').textContent"))
    server.shutdown()
    if state != "done":
        raise SystemExit(f"the page failed: {result}")
    return dict(result)


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


def our_ids(model: Path, lines: list[str], *, precision: InferencePrecision) -> list[list[int]]:
    """Return the ids of our greedy search."""
    translator = Translator.load(model, precision=precision)
    results = translator._text_search(lines, GreedySearchConfig(), is_scored=False)
    assert results is not None
    return [list(result.hypotheses[0].ids) for result in results]


if __name__ == "__main__":
    main()
