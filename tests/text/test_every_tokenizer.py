"""The contract of every kind of tokenizer; what is specific to a kind is tested in its own file.

A new kind is one more row of ``KINDS``. Kinds for text promise more than a closed vocabulary: they encode any text.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edits import Edit, edit_json
from transduce.errors import CheckpointError, ConfigError, DataError
from transduce.text import (
    BOS_ID,
    EOS_ID,
    LANGUAGE_MODEL_TOKENS,
    MASKS,
    PAD_ID,
    SPECIAL_TOKENS,
    UNK_ID,
    Tokenizer,
    Tokenizers,
    load_tokenizer,
    normalise,
    train_bpe,
    train_word_level,
    train_wordpiece,
)

SENTENCES = (
    "low low low",
    "lower newest",
    "newest widest",
    "newest 12 % </s> </s> <pad><pad>",
    "the cat's 12 hats, die Männer am Fluß",
    "Ġ Ġ ▁ ▁ … …",
) * 3
TREES = ("(S (NP XX )NP . )S", "(S (NP , XX )NP XX )S", "(S , XX )S")
TREE_TOKENS = sorted({token for tree in TREES for token in tree.split()})
TRICKY = [
    *SPECIAL_TOKENS, *MASKS[:2], " ", "\u00a0", "\u2028", "e\u0301", "Ġ", "▁", "##", "…", "…e", "\U0001f600", "ሰላም",
    "low", "low" * 30, "'s", "12",
]  # fmt: skip
TRICKY_TEXT = st.lists(st.sampled_from(TRICKY)).map("".join)
ANY_TEXT = st.text() | TRICKY_TEXT
TREE_TEXT = st.lists(st.sampled_from(TREE_TOKENS)).map(" ".join)


@dataclass(frozen=True)
class Kind:
    """A kind of tokenizer, its training data here, and the text that it must encode without loss."""

    name: str
    train: Callable[..., Tokenizer]
    texts: tuple[str, ...] = field(repr=False)
    encodable: st.SearchStrategy[str] = field(repr=False)
    smallest: int | None = None  # vocabulary size before learning; None if it cannot be chosen
    options: Mapping[str, object] = field(default_factory=dict, hash=False)

    def arguments(self, n_learned: int) -> dict[str, object]:
        """The keyword arguments of ``train`` for ``n_learned`` learned tokens."""
        size = {} if self.smallest is None else {"vocab_size": self.smallest + n_learned}
        return size | dict(self.options)

    def learn(self, texts: Iterable[str] | None = None, n_learned: int = 80) -> Tokenizer:
        """Train on ``texts``, by default its own."""
        return self.train(self.texts if texts is None else texts, **self.arguments(n_learned))

    @cache  # noqa: B019  (a row of a table lives as long as the tests)
    def trained(self) -> Tokenizer:
        """The tokenizer of most tests."""
        return self.learn()


N_SPECIAL, N_BYTES, N_MASKS = len(SPECIAL_TOKENS), 256, len(MASKS)
PLAIN_BPE, PLAIN_WORDPIECE = N_SPECIAL + N_BYTES, N_SPECIAL + 2 * N_BYTES  # each byte at the start of a word and inside
MASKED, CHARACTERS = {"masks": True}, {"alphabet": "characters"}
BYTE_KINDS = [
    Kind("BPE", train_bpe, SENTENCES, ANY_TEXT, PLAIN_BPE),
    Kind("BPE with masks", train_bpe, SENTENCES, ANY_TEXT, PLAIN_BPE + 1 + N_MASKS, MASKED),  # 1: the shared prefix
    Kind("WordPiece", train_wordpiece, SENTENCES, ANY_TEXT, PLAIN_WORDPIECE),
    Kind("WordPiece with masks", train_wordpiece, SENTENCES, ANY_TEXT, PLAIN_WORDPIECE + 2 * N_MASKS, MASKED),
]
CHARACTER_KINDS = [  # the tokens of characters count as learned
    Kind("BPE of characters", train_bpe, SENTENCES, ANY_TEXT, PLAIN_BPE, CHARACTERS),
    Kind("WordPiece of characters", train_wordpiece, SENTENCES, ANY_TEXT, PLAIN_WORDPIECE, CHARACTERS),
    Kind("BPE, both", train_bpe, SENTENCES, ANY_TEXT, PLAIN_BPE + 1 + N_MASKS, MASKED | CHARACTERS),
]
EXTRA = {"extra_tokens": LANGUAGE_MODEL_TOKENS}
LANGUAGE_MODEL_KINDS = [
    Kind("BPE of a language model", train_bpe, SENTENCES, ANY_TEXT, PLAIN_BPE + 101, EXTRA),
    Kind("WordPiece of a language model", train_wordpiece, SENTENCES, ANY_TEXT, PLAIN_WORDPIECE + 101, EXTRA),
]
TEXT_KINDS = [*BYTE_KINDS, *CHARACTER_KINDS, *LANGUAGE_MODEL_KINDS]
KINDS = [*TEXT_KINDS, Kind("word-level", train_word_level, TREES, TREE_TEXT)]

every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
every_byte_kind = pytest.mark.parametrize("kind", BYTE_KINDS, ids=lambda kind: kind.name)
every_text_kind = pytest.mark.parametrize("kind", TEXT_KINDS, ids=lambda kind: kind.name)


# The vocabulary


def test_special_tokens_are_at_their_ids() -> None:
    assert [SPECIAL_TOKENS[id] for id in (PAD_ID, BOS_ID, EOS_ID, UNK_ID)] == ["<pad>", "<s>", "</s>", "<unk>"]


@every_kind
def test_the_vocabulary_has_each_id_once_and_begins_with_the_special_tokens(kind: Kind) -> None:
    vocabulary = kind.trained().vocabulary
    assert sorted(vocabulary.values()) == list(range(kind.trained().size))
    assert [vocabulary[token] for token in SPECIAL_TOKENS] == [0, 1, 2, 3]


@every_byte_kind
def test_vocab_size_counts_special_tokens_and_bytes(kind: Kind) -> None:
    assert kind.smallest is not None
    for n_learned in (0, 1, 6):
        assert kind.learn(n_learned=n_learned).size == kind.smallest + n_learned
    with pytest.raises(ConfigError, match=rf"vocab_size.*\b{kind.smallest}\b.*\b{kind.smallest - 1}\b"):
        kind.learn(n_learned=-1)


@every_text_kind
def test_a_small_corpus_gives_a_smaller_vocabulary(kind: Kind) -> None:
    assert kind.smallest is not None
    assert kind.smallest < kind.learn(["abc abd"], n_learned=500).size < kind.smallest + 10


@every_text_kind
def test_the_vocabulary_is_full_where_the_corpus_is_large_enough(kind: Kind) -> None:
    texts = [f"{first}{second}{third}" for first in "abcdefgh" for second in "ijklmnop" for third in "qrstuvw"] * 20
    assert kind.learn(texts, n_learned=384).size == kind.arguments(384)["vocab_size"]


# Training


@every_kind
def test_training_reads_a_stream_once_and_depends_on_nothing_else(kind: Kind) -> None:
    read = []

    def stream() -> Iterator[str]:
        for text in kind.texts:
            read.append(text)
            yield text

    fingerprint = kind.learn(stream()).fingerprint
    assert read == list(kind.texts)
    assert kind.learn().fingerprint == fingerprint
    assert kind.learn(["", *reversed(kind.texts)]).fingerprint == fingerprint


@every_kind
@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_no_text_is_an_error(kind: Kind, texts: list[str]) -> None:
    with pytest.raises(DataError, match="no text") as caught:
        kind.learn(texts)
    assert "\n" not in str(caught.value)


@every_kind
def test_an_error_of_the_stream_comes_through(kind: Kind) -> None:
    def stream() -> Iterator[str]:
        yield "a text"
        raise DataError("train.en:2 is not UTF-8")

    with pytest.raises(DataError, match=r"^train\.en:2 is not UTF-8$"):
        kind.learn(stream())


def test_training_and_encoding_print_nothing_and_need_no_torch() -> None:
    """Each kind in a process forked before, so that no other kind has trained in it."""
    kinds = [(kind.train.__name__, kind.arguments(40)) for kind in KINDS]
    program = (
        "import os, sys\n"
        "from transduce import text\n"
        f"for name, arguments in {kinds}:\n"
        "    if os.fork():\n"
        "        assert os.wait()[1] == 0\n"
        "        continue\n"
        "    tokenizer = getattr(text, name)(['a dog and a cat'] * 50, **arguments)\n"
        "    tokenizer.encode_batch(['a dog'] * 500)\n"
        "    assert 'torch' not in sys.modules\n"
        "    if os.fork():\n"
        "        assert os.wait()[1] == 0\n"
        "    else:\n"
        "        tokenizer.encode_batch(['a dog'] * 500)\n"
        "    break\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# There and back


@every_kind
@given(data=st.data())
def test_nothing_is_lost(kind: Kind, data: st.DataObject) -> None:
    raw = data.draw(kind.encodable)
    tokenizer = kind.trained()
    for text in (raw, normalise(raw)):
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert all(N_SPECIAL <= id < tokenizer.size for id in ids)


@every_text_kind
@given(text=(st.text(st.characters(codec=None)) | TRICKY_TEXT).map(normalise))  # with lone surrogates
def test_nothing_of_a_normalised_text_is_lost(kind: Kind, text: str) -> None:
    assert kind.trained().decode(kind.trained().encode(text)) == text


ODD = (
    "a", " a", " ", "<pad>", "</s> <s><unk>", "low</s>", "##est … …low", "日本語 \U0001f600 नमस्ते",
    "\0\x01\x7f\n\x85", "don't", "a  b", "é e\u0301", "newest" * 2_000, "日" * 3_000,
)  # fmt: skip


@every_text_kind
def test_nothing_of_these_is_lost(kind: Kind) -> None:
    for text in ODD:
        ids = kind.trained().encode(text)
        assert kind.trained().decode(ids) == text
        assert all(N_SPECIAL <= id < kind.trained().size for id in ids)


@every_text_kind
@given(part=st.text(min_size=1, max_size=3), n_times=st.integers(1, 5_000))
def test_long_words_lose_nothing(kind: Kind, part: str, n_times: int) -> None:
    text = normalise(part * n_times)
    assert kind.trained().decode(kind.trained().encode(text)) == text


@every_kind
def test_an_empty_text_is_no_ids_and_no_texts_are_no_rows(kind: Kind) -> None:
    tokenizer = kind.trained()
    assert (tokenizer.encode(""), tokenizer.decode([]), tokenizer.pieces([])) == ([], "", [])
    assert (tokenizer.encode_batch([]), tokenizer.decode_batch([])) == ([], [])


@every_kind
@given(data=st.data())
def test_a_batch_is_encoded_like_its_texts(kind: Kind, data: st.DataObject) -> None:
    texts = data.draw(st.lists(kind.encodable, max_size=5))
    rows = kind.trained().encode_batch(texts)
    assert rows == [kind.trained().encode(text) for text in texts]
    assert kind.trained().decode_batch(rows) == texts


@every_kind
@given(data=st.data(), max_tokens=st.integers(0, 12), n_times=st.sampled_from([1, 3, 300]))
def test_a_text_with_too_many_tokens_is_encoded_to_too_many(
    kind: Kind, data: st.DataObject, max_tokens: int, n_times: int
) -> None:
    text = " ".join([data.draw(kind.encodable)] * n_times)
    tokenizer = kind.trained()
    full, ids = tokenizer.encode(text), tokenizer.encode(text, max_tokens=max_tokens)
    assert tokenizer.encode_batch([text, ""], max_tokens=max_tokens) == [ids, []]
    if len(full) <= max_tokens:
        assert ids == full
    else:
        assert len(ids) > max_tokens


@every_kind
@given(data=st.data())
def test_decode_skips_special_ids_and_takes_arrays(kind: Kind, data: st.DataObject) -> None:
    text = data.draw(kind.encodable)
    tokenizer = kind.trained()
    ids = tokenizer.encode(text)
    assert tokenizer.decode([BOS_ID, *ids, EOS_ID, PAD_ID, UNK_ID]) == text
    assert tokenizer.decode(np.array(ids, dtype=np.uint16)) == text
    assert tokenizer.decode_batch(iter([np.array(ids, dtype=np.uint16)])) == [text]


@every_text_kind
def test_bytes_that_are_no_character_are_dropped(kind: Kind) -> None:
    tokenizer = kind.trained()
    half, word, sign = tokenizer.encode("日")[:-1], tokenizer.encode("low"), tokenizer.encode("\ufffd")
    for ids, text in (
        (half, ""),
        ([*word, *half], "low"),
        ([*half, *word], "low"),
        ([*word, *sign, *half], "low \ufffd"),
    ):
        assert tokenizer.decode(ids).strip() == text
        assert tokenizer.decode_batch([word, ids]) == ["low", tokenizer.decode(ids)]


@every_kind
def test_ids_beyond_the_vocabulary_are_refused(kind: Kind) -> None:
    tokenizer = kind.trained()
    for invalid in (-1, tokenizer.size):
        for use in (tokenizer.decode, tokenizer.pieces, lambda ids: tokenizer.decode_batch([[], ids])):
            with pytest.raises(DataError, match=rf"\bid {invalid}\b.*\b0\b.*\b{tokenizer.size - 1}\b"):
                use([5, invalid])


# Pieces and words


@every_text_kind
@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\\▁")).map(normalise))
def test_pieces_spell_the_text(kind: Kind, text: str) -> None:
    spelled = "".join(kind.trained().pieces(kind.trained().encode(text)))
    as_bytes = spelled.replace("▁", " ").encode("utf-8").decode("unicode_escape").encode("latin-1")
    assert as_bytes.decode("utf-8") == (f" {text}" if text else "")


@every_kind
def test_special_tokens_are_shown_by_name(kind: Kind) -> None:
    tokenizer = kind.trained()
    text = kind.texts[1]
    shown = tokenizer.pieces([BOS_ID, *tokenizer.encode(text), EOS_ID, PAD_ID, UNK_ID])
    assert shown[0] == "<s>"
    assert shown[-3:] == ["</s>", "<pad>", "<unk>"]
    assert shown[1:-3] == tokenizer.pieces(np.array(tokenizer.encode(text), dtype=np.uint16))


@every_text_kind
def test_pieces_can_be_read(kind: Kind) -> None:
    tokenizer = kind.learn(["the lowest tower", "die Männer am Fluß", "die Männer am Tor"] * 3, n_learned=150)
    assert tokenizer.pieces(tokenizer.encode("the tower")) == ["▁the", "▁tower"]
    assert tokenizer.pieces(tokenizer.encode("die Männer")) == ["▁die", "▁Männer"]
    assert tokenizer.pieces(tokenizer.encode("日")) == ["▁", "\\xe6", "\\x97", "\\xa5"]


@every_text_kind
def test_a_word_is_spelled_alike_at_the_start_and_inside(kind: Kind) -> None:
    tokenizer = kind.trained()
    newest = tokenizer.encode("newest")
    assert tokenizer.pieces(newest) == ["▁newest"]
    assert tokenizer.encode("newest newest") == newest * 2


@every_text_kind
def test_words_begin_with_the_space_before_them(kind: Kind) -> None:
    beginnings = set(kind.trained().word_start_ids)
    for text, n_words in (("low lower slow", 3), ("don't", 1), ("日 low-low", 2)):
        ids = kind.trained().encode(text)
        assert ids[0] in beginnings
        assert sum(id in beginnings for id in ids) == n_words


@every_text_kind
def test_words_are_what_is_spelled_one_by_one(kind: Kind) -> None:
    tokenizer = kind.trained()
    assert tokenizer.words("the tower's é") == ["Ġthe", "Ġtower", "'s", "ĠÃ©"]
    assert tokenizer.words("") == []
    with_space = tokenizer.encode("the cat's"), tokenizer.encode("the"), tokenizer.encode("cat's")
    assert with_space[0] == with_space[1] + with_space[2]


# Masks


@every_text_kind
@example(text=f"see {MASKS[0]}.")
@example(text=f"<{MASKS[3]}Tom{MASKS[9]}>")
@example(text=MASKS[5] * 2)
@example(text=f"({MASKS[1]})")
@given(text=st.lists(st.sampled_from([*MASKS, "see", " ", "<", "Tom", ">", ".", "(", "low"])).map("".join))
def test_a_mask_is_a_token_everywhere_if_the_tokenizer_has_masks(kind: Kind, text: str) -> None:
    tokenizer = kind.trained()
    assert tokenizer.has_masks is ("masks" in kind.options)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    n_masks = sum(char in MASKS for char in text) if tokenizer.has_masks else 0
    assert sum(piece in MASKS for piece in tokenizer.pieces(ids)) == n_masks


# On disk


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def saved(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Kind]:
    path = tmp_path / "tokenizer.json"
    request.param.trained().save(path)
    return path, request.param


def test_a_saved_tokenizer_is_the_same(saved: tuple[Path, Kind]) -> None:
    path, kind = saved
    tokenizer, loaded = kind.trained(), load_tokenizer(path)
    assert (loaded.fingerprint, loaded.size) == (tokenizer.fingerprint, tokenizer.size)
    assert (loaded.vocabulary, loaded.merges) == (tokenizer.vocabulary, tokenizer.merges)
    assert (set(loaded.word_start_ids), loaded.has_masks) == (set(tokenizer.word_start_ids), tokenizer.has_masks)
    assert loaded.is_closed is tokenizer.is_closed is (kind.name == "word-level")
    for text in (*kind.texts, "the newest Fluß", "(S (VP XX"):
        assert loaded.encode(text) == tokenizer.encode(text)
    written = path.read_bytes()
    loaded.save(path)
    assert path.read_bytes() == written


def test_fingerprint_tells_vocabularies_apart_and_not_layout(saved: tuple[Path, Kind]) -> None:
    path, kind = saved
    others = [kind.learn(kind.texts[:1])]
    if kind.smallest is not None:
        others.append(kind.learn(n_learned=10))
    assert kind.trained().fingerprint not in [other.fingerprint for other in others]
    path.write_text(json.dumps(json.loads(path.read_bytes()), indent=4), encoding="utf-8")
    assert load_tokenizer(path).fingerprint == kind.trained().fingerprint


def test_kinds_have_different_fingerprints() -> None:
    assert len({kind.trained().fingerprint for kind in KINDS}) == len(KINDS)


def test_both_sides_of_a_task_are_read_again(saved: tuple[Path, Kind]) -> None:
    path, kind = saved
    path.unlink()
    other = kind.learn(kind.texts[:1])
    for src, tgt in ((kind.trained(), kind.trained()), (kind.trained(), other), (other, kind.trained())):
        folder = path.parent / tgt.fingerprint[:8] / src.fingerprint[:8]
        folder.mkdir(parents=True)
        Tokenizers(src, tgt).save(folder)
        again = Tokenizers.load(folder)
        assert (again.src.fingerprint, again.tgt.fingerprint) == (src.fingerprint, tgt.fingerprint)
        assert (again.is_shared, again.fingerprint) == (src is tgt, Tokenizers(src, tgt).fingerprint)


OF_OTHER_SYSTEMS: list[tuple[Edit, str]] = [
    (lambda d: d["model"].update(type="Unigram"), r"\bUnigram\b.*\bBPE\b.*\bWordLevel\b.*\bWordPiece\b"),
    (lambda d: d["model"].update(type=None), r"\bBPE\b.*\bWordLevel\b.*\bWordPiece\b"),
    (lambda d: d["model"].update(type="WordPiece" if d["model"]["type"] == "BPE" else "BPE"), r"\bunk_token\b"),
    (lambda d: d["model"].update(unk_token="<pad>"), r"\bunk_token\b.*'<pad>'"),
    (lambda d: d["model"].update(continuing_subword_prefix="[a"), r"\bcontinuing_subword_prefix\b.*'\[a'"),
    (lambda d: d["model"].update(dropout=0.1), r"\bdropout\b.*\b0\.1\b"),
    (lambda d: d.update(added_tokens=[{"id": 0, "content": "<pad>"}]), r"\btokens\b.*\bvocabulary\b"),
    (lambda d: d["model"]["vocab"].update({"<pad>": 2, "</s>": 0}), "<pad>.*<s>.*</s>.*<unk>.* 0 .* 3"),
    (lambda d: d["model"]["vocab"].pop("<unk>"), "<pad>.*<s>.*</s>.*<unk>.* 0 .* 3"),
    (lambda d: d["model"]["vocab"].update({"zz": 7}), r"\b0\b.*\b{last}\b"),
    (lambda d: d["model"]["vocab"].update({"zz": 5_000}), r"\b0\b.*\b{last}\b"),
    (lambda d: d["model"]["vocab"].update({"zz": "7"}), r"\b0\b.*\b{last}\b"),
    (lambda d: d["model"]["vocab"].update({"zz": [7]}), r"\b0\b.*\b{last}\b"),
    (lambda d: d.update(version="9.0"), r"\bversion\b"),
    (lambda d: d.update(decoder={"type": "nonsense"}), r"\bdecoder\b"),
    (lambda d: d.update(normalizer={"type": "Lowercase"}), r"\bnormalizer\b"),
    (lambda d: d.update(pre_tokenizer=None), r"\bpre_tokenizer\b"),
    (lambda d: d.update(pre_tokenizer={"type": "Whitespace"}), r"\bpre_tokenizer\b"),
    (lambda d: d.update(truncation={"max_length": 0}), r"\btruncation\b"),
    (lambda d: d.update(surprise=1), r"\bsurprise\b"),
]


def test_a_tokenizer_of_another_system_is_refused(saved: tuple[Path, Kind]) -> None:
    path, kind = saved
    content = path.read_text(encoding="utf-8")
    for edit, named in OF_OTHER_SYSTEMS:
        path.write_text(content, encoding="utf-8")
        edit_json(path, edit)
        with pytest.raises(CheckpointError) as caught:
            load_tokenizer(path)
        message = str(caught.value)
        assert str(path) in message
        assert "\n" not in message
        assert re.search(named.replace("{last}", str(kind.trained().size)), message.replace(str(path), "")), named
