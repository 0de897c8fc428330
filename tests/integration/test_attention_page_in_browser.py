"""The attention page in a real browser: what its script makes of the data and of the address."""

import dataclasses
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from transduce.view import AttentionMaps, Picture, write_attention_page

pytestmark = pytest.mark.merge

Render = Callable[[Path, str, Path], ElementTree.Element]  # the document after its script ran at page + address

N_LAYERS, N_HEADS = 3, 10
SRC = ("the", "<img src=x onerror=alert(1)>", "\u05e9\u05dc\u05d5\u05dd", " ", "</s>")
READ = ("<s>", "die", "</script>", "&amp;")
WRITTEN = ("die", "</script>", "&amp;", "</s>")


def spread(n_rows: int, n_columns: int, *, causal: bool = False) -> np.ndarray:
    weights = np.random.default_rng(7).random((N_LAYERS, N_HEADS, n_rows, n_columns))
    weights = np.tril(weights) if causal else weights
    return weights / weights.sum(axis=-1, keepdims=True)


def example() -> AttentionMaps:
    """Layer 2, head 10 looks, mostly at the third source token for the third target token."""
    cross = spread(len(WRITTEN), len(SRC))
    cross[1, 9, 2] = [0.0, 0.2, 0.8, 0.0, 0.0]
    return AttentionMaps(
        source="the <b>source</b>",
        translation="die \u201e\U0001f600\u201c",
        src_tokens=SRC,
        tgt_tokens=READ,
        tgt_predicted=WRITTEN,
        encoder=spread(len(SRC), len(SRC)),
        decoder=spread(len(READ), len(READ), causal=True),
        cross=cross,
    )


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "attention.html"
    second = dataclasses.replace(example(), source="the second sentence")
    write_attention_page(path, [example(), second], title="Attention <i>")
    return path


class TreeReader(HTMLParser):
    """The elements of a document that a browser wrote out."""

    def __init__(self) -> None:
        super().__init__()
        self.builder = ElementTree.TreeBuilder()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.builder.start(tag, {name: value or "" for name, value in attrs})
        if tag in ("meta", "link", "input", "img", "br"):
            self.builder.end(tag)

    def handle_endtag(self, tag: str) -> None:
        self.builder.end(tag)

    def handle_data(self, data: str) -> None:
        self.builder.data(data)


@pytest.fixture
def rendered(chromium: list[str]) -> Render:
    def render(page: Path, address: str, profile: Path) -> ElementTree.Element:
        how = ["--virtual-time-budget=5000", "--dump-dom", f"--user-data-dir={profile}"]
        command = [*chromium, *how, f"{page.as_uri()}{address}"]
        result = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, check=True)
        reader = TreeReader()
        reader.feed(result.stdout[result.stdout.index("<html") :].strip())
        return reader.builder.close()

    return render


def by_id(document: ElementTree.Element, name: str) -> ElementTree.Element:
    (element,) = document.findall(f".//*[@id='{name}']")
    return element


def text_of(element: ElementTree.Element) -> str:
    return "".join(element.itertext())


def texts(document: ElementTree.Element, path: str) -> list[str]:
    return [text_of(element) for element in document.findall(path)]


def values(document: ElementTree.Element, name: str) -> list[str]:
    return [element.attrib["value"] for element in document.findall(f".//input[@name='{name}']")]


QUERIES = ".//ol[@id='queries']/li/button"
KEYS = ".//ol[@id='keys']/li/span[@class='token']"
NUMBERS = ".//ol[@id='keys']/li/span[@class='number']"


def test_a_plain_address_shows_the_whole_layer(page: Path, tmp_path: Path, rendered: Render):
    document = rendered(page, "", tmp_path)
    assert document.attrib["data-ready"] == "true"
    assert "data-error" not in document.attrib
    assert "hidden" in by_id(document, "error").attrib
    assert texts(document, QUERIES) == list(WRITTEN)
    assert texts(document, KEYS) == [*SRC[:3], "\u2423", "</s>"]
    assert texts(document, NUMBERS) == [""] * len(SRC)
    assert values(document, "kind") == ["encoder", "decoder", "cross"]
    assert values(document, "layer") == ["1", "2", "3"]
    assert values(document, "head") == ["all", *(str(head) for head in range(1, N_HEADS + 1))]
    assert len(document.findall(".//div[@id='gallery']/button")) == N_HEADS
    assert len(by_id(document, "sentence-choice").findall(".//option")) == 2


def test_kinds_of_attention_have_their_usual_names_and_columns_theirs(page: Path, tmp_path: Path, rendered: Render):
    document = rendered(page, "#kind=decoder", tmp_path)
    names = [element.attrib["aria-label"] for element in document.findall(".//input[@name='kind']")]
    assert names == [
        "Encoder self-attention",
        "Decoder self-attention (masked)",
        "Cross-attention (encoder-decoder attention)",
    ]
    assert text_of(by_id(document, "query-title")).startswith("Query")
    assert text_of(by_id(document, "key-title")).startswith("Key")
    assert "masked" in text_of(by_id(document, "explanation"))


def test_marks_in_tokens_are_explained_where_they_are(page: Path, tmp_path: Path, rendered: Render):
    plain = text_of(by_id(rendered(page, "#kind=encoder", tmp_path / "plain"), "marks"))
    assert "</s>" in plain
    assert "<s>" not in plain
    assert "\u2581" not in plain
    marked = dataclasses.replace(example(), src_tokens=("\u2581the", "\u2581un", "usual", "\\xe6", "</s>"))
    write_attention_page(tmp_path / "marked.html", [marked], title="Attention")
    marks = text_of(by_id(rendered(tmp_path / "marked.html", "#kind=encoder", tmp_path / "profile"), "marks"))
    assert marks.startswith("\u2581 marks the beginning of a word")
    assert "byte" in marks
    decoder = text_of(by_id(rendered(tmp_path / "marked.html", "#kind=decoder", tmp_path / "other"), "marks"))
    assert "<s> is the beginning of the sentence (BOS)" in decoder


def test_text_that_looks_like_markup_stays_text(page: Path, tmp_path: Path, rendered: Render):
    document = rendered(page, "#kind=encoder", tmp_path)
    assert text_of(by_id(document, "source")) == "the <b>source</b>"
    assert text_of(by_id(document, "translation")) == "die \u201e\U0001f600\u201c"
    assert texts(document, ".//h1") == texts(document, ".//title") == ["Attention <i>"]
    assert texts(document, QUERIES)[:2] == list(SRC[:2])
    assert document.findall(".//img") == document.findall(".//b") == []


def test_an_address_isolates_one_word_of_one_head(page: Path, tmp_path: Path, rendered: Render):
    document = rendered(page, "#sentence=2&kind=cross&layer=2&head=10&word=3", tmp_path)
    assert text_of(by_id(document, "source")) == "the second sentence"
    assert by_id(document, "view").attrib["class"] == "isolated"
    assert texts(document, NUMBERS) == ["0.00", "0.20", "0.80", "0.00", "0.00"]
    shown = [element for element in document.findall(QUERIES) if element.get("class") == "shown"]
    assert [(text_of(element), element.attrib["aria-pressed"]) for element in shown] == [("&amp;", "true")]
    assert text_of(by_id(document, "readout-title")) == "Query \u201c&amp;\u201d: greatest weights of head 10"
    assert [text_of(item) for item in by_id(document, "readout")] == [f"{SRC[2]}0.80", f"{SRC[1]}0.20"]
    assert text_of(by_id(document, "heat-title")) == "Layer 2, head 10"


def test_all_heads_show_the_mean_and_the_best_of_each(page: Path, tmp_path: Path, rendered: Render):
    document = rendered(page, "#kind=cross&layer=2&head=all&word=3", tmp_path)
    steps = np.rint(example().cross[1, :, 2] * 255) / 255
    assert [float(number) for number in texts(document, NUMBERS)] == pytest.approx(steps.mean(axis=0), abs=0.0051)
    readout = [text_of(item) for item in by_id(document, "readout")]
    assert len(readout) == N_HEADS
    assert readout[9] == f"10{SRC[2]}0.80"


def test_the_decoder_gives_the_future_no_number(page: Path, tmp_path: Path, rendered: Render):
    document = rendered(page, "#kind=decoder&layer=1&head=2&word=2", tmp_path)
    assert texts(document, QUERIES) == list(WRITTEN)
    assert texts(document, KEYS) == list(READ)
    first, second, *future = texts(document, NUMBERS)
    assert float(first) + float(second) == pytest.approx(1.0, abs=0.0151)
    assert future == ["", ""]


def test_an_address_that_does_not_fit_is_put_right(page: Path, tmp_path: Path, rendered: Render):
    document = rendered(page, "#sentence=9&kind=constructor&layer=0&head=11&word=-1", tmp_path)
    assert document.attrib["data-ready"] == "true"
    assert text_of(by_id(document, "heat-title")) == "Layer 3, all heads"
    assert "isolated" not in by_id(document, "view").attrib.get("class", "")


def test_damaged_data_is_said_on_the_page(page: Path, tmp_path: Path, rendered: Render):
    damaged = tmp_path / "damaged.html"
    damaged.write_text(page.read_text(encoding="utf-8").replace('"weights":"', '"weights":"AAAA'), encoding="utf-8")
    document = rendered(damaged, "", tmp_path / "profile")
    assert "data-ready" not in document.attrib
    assert "hidden" not in by_id(document, "error").attrib
    assert text_of(by_id(document, "error")).startswith("This page could not draw its pictures: ")


HANDS = """
const word = () => document.getElementById("view").dataset.word;
const kept = () => new URLSearchParams(location.hash.slice(1)).get("word") ?? "";
const buttons = [...document.querySelectorAll("#queries button")];
const mouse = (node, type) => node.dispatchEvent(new PointerEvent(type, { bubbles: true, pointerType: "mouse" }));
const key = (name) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
const log = [];
const note = (what) => log.push(`${what} ${word()}/${kept()}`);
mouse(buttons[1], "pointerover"); note("over");
mouse(document.getElementById("queries"), "pointerleave"); note("leave");
buttons[2].click(); note("click");
mouse(buttons[0], "pointerover"); note("over");
mouse(document.getElementById("queries"), "pointerleave"); note("leave");
key("Escape"); note("escape");
buttons[0].focus(); key("ArrowDown"); key("ArrowDown"); note("arrows");
key("End"); note("end");
document.querySelector("input[name=layer][value='1']").click();
document.querySelectorAll("#gallery button")[4].click();
log.push(document.getElementById("heat-title").textContent);
document.getElementById("heat-canvas").dispatchEvent(new PointerEvent("pointermove", { clientX: -9, clientY: -9 }));
log.push(document.getElementById("heat-title").textContent);
document.documentElement.dataset.log = log.join("; ");
"""


def test_pointer_and_keyboard_isolate_and_keep_words(page: Path, tmp_path: Path, rendered: Render):
    handled = tmp_path / "handled.html"
    waiting = "const wait = () => document.documentElement.dataset.ready ? hands() : setTimeout(wait, 5); wait();"
    text = page.read_text(encoding="utf-8").replace("Content-Security-Policy", "no-policy")
    handled.write_text(
        text.replace("</body>", f"<script>function hands() {{{HANDS}}}\n{waiting}</script></body>"), encoding="utf-8"
    )
    document = rendered(handled, "", tmp_path / "profile")
    assert "data-error" not in document.attrib
    first_weight = round(example().cross[0, 4, 0, 0] * 255) / 255
    assert document.attrib["data-log"].split("; ") == [
        "over 2/",
        "leave /",
        "click 3/3",
        "over 1/3",
        "leave 3/3",
        "escape /",
        "arrows 3/",
        "end 4/",
        "Layer 1, head 5",
        f"Layer 1, head 5: die \u2192 the {first_weight:.2f}",
    ]


def test_a_language_model_has_one_text_and_one_kind_of_attention(tmp_path: Path, rendered: Render) -> None:
    causal = AttentionMaps(
        source="", translation="die \n Katze", src_tokens=(), tgt_tokens=READ, tgt_predicted=WRITTEN,
        decoder=spread(len(READ), len(READ), causal=True),
    )  # fmt: skip
    masked = AttentionMaps(
        source="the <mask>", translation="", src_tokens=(*SRC[:-1], "\n"), tgt_tokens=(), tgt_predicted=(),
        encoder=spread(len(SRC), len(SRC)),
    )  # fmt: skip
    for number, (maps, kind, shown, other) in enumerate(
        ((causal, "decoder", "translation", "source"), (masked, "encoder", "source", "translation"))
    ):
        path = tmp_path / f"{kind}.html"
        write_attention_page(path, [maps], title="Attention")
        document = rendered(path, "#kind=cross", tmp_path / str(number))
        assert "data-error" not in document.attrib
        assert values(document, "kind") == [kind]
        assert text_of(by_id(document, f"{shown}-label")) == "Text"
        assert "hidden" not in by_id(document, f"{shown}-line").attrib
        assert "hidden" in by_id(document, f"{other}-line").attrib
    assert texts(document, KEYS)[-1] == "\u21b5"
    assert "end of a line" in text_of(by_id(document, "marks"))


def test_an_image_is_drawn_with_the_places_of_its_keys(tmp_path: Path, rendered: Render):
    n_src = len(SRC)
    boxes = np.array([[4 * n, 0, 4 * n + 4, 8] for n in range(n_src)], np.int32)
    picture = Picture("Image", np.tile(np.arange(4 * n_src, dtype=np.uint8), (8, 1)), boxes)
    page = tmp_path / "picture.html"
    write_attention_page(page, [dataclasses.replace(example(), picture=picture), example()], title="with a picture")
    document = rendered(page, "#kind=cross&layer=2&head=10&word=3", tmp_path / "one")
    assert "data-error" not in document.attrib
    assert "hidden" not in by_id(document, "picture").attrib
    canvas = by_id(document, "picture-canvas").attrib
    assert (canvas["width"], canvas["height"]) == (str(4 * n_src), "8")
    assert text_of(by_id(document, "picture-title")) == "Image"
    assert text_of(by_id(document, "translation-label")) == "Text"
    without = rendered(page, "#sentence=2", tmp_path / "two")
    assert "hidden" in by_id(without, "picture").attrib
    assert text_of(by_id(without, "translation-label")) == "Translation"
