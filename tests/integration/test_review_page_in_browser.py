"""The review page under real keys: edits keep tags, stay in the browser, and are saved as TMX."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from transduce.documents.tmx import read_tmx
from transduce.memories import Memory
from transduce.review import KeptTerm, ReviewedText, SimilarPair, write_review
from transduce.text.pieces import Tag

pytestmark = pytest.mark.merge

OPEN, CLOSE, BREAK = Tag("open", 1, "<b>"), Tag("close", 1, "</b>"), Tag("single", 2, "<br/>")
NAME = Tag("single", 1, "{name}")
TEXTS = [
    ReviewedText(
        "line 1", ("A ", OPEN, "small", CLOSE, " dog.", BREAK), ("Ein ", OPEN, "kleiner", CLOSE, " Hund.", BREAK),
        warnings=("guessed",), words=(("Ein", -0.1), ("kleiner", -4.0), ("Hund", -0.1), (".", 0.0)),
    ),
    ReviewedText(
        "line 2", ("</script> & \"x\" <img src=x onerror=alert(1)>",), ("</script> & \"y\"",), state="memory",
        similar=(SimilarPair("x", "y", 1.0),),
    ),
    ReviewedText("line 3", ("مرحبا",), ("The last.",), terms=(KeptTerm("كلب", "dog", False),)),
    ReviewedText("line 4", ("Hi", NAME, "!"), ("Ja ", NAME, "!"), key="Hi {name}!"),
]  # fmt: skip


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Iterator[str]:
    write_review(tmp_path / "review.html", TEXTS, name=f"a & b {tmp_path.name}.docx", direction=("en", "de"))
    browser.resize(1000, 800)
    browser.open((tmp_path / "review.html").as_uri())
    yield (tmp_path / "review.html").as_uri()
    browser.evaluate("localStorage.clear()")


def target(browser: Any, number: int) -> str:
    return str(browser.evaluate(f"document.querySelectorAll('.target')[{number}].textContent"))


def typed(browser: Any, text: str) -> None:
    browser.call("Input.insertText", text=text)


def n_shown(browser: Any) -> int:
    return int(browser.evaluate("[...document.querySelectorAll('#texts > li')].filter((each) => !each.hidden).length"))


def saved(browser: Any, folder: Path) -> str:
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    browser.evaluate("document.getElementById('save').click()")
    give_up = time.monotonic() + 20
    while not (files := list(folder.glob("*.tmx"))):
        assert time.monotonic() < give_up
        time.sleep(0.05)
    return files[0].read_text("utf-8")


def test_an_edit_is_saved_as_tmx(browser: Any, page: str, transduce: Callable[..., Any], tmp_path: Path) -> None:
    assert browser.evaluate("document.getElementById('save').disabled")
    browser.press("ArrowDown")
    browser.press("Enter")
    typed(browser, " Ja & <nein>.")
    browser.press("Enter")
    edited = "Ein <b>kleiner</b> Hund.<br/> Ja & <nein>."
    assert target(browser, 0) == edited
    browser.press("ArrowDown")
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="d", text="d")
    assert browser.evaluate("document.getElementById('count').textContent") == "4 of 4 texts, 1 done"
    for key in ("ArrowDown", "ArrowDown"):
        browser.press(key)
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="d", text="d")
    browser.open(page)  # they are still there
    assert target(browser, 0) == edited
    folder = tmp_path / "downloads"
    folder.mkdir()
    memory = saved(browser, folder)
    assert '<seg>A <bpt i="1" x="1">&lt;b&gt;</bpt>small<ept i="1">&lt;/b&gt;</ept> dog.<ph x="2">' in memory
    with next(folder.glob("*.tmx")).open("rb") as stream:
        assert list(read_tmx(stream, "en", "de")) == [
            ("A small dog.", "Ein kleiner Hund. Ja & <nein>.", "", "", TEXTS[1].source[0]),
            (TEXTS[1].source[0], TEXTS[1].target[0], "", "A small dog.", "مرحبا"),
            ("Hi {name}!", "Ja {name}!", "", "مرحبا", ""),
        ]
    [tmx] = folder.glob("*.tmx")
    built = transduce("memory", "build", tmx, "--src", "en", "--tgt", "de", "--out", tmp_path / "new.tm")
    assert built.code == 0
    assert len(Memory(tmp_path / "new.tm")) == 3


def test_tags_stay_and_can_be_moved(browser: Any, page: str) -> None:
    browser.press("ArrowDown")
    browser.press("Enter")
    for key in ("a", "Delete"):  # select all, and delete
        modifiers = {"modifiers": 2, "commands": ["selectAll"]} if key == "a" else {"windowsVirtualKeyCode": 46}
        browser.call("Input.dispatchKeyEvent", type="keyDown", key=key, **modifiers)
        browser.call("Input.dispatchKeyEvent", type="keyUp", key=key)
    assert target(browser, 0) == "Ein <b>kleiner</b> Hund.<br/>"
    assert "Tags stay" in browser.evaluate("document.getElementById('message').textContent")
    browser.press("Tab")  # to <b>
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowLeft")
    assert target(browser, 0) == "<b>Ein kleiner</b> Hund.<br/>"
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowRight")
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowRight")
    assert target(browser, 0) == "Ein kleiner<b></b> Hund.<br/>"
    browser.press("Escape")
    assert target(browser, 0) == "Ein <b>kleiner</b> Hund.<br/>"


def test_a_word_that_is_dragged_stays(browser: Any, page: str) -> None:
    browser.press("ArrowDown")
    browser.press("Enter")
    left, right, y = browser.evaluate(
        "(() => { const range = document.createRange(), text = document.querySelector('.target').firstChild;"
        "range.setStart(text, 0); range.setEnd(text, 3); getSelection().removeAllRanges();"
        "getSelection().addRange(range); const box = range.getBoundingClientRect();"
        "return [box.left, box.right, box.top + box.height / 2] })()"
    )
    x = (left + right) / 2
    browser.move_mouse(x, y)
    browser.call("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, button="left", buttons=1, clickCount=1)
    for step in (5, 20, 60, 90):
        browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x + step, y=y, button="left", buttons=1)
    browser.call("Input.dispatchMouseEvent", type="mouseReleased", x=x + 90, y=y, button="left", clickCount=1)
    browser.frame()
    assert target(browser, 0) == "Ein <b>kleiner</b> Hund.<br/>"


def test_filters_and_notes(browser: Any, page: str) -> None:
    shown = {}
    for name in ("all", "warnings", "unsure", "memory", "open", "edited"):
        browser.evaluate(
            f"(() => {{ const select = document.querySelector('select'); select.value = '{name}';"
            "select.dispatchEvent(new Event('input', { bubbles: true })) })()"
        )
        shown[name] = n_shown(browser)
    assert shown == {"all": 4, "warnings": 2, "unsure": 1, "memory": 1, "open": 4, "edited": 0}
    assert browser.evaluate("document.querySelector('mark.unsure').textContent") == "kleiner"
    assert browser.evaluate("document.images.length") == 0
    notes = browser.evaluate("[...document.querySelectorAll('.notes li')].map((each) => each.textContent)")
    assert notes == ["the place of a tag is guessed", "memory, 100 %: x → y", "term that is missing: كلب → dog"]
    assert browser.evaluate("getComputedStyle(document.querySelectorAll('.source')[2]).direction") == "rtl"


def test_ten_thousand_texts_stay_usable(browser: Any, tmp_path: Path) -> None:
    texts = [ReviewedText(f"line {n}", ("A dog sleeps. " * 4,), ("Ein Hund schläft. " * 4,)) for n in range(10_000)]
    write_review(tmp_path / "review.html", texts, name="long", direction=("en", "de"))
    before = browser.seconds_of_work()
    browser.open((tmp_path / "review.html").as_uri())
    assert browser.seconds_of_work() - before < 20  # about 2 s on an idle machine
    before = browser.seconds_of_work()
    for _ in range(10):
        browser.press("ArrowDown")
    assert (browser.seconds_of_work() - before) / 10 < 0.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_a_phone(browser: Any, page: str, scheme: str) -> None:
    browser.resize(360, 700, is_phone=True)
    browser.prefer(scheme)
    browser.open(page)
    assert browser.evaluate("document.documentElement.scrollWidth") <= 360
