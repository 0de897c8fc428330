"""Tasks that other distributions add by entry points: one of pairs and one of documents, each in one file."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from small_recipes import DECODER, ENCODER_DECODER, GREEDY, SmallRuns
from task_suite import CHECKS, SmallTask, run_once

from said import naming
from transduce.config import RunConfig
from transduce.errors import ConfigError
from transduce.inference.trained_model import TASK_GROUP, TrainedModel
from transduce.recipes import with_settings
from transduce.tasks import TASKS, prepare, task_named
from transduce.tasks.documents.text_task import texts_of

PAIRS = """
    '''The task of writing words backwards.'''

    import random

    from transduce.config import ParallelData
    from transduce.corpora import Source
    from transduce.inference import Translator
    from transduce.inference.trained_model import Capabilities
    from transduce.tasks.pairs.pair_task import PairPreparation
    from transduce.tasks.pairs.translation import TranslationTask


    class WordData(ParallelData):
        n_letters: int = 3  # of a word


    class Words(Source):
        def __init__(self, config):
            super().__init__(config)
            self.config = config

        def train(self, corpus):
            return self.of("train")

        def of(self, split):
            chance = random.Random(f"{split} {self.config.corpus_seed}")
            for _ in range(self.config.n_pairs if split == "train" else 5):
                word = "".join(chance.choices("abc", k=self.config.n_letters))
                yield word, word[::-1]

        def name_of(self, split):
            return "" if split == "train" else f"{split} words"


    class WordPreparation(PairPreparation):
        def make_source(self, config):
            return Words(config)


    class Backwards(TranslationTask):
        name, settings, preparation = "words-backwards", WordData, WordPreparation


    class WordTranslator(Translator):
        capabilities = Capabilities(("words-backwards",), "a writer of words backwards", "translate")


    task = Backwards()
"""

DOCUMENTS = """
    '''The task of predicting text in lower case.'''

    from transduce.corpora import PlainText
    from transduce.data.documents import CausalBatches
    from transduce.tasks import register
    from transduce.tasks.documents.text_task import DocumentPreparation, TextTask


    class LowerPreparation(DocumentPreparation):
        def make_source(self, config):
            return PlainText(config, self.data_folder)

        def texts(self, item):
            return [line.lower() for line in item]


    class LowerCase(TextTask):
        name, progress_verb, is_causal, preparation = "lower-case", "modelling", True, LowerPreparation
        used_as = "causal-lm"

        def text_batches(self, store, model, data, **options):
            return CausalBatches(store, max_length=self.longest_segment(model, data), **options)


    register(LowerCase())
"""

ADDED = {
    "words-backwards": SmallTask(
        name="words-backwards",
        recipe=f'{ENCODER_DECODER}{GREEDY}data.task = "words-backwards"\ndata.n_letters = 4\ndata.n_pairs = 40\n'
        "data.vocab_size = 300\n",
        score="sacrebleu",
        validated="bleu",
        card=("1 + 1 layers", "test words"),
        kind="WordTranslator",
        use=lambda translator, files: translator.translate(["abc"]),
        mistakes=(("data.n_letters=many", ("data.n_letters", "'many'")),),
        text="n_letters",
    ),
    "lower-case": SmallTask(
        name="lower-case",
        recipe=f'{DECODER}data.task = "lower-case"\ndata.language = "en"\ndata.n_pairs = 40\ndata.vocab_size = 400\n'
        "model.n_positions = 32\n",
        score="perplexity",
        validated=None,
        card=("a window of 32 tokens", "perplexity per target"),
        kind="CausalLanguageModel",
        use=lambda model, files: [each.text for each in model.generate(["the"], max_tokens=4)],
        mistakes=(("model.is_causal=false", ("is_causal",)),),
        text="train_text",
    ),
}


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """``added("name = module:object")`` installs the distribution ``more-tasks`` with these entry points."""
    site = tmp_path / "site"
    (site / "more_tasks-1.0.dist-info").mkdir(parents=True)
    modules = {"task_of_pairs": PAIRS, "task_of_documents": DOCUMENTS, "broken_task": "import no_such_module\n"}
    for name, source in modules.items():
        (site / f"{name}.py").write_text(dedent(source), encoding="utf-8")
    (site / "more_tasks-1.0.dist-info" / "METADATA").write_text("Name: more-tasks\nVersion: 1.0\n", encoding="utf-8")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setattr("transduce.tasks.registry.TASKS", dict(TASKS))
    monkeypatch.setattr(TrainedModel, "by_task", dict(TrainedModel.by_task))

    def install(entry_points: str) -> None:
        path = site / "more_tasks-1.0.dist-info" / "entry_points.txt"
        path.write_text(f"[{TASK_GROUP}]\n{entry_points}\n", encoding="utf-8")
        importlib.invalidate_caches()

    yield install
    for name in modules:
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("name", "place"), [("words-backwards", "task_of_pairs:task"), ("lower-case", "task_of_documents")]
)
def test_an_added_task_passes_the_suite(
    small_runs: SmallRuns, added: Callable[[str], None], tmp_path: Path, name: str, place: str
) -> None:
    added(f"{name} = {place}\nbroken = broken_task")
    run = run_once(ADDED[name], tmp_path / name)
    for check in ("data", "training", "resume", "card", "loading"):
        CHECKS[check](run, tmp_path / check, small_runs["parsing"])
    for setting, facts in ADDED[name].mistakes:
        with pytest.raises(ConfigError, match=naming(*facts)):
            run.config(setting)


def test_documents_are_stored_as_tokenizers_learn_them(added: Callable[[str], None], tmp_path: Path) -> None:
    added("lower-case = task_of_documents")
    (tmp_path / "text.txt").write_text("The DOG sleeps.\n", encoding="utf-8")
    settings = ["model.system=language-model", "data.task=lower-case", "data.corpus=files", "data.language=en"]
    settings.append(f"data.train_text={tmp_path / 'text.txt'}")
    prepared = prepare(with_settings(RunConfig(), settings).data, tmp_path / "store")
    assert list(texts_of(prepared.train, prepared.tokenizers)) == ["the dog sleeps.\n"]


def test_its_settings_are_its_own(added: Callable[[str], None]) -> None:
    added("words-backwards = task_of_pairs:task")
    config = with_settings(RunConfig(), ["data.task=words-backwards", "data.n_letters=5"])
    assert config.data.model_dump()["n_letters"] == 5
    with pytest.raises(ConfigError, match=naming("data.n_letters", "'words-backwards'", "task = 'translation'")):
        with_settings(RunConfig(), ["data.n_letters=5"])
    with pytest.raises(ConfigError, match=naming("data.train_trees", "'parsing'", "task = 'words-backwards'")):
        with_settings(config, ["data.train_trees=a.ptb"])


def test_a_task_that_cannot_be_imported_is_one_clear_line(added: Callable[[str], None]) -> None:
    added("broken = broken_task\nmissing = task_of_pairs:no_such_task\nother = task_of_pairs:task")
    for name, reason in (("broken", "no_such_module"), ("missing", "no_such_task"), ("other", "task_of_pairs:task")):
        with pytest.raises(ConfigError, match=naming(f"'{name}'", "more-tasks", reason)):
            with_settings(RunConfig(), [f"data.task={name}"])
    assert task_named("translation").name == "translation"


def test_an_added_task_is_among_the_names_that_are_suggested(added: Callable[[str], None]) -> None:
    added("words-backwards = task_of_pairs:task")
    with pytest.raises(ConfigError, match=naming("'words-backward'", "words-backwards")):
        with_settings(RunConfig(), ["data.task=words-backward"])
    assert "task_of_pairs" not in sys.modules
