"""Translating, generating and parsing with the engine in C need no PyTorch; what needs it says so in one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from said import naming, says
from tasks.small_recipes import SmallRuns
from transduce.errors import ConfigError
from transduce.inference.engine import EngineSettings
from transduce.inference.engines import make_engine
from transduce.inference.folder import read_model_folder
from transduce.inference.native.binding import library

pytestmark = [pytest.mark.merge, pytest.mark.skipif(library() is None, reason="the engine in C was not compiled")]

# An environment without PyTorch: its import is refused as if it were not installed. Workers find a module in its place.
PROGRAM = """
import sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, Refused())
"""
REFUSED = "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n"
TESTS = Path(__file__).parent.parent
CLI = "from transduce.cli.main import main\nmain()"
CONFORMANCE = "import pytest\nsys.exit(pytest.main([sys.argv[1], '-q', '-p', 'no:cacheprovider', '-m', '']))"


def without_torch(
    program: str, *arguments: object, text: str = "", folder: Path = TESTS
) -> subprocess.CompletedProcess[str]:
    """``folder``: with modules that come before others."""
    command = [sys.executable, "-c", PROGRAM + program, *map(str, arguments)]
    paths = os.pathsep.join([str(folder), *sys.path])
    return subprocess.run(
        command, input=text, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": paths}
    )


def test_engines_conform_without_it() -> None:
    done = without_torch(CONFORMANCE, TESTS / "inference" / "test_every_engine.py")
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith(".")


@pytest.mark.parametrize(
    ("task", "verb", "files"),
    [
        ("image-to-text", "read", ["test-0.png", "test-1.png"]),
        ("speech-to-text", "transcribe", ["test-0.wav", "test-1.flac"]),
    ],
)
def test_files_are_read_without_it(small_runs: SmallRuns, task: str, verb: str, files: list[str]) -> None:
    pytest.importorskip("PIL" if verb == "read" else "soundfile")
    run = small_runs[task]
    arguments = [str(run.model), *(str(run.files / each) for each in files)]
    alone = without_torch(CLI, verb, *arguments)
    command = [sys.executable, "-m", "transduce", verb, *arguments, "--engine", "torch"]
    beside = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (alone.returncode, alone.stderr, alone.stdout) == (0, beside.stderr, beside.stdout)


@pytest.mark.parametrize(
    ("task", "arguments", "text"),
    [
        ("translation", ("translate", "--json"), "The old dog sleeps. A cat sees 12 dogs!\n\nYes.\n"),
        ("translation", ("translate", "--precision", "int8"), "The old dog sleeps.\n"),
        ("parsing", ("parse",), "The dog sleeps .\nA cat sees the dog .\n"),
        ("causal-lm", ("generate", "--max-tokens", "8"), "The dog\nA cat \n"),
        ("sft", ("generate", "--max-tokens", "8"), "Negate: He sleeps.\n"),
    ],
)
def test_verbs_say_the_same_without_it(small_runs: SmallRuns, task: str, arguments: tuple[str, ...], text: str) -> None:
    verb, *options = arguments
    alone = without_torch(CLI, verb, small_runs[task].model, *options, text=text)
    command = [sys.executable, "-m", "transduce", verb, str(small_runs[task].model), *options]
    beside = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    assert (alone.returncode, alone.stderr, alone.stdout) == (0, beside.stderr, beside.stdout)


@pytest.mark.parametrize(
    "arguments",
    [
        ("translate", "--workers", "2"),
        ("translate", "--in", "{}/in", "--out", "{}/out"),
        ("distil", "--workers", "2", "--src", "{}/in/a.en", "--out", "{}/out.tsv"),
    ],
    ids=["stream", "folder", "distil"],
)
def test_workers_need_none(small_runs: SmallRuns, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "torch.py").write_text(REFUSED)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.en").write_text("The dog sleeps.\n")
    verb, *options = (each.replace("{}", str(tmp_path)) for each in arguments)
    model = small_runs["translation"].model
    done = without_torch(CLI, verb, model, *options, text="The dog sleeps.\n", folder=tmp_path)
    assert (done.returncode, "bug" in done.stderr) == (0, False), done.stderr


def test_terms_are_searched_for_without_it(small_runs: SmallRuns, tmp_path: Path) -> None:
    (tmp_path / "terms.tsv").write_text("dog\tKater\n")
    (tmp_path / "never.txt").write_text("Hund\n")
    model = small_runs["translation"].model
    arguments = [model, "--terms", tmp_path / "terms.tsv", "--terms-hard", "--avoid", tmp_path / "never.txt"]
    done = without_torch(CLI, "translate", *arguments, text="The old dog sleeps.\n")
    assert done.returncode == 0
    assert "terms: 1 of 1" in done.stderr
    assert "Kater" in done.stdout


def test_it_is_not_imported_where_it_is_installed(small_runs: SmallRuns) -> None:
    program = """
import sys
from transduce.inference import LanguageModel, Parser, Translator
Translator.load(sys.argv[1]).translate(["The dog sleeps."])
Parser.load(sys.argv[2]).parse(["The dog sleeps ."])
LanguageModel.load(sys.argv[3]).generate(["The"], max_tokens=3)
assert "torch" not in sys.modules, "torch was imported"
"""
    folders = [str(small_runs[task].model) for task in ("translation", "parsing", "causal-lm")]
    done = subprocess.run([sys.executable, "-c", program, *folders], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


IMPORTS = """
import atexit
import json
import sys
from transduce.inference.native import packed_files

packed_files.MIN_BYTES = 0

@atexit.register
def report():
    from transduce.config.record import Record
    kinds = [Record]
    kinds += (each for kind in kinds for each in kind.__subclasses__())
    print(json.dumps([sorted(sys.modules), [each.__name__ for each in kinds if each.__pydantic_complete__]]))
"""
UNUSED = {  # by a translator of plain lines whose packed weights are in a file
    "torch", "numpy", "safetensors", "rich", "html", "readline", "concurrent.futures.process", "multiprocessing",
    "transduce.config.data", "transduce.config.run", "transduce.config.task_settings", "transduce.config.training",
    "transduce.trees", "transduce.text.bracket_grammar", "transduce.text.bpe", "transduce.text.sentencepiece_tokenizer",
    "transduce.inference.parser", "transduce.inference.media_model",
    "transduce.inference.language_models", "transduce.inference.torch_engine", "transduce.inference.decoders",
    "transduce.inference.translation.shortlists", "transduce.inference.translation.word_alignment",
    "transduce.bulk", "transduce.tasks", "transduce.training", "transduce.corpora", "transduce.metrics",
}  # fmt: skip


@pytest.mark.parametrize(
    "program", [CLI, 'import transduce\ntransduce.load(sys.argv[-1]).translate(["The dog sleeps."])']
)
def test_a_translation_imports_what_it_uses(small_runs: SmallRuns, tmp_path: Path, program: str) -> None:
    command = [sys.executable, "-c", f"{IMPORTS}\n{program}", "translate", str(small_runs["translation"].model)]
    for _ in range(2):  # the first packs the weights
        done = subprocess.run(
            command, input="The dog sleeps.\n", capture_output=True, text=True, check=True,
            env=os.environ | {"XDG_CACHE_HOME": str(tmp_path), "LOCALAPPDATA": str(tmp_path)},
        )  # fmt: skip
    modules, records = json.loads(done.stdout.splitlines()[-1])
    assert not UNUSED.intersection(modules)
    assert {*records} == {"TransformerConfig", "BeamSearchConfig", "LineStatistics"}


@pytest.mark.parametrize(
    "arguments",
    [("train", "recipe.toml", "--out", "run"), ("fill", "{model}"), ("translate", "{model}", "--engine=torch")],
)
def test_what_needs_it_says_so(small_runs: SmallRuns, arguments: tuple[str, ...], tmp_path: Path) -> None:
    masked = small_runs["masked-lm" if arguments[0] == "fill" else "translation"].model
    (tmp_path / "recipe.toml").write_text("")
    named = [each.replace("{model}", str(masked)).replace("recipe", str(tmp_path / "recipe")) for each in arguments]
    done = without_torch(CLI, *named, text="A <mask> sleeps.\n")
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert says(line, "needs PyTorch: pip install 'transduce[train]'", "https://download.pytorch.org/whl/cpu")


def test_a_search_that_needs_it_says_so(small_runs: SmallRuns) -> None:
    unknown = "from transduce.inference.native import call\ncall.KNOWN -= {'no_repeat_ngram'}\n"
    done = without_torch(
        unknown + CLI, "translate", small_runs["translation"].model, "--no-repeat-ngram", 2, text="A\n"
    )
    assert (done.returncode, done.stdout) == (1, "")
    [line] = done.stderr.splitlines()
    assert says(line, "no_repeat_ngram = 2 of a search needs PyTorch: pip install 'transduce[train]'")


def test_an_engine_that_cannot_be_used(small_runs: SmallRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = read_model_folder(small_runs["masked-lm"].model, device="cpu").stored
    with pytest.raises(ConfigError, match=naming("native", "is_causal = False", "torch")):
        make_engine(stored, settings=EngineSettings(engine="native"))
    monkeypatch.setenv("TRANSDUCE_ENGINE", "fast")
    with pytest.raises(ConfigError, match=naming("auto", "native", "torch", "fast")):
        make_engine(stored)
