"""The attention page: escaping, security policy, and weights that survive the round trip."""

import base64
import dataclasses
import hashlib
import json
import re
import zlib
from pathlib import Path

import numpy as np
import pytest

from transduce.errors import DataError, ShapeError
from transduce.view import AttentionMaps, Picture, attention_page, write_attention_page

N_LAYERS, N_HEADS, N_SRC, N_TGT = 2, 3, 4, 5
HARMFUL = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    '"quotes" & \\u003c \\ back',
    "line\u2028and\u2029paragraph",
    "\u05e9\u05dc\u05d5\u05dd \u202eesrever",
    "\U0001f469\u200d\U0001f680",
    "$title ${data} $$",
]


def random_weights(n_rows: int, n_columns: int, *, seed: int, causal: bool = False) -> np.ndarray:
    weights = np.random.default_rng(seed).random((N_LAYERS, N_HEADS, n_rows, n_columns)) ** 4 + 1e-6
    if causal:
        weights = np.tril(weights)
    return (weights / weights.sum(axis=-1, keepdims=True)).astype(np.float32)


def example(source: str = "a small cat", translation: str = "eine kleine Katze .") -> AttentionMaps:
    return AttentionMaps(
        source=source,
        translation=translation,
        src_tokens=("a", "small", source, "</s>"),
        tgt_tokens=("<s>", "eine", "kleine", translation, "."),
        tgt_predicted=("eine", "kleine", translation, ".", "</s>"),
        encoder=random_weights(N_SRC, N_SRC, seed=1),
        decoder=random_weights(N_TGT, N_TGT, seed=2, causal=True),
        cross=random_weights(N_TGT, N_SRC, seed=3),
    )


def written(path: Path, *examples: AttentionMaps, title: str = "Attention") -> str:
    write_attention_page(path, examples, title=title)
    return path.read_text(encoding="utf-8")


def embedded(page: str) -> list[dict]:
    """Return the data as a browser parses it: up to the first end tag."""
    (text,) = re.findall(r'<script type="application/json" id="attention-data">(.*?)</script', page, flags=re.DOTALL)
    return json.loads(text)


def unpacked(record: dict) -> np.ndarray:
    steps = np.frombuffer(zlib.decompress(base64.b64decode(record["weights"])), dtype=np.uint8)
    return steps.reshape(record["shape"]) / 255


def test_weights_round_trip_within_half_a_step(tmp_path: Path):
    maps = example()
    (record,) = embedded(written(tmp_path / "page.html", maps))
    for kind in ("encoder", "decoder", "cross"):
        weights = unpacked(record["maps"][kind])
        assert weights.shape == getattr(maps, kind).shape
        np.testing.assert_allclose(weights, getattr(maps, kind), atol=0.5 / 255 + 1e-6)
    assert (record["src"], record["read"], record["written"]) == (
        list(maps.src_tokens),
        list(maps.tgt_tokens),
        list(maps.tgt_predicted),
    )


def test_a_weight_just_above_one_is_one(tmp_path: Path):
    maps = dataclasses.replace(example(), encoder=np.full((1, 1, N_SRC, N_SRC), 1.004, dtype=np.float32))
    (record,) = embedded(written(tmp_path / "page.html", maps))
    assert (unpacked(record["maps"]["encoder"]) == 1).all()


@pytest.mark.parametrize("text", HARMFUL)
def test_text_is_escaped_and_round_trips(tmp_path: Path, text: str):
    page = written(tmp_path / "page.html", example(source=text, translation=text), title=text)
    (record,) = embedded(page)
    assert record["source"] == record["translation"] == record["src"][2] == text
    plain = written(tmp_path / "plain.html", example())
    for tag in ("<script", "</script", "<!--"):
        assert page.count(tag) == plain.count(tag)
    data = page[page.index('id="attention-data">') :]
    assert "\u2028" not in data
    assert "\u2029" not in data


def test_page_is_self_contained(tmp_path: Path):
    page = written(tmp_path / "page.html", example())
    assert re.findall(r"https?:|//[a-z]+\.[a-z]", page) == []
    assert re.findall(r'\s(?:src|href|srcset|action)="([^"]*)"', page) == ["data:,"]
    assert not re.search(r"@import|\burl\(|\bimport\b[ (]|\bfetch\(|XMLHttpRequest|WebSocket|sendBeacon", page)


def test_policy_allows_its_own_style_and_script_only(tmp_path: Path):
    page = written(tmp_path / "page.html", example())
    (policy,) = re.findall(r'Content-Security-Policy"\s+content="([^"]*)"', page)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    for tag, rule in (("style", "style-src"), ('script type="module"', "script-src")):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag.split()[0]}>", page, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"


def test_attention_page_returns_the_written_html(tmp_path: Path):
    assert attention_page([example()], title="Attention") == written(tmp_path / "page.html", example())


def test_title_is_escaped(tmp_path: Path):
    page = written(tmp_path / "page.html", example(), title='<b>"x" & y')
    assert "<title>&lt;b&gt;&quot;x&quot; &amp; y</title>" in page
    assert "<b>" not in page


def test_a_long_title_is_cut_in_the_heading_and_complete_in_its_tooltip(tmp_path: Path):
    title = "Attention: " + "a rather long sentence, " * 20 + "the end"
    page = written(tmp_path / "page.html", example(), title=title)
    ((tooltip, heading),) = re.findall(r'<h1 title="([^"]*)">([^<]*)</h1>', page)
    assert tooltip == title
    assert len(heading) <= 72
    assert heading.endswith("\u2026")
    assert title.startswith(heading[:-1])
    page = written(tmp_path / "page.html", example(), title="Attention: a cat")
    assert '<h1 title="Attention: a cat">Attention: a cat</h1>' in page


def test_all_examples_are_kept_in_order(tmp_path: Path):
    page = written(tmp_path / "page.html", example("one"), example("two"), example("three"))
    assert [record["source"] for record in embedded(page)] == ["one", "two", "three"]


def test_an_empty_list_is_refused_and_nothing_is_written(tmp_path: Path):
    with pytest.raises(DataError, match=r"page\.html\b"):
        write_attention_page(tmp_path / "page.html", [], title="Attention")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder": random_weights(N_SRC, N_TGT, seed=1)}, r"\bencoder\b.*\(2, 3, 4, 5\).*, 4, 4\)"),
        ({"decoder": random_weights(N_SRC, N_SRC, seed=1)}, r"\bdecoder\b.*\(2, 3, 4, 4\).*, 5, 5\)"),
        ({"cross": random_weights(N_SRC, N_TGT, seed=1)}, r"\bcross\b.*\(2, 3, 4, 5\).*, 5, 4\)"),
        ({"cross": random_weights(N_TGT, N_SRC, seed=1)[0]}, r"\bcross\b.*\(3, 5, 4\)"),
        ({"cross": random_weights(N_TGT, N_SRC, seed=1)[:0]}, r"\bcross\b.*\(0, 3, 5, 4\)"),
        ({"tgt_predicted": ("eine", "</s>")}, r"\btgt_predicted\b.*\b2\b.*\btgt_tokens\b.*\b5\b"),
        ({"decoder": random_weights(N_TGT, N_TGT, seed=1)}, r"\bdecoder\b.*\bdiagonal\b"),
        ({"encoder": random_weights(N_SRC, N_SRC, seed=1) - 0.5}, r"\bencoder\b.* -0.*\b0 and 1\b"),
        ({"encoder": np.full((1, 1, N_SRC, N_SRC), 1.5)}, r"\bencoder\b.* 1\.5 .*\b1\.5\b"),
        ({"encoder": np.full((1, 1, N_SRC, N_SRC), np.nan)}, r"\bencoder\b.*\bnan\b.*\bnan\b"),
    ],
)
def test_invalid_maps_are_refused(changes: dict, message: str):
    with pytest.raises(ShapeError, match=message):
        dataclasses.replace(example(), **changes)


def test_sixty_tokens_in_six_layers_of_sixteen_heads_stay_small(tmp_path: Path):
    weights = np.tile(np.eye(60, dtype=np.float32), (6, 16, 1, 1))
    tokens = tuple(f"token{i}" for i in range(60))
    maps = AttentionMaps(
        source="long",
        translation="lang",
        src_tokens=tokens,
        tgt_tokens=tokens,
        tgt_predicted=tokens,
        encoder=weights,
        decoder=weights,
        cross=weights,
    )
    assert len(written(tmp_path / "page.html", maps)) < 100_000


def test_a_picture_has_a_place_for_each_source_token():
    boxes = np.zeros((N_SRC, 4), np.int32)
    picture = Picture("Image", np.arange(6, dtype=np.uint8).reshape(2, 3), boxes)
    (record,) = embedded(attention_page([dataclasses.replace(example(), picture=picture)], title="picture"))
    pixels = zlib.decompress(base64.b64decode(record["picture"]["weights"]))
    assert (record["picture"]["shape"], list(pixels)) == ([2, 3], list(range(6)))
    assert "picture" not in embedded(attention_page([example()], title="none"))[0]
    with pytest.raises(ShapeError, match="boxes"):
        dataclasses.replace(example(), picture=dataclasses.replace(picture, boxes=boxes[1:]))
