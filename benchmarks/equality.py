"""Regression check: compare the results of this version with those of an older commit.

    python benchmarks/equality.py COMMIT --data DIR [--only NAME...] [--json]

For refactorings that must not change results. Both versions run on the same text, recipes and seeds. Comparisons and
tolerances:

    float64     50 updates of a tiny model with Adam in float64, each loss           1e-9
    first       the first loss of the recipes in fp32                                 1e-6
    demo        every logged loss of the demo, and its BLEU                           1e-4, and 0.0
    translate   200 translations and their scores, by a model of the older version    identical, 1e-5
    parse       50 trees and their scores, likewise                                   identical, 1e-5

Sums in the same order are bit-equal. If only their order differs, float64 separates rounding from real differences,
which 50 updates amplify. Muon orthogonalises in bf16, so of recipes with it only the first loss can be compared, not
the whole curve. DIR holds the corpora of the recipes (multi30k, trees); recipes without their corpus are skipped with a
message. The recipes are those of the older version, which this one must be able to read. Exit code 1 on a difference.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
IN_FLOAT64 = "import sys, torch; torch.set_default_dtype(torch.float64); "
RUN = "import sys; from transduce.cli.main import run; sys.exit(run(sys.argv[1:]))"

TINY = """
[model]
n_encoder_layers = 2
n_decoder_layers = 2
d_model = 32
d_ff = 64
n_heads = 4
d_k = 8
d_v = 8
p_drop = 0.1
[data]
n_pairs = 2000
vocab_size = 400
[training]
max_updates = 50
max_tokens_per_batch = 1000
n_accumulate = 2
warmup_steps = 20
log_every_updates = 1
validate_every_updates = 25
validation_sentences = 20
checkpoint_every_updates = 25
[search]
beam_size = 2
max_extra_tokens = 5
"""
VARIANTS: dict[str, list[str]] = {  # settings that cover different code paths
    "base": [],
    "pre-norm, learned positions": ["model.norm=pre", "model.positions=learned"],
    "separate embeddings, r_drop": ["model.embeddings=separate", "training.r_drop=1.0"],
    "experts": ["model.n_experts=4"],
    "recurrent": ["model.system=recurrent"],
    "last-state": ["model.system=last-state"],
    "convs2s": ["model.system=convs2s"],
    "bytenet": ["model.system=bytenet"],
    "both ways": ["training.both_ways_epochs=1"],
}
# The key name of older versions, which this one reads too.
TREES = ["data.target=trees", "data.shared_vocabulary=false", "model.embeddings=separate"]
PARSING_VARIANTS: dict[str, list[str]] = {
    "trees": TREES,
    "trees, words, endings": [*TREES, "model.positions=words", "data.leaves=endings", "data.recombination=0.1"],
}
RECIPES = ("multi30k-en-de", "parsing-gum", "libreoffice-help-en-de")


@dataclass(frozen=True)
class Comparison:
    """The result of one comparison."""

    name: str
    n_compared: int
    difference: float  # maximum relative difference of numbers, or number of different texts
    tolerance: float

    @property
    def is_equal(self) -> bool:
        """Whether something was compared, and the difference is within the tolerance."""
        return self.n_compared > 0 and self.difference <= self.tolerance

    def __str__(self) -> str:
        verdict = "equal" if self.is_equal else "DIFFERENT"
        difference = "bit-equal" if self.difference == 0 else f"{self.difference:.1e}"
        return f"{verdict:<10}{self.name:<44}{self.n_compared:>5} compared, {difference} (at most {self.tolerance:.0e})"


class Version:
    """A source tree and its command line."""

    def __init__(self, tree: Path, work: Path) -> None:
        self.tree, self.work = tree, work
        work.mkdir()

    def __call__(self, *arguments: object, float64: bool = False, stdin: str = "") -> str:
        """Run a verb and return its output; exit if it fails."""
        code = (IN_FLOAT64 if float64 else "") + RUN
        environment = {**os.environ, "PYTHONPATH": str(self.tree / "src"), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)],
            input=stdin, capture_output=True, text=True, cwd=self.work, env=environment, check=False,
        )  # fmt: skip
        if done.returncode:
            sys.exit(f"{self.tree}: transduce {' '.join(map(str, arguments))}\n{done.stderr[-2000:]}")
        return done.stdout

    def train(self, recipe: Path, name: str, settings: Sequence[str], *, float64: bool = False, data: Path) -> Path:
        """Train a recipe and return the run folder."""
        out = self.work / name.replace(" ", "-").replace(",", "")
        sets = [part for setting in settings for part in ("--set", setting)]
        self("train", recipe, "--out", out, "--device", "cpu", "--data", data, *sets, float64=float64)
        return out


def losses(run: Path) -> list[float]:
    """Return all recorded losses of a run, of updates and of validations."""
    records = map(json.loads, (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return [record["loss_nats" if record["kind"] == "update" else "nll_nats"] for record in records
            if record["kind"] in ("update", "validation")]  # fmt: skip


def compared(name: str, old: Sequence[float], new: Sequence[float], tolerance: float) -> Comparison:
    """Compare two lists of numbers."""
    if len(old) != len(new):
        return Comparison(f"{name} ({len(old)} numbers before, {len(new)} now)", len(old), float("inf"), tolerance)
    differences = [abs(a - b) / max(abs(a), 1e-30) for a, b in zip(old, new, strict=True)]
    return Comparison(name, len(old), max(differences, default=0.0), tolerance)


def compared_texts(name: str, old: str, new: str, key: str, tolerance: float) -> Iterator[Comparison]:
    """Compare the texts and scores of two JSON Lines outputs."""
    before, after = ([json.loads(line) for line in out.splitlines()] for out in (old, new))
    n_different = sum(a[key] != b[key] for a, b in zip(before, after, strict=True))
    yield Comparison(f"{name}: texts", len(before), float(n_different), 0.0)
    yield compared(f"{name}: scores", [each["score"] for each in before], [each["score"] for each in after], tolerance)


class Equality:
    """The comparisons of two versions."""

    def __init__(self, old: Version, new: Version, data: Path) -> None:
        self.both, self.old, self.data = (old, new), old, data
        self.tiny = old.work / "tiny.toml"
        self.tiny.write_text(TINY, encoding="utf-8")

    def _losses(self, recipe: Path, name: str, settings: Sequence[str], *, float64: bool = False) -> list[list[float]]:
        return [losses(version.train(recipe, name, settings, float64=float64, data=self.data)) for version in self.both]

    def float64(self) -> Iterator[Comparison]:
        """Compare the losses of tiny models of every kind."""
        for name, settings in (VARIANTS | PARSING_VARIANTS).items():
            yield compared(f"float64: {name}", *self._losses(self.tiny, name, settings, float64=True), 1e-9)

    def first(self) -> Iterator[Comparison]:
        """Compare the first loss of the recipes."""
        for name in RECIPES:
            recipe = next(self.old.tree.glob(f"**/recipes/{name}.toml"))
            once = ["training.max_updates=1", "training.log_every_updates=1", "training.checkpoint_every_updates=1",
                    "training.validate_every_updates=1000000", "search.beam_size=1", "search.max_extra_tokens=0",
                    "training.max_tokens_per_batch=1024", "training.precision=fp32"]  # fmt: skip
            corpus = {
                "multi30k-en-de": "multi30k",
                "parsing-gum": "trees",
                "libreoffice-help-en-de": "libreoffice_help",
            }
            if not (self.data / corpus[name]).is_dir():
                print(f"skipped {name}: {self.data} has no {corpus[name]}", file=sys.stderr)
                continue
            yield compared(f"first loss: {name}", *(each[:1] for each in self._losses(recipe, name, once)), 1e-6)

    def demo(self) -> Iterator[Comparison]:
        """Compare the demo, and 200 translations by the older version's demo model."""
        runs = []
        for version in self.both:
            version("demo", "--out", version.work / "demo", "--device", "cpu", "--json")
            runs.append(version.work / "demo")
        yield compared("demo: losses", *map(losses, runs), 1e-4)
        sources = (runs[0] / "store" / "test.src").read_text(encoding="utf-8").splitlines()[:200]
        model, references = runs[0] / "model", runs[0] / "store" / "test.tgt"
        texts = [version("translate", model, "--json", stdin="\n".join(sources) + "\n") for version in self.both]
        yield from compared_texts("demo, 200 translations", *texts, "translation", 1e-5)
        scores = [
            json.loads(
                version(
                    "evaluate", run / "model", "--src", runs[0] / "store" / "test.src", "--ref", references, "--json"
                )
            )
            for version, run in zip(self.both, runs, strict=True)
        ]
        yield compared("demo: sacreBLEU", *([each["sacrebleu"]["score"]] for each in scores), 0.0)

    def parse(self) -> Iterator[Comparison]:
        """Compare 50 trees of a parser trained by the older version."""
        settings = [*TREES, "training.max_updates=300", "training.lr_factor=0.5", "data.leaves=endings",
                    "model.positions=words", "training.log_every_updates=100"]  # fmt: skip
        run = self.old.train(self.tiny, "parser", settings, data=self.data)
        words = (run / "store" / "test.src").read_text(encoding="utf-8").splitlines()[:50]
        trees = [version("parse", run / "model", "--json", stdin="\n".join(words) + "\n") for version in self.both]
        yield from compared_texts("50 trees", *trees, "tree", 1e-5)


@contextmanager
def tree_of(commit: str) -> Iterator[Path]:
    """Extract the files of a commit to a temporary folder."""
    folder = Path(tempfile.mkdtemp(prefix="transduce-equality-"))
    try:
        archive = subprocess.run(["git", "archive", commit], cwd=HERE, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=BytesIO(archive)) as tar:
            tar.extractall(folder / "tree", filter="data")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Print a line for each comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", nargs="+", choices=("float64", "first", "demo", "parse"))
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    comparisons: list[Comparison] = []
    with tree_of(arguments.commit) as folder:
        equality = Equality(
            Version(folder / "tree", folder / "old"), Version(HERE, folder / "new"), arguments.data.resolve()
        )
        kinds: dict[str, Callable[[], Iterator[Comparison]]] = {
            "float64": equality.float64, "first": equality.first, "demo": equality.demo, "parse": equality.parse
        }  # fmt: skip
        for name in arguments.only or kinds:
            for comparison in kinds[name]():
                comparisons.append(comparison)
                print(comparison, file=sys.stderr if arguments.json else sys.stdout, flush=True)
    if arguments.json:
        values: list[dict[str, Any]] = [{**asdict(each), "is_equal": each.is_equal} for each in comparisons]
        print(json.dumps({"commit": arguments.commit, "comparisons": values}))
    sys.exit(not all(each.is_equal for each in comparisons))


if __name__ == "__main__":
    main()
