"""Encoding in several processes: the same files for every number, errors in one line, no process left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from forks import Forks
from said import naming
from transduce import worker_pool
from transduce.config import DataConfig
from transduce.corpora import generate_pairs
from transduce.data import PairSampling, write_pairs
from transduce.errors import ConfigError, DataError, MissingFileError, TransduceError
from transduce.tasks import prepare
from transduce.text import Tokenizers, train_bpe, train_wordpiece
from transduce.text.encoding_workers import chunk_encoder

PAIRS = [(pair.en, pair.de) for pair in generate_pairs("train", n_pairs=400, seed=3)]
ODD = [("", "leer"), ("  ", "leer"), ("long " * 80, "lang"), ("日本語", "\u3000 x\x1c"), ("a\u0308 't", "\ud800")]
TOKENIZER = train_bpe([text for pair in PAIRS for text in pair], vocab_size=400)
SHARED = Tokenizers(TOKENIZER, TOKENIZER)


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def workers_of(process: int) -> list[int]:
    command = ["pgrep", "-P", str(process), "-f", "transduce.text.encoding_workers"]
    return [int(each) for each in subprocess.run(command, capture_output=True, check=False).stdout.split()]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """More chunks than may be under way; afterwards no worker is left."""
    monkeypatch.setattr("transduce.data.pairs.PAIRS_PER_CHUNK", 30)
    yield
    assert workers_of(os.getpid()) == []


CONFIGS = {
    "translation": {"vocab_size": 400, "max_length": 24},
    "dropout": {"vocab_size": 400, "max_length": 24, "bpe_dropout": 0.2, "n_encodings": 3},
    "two WordPiece": {"vocab_size": 600, "tokenizer": "wordpiece", "shared_vocabulary": False},
    "weights": {"corpus": {"grammar": 1.0, "files": 2.0}, "vocab_size": 400, "n_pairs": 150, "bpe_dropout": 0.1},
    "masks": {"masks": True, "vocab_size": 400},
    "parsing": {"task": "parsing", "corpus": "grammar", "n_pairs": 200, "shared_vocabulary": False},
    "parsing with dropout": {
        "task": "parsing", "corpus": "grammar", "n_pairs": 200, "shared_vocabulary": False, "bpe_dropout": 0.2,
        "subtree_substitution": 0.5,
    },
}  # fmt: skip


@pytest.mark.merge
@pytest.mark.parametrize("name", CONFIGS)
def test_every_number_of_workers_writes_the_same_files(tmp_path: Path, name: str) -> None:
    values = {"corpus": "files", "vocab_size": 400, **CONFIGS[name], "max_dropped_share": 1.0}
    if "files" in values["corpus"]:
        (tmp_path / "train.tsv").write_bytes(
            "".join(f"{src}\t{tgt}\n" for src, tgt in [*PAIRS, *ODD, *PAIRS[:100]]).encode("utf-8", "surrogatepass")
        )
        values["train_tsv"] = str(tmp_path / "train.tsv")
    config = DataConfig(**values)
    written = []
    for n_workers in (1, 3):
        prepare(config, tmp_path / str(n_workers), n_workers=n_workers)
        written.append(files_of(tmp_path / str(n_workers)))
    assert len(written[0]) > 8
    assert written[0] == written[1]


def test_pairs_of_any_text_and_two_corpora(tmp_path: Path) -> None:
    corpora = {"one": [*PAIRS[:100], *ODD], "none": ODD[:2], "two": PAIRS[100:300]}
    dropout = PairSampling(p_drop=0.3, n_encodings=2, seed=5)
    written = []
    for n_workers in (1, 2):
        folder = tmp_path / str(n_workers)
        write_pairs(folder, corpora, SHARED, max_length=30, sampling=dropout, n_workers=n_workers)
        written.append(files_of(folder))
    assert written[0] == written[1]


def test_a_killed_worker_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    def pairs() -> Iterator[tuple[str, str]]:
        yield from PAIRS
        os.kill(workers_of(os.getpid())[0], signal.SIGKILL)
        yield from PAIRS * 20

    with pytest.raises(TransduceError, match=naming("SIGKILL", "memory", "workers")):
        write_pairs(tmp_path / "store", {"pairs": pairs()}, SHARED, max_length=30, n_workers=2)
    assert list(tmp_path.iterdir()) == []


def test_errors_of_the_text_and_of_a_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Iterator[tuple[str, str]]:
        yield from PAIRS
        raise DataError("train.en:401 is not UTF-8")

    with pytest.raises(DataError, match=r"^train\.en:401 is not UTF-8$"):
        write_pairs(tmp_path / "store", {"pairs": broken()}, SHARED, max_length=30, n_workers=2)
    monkeypatch.setattr(worker_pool, "PROGRAM", "import sys; sys.exit(3)")
    with pytest.raises(TransduceError, match="exit code 3"):
        write_pairs(tmp_path / "store", {"pairs": PAIRS}, SHARED, max_length=30, n_workers=2)
    assert list(tmp_path.iterdir()) == []


def test_every_error_of_ours_comes_from_a_worker_as_it_is() -> None:
    def tree(kind: type[TransduceError]) -> list[type[TransduceError]]:
        return [kind, *(each for below in kind.__subclasses__() for each in tree(below))]

    found = [each for each in tree(TransduceError) if each.__module__ == "transduce.errors"]
    assert len(found) >= 10
    for kind in found:
        error = worker_pool.rebuilt(*worker_pool.described(kind.__new__(kind, "a message")))
        assert (type(error), str(error)) == (kind, "a message")
    missing = MissingFileError(Path("terms.tsv"), where="here")
    assert str(worker_pool.rebuilt(*worker_pool.described(missing))) == str(missing)
    for other, kind in ((worker_pool.WorkerDied, TransduceError), (MemoryError, MemoryError), (KeyError, RuntimeError)):
        assert type(worker_pool.rebuilt(*worker_pool.described(other("x")))) is kind


def test_an_error_inside_a_worker_is_raised_here() -> None:
    pieces = train_wordpiece(["a dog"], vocab_size=520)
    dropout = PairSampling(p_drop=0.1, n_encodings=2, seed=1)
    with (
        chunk_encoder(Tokenizers(pieces, pieces), max_length=30, sampling=dropout, n_workers=2) as workers,
        pytest.raises(ConfigError, match="BPE-dropout needs merges"),
    ):
        list(workers.encode([PAIRS[:10]] * 9))


@pytest.mark.merge
def test_a_worker_ends_with_its_process_also_while_it_works() -> None:
    program = (
        "import time; from transduce.worker_pool import serve; serve(lambda _: print(1, flush=True) or time.sleep(60))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as worker:
        assert worker.stdin is not None
        assert worker.stderr is not None
        worker.stdin.write(worker_pool.pack_message(b"a description"))
        worker.stdin.flush()
        os.read(worker.stderr.fileno(), 99)  # where a worker prints
        worker.stdin.close()
        assert worker.wait(timeout=30) == 0


@pytest.mark.parametrize(
    "kind", [signal.SIGINT, *(pytest.param(kind, marks=pytest.mark.slow) for kind in (signal.SIGTERM, signal.SIGKILL))]
)
@pytest.mark.merge
def test_a_signal_leaves_no_process_and_no_folder(forks: Forks, tmp_path: Path, kind: signal.Signals) -> None:
    text = tmp_path / "train.tsv"
    text.write_text("".join(f"{src} {n}\t{tgt} {n}\n" for n in range(150) for src, tgt in PAIRS), encoding="utf-8")
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        f'[data]\ncorpus = "files"\ntrain_tsv = "{text}"\nvocab_size = 400\nbpe_dropout = 0.5\nn_encodings = 64\n'
    )
    process = forks.start("prepare", recipe, "--out", tmp_path / "out", "--workers", 2, before="os.setsid()")
    deadline = time.monotonic() + 60
    while len(workers_of(process.pid)) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    started = workers_of(process.pid)
    assert len(started) == 2
    time.sleep(0.5)
    os.killpg(process.pid, kind)  # as the terminal does with Ctrl-C
    _, err = process.communicate(timeout=60)
    if kind != signal.SIGKILL:
        assert process.returncode == 128 + kind
        lines = err.splitlines()
        assert lines[-1] == ("interrupted" if kind == signal.SIGINT else "ended by SIGTERM")
        assert "Traceback" not in err
        assert sorted(path.name for path in tmp_path.iterdir()) == ["recipe.toml", "train.tsv"]
    assert not (tmp_path / "out").exists()
    deadline = time.monotonic() + 30
    while (alive := [each for each in started if Path(f"/proc/{each}").exists()]) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert alive == []
