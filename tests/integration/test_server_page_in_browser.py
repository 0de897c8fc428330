"""The page of the server in a real browser: typing, alternatives, attention, keyboard, phone, dark mode."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

for library in ("starlette", "uvicorn", "prometheus_client", "httpx"):
    pytest.importorskip(library)
sys.path.append(str(Path(__file__).parents[1] / "serving"))

from serving_tools import RunningServer, translator  # noqa: E402

from forks import Forks  # noqa: E402
from transduce.serving.page import page_html  # noqa: E402

pytestmark = pytest.mark.merge

TEXT = "The dog sleeps. The old woman sees the cat.\nA <b>man</b> reads."
PATIENCE_S = 30


@pytest.fixture(scope="module")
def server(forks: Forks, chromium: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    models = tmp_path_factory.mktemp("models")
    folders = [translator(models / "a"), translator(models / "b", direction="de-en", seed=5)]
    server = RunningServer(forks, *folders)
    yield server
    server.stop()


class Page:
    """The page, as someone uses it."""

    def __init__(self, browser: Any, url: str) -> None:
        self.browser, self.url = browser, url
        browser.resize(1200, 900)
        browser.prefer("light")
        browser.call("Page.navigate", url="about:blank")
        browser.call("Page.navigate", url=url)
        self.wait("document.documentElement?.dataset.ready === 'true'")

    def __call__(self, script: str) -> Any:
        return self.browser.evaluate(script)

    def wait(self, condition: str) -> None:
        give_up = time.monotonic() + PATIENCE_S
        while not self(f"Boolean({condition})"):
            assert time.monotonic() < give_up, (condition, self("document.getElementById('error')?.textContent"))
            time.sleep(0.02)

    def write(self, text: str) -> None:
        self("(() => { const text = document.getElementById('text'); text.focus(); text.select(); })()")
        self.browser.call("Input.insertText", text=text)
        self.wait("document.querySelectorAll('.word').length && !document.documentElement.dataset.busy"
                  " && !document.getElementById('output').classList.contains('is-old')")  # fmt: skip

    def set(self, text: str) -> None:
        self(
            f"(() => {{ const text = document.getElementById('text'); text.value = {json.dumps(text)};"
            " text.dispatchEvent(new Event('input')); })()"
        )

    def words(self) -> list[str]:
        found: list[str] = self("[...document.querySelectorAll('#output .word')].map((word) => word.textContent)")
        return found

    def output(self) -> str:
        found: str = self("document.getElementById('output').textContent")
        return found.replace("\u22ef", "")

    def middle_of(self, selector: str) -> list[float]:
        found: list[float] = self(
            f"(() => {{ const element = document.querySelector({json.dumps(selector)});"
            " element.scrollIntoView({block: 'center'}); const box = element.getClientRects()[0];"
            " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        return found

    def click(self, selector: str) -> None:
        x, y = self.middle_of(selector)
        self.browser.move_mouse(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.browser.frame()


@pytest.fixture
def page(browser: Any, server: RunningServer) -> Page:
    return Page(browser, server.url)


def test_typed_text_is_translated(page: Page) -> None:
    page.write(TEXT)
    assert page.output().count("\n") == 1
    assert len(page.words()) > 5
    assert page("document.querySelectorAll('.more').length") == 3
    assert page("document.querySelector('#output b')") is None  # text that looks like HTML stays text
    assert "characters" in page("document.getElementById('count').textContent")
    page.set("")
    assert page.output() == ""


def test_a_word_shows_attention_and_has_alternatives(page: Page) -> None:
    page.write(TEXT)
    before = page.output()
    x, y = page.middle_of('.word[data-sentence="1"][data-word="1"]')
    page.browser.move_mouse(x, y)
    page.wait("!document.getElementById('attention').hidden")
    cells = page("[...document.querySelectorAll('#source-words .cell')].map((cell) => cell.textContent)")
    assert cells == ["The", "old", "woman", "sees", "the", "cat", "."]
    assert page("document.querySelectorAll('#target-words .is-lit').length") == 1
    assert "attention" in page("document.getElementById('reading').textContent")
    marked = page("[...document.querySelectorAll('#marks mark')].map((mark) => mark.textContent)")
    assert marked
    assert set(marked) <= set(cells)
    assert "%" not in page("document.getElementById('attention').textContent")
    page.click("#probabilities")
    page.wait("document.querySelectorAll('#target-words small').length > 1")
    assert "no measure of quality" in page("document.getElementById('probability-note').textContent")
    page.click('.word[data-sentence="1"][data-word="1"]')
    page.wait("document.querySelectorAll('#menu [role=option]').length")
    first = page("document.querySelector('#menu [aria-selected=true]').dataset.text")
    prefix = page("document.querySelector('#menu .same').textContent")
    assert prefix
    assert first.startswith(prefix)
    page.click("#menu [aria-selected=true]")
    page.wait("document.getElementById('menu').hidden")
    assert page.output() != before
    assert first in page.output()
    assert page.output().split("\n")[1] == before.split("\n")[1]  # the other sentences stay
    page.write(TEXT + " Yes.")
    assert first in page.output()  # what was chosen stays when more is typed


def test_attention_is_of_the_word_that_is_pointed_at(page: Page) -> None:
    page.write("The dog 👍🏽 sees https://x.org/a and {name} on 2024-11-26 here.")
    cells = "[...document.querySelectorAll('#target-words .cell')]"
    hits = set[str]()
    for number, word in enumerate(page.words()):
        page(f'document.querySelector(\'.word[data-sentence="0"][data-word="{number}"]\').focus()')
        page.wait(f"{cells}.some((cell) => cell.classList.contains('is-lit') && cell.textContent.includes({word!r}))")
        hits.add(page(f"{cells}.find((cell) => cell.classList.contains('is-lit')).textContent"))
    assert {"https://x.org/a", "{name}", "2024-11-26", "👍🏽"} <= hits


def test_marks_belong_to_their_words(page: Page) -> None:
    answer = {"source": "en", "target": "de", "sentences": [{"source": "Hi", "space": "", "translation": "हिन्दी, ที่"}]}
    page(f"globalThis.fetch = () => Promise.resolve(Response.json({json.dumps(answer)}))")
    page.write("Hi")
    assert page.words() == ["हिन्दी", ",", "ที่"]


def test_it_is_used_with_the_keyboard(page: Page) -> None:
    page.write(TEXT)
    before = page.output()
    page("document.querySelector('.word').focus()")
    words = page.words()
    for key in ("ArrowDown", "ArrowDown", "ArrowUp"):
        page.browser.press(key)
    assert page("document.activeElement.textContent") == words[1]
    assert page("document.querySelectorAll('.word[tabindex=\"0\"]').length") == 1  # one stop for the Tab key
    page.browser.press("Enter")
    page.wait("document.querySelectorAll('#menu [role=option]').length > 1")
    page.browser.press("ArrowDown")
    wanted = page("document.querySelector('#menu [aria-selected=true]').dataset.text")
    assert page("document.getElementById('menu').getAttribute('aria-activedescendant')") == "choice-1"
    page.browser.press("Escape")
    assert page("document.getElementById('menu').hidden")
    assert page("document.activeElement.textContent") == words[1]
    assert page.output() == before
    page.browser.press("Enter")
    page.wait("document.querySelectorAll('#menu [role=option]').length > 1")
    page.browser.press("ArrowDown")
    page.browser.press("Enter")
    assert wanted in page.output()
    assert page("document.activeElement.classList.contains('word')")


def test_the_languages_are_swapped(page: Page) -> None:
    assert page("[...document.getElementById('source').options].map((each) => each.value)") == ["auto", "de", "en"]
    page("(() => { const source = document.getElementById('source'); source.value = 'en';"
         " source.dispatchEvent(new Event('change')); })()")  # fmt: skip
    page.write("The dog sleeps.")
    translated = page.output()
    page.click("#swap")
    page.wait("document.getElementById('source').value === 'de' && document.getElementById('target').value === 'en'")
    assert page("document.getElementById('text').value") == translated


CARRY_FILES = """
globalThis.carried = (...files) => {
  const transfer = new DataTransfer();
  for (const [name, text] of files) transfer.items.add(new File([text], name));
  return transfer;
};
globalThis.drag = (kind) => document.dispatchEvent(
  new DragEvent(kind, { dataTransfer: carried(["a.txt", "the dog"]), cancelable: true }),
);
"""
CHOOSE_FILES = """
(() => {
  const chosen = document.getElementById("files");
  const page = "<html><p>the <b>dog</b> sees the cat</p></html>";
  chosen.files = carried(["my page.html", page], ["bad.xml", "<a>"]).files;
  chosen.dispatchEvent(new Event("change"));
})()
"""
FETCH_RESULT = """
(async () => {
  globalThis.fetched = await (await fetch(document.querySelector("#documents a").href)).text();
})()
"""


def test_files_are_chosen_or_dropped(page: Page) -> None:
    page(CARRY_FILES)
    page(CHOOSE_FILES)
    page.wait("document.querySelector('#documents a')")
    page.wait("document.getElementById('documents').textContent.includes('line 1')")  # of the other, which is no XML
    assert page("document.querySelector('#documents a').download") == "my page.de.html"
    page(FETCH_RESULT)
    page.wait("globalThis.fetched")
    assert re.fullmatch('<html lang="de"><p>.*<b>.*</b>.*</p></html>', page("fetched"))
    page("drag('dragover')")
    assert page("document.documentElement.classList.contains('is-dropping')")
    page("drag('drop')")
    page.wait("document.querySelectorAll('#documents a').length === 2")


def test_the_description_of_the_routes_fits_a_phone(page: Page) -> None:
    page.browser.resize(360, 740, is_phone=True)
    page.browser.call("Page.navigate", url=f"{page.url.rstrip('/')}/docs")
    page.wait("document.readyState === 'complete' && document.querySelector('td')")
    assert page("document.documentElement.scrollWidth") <= 360


def test_it_fits_a_phone_and_the_dark(page: Page) -> None:
    page.write(TEXT * 3)
    page.browser.resize(360, 740, is_phone=True)
    page.browser.prefer("dark")
    page.browser.frame()
    assert page("document.documentElement.scrollWidth") <= 360
    ink, paper = page(
        "(() => { const style = getComputedStyle(document.body); return [style.color, style.backgroundColor]; })()"
    )
    assert brightness(ink) > 200
    assert brightness(paper) < 60
    x, y = page.middle_of('.word[data-sentence="0"][data-word="1"]')
    page.browser.tap(x, y)
    page.wait("document.querySelectorAll('#menu [role=option]').length")
    left, right = (
        page(f"document.getElementById('menu').getBoundingClientRect().{side}") for side in ("left", "right")
    )
    assert 0 <= left < right <= 360


def brightness(color: str) -> float:
    return sum(map(float, re.findall(r"[\d.]+", color)[:3])) / 3


def test_a_server_that_is_gone_is_told(page: Page) -> None:
    page("globalThis.fetch = () => Promise.reject(new TypeError('gone'))")
    page.set("A cat")
    page.wait("!document.getElementById('error').hidden")
    assert "cannot be reached" in page("document.getElementById('error').textContent")


def test_after_a_failure_the_translation_is_old_and_the_text_stays(page: Page) -> None:
    page.write("The dog sleeps.")
    page("globalThis.fetch = () => Promise.reject(new TypeError('gone'))")
    page.set("A cat")
    page.wait("!document.getElementById('error').hidden")
    assert page("document.getElementById('output').classList.contains('is-old')")
    page.click("#copy")
    assert "Not copied" in page("document.getElementById('status').textContent")
    page("document.getElementById('source').value = 'en'")
    page("document.getElementById('source').dispatchEvent(new Event('change'))")
    page.click("#swap")
    assert page("document.getElementById('text').value") == "A cat"


def test_it_has_no_external_asset(page: Page) -> None:
    html = page_html()
    assert re.findall(r"(?:src|href)=[\"']?(?!data:)[^\"'>]+", html) == []
    assert re.findall(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", html) == []
    loaded = page("performance.getEntriesByType('resource').map((each) => new URL(each.name).origin)")
    assert set(loaded) <= {page.url}


def test_every_control_has_a_name(page: Page) -> None:
    page.write(TEXT)
    page.browser.call("Accessibility.enable")
    nodes = page.browser.call("Accessibility.getFullAXTree")["nodes"]
    controls = {"button", "textbox", "combobox", "checkbox", "listbox", "option", "MenuListPopup"}
    nameless = [
        node["role"]["value"]
        for node in nodes
        if not node["ignored"] and node.get("role", {}).get("value") in controls - {"MenuListPopup"}
        and not node.get("name", {}).get("value")
    ]  # fmt: skip
    assert nameless == []
