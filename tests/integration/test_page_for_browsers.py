"""The exported page in a real browser: loading, typing, the keyboard, a phone, and damage."""

from __future__ import annotations

import functools
import http.server
import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1] / "serving"))

from serving_tools import translator

from transduce.errors import ConfigError
from transduce.exchange import browser as exported
from transduce.exchange import export_page
from transduce.inference import Translator
from transduce.inference.native.binding import library

pytestmark = [pytest.mark.merge, pytest.mark.skipif(library() is None, reason="the engine in C was not compiled")]

TEXT = "The dog sleeps. The old woman sees the cat.\n\nA man reads."
PATIENCE_S = 30


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        pass


class Site:
    """A folder with a page, at an address."""

    def __init__(self, folder: Path, browser: Any) -> None:
        self.folder, self.browser = folder, browser
        self._server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))
        )
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def open(self) -> str:
        """Load the page; return the state that it reaches."""
        self.browser.call("Network.enable")
        self.browser.call("Network.setCacheDisabled", cacheDisabled=True)
        self.browser.call("Page.navigate", url=f"http://127.0.0.1:{self._server.server_port}/index.html")
        return self.reached("ready", "failed")

    def reached(self, *states: str) -> str:
        give_up = time.monotonic() + PATIENCE_S
        while (state := self("document.documentElement?.dataset.state")) not in states:
            assert time.monotonic() < give_up, (state, self("document.body.innerText"))
            time.sleep(0.02)
        return str(state)

    def __call__(self, script: str) -> Any:
        return self.browser.evaluate(script)

    def text(self, id: str) -> str:
        return str(self(f"document.getElementById('{id}').textContent"))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(translator(tmp_path_factory.mktemp("models") / "a"))


@pytest.fixture
def site(model: Path, browser: Any, tmp_path: Path) -> Iterator[Site]:
    try:
        exported.engine_for_browsers()
    except ConfigError as error:
        pytest.skip(str(error))
    export_page(model, tmp_path / "page")
    site = Site(tmp_path / "page", browser)
    browser.resize(1100, 800)
    yield site
    site.close()


def test_typed_text_is_translated_as_in_python(site: Site, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert site.open() == "ready"
    assert site.text("title") == "English to German"
    site("document.getElementById('source').focus()")
    site.browser.call("Input.insertText", text=TEXT)
    site.browser.press("Tab")
    assert site("document.activeElement.id") == "translate"
    site.browser.press("Enter")
    site.reached("busy", "ready")
    site.reached("ready")
    monkeypatch.setenv("TRANSDUCE_ISA", "portable")
    assert site.text("target") == Translator.load(model, precision="int8").translate([TEXT])[0]
    assert "tokens a second" in site.text("status")


def test_a_phone_shows_all_of_it(site: Site) -> None:
    site.browser.resize(360, 740, is_phone=True)
    assert site.open() == "ready"
    assert site("document.documentElement.scrollWidth") <= 360
    names = "['source', 'translate', 'target']"
    tops = site(f"{names}.map((id) => document.getElementById(id).getBoundingClientRect().top)")
    assert tops == sorted(tops)
    site.browser.resize(1100, 800)


def test_damage_is_told_in_the_page(site: Site) -> None:
    path = site.folder / "model.bin"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert site.open() == "failed"
    assert "model.bin is damaged" in site.text("error")
    assert site("document.getElementById('translate').disabled")
    path.unlink()
    assert site.open() == "failed"
    assert "model.bin is missing" in site.text("error")
    path.write_bytes(whole)
    settings = json.loads((site.folder / "model.json").read_text("utf-8"))
    assert settings["file_bytes"] == len(whole)
    assert site.open() == "ready"
    assert site("document.getElementById('error').hidden")
