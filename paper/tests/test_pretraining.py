"""What pre-training is worth: the short form end to end, its records, and the probe on states that are known."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from transduce.config import RunConfig
from transduce.errors import ConfigError
from transduce.inference import read_saved_weights
from transduce.model import TransformerLM
from transduce.text import BOS_ID, byte_tokenizer
from transduce_paper import Experiments
from transduce_paper.notes.pretraining import make_pretraining
from transduce_paper.notes.pretraining.forgetting import STAGES, forgetting_experiment
from transduce_paper.notes.pretraining.parsing import encoder_experiment, parser_experiment
from transduce_paper.notes.pretraining.probe import (
    TaggedSentence,
    majority_accuracy,
    probe_accuracy,
    states_of_words,
    tagged_sentences,
)
from transduce_paper.notes.pretraining.translation import STARTS, spans_experiment, translator_experiment
from transduce_paper.report import Table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The records and the work folder of the short form."""
    folder = tmp_path_factory.mktemp("pretraining")
    make_pretraining(experiments_in(folder))
    return folder


def experiments_in(folder: Path, work: str = "work") -> Experiments:
    return Experiments(folder / "runs", folder / work, scale="test")


def test_the_chapter_is_made_from_the_records_alone(folder: Path) -> None:
    part = make_pretraining(experiments_in(folder))
    elsewhere = make_pretraining(experiments_in(folder, "elsewhere"))
    assert part == elsewhere
    assert not (folder / "elsewhere" / "test").exists()
    tables = {section.name: section for section in part.blocks() if isinstance(section, Table)}
    assert tables["-pretraining-translation"].column("start") == list(STARTS.values())
    assert tables["-pretraining-parsing"].column("parser") == ["from scratch", "from the masked model"]
    assert tables["-pretraining-probe"].column("layer") == [0, 1, 2, 3, 4]
    assert tables["-pretraining-forgetting"].column("training") == [stage.title for stage in STAGES.values()]


def test_records_name_the_run_they_start_from_and_no_file(folder: Path) -> None:
    records = {path.stem: json.loads(path.read_text()) for path in (folder / "runs" / "test").glob("*seed?.json")}
    spans = "pretraining-spans-news-seed1"
    assert records["pretraining-spans-captions-seed1"]["tokenizer_of"] == spans
    assert records["pretraining-1000-pairs-news-seed2"]["starts_from"] == spans
    assert records["pretraining-1000-pairs-news-seed2"]["tokenizer_of"] is None
    assert records["pretraining-1000-pairs-scratch-seed2"]["starts_from"] is None
    assert records["pretraining-1000-pairs-scratch-seed2"]["tokenizer_of"] == spans
    assert records["pretraining-forgetting-back-seed1"]["starts_from"] == "pretraining-forgetting-help-seed1"
    for record in records.values():
        assert record["config"]["data"]["tokenizer_from"] is None
        assert record["config"]["training"]["init_from"] is None
        files = ("train_src", "train_tsv", "train_text", "train_prompts")
        assert not any(record["config"]["data"].get(name) for name in files)


def test_runs_with_one_tokenizer_differ_only_in_their_start(folder: Path) -> None:
    experiments = experiments_in(folder)
    saved = {
        start: read_saved_weights(experiments.model_folder(translator_experiment(experiments, 1000, 1, start=start)))
        for start in STARTS
    }
    news = read_saved_weights(experiments.model_folder(spans_experiment(experiments, "news")))
    assert {each.tokenizers.src.fingerprint for each in saved.values()} == {news.tokenizers.src.fingerprint}
    for start, of_start in saved.items():
        ancestors = [] if start == "scratch" else ["span-corruption"]
        assert [ancestor.task for ancestor in of_start.ancestry] == [*ancestors, "translation"]


def test_a_record_of_another_start_is_refused(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "runs", tmp_path / "runs")
    experiments = experiments_in(tmp_path)
    experiment = translator_experiment(experiments, 1000, 1, start="news")
    experiments.run(experiment)
    with pytest.raises(ConfigError, match="starts_from = 'pretraining-spans-news-seed1'"):
        experiments.run(replace(experiment, starts_from=None))


def flat(config: RunConfig) -> dict[str, object]:
    return {f"{table}.{name}": value for table, fields in config.model_dump().items() for name, value in fields.items()}


def test_the_pretrained_and_the_other_run_have_the_same_settings(tmp_path: Path) -> None:
    experiments = Experiments(tmp_path, tmp_path, scale="cpu")
    for n_pairs in (1000, 5000, 29000):
        runs = [translator_experiment(experiments, n_pairs, 2, start=start) for start in STARTS]
        assert runs[0].config == runs[1].config == runs[2].config
        assert runs[0].config.data.max_pairs == n_pairs
    parsers = [parser_experiment(experiments, 1, is_pretrained=each) for each in (False, True)]
    assert parsers[0].config == parsers[1].config
    encoder, parser = encoder_experiment(experiments).config, parsers[0].config
    for name in ("d_model", "d_ff", "n_heads", "d_k", "d_v", "norm", "activation", "norm_eps"):
        assert getattr(encoder.model, name) == getattr(parser.model, name), name
    assert flat(encoder)["model.n_layers"] == flat(parser)["model.n_encoder_layers"]
    assert encoder.data.vocab_size == parser.data.vocab_size
    chain = [forgetting_experiment(experiments, "back", 1)]
    while chain[-1].starts_from is not None:
        chain.append(chain[-1].starts_from)
    assert [each.config.data.corpus for each in chain] == [
        {"multi30k": 1.0},
        {"libreoffice-help": 1.0},
        {"multi30k": 1.0},
    ]


def test_a_probe_finds_what_is_linear_and_nothing_else() -> None:
    generator = torch.Generator().manual_seed(0)
    tags_N = torch.randint(0, 4, (600,), generator=generator)
    states_ND = torch.randn(600, 16, generator=generator)
    marked_ND = states_ND.clone()
    marked_ND[torch.arange(600), tags_N] += 6.0
    split = slice(0, 400), slice(400, 600)

    def accuracy(states_ND: torch.Tensor) -> float:
        return probe_accuracy(states_ND[split[0]], tags_N[split[0]], states_ND[split[1]], tags_N[split[1]], 4)

    assert accuracy(marked_ND) > 0.95
    assert accuracy(states_ND) < 0.45
    unknown_N = torch.full((200,), -1)  # a tag that training has not seen is never found
    assert probe_accuracy(marked_ND[split[0]], tags_N[split[0]], marked_ND[split[1]], unknown_N, 4) == 0


def test_states_are_those_at_the_last_token_of_each_word() -> None:
    from transduce.model import StackConfig

    torch.manual_seed(0)
    tokenizer = byte_tokenizer()
    config = StackConfig(n_layers=2, d_model=8, d_ff=16, n_heads=2, d_k=4, d_v=4, p_drop=0.0)
    model = TransformerLM(config, vocab_size=tokenizer.size).eval()
    sentence = TaggedSentence(("ab", "cde"), ("X", "Y"))
    states = states_of_words(model, tokenizer, [sentence, sentence], torch.device("cpu"))
    assert states.shape == (3, 4, 8)
    pieces = [tokenizer.encode(word) for word in sentence.words]
    ids = [BOS_ID, *pieces[0], *pieces[1]]
    final_ND = model(torch.tensor([ids]))
    torch.testing.assert_close(states[-1][:2], final_ND[[len(pieces[0]), len(ids) - 1]])
    torch.testing.assert_close(states[0][2:], states[0][:2])
    x_ND, _ = model.source(torch.tensor([ids]))
    torch.testing.assert_close(states[0][1], x_ND[-1])


def test_majority_tags() -> None:
    train = [TaggedSentence(("the", "dog", "runs"), ("D", "N", "V")), TaggedSentence(("dog", "dog"), ("N", "V"))]
    test = [TaggedSentence(("the", "dog", "cat"), ("D", "V", "N"))]
    assert majority_accuracy(train, test) == pytest.approx(2 / 3)  # dog: N twice; cat: N or V, the first of all


def test_tagged_sentences_of_the_grammar_have_a_tag_for_each_word() -> None:
    sentences = [next(tagged_sentences("grammar", split, None)) for split in ("train", "dev")]
    for sentence in sentences:
        assert len(sentence.words) == len(sentence.tags) > 2
        assert all(sentence.words)
