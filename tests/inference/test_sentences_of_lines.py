"""Lines of several sentences: which are split, and how their translations are combined."""

from __future__ import annotations

import json
import lzma
import random
import re
import shutil
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import pytest
import torch

from said import naming
from small_models import untrained_translator
from transduce.config import DataConfig, SearchConfig
from transduce.corpora import generate_pairs
from transduce.errors import CheckpointError, ConfigError
from transduce.files import write_manifest
from transduce.inference import Translator
from transduce.inference.translation.line_statistics import LineStatistics, line_statistics
from transduce.inference.translation.mask_statistics import MaskStatistics
from transduce.inference.translation.segment_text import SegmentText
from transduce.inference.translation.segmentation import Segmenter
from transduce.tasks import prepare
from transduce.text import MASKS, find_verbatim, mask, train_bpe

SHARED_DATA = Path(__file__).parents[3] / "shared" / "data"
USUAL = LineStatistics(sentences=2, tokens=12, longest=20, least_ratio=0.5, caps=0.0)
SENTENCES = [pair.en for pair in generate_pairs("test", n_pairs=40, seed=3)]


def n_words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) + 1 for text in texts]


def cut(line: str, statistics: LineStatistics | None) -> list[str]:
    segmenter = Segmenter("en", statistics, n_words, max_tokens=100)
    return [each.text for each in segmenter([line])[0]]


def test_a_line_as_in_training_stays_whole() -> None:
    assert cut("He ran. She sat.", USUAL) == ["He ran. She sat."]
    assert cut("He ran. She sat.", None) == ["He ran.", "She sat."]
    assert cut("", USUAL) == [""]


def test_a_line_with_more_sentences_or_tokens_is_cut_into_sentences() -> None:
    assert cut("He ran. She sat. It fell.", USUAL) == ["He ran.", "She sat.", "It fell."]
    long = "He ran to the house on the hill. She sat in it for a while."
    assert cut(long, USUAL) == ["He ran to the house on the hill.", "She sat in it for a while."]


def test_a_sentence_beyond_all_of_training_is_cut_into_clauses() -> None:
    known = "word " * 18 + "end."
    assert cut(known, USUAL) == [known]
    clauses = cut(
        "when it rains and all is wet, we stay at home and read; when it does not, we go out for a walk.", USUAL
    )
    assert len(clauses) > 1
    assert max(n_words(clauses)) <= USUAL.tokens
    assert clauses[0].endswith(",") or clauses[0].endswith(";")
    assert len(cut("word " * 300, None)) == 4  # without statistics: the maximum source length


@pytest.fixture(scope="module")
def translator() -> Translator:
    """An untrained translator: its output depends on every input token."""
    tokenizer = train_bpe([*SENTENCES, "READ THIS NOW, x.txt."], vocab_size=500, masks=True)
    return untrained_translator(
        tokenizer, search=SearchConfig(beam_size=2, max_extra_tokens=3), n_decoder_layers=1, d_ff=32
    )


def test_a_paragraph_is_its_sentences_joined(translator: Translator) -> None:
    alone = translator.translate(SENTENCES)
    paragraphs = ["  ".join(SENTENCES[:3]), SENTENCES[3], "", "\t".join(SENTENCES[4:9])]
    assert translator.translate(paragraphs) == [
        "  ".join(alone[:3]), alone[3], "", "\t".join(alone[4:9])
    ]  # fmt: skip
    whole = translator.translate(paragraphs, split=False)
    assert whole != translator.translate(paragraphs)
    assert translator.translate([" ".join(SENTENCES[:3])], split=False) == [whole[0]]


def test_lines_of_text_in_one_string_stay_lines(translator: Translator) -> None:
    alone = translator.translate(SENTENCES[:2])
    assert translator.translate([f"{SENTENCES[0]}\n\n{SENTENCES[1]}"]) == ["\n\n".join(alone)]


def test_what_should_stay_stays_whatever_the_model_writes(translator: Translator) -> None:
    source = "The dog sees https://example.org/a?b=1 and <b>x.txt</b>, 5 km from a.b@c.org 👍 %s."
    for n_best in (1, 2):
        for text in translator.translate([source], n_best=n_best)[0]:
            for kept in ("https://example.org/a?b=1", "<b>", "x.txt", "</b>", "5 km", "a.b@c.org", "👍", "%s"):
                assert text.count(kept) == 1
            assert not set(text) & set(MASKS)


@pytest.mark.skipif(not SHARED_DATA.is_dir(), reason="no corpora here")
def test_what_should_stay_stays_in_real_lines(translator: Translator) -> None:
    names = ("debian_ddtp/train.en-de.en", "libreoffice_help/train.en-de.en", "debian_handbook/train.en-de.en")
    results: list[str] = []
    for name in names:
        with lzma.open(SHARED_DATA / f"{name}.xz", "rt", encoding="utf-8", newline="\n") as lines:
            telling = (line.rstrip("\n") for line in lines if 0 < len(set(find_verbatim(line))) <= len(MASKS))
            results += islice((line for line in telling if len(line) < 400), 130)
    assert len(results) == 390
    texts = translator.translate(results, search=SearchConfig(beam_size=1, max_extra_tokens=0))
    n_strings = n_lost = 0
    for line, text in zip(results, texts, strict=True):
        for string, count in Counter(find_verbatim(line)).items():
            n_strings += count
            n_lost += max(0, count - text.count(string))
    assert n_strings > 390
    assert n_lost == 0


def test_sentences_in_capitals_are_read_in_small_letters(translator: Translator) -> None:
    (lowered,) = translator.translate(["The dog sees the cat"])
    assert translator.translate(["THE DOG SEES THE CAT"]) == [lowered.upper()]
    assert translator.translate(["THE DOG SEES THE CAT"], split=False) == [lowered.upper()]


@pytest.mark.parametrize(
    ("typed", "plain"),
    [
        ("\ufeffThe d\u00adog sees the c\u200bat.\u200e", "The dog sees the cat."),
        ("The dog\ufe0f sleeps.\u200b The cat\u2060 sees it.", "The dog sleeps. The cat sees it."),
    ],
)
def test_what_cannot_be_seen_makes_no_difference(translator: Translator, typed: str, plain: str) -> None:
    for split in (True, False):
        assert translator.translate([typed], split=split) == translator.translate([plain], split=split)


def test_a_model_reads_the_quotes_of_its_training_text(translator: Translator) -> None:
    typed, plain = "“It’s a dog.”", '"It\'s a dog."'
    known = LineStatistics(sentences=1, tokens=99, longest=99, least_ratio=0.0, caps=0.0, quotes="’“”")
    readers = [SegmentText(translator.tokenizers, translator.mask_rules, statistics) for statistics in (None, known)]
    texts = [reader.read(text, lowers_caps=False).masked.text for reader in readers for text in (typed, plain)]
    assert texts == [plain, plain, typed, typed]


def test_capitals_are_counted_as_they_are_read(translator: Translator) -> None:
    """In capitals, sentences have far more tokens."""
    n_tokens = len(translator.source_ids("The dog sees the cat")) + 1
    statistics = LineStatistics(sentences=1, tokens=n_tokens, longest=n_tokens, least_ratio=0.0, caps=0.0)
    tokenizers, search = translator.tokenizers, translator.search
    usual = Translator(translator.model, tokenizers, search, direction="en-de", statistics=statistics)
    assert len(translator.source_ids("THE DOG SEES THE CAT")) > n_tokens
    assert [each.text for each in usual.split_line("THE DOG SEES THE CAT")] == ["THE DOG SEES THE CAT"]


def test_a_sentence_with_more_strings_than_masks_is_cut_between_them(translator: Translator) -> None:
    for separator in (" and the cat sees ", ", ", "", "和", "犬"):
        names = [f"https://example.org/{number}" if separator[:1] in ", " else f"{{x{number}}}" for number in range(25)]
        source = f"The dog sees {separator.join(names)} now."
        segments = [each.text for each in translator.split_line(source)]
        assert all(len(mask(each).originals) <= len(MASKS) for each in segments)
        if separator.startswith(" and"):
            assert len(segments) > 2
        for split in (True, False):
            (text,) = translator.translate([source], split=split)
            assert [text.count(name) for name in find_verbatim(source)] == [
                source.count(name) for name in find_verbatim(source)
            ]


def test_control_tags_reach_the_model(translator: Translator) -> None:
    statistics = MaskStatistics(one_sided=("<fr>",), translates_numbers=True)
    tagged = Translator(translator.model, translator.tokenizers, translator.search, direction="en-de", masks=statistics)
    one, other = (next(each.translate_lines(["<fr> The dog sees the cat"])) for each in (tagged, translator))
    assert one.score != other.score
    assert tagged.translate(["The <b>dog</b> sees"]) == translator.translate(["The <b>dog</b> sees"])
    assert "1.500 km" in tagged.translate(["It is 1,500 km to the dog"])[0]


def test_no_line_is_lost_or_added(translator: Translator) -> None:
    """A sample of the 100,000 that were tried."""
    draw = random.Random(5)
    pieces = [
        *"ab.!?\"' \t\r\x0b\x0c\x1c\x85\u2028\u2029\u00a0é犬。👍\ue000\ufeff\u200d\0\ud800",
        "Yes. ",
        "1. ",
        "x.txt ",
        "word " * 40,
    ]
    lines = ["".join(draw.choices(pieces, k=draw.randint(0, 12))) for _ in range(300)]
    search = SearchConfig(beam_size=1, max_extra_tokens=0)
    results = list(translator.translate_lines(lines, search=search))
    assert [each.source for each in results] == lines
    assert all(line_ends(each.text) == line_ends(each.source) for each in results)


def line_ends(text: str) -> str:
    return "".join(re.findall("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", text))


@pytest.mark.merge
def test_several_threads_may_translate(translator: Translator) -> None:
    texts = [SENTENCES[n] + " word" * (10 * n) for n in range(4)]
    expected = [translator.translate([text], split=False) for text in texts]
    with ThreadPoolExecutor(len(texts)) as threads:
        results = list(threads.map(lambda text: translator.translate([text], split=False), texts * 3))
    assert results == expected * 3


def test_arguments_of_translate(translator: Translator) -> None:
    texts = SENTENCES[:3]
    assert translator.translate(texts, beam_size=2, alpha=0.6) == translator.translate(texts)
    both = translator.translate(texts, n_best=2)
    assert all(1 <= len(each) <= 2 for each in both)
    assert [each[0] for each in both] == translator.translate(texts)
    assert list(translator.translate_iter(iter(texts), chunk_lines=1)) == translator.translate(texts)
    assert translator.translate(tuple(texts), search=SearchConfig(beam_size=1)) != []
    seen: list[tuple[int, int]] = []
    translator.translate(texts, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    with pytest.raises(TypeError, match=naming("texts[1]", "int")):
        translator.translate(["a", 5])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=naming("texts[0]", "NoneType")):
        list(translator.translate_iter([None]))  # type: ignore[list-item]
    with pytest.raises(ConfigError, match="beam_size"):
        translator.translate(texts, beam_size=0)
    with pytest.raises(ConfigError, match=naming("n_best", "beam_size")):
        translator.translate(texts, n_best=3, beam_size=2)
    assert repr(translator) == "Translator(en-de, 1 + 1 layers of 32, 0.0 million parameters, beam 2, fp32 on cpu)"


def test_a_bar_goes_to_stderr(translator: Translator, capsys: pytest.CaptureFixture[str]) -> None:
    translator.translate(SENTENCES[:2], progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "2/2" in captured.err


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there(micro_model: Path) -> None:
    with pytest.raises(ConfigError, match=naming("cuda", "cpu", "auto")):
        Translator.load(micro_model, device="cuda")


def test_a_model_folder_knows_the_lines_of_its_training_text(micro_model: Path, tmp_path: Path) -> None:
    statistics = Translator.load(micro_model).statistics
    assert statistics is not None
    assert statistics.sentences == 1
    assert 5 < statistics.tokens <= statistics.longest < 256
    assert 0.1 < statistics.least_ratio < 1.5
    older = shutil.copytree(micro_model, tmp_path / "older")
    config = json.loads((older / "config.json").read_text())
    del config["lines"]
    (older / "config.json").write_text(json.dumps(config))
    write_manifest(older, exempt=("README.md",))
    assert Translator.load(older).statistics is None
    for wrong in (
        {"sentences": 1},
        {**statistics.as_json(), "tokens": "many"},
        [1],
        {**statistics.as_json(), "caps": -1},
    ):
        (older / "config.json").write_text(json.dumps({**config, "lines": wrong}))
        write_manifest(older, exempt=("README.md",))
        with pytest.raises(CheckpointError, match="lines"):
            Translator.load(older)


def test_statistics_of_a_text_with_paragraphs(tmp_path: Path) -> None:
    pairs = list(generate_pairs("train", n_pairs=300, seed=2))
    lines = {"en": [pair.en for pair in pairs], "de": [pair.de for pair in pairs]}
    for language, text in lines.items():
        joined = [" ".join(text[n : n + 3]) if n % 10 == 0 else text[n] for n in range(len(text))]
        (tmp_path / f"t.{language}").write_text("\n".join(joined) + "\n", encoding="utf-8")
    config = DataConfig(
        corpus="files", train_src=str(tmp_path / "t.en"), train_tgt=str(tmp_path / "t.de"), vocab_size=400, masks=True
    )
    prepared = prepare(config, tmp_path / "prepared")
    assert prepared.tokenizers.src.has_masks
    assert prepared.train.summary.n_examples > 300  # including those that teach masks
    results = line_statistics(prepared.train, prepared.tokenizers, "en")
    assert results.sentences == 3
    assert results.longest >= results.tokens > 20
    assert results.quotes == '\'""'  # plain ones
    assert results.most_pieces is not None
    assert 1 < results.most_pieces < 8


def test_short_and_long_are_told(translator: Translator) -> None:
    statistics = LineStatistics(sentences=1, tokens=6, longest=8, least_ratio=50.0, caps=0.0)
    watching = Translator(
        translator.model, translator.tokenizers, translator.search, direction="en-de", statistics=statistics
    )
    (results,) = watching.translate_lines(["dog " * 30], split=False)
    assert {"long", "short"} <= set(results.warnings)
    (results,) = watching.translate_lines(["dog " * 30])
    assert "long" not in results.warnings
    (results,) = watching.translate_lines(["a"])
    assert not {"long", "short"} & set(results.warnings)


def test_lines_unlike_the_training_text_are_told(translator: Translator) -> None:
    usual = LineStatistics(sentences=1, tokens=20, longest=40, least_ratio=0.0, caps=0.0)

    def flags(line: str, **changes: float) -> tuple[str, ...]:
        statistics = usual.model_copy(update=changes)
        watching = Translator(
            translator.model, translator.tokenizers, translator.search, direction="en-de", statistics=statistics
        )
        (result,) = watching.translate_lines([line], split=False)
        return result.warnings

    line = SENTENCES[0]
    n_pieces, n_words = len(translator.tokenizers.src.encode(line)), len(line.split())
    (segment,) = translator.translate_segments([line], translator.search)
    assert "unlike" not in flags(line)
    assert "unlike" not in flags(line, most_pieces=n_pieces / n_words, least_log_prob=segment.mean_log_prob)
    assert "unlike" in flags(line, most_pieces=n_pieces / n_words - 0.01)
    assert "unlike" in flags(line, least_log_prob=segment.mean_log_prob + 0.01)
    assert "unlike" not in flags("ca ce", most_pieces=0.1)  # too short for a mean


def test_statistics_of_confidence() -> None:
    usual = LineStatistics(sentences=1, tokens=20, longest=40, least_ratio=0.0, caps=0.0)
    assert usual.with_confidence([-1.0] * 99) == usual  # too few lines
    measured = usual.with_confidence([-0.01 * n for n in range(101)])
    assert measured.least_log_prob == pytest.approx(-0.99)
    assert LineStatistics.from_json(measured.as_json(), where="here") == measured


def test_a_long_tag_is_one_word(translator: Translator) -> None:
    tag = f'<img src="a b.png" alt="One. Two, three; four" title="{" ".join(["five, six"] * 100)}">'
    results = translator.translate([f"{SENTENCES[0]} {tag}"], beam_size=1)[0]
    assert results.count(tag) == 1


def test_no_lines_at_a_time(translator: Translator) -> None:
    with pytest.raises(ConfigError, match="chunk_lines"):
        translator.translate_iter(["a"], chunk_lines=0)
    with pytest.raises(ConfigError, match="max_tokens_per_batch"):
        translator.translate(["a"], max_tokens_per_batch=0)


def test_unknown_characters_are_unlike_the_training_text_in_any_script() -> None:
    """A line without spaces has too few words to count pieces of; unknown characters fall into bytes."""
    usual = LineStatistics(sentences=1, tokens=20, longest=40, least_ratio=0.0, caps=0.0, most_pieces=2.0)
    assert usual.is_unlike("\u65e5\u672c\u8a9e", 9, -0.1)
    assert not usual.is_unlike("12345", 5, -0.1)
    assert not usual.is_unlike("Hello", 5, -0.1)
    assert not usual.is_unlike("X", 2, -0.1)  # a blank and a letter
