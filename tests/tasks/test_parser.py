"""A parser from treebank to trees: every output is a tree over the words, trained or not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch
from task_suite import few_evaluated_sentences

import transduce as package
from run_records import records
from said import naming, says
from transduce.config import SearchConfig
from transduce.corpora import generate_pairs
from transduce.diagnostics import examine
from transduce.errors import CheckpointError, ConfigError, DataError
from transduce.inference import Parser, Translator, tagged_words
from transduce.metrics import parseval
from transduce.model import Transformer
from transduce.model.word_positions import WordPositionFrontEnd
from transduce.recipes import read_recipe
from transduce.runs import train
from transduce.tasks import evaluate_parser, open_prepared
from transduce.text import BOS_ID, EOS_ID, UNK_ID
from transduce.trees import Tree, parse_tree, plain

RECIPE = """
[model]
n_encoder_layers = 1
n_decoder_layers = 1
d_model = 64
d_ff = 64
n_heads = 4
d_k = 16
d_v = 16
p_drop = 0.0
embeddings = "separate"
[data]
corpus = "grammar"
task = "parsing"
n_pairs = 1500
vocab_size = 400
shared_vocabulary = false
[training]
max_updates = 120
max_tokens_per_batch = 600
warmup_steps = 30
lr_factor = 0.7
validate_every_updates = 60
validation_sentences = 12
checkpoint_every_updates = 60
average_last = 1
[search]
beam_size = 1
max_extra_tokens = 60
"""
SENTENCES = [
    "The dog sleeps .", "", "A ( very ) old dog 's -LRB- bone , is here !", "word " * 40, "?",
    "unheard-of \u00e9t\u00e9 \u65e5",
]  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def few_sentences() -> Iterator[None]:
    with few_evaluated_sentences():
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parsing")
    (folder / "parser.toml").write_text(RECIPE)
    trees = [pair.tree for pair in generate_pairs("test", n_pairs=20, seed=3)]
    (folder / "few.ptb").write_text("\n".join(trees) + "\n")
    few = f"'{folder / 'few.ptb'}'"
    result = train(
        read_recipe(folder / "parser.toml", [f"data.dev_trees={few}", f"data.test_trees={few}"]), folder / "run"
    )
    assert result.scores is not None
    return folder / "run"


@pytest.fixture(scope="module")
def model(run: Path) -> Path:
    return run / "model"


def test_it_learns_and_is_judged_by_f1(run: Path, model: Path) -> None:
    first, second = records(run, "validation")
    assert second["perplexity"] < first["perplexity"] < 4
    assert min(first["f1"], second["f1"]) > 10
    assert "bleu" not in first
    prepared = open_prepared(run / "store")
    text = prepared.text("test")
    assert text is not None
    totals = evaluate_parser(Parser.load(model), *text).result.all
    assert (totals.valid, totals.errors, totals.skipped) == (20, 0, 0)
    assert totals.f1 > 10
    assert totals.tagging_accuracy is None  # XX is not a tag
    assert "tagging" not in (model / "README.md").read_text(encoding="utf-8")


def test_the_doctor_has_it_parse(run: Path, model: Path) -> None:
    for folder in (run, model):
        found = list(examine([str(folder)]))
        assert all(finding.status == "good" for finding in found), found
    assert "it parses " in found[-1].message


@pytest.mark.parametrize("is_constrained", [True, False])
def test_every_sentence_gets_a_tree_over_its_words(model: Path, is_constrained: bool) -> None:
    parser = Parser.load(model, is_constrained=is_constrained)
    for beam_size in (1, 2):
        search = SearchConfig(beam_size=beam_size, max_extra_tokens=6)
        trees = parser.parse(SENTENCES, search=search)
        for sentence, tree in zip(SENTENCES, trees, strict=True):
            if not sentence:
                assert tree is None
                continue
            assert isinstance(tree, Tree)
            words = [word.replace("(", "-LRB-").replace(")", "-RRB-") for word in sentence.split()]
            assert tree.words() == words
            assert parse_tree(str(tree)) == tree
            assert tree.label == "TOP"


def test_a_blank_that_only_unicode_knows_makes_no_further_word(model: Path) -> None:
    with_one, without, alone = Parser.load(model).parse(
        ["The 10\u00a0000 dogs sleep .", "The 10000 dogs sleep .", "\u00a0"]
    )
    assert str(with_one).replace("\u00a0", "") == str(without)
    assert alone is not None
    assert alone.words() == ["\u00a0"]


def test_words_with_letters_are_no_punctuation_and_what_is_known_is_kept(model: Path) -> None:
    parser = Parser.load(model)
    gold = [plain(parse_tree(pair.tree)) for pair in generate_pairs("test", n_pairs=25, seed=5)]
    from_trees = [parse.tree for parse in parser.parse_tagged(map(tagged_words, gold))]
    assert parseval(gold, from_trees).all.errors == 0
    odd = [("dog", "."), (".", "XX"), ("runs", "XX")]  # whatever tags are given
    (parse,) = parser.parse_tagged([odd])
    assert parse.tree is not None
    assert [leaf.label == "XX" for leaf in parse.tree.leaves()] == [False, True, True]
    (tree,) = parser.parse(["dog . runs 's 5"])
    assert tree is not None
    labels = [leaf.label for leaf in tree.leaves()]
    assert labels[0] == labels[2] == labels[3] == labels[4] == "XX"


def test_a_tree_does_not_depend_on_its_batch(model: Path) -> None:
    parser = Parser.load(model)
    alone = [parser.parse([sentence])[0] for sentence in SENTENCES]
    assert parser.parse(SENTENCES) == alone
    assert [parse.tree for parse in parser.parse_lines(SENTENCES, chunk_lines=2)] == alone


def test_tags_can_be_kept(tmp_path: Path) -> None:
    (tmp_path / "parser.toml").write_text(RECIPE)
    (tmp_path / "few.ptb").write_text("(TOP (S (NP (NN dog)) (VP (VBZ runs)) (. .)))\n")
    settings = [
        "data.leaves=tags", "training.max_updates=2", "training.validation_bleu=false", "data.n_pairs=40",
        f"data.dev_trees={tmp_path / 'few.ptb'}", f"data.test_trees={tmp_path / 'few.ptb'}",
    ]  # fmt: skip
    train(read_recipe(tmp_path / "parser.toml", settings), tmp_path / "run")
    parser = package.Parser.load(tmp_path / "run" / "model")
    assert {"(NP", ")NP", "NN", "VBZ", "."} <= parser.tokenizers.tgt.vocabulary.keys()
    assert "| tagging_accuracy |" in (tmp_path / "run" / "model" / "README.md").read_text(encoding="utf-8")


def test_endings_stand_for_words_and_are_no_tags(tmp_path: Path) -> None:
    (tmp_path / "parser.toml").write_text(RECIPE)
    settings = [
        "data.leaves=endings", "training.max_updates=2", "training.validation_bleu=false", "data.n_pairs=40",
        "training.validate_every_updates=1000",
    ]  # fmt: skip
    train(read_recipe(tmp_path / "parser.toml", settings), tmp_path / "run")
    parser = Parser.load(tmp_path / "run" / "model")
    vocabulary = parser.tokenizers.tgt.vocabulary
    assert {"(NP", ")NP", "XX~he", "."} <= vocabulary.keys()
    assert parser._allowed_ids("other", None) == (vocabulary["XX~er"],) == parser._allowed_ids("er", "XX")
    assert set(parser._allowed_ids("--", None)) == {*parser.kinds.punctuation, *parser.kinds.other_tags}
    assert parser._allowed_ids("xyzzq", "XX") == parser.kinds.other_tags  # not an ending of the grammar
    for is_constrained in (True, False):
        parser = Parser.load(tmp_path / "run" / "model", is_constrained=is_constrained)
        (tree,) = parser.parse(["The other xyzzq sleeps ."])
        assert tree is not None
        assert tree.words() == "The other xyzzq sleeps .".split()
        assert {leaf.label for leaf in tree.leaves()} <= {"XX", "."}


def test_positions_of_words_are_known_in_training_and_in_the_model(tmp_path: Path) -> None:
    """Training, validation and the loaded model count words in the same way."""
    (tmp_path / "parser.toml").write_text(RECIPE)
    settings = [
        "model.positions=words", "data.leaves=endings", "training.max_updates=20", "training.validate_every_updates=20",
        "data.subtree_substitution=0.1", "data.n_recombined=2",
    ]  # fmt: skip
    train(read_recipe(tmp_path / "parser.toml", settings), tmp_path / "run")
    parser = Parser.load(tmp_path / "run" / "model")
    model = parser.model
    assert isinstance(model, Transformer)
    assert isinstance(model.source, WordPositionFrontEnd)
    assert isinstance(model.target, WordPositionFrontEnd)
    text = "The other dog sleeps ."
    src = torch.tensor([[*parser.tokenizers.src.encode(text), EOS_ID]])
    assert model.source.begins_word_V[src].sum() == 5
    tokens = parser.tokenizers.tgt.encode("(S (NP XX~he XX~never XX~og )NP (VP XX~ps )VP . )S")
    assert tokens[3] == UNK_ID  # an unknown ending also stands for a word
    n_words = model.target.begins_word_V[torch.tensor([BOS_ID, *tokens])].cumsum(0).tolist()
    assert n_words == [0, 0, 0, 1, 2, 3, 3, 3, 4, 4, 5, 5]
    (validation,) = records(tmp_path / "run", "validation")
    prepared = open_prepared(tmp_path / "run" / "store")
    assert prepared.dev is not None
    sources, references = prepared.text("dev") or ([], [])
    scored = evaluate_parser(parser, sources, references).result.all
    assert 0 < scored.f1 == pytest.approx(validation["f1"])


def test_own_trees_in_any_layout(tmp_path: Path) -> None:
    (tmp_path / "parser.toml").write_text(RECIPE)
    trees = "( (S\n  (NP-SBJ (-NONE- *)) (VP (VB Go)) (. .)))\n\n(ROOT (S (NP (NN dog))\n (VP (VBZ runs)) (. .)))\n" * 6
    (tmp_path / "own.mrg").write_text(trees)
    settings = [
        "data.corpus=files", f"data.train_trees={tmp_path / 'own.mrg'}", f"data.dev_trees={tmp_path / 'own.mrg'}",
        "training.max_updates=2",
    ]  # fmt: skip
    result = train(read_recipe(tmp_path / "parser.toml", settings), tmp_path / "run")
    assert result.scored_split == "dev"
    text = open_prepared(tmp_path / "run" / "store").text("dev")
    assert text is not None
    assert (text[0][:2], text[1][:2]) == (
        ["Go .", "dog runs ."],
        ["(S (VP XX )VP . )S", "(S (NP XX )NP (VP XX )VP . )S"],
    )
    (tmp_path / "own.mrg").write_text("(S (NN dog)\n")
    with pytest.raises(DataError, match=naming("own.mrg", "line 1", "column 1", "'S'")):
        train(read_recipe(tmp_path / "parser.toml", settings), tmp_path / "other")


def test_the_treebank_by_sections(tmp_path: Path, transduce: Callable[..., Any]) -> None:
    (tmp_path / "parser.toml").write_text(RECIPE)
    for section, word in (*((n, "old") for n in range(2, 22)), (22, "dev"), (23, "test"), (24, "none")):
        folder = tmp_path / "wsj" / f"{section:02}"
        folder.mkdir(parents=True)
        (folder / "wsj_0001.mrg").write_text(f"( (S (NP (NN {word})) (VP (VB go)) (. .)) )\n")
    settings = ["data.corpus=wsj", f"data.treebank={tmp_path / 'wsj'}", "training.max_updates=2"]
    train(read_recipe(tmp_path / "parser.toml", settings), tmp_path / "run")
    prepared = open_prepared(tmp_path / "run" / "store")
    assert len(prepared.train) == 20
    assert [prepared.text(split)[0] for split in ("dev", "test")] == [["dev go ."], ["test go ."]]  # type: ignore[index]
    prepared_folder = tmp_path / "prepared"
    command = ("prepare", tmp_path / "parser.toml", "--set", "data.corpus=wsj", "--out", prepared_folder)
    assert transduce(*command, "--treebank", tmp_path / "wsj").code == 0
    assert open_prepared(prepared_folder).fingerprint == prepared.fingerprint
    with pytest.raises(DataError, match=naming("wsj", "--treebank")):
        train(read_recipe(tmp_path / "parser.toml", ["data.corpus=wsj"]), tmp_path / "other")
    for section in (7, 12):
        (tmp_path / "wsj" / f"{section:02}" / "wsj_0001.mrg").unlink()
    with pytest.raises(DataError, match=naming("wsj", "*.mrg", "07", 12)):
        train(read_recipe(tmp_path / "parser.toml", settings), tmp_path / "other")


def test_what_does_not_go_together_is_refused(model: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=naming(model, "parsing", "translator", "transduce parse")):
        Translator.load(model)
    with pytest.raises(TypeError, match=naming("list")):
        Parser.load(model).parse("The dog sleeps .")
    (tmp_path / "parser.toml").write_text(RECIPE)
    with pytest.raises(ConfigError, match=naming("test_trees", "task = 'parsing'", "task = 'translation'")):
        read_recipe(tmp_path / "parser.toml", ["data.task=translation", "data.test_trees=few.ptb"])
    with pytest.raises(DataError, match=naming("gmu", "train.ptb", "gum", "craft")):
        train(read_recipe(tmp_path / "parser.toml", ["data.corpus=gmu"]), tmp_path / "run")


def test_the_command_line(model: Path, tmp_path: Path, transduce: Callable[..., Any]) -> None:
    sentences = "The dog sleeps .\n\nA ( b ) c .\n"
    outcome = transduce("parse", model, stdin=sentences.encode())
    assert outcome.code == 0
    first, nothing, third = outcome.out.splitlines()
    assert parse_tree(first).words() == ["The", "dog", "sleeps", "."]
    assert nothing == "()"
    assert parse_tree(third).words() == ["A", "-LRB-", "b", "-RRB-", "c", "."]
    rows = [json.loads(line) for line in transduce("parse", model, "--json", stdin=sentences.encode()).out.splitlines()]
    assert [row["tree"] for row in rows] == [first, None, third]
    assert rows[0]["words"] == ["The", "dog", "sleeps", "."]
    gold, drawing = tmp_path / "gold.ptb", tmp_path / "tree.svg"
    gold.write_text("(TOP (S (NP (DT The) (NN dog)) (VP (VBZ sleeps)) (. .)))\n")
    pretty = transduce("parse", model, "--trees", gold, "--pretty", "--svg", drawing).out
    assert parse_tree(pretty).words() == ["The", "dog", "sleeps", "."]
    assert drawing.read_text(encoding="utf-8").count("<text") > 4 + 4
    free = transduce("parse", model, "--unconstrained", "--beam", 1, stdin=b"The dog sleeps .\n").out
    assert parse_tree(free).words() == ["The", "dog", "sleeps", "."]
    assert transduce("parse", model, "--raw", "--trees", gold).code == 1
    missing = transduce("parse", tmp_path / "no-model", "--trees", tmp_path / "no.ptb")
    assert (missing.code, "no.ptb" in missing.err) == (1, True)


def test_what_is_parsed_from_trees_is_judged_against_them(
    model: Path, tmp_path: Path, transduce: Callable[..., Any]
) -> None:
    gold, parsed, drawing = tmp_path / "gold.mrg", tmp_path / "parsed.ptb", tmp_path / "tree.svg"
    gold.write_text(
        "( (-NONE- *T*))\n(ROOT (S\n  (NP-SBJ (DT The) (NN dog))\n  (VP (VBZ sleeps) (NP (-NONE- *)))\n  (. .)))\n"
        "( (NP (NNP a\x01b) (CD 10\u00a0000)))\n",
        encoding="utf-8",
    )
    outcome = transduce("parse", model, "--trees", gold, "--svg", drawing)
    assert outcome.out.startswith("()\n(TOP ")
    parsed.write_text(outcome.out, encoding="utf-8")
    assert "The dog sleeps" in drawing.read_text(encoding="utf-8")  # the first non-empty sentence
    scores = json.loads(transduce("parseval", "--plain", gold, parsed, "--json").out)
    assert (scores["valid"], scores["skipped"], scores["errors"]) == (2, 1, 0)
    perfect = json.loads(transduce("parseval", "--plain", gold, gold, "--json").out)
    assert (perfect["f1"], perfect["valid"]) == (100.0, 2)
    assert says(transduce("parseval", gold, parsed).err, gold, "--plain")
    parsed.write_text("()\n", encoding="utf-8")
    assert says(transduce("parseval", "--plain", gold, parsed).err, gold, 3)
    assert says(transduce("parse", model, "--svg", drawing, stdin=b"\n").err, drawing)
    odd = transduce("parse", model, "--svg", drawing, stdin=b"a\x01b runs")
    assert odd.code == 0
    ElementTree.fromstring(drawing.read_text(encoding="utf-8"))


def test_a_line_of_any_length_has_all_its_words(model: Path) -> None:
    parser = Parser.load(model)
    parser._text_search.engine.max_positions = 12  # type: ignore[misc]  # as with learned positions
    (parse,) = parser.parse_lines(["word " * 40], search=SearchConfig(beam_size=1, max_extra_tokens=3))
    assert parse.is_truncated
    assert parse.tree is not None
    assert parse.tree.words() == ["word"] * 40


def test_tags_and_labels_of_any_script(tmp_path: Path) -> None:
    train_trees = tmp_path / "train.ptb"
    train_trees.write_text("(TOP (\u00c9 (N\u00c9 chien) (\u2026 \u2026) (\u0120 x)))\n" * 12, encoding="utf-8")
    (tmp_path / "parser.toml").write_text(RECIPE)
    settings = [
        "data.corpus=files", f"data.train_trees={train_trees}", "data.leaves=tags", "training.max_updates=20",
        "training.validate_every_updates=100",
    ]  # fmt: skip
    train(read_recipe(tmp_path / "parser.toml", settings), tmp_path / "run")
    for is_constrained in (True, False):
        parser = Parser.load(tmp_path / "run" / "model", is_constrained=is_constrained)
        (tree,) = parser.parse(["chien \u2026 x"])
        assert tree is not None
        assert {leaf.label for leaf in tree.leaves()} <= {"N\u00c9", "\u2026", "\u0120", "XX"}
        assert {node.label for node in tree.nodes() if node.word is None} <= {"TOP", "\u00c9"}


def test_raw_text_is_cut_into_words(model: Path, transduce: Callable[..., Any]) -> None:
    pytest.importorskip("nltk")
    outcome = transduce("parse", model, "--raw", stdin=b"The dog doesn't sleep (yet).\n")
    assert parse_tree(outcome.out).words() == "The dog does n't sleep -LRB- yet -RRB- .".split()
