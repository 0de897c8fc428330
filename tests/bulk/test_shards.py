"""Translation of many files: the same bytes whatever the number of workers, kills and processes."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from forks import Forks, Process
from said import naming, says
from talking_model import write_talking_model
from transduce import bulk
from transduce.bulk import TranslationJob, find_shards, translate_shards
from transduce.bulk import driver as driver_module
from transduce.bulk import shards as shards_module
from transduce.bulk.driver import BulkReport, LocalExecutor
from transduce.bulk.job import Shard, digest_of_folder, open_job
from transduce.bulk.shards import STALE_S, Claims, part_path
from transduce.bulk.worker import ShardTranslator
from transduce.config.decoding import DecodingOptions, LoadingOptions
from transduce.errors import ConfigError, DataError, TransduceError
from transduce.files import MAX_LINE_BYTES
from transduce.worker_pool import WorkerDied

pytestmark = pytest.mark.merge

WORDS = "the a old young dog cat man woman sees hears red book sleeps".split()


def write_shards(folder: Path, n_shards: int, n_lines: int) -> None:
    folder.mkdir()
    draw = random.Random(4)
    for number in range(n_shards):
        lines = "".join(" ".join(draw.choices(WORDS, k=draw.randint(0, 9))) + "\n" for _ in range(n_lines))
        suffix = (".gz", ".xz", "")[number % 3]
        content = {".gz": gzip.compress, ".xz": lzma.compress, "": bytes}[suffix](lines.encode())
        (folder / f"part{number:03}{suffix}").write_bytes(content)


@pytest.fixture(scope="module")
def model(micro_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator that writes something for every line."""
    return write_talking_model(micro_model, tmp_path_factory.mktemp("talking") / "model", max_extra_tokens=3)


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bulk") / "in"
    write_shards(folder, 6, 40)
    return folder


def contents(out: Path) -> dict[str, bytes]:
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def job_of(model: Path, *options: Any) -> TranslationJob:
    return TranslationJob(LoadingOptions([model]), *options)


class InProcess:
    """A worker in this process, which starts at once."""

    def __init__(self, job: TranslationJob) -> None:
        self._translator = ShardTranslator(job)

    def translate(self, shard: Shard, out: Path) -> None:
        self._translator.translate(shard.path, out, shard.name)

    def end(self) -> None:
        pass

    close = end


def translated(model: Path, pattern: object, out: Path, **options: Any) -> BulkReport:
    """Translate the files of a folder or a pattern, by one worker in this process unless ``options`` say otherwise."""
    shards = find_shards(str(pattern), out)
    return translate_shards(job_of(model), shards, out, **{"n_workers": 1, "make_executor": InProcess, **options})


@pytest.fixture(scope="module")
def undisturbed(model: Path, shards: Path) -> dict[str, bytes]:
    out = shards.parent / "undisturbed"
    report = translated(model, f"{shards}/part*", out)
    assert (report.n_shards, report.n_translated) == (6, 6)
    assert sum(map(bool, (out / "part002").read_text().splitlines())) > 30  # empty are only those of empty lines
    return contents(out)


def test_the_output_is_no_shard_and_odd_names_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "in" / "deep" / "out"
    out.mkdir(parents=True)
    for path in (out.parent / "a", out / "a", out / "bulk.json", out / "done" / "a.json"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("a")
    assert find_shards(f"{tmp_path}/in/**/*", out) == [Shard("deep/a", out.parent / "a")]  # also when it is resumed
    for folder in (out, out.parent):
        with pytest.raises(ConfigError, match=naming("--out", folder)):
            find_shards(f"{out.parent}/*" if folder == out.parent else f"{out}/a", folder)
    for number, name in enumerate((b"done", b"claims", b"manifest.json", b"x\xff")):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / os.fsdecode(name)).touch()
        with pytest.raises(ConfigError, match="rename"):
            find_shards(f"{folder}/*", tmp_path / "new")


def test_what_matches_and_is_no_file_is_named(tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    (folder / "good").write_text("the dog\n")
    (folder / "folder").mkdir()
    (folder / "link").symlink_to("good")
    assert [shard.name for shard in find_shards(f"{folder}/*", out)] == ["good", "link"]
    for name, make, words in (
        ("gone", lambda path: path.symlink_to("/nothing/here"), ("nothing",)),
        ("loop", lambda path: path.symlink_to("loop"), ()),
        ("pipe", os.mkfifo, ("pipe",)),
        ("device", lambda path: path.symlink_to("/dev/null"), ("device",)),
    ):
        make(folder / name)
        with pytest.raises(ConfigError, match=naming(folder / name, *words)):
            find_shards(f"{folder}/*", out)
        (folder / name).unlink()


def test_a_folder_is_translated_with_its_subfolders(model: Path, tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    for name in ("a", "guide/a", "guide/part 2/b", ".hidden/c", "guide/.d"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"the dog {len(name)}\n")
    (folder / "link").symlink_to("guide")  # its files have their place already
    found = find_shards(str(folder), out)
    assert [shard.name for shard in found] == ["a", "guide/a", "guide/part 2/b"]
    translated(model, folder, out)
    written = contents(out)
    assert {shard.name for shard in found} < written.keys()
    assert written["a"] != written["guide/a"]
    manifest = json.loads(written["manifest.json"])
    assert [each["name"] for each in manifest["shards"]] == [shard.name for shard in found]
    (out / "guide" / "a").unlink()
    assert (translated(model, folder, out).n_translated, contents(out)) == (1, written)
    by_pattern = tmp_path / "by pattern"
    found = find_shards(f"{folder}/gui*/**/*", by_pattern)
    assert [shard.name for shard in found] == ["guide/a", "guide/part 2/b"]


def test_links_and_the_longest_names_are_translated(model: Path, tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    longest = os.pathconf(tmp_path, "PC_NAME_MAX") - len(".json")
    (folder / ("n" * longest)).write_text("the dog\n")
    (folder / "zz").symlink_to("n" * longest)
    translated(model, f"{folder}/*", out)
    assert (out / "zz").read_bytes() == (out / ("n" * longest)).read_bytes() != b""
    assert not list(out.glob(".*"))
    for more in ("n", "ü"):
        (folder / ("n" * longest + more)).touch()
        with pytest.raises(ConfigError, match=naming(longest + len(more.encode()), longest)):
            find_shards(f"{folder}/*", out)
        (folder / ("n" * longest + more)).unlink()


def test_lines_that_are_changed_or_cut_are_told(model: Path, tmp_path: Path) -> None:
    folder, out, told = tmp_path / "in", tmp_path / "out", list[str]()
    folder.mkdir()
    (folder / "a").write_bytes(b"the dog\nth\xff dog\n" + b"the" * 9000 + b"\nthe\n")
    (folder / "b").write_bytes(b"the dog\n")
    (folder / "c").write_bytes(("the dog\n" * 9).encode("utf-16"))
    (folder / "d").write_bytes(b"dog\n" + b" " * MAX_LINE_BYTES + b"dog\nthe dog\n")
    report = translated(model, f"{folder}/[ab]", out, log=told.append)
    assert len(told) == 2
    assert says(told[0], "a", 1, 4, "lines", 3, "cut off")
    assert says(told[1], "a", 1, 4, "lines", 2, "UTF-8")
    [of_a, of_b] = json.loads((out / "manifest.json").read_text())["shards"]
    assert (of_a["truncated_lines"], of_a["invalid_lines"], of_a["lines"]) == (1, 1, 4)
    assert (of_b["truncated_lines"], of_b["invalid_lines"]) == (0, 0)
    assert [each.invalid_lines for each in report.results] == [1, 0]
    other = tmp_path / "other"
    with pytest.raises(DataError, match=naming(1, 2, "shards", "UTF-16")):
        translated(model, f"{folder}/[cd]", other)
    assert json.loads((other / "done" / "d.json").read_text())["truncated_lines"] == 1


def test_the_command_counts_what_was_changed(transduce: Callable[..., Any], model: Path, tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    (folder / "a").write_bytes(b"th\xff dog\n")
    (folder / "b").write_bytes(b"the dog\n")
    translated(model, f"{folder}/*", out)
    outcome = transduce("translate", model, "--in", f"{folder}/*", "--out", out, "--device", "cpu")
    assert outcome.code == 0
    assert says(outcome.err.splitlines()[-1], "warning", 1, "invalid", out / "manifest.json")


def test_a_resume_trusts_content_not_sizes(model: Path, tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    for name in "ab":
        (folder / name).write_text(f"the {name} dog\n")

    def translate() -> BulkReport:
        return translated(model, f"{folder}/*", out)

    def linked(path: Path, to: Path) -> None:
        path.unlink()
        path.symlink_to(to)

    translate()
    once = contents(out)
    assert translate().n_translated == 0
    (folder / "a").write_text("the x dog\n")  # of the same size
    with pytest.raises(DataError, match=naming(folder / "a", "changed")):
        translate()
    (folder / "a").write_text("the a dog\n")
    for change in (
        lambda path: path.write_bytes(path.read_bytes()[::-1]),
        lambda path: path.write_bytes(b""),
        lambda path: linked(path, folder / "a"),
        lambda path: linked(path, Path("/nothing/here")),
    ):
        change(out / "a")
        with pytest.raises(DataError, match=naming(re.compile(re.escape(str(out / "a"))))):
            translate()
        (out / "a").unlink()
        assert translate().n_translated == 1  # what was removed is translated again
        assert contents(out) == once


def test_what_killed_workers_leave_is_removed(model: Path, tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    for name in "ab":
        (folder / name).write_text("the dog\n")
    found = find_shards(f"{folder}/*", out)
    seen = list[set[str]]()

    class Watching(InProcess):
        def translate(self, shard: Shard, out: Path) -> None:
            seen.append({path.name for path in out.glob(".*.part")})
            super().translate(shard, out)

    open_job(job_of(model), found, out)
    of_a, of_b = (part_path(out, name).with_suffix(".77.part") for name in "ab")
    older = out / ".a.host.4711.part"  # as earlier versions named it
    (out / "done").mkdir()
    for path in (of_a, of_b, older, out / "done" / ".0123.tmp"):
        path.write_text("half")
    translated(model, f"{folder}/*", out, make_executor=Watching)
    assert [{of_a.name, of_b.name} & names for names in seen] == [{of_b.name}, set()]
    assert not list(out.rglob(".*"))


def test_it_writes_what_translate_writes(
    transduce: Callable[..., Any], model: Path, shards: Path, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    for name in ("part000.gz", "part001.xz", "part002"):
        out = tmp_path / name
        assert transduce("translate", model, "--in", shards / name, "--out", out, "--device", "cpu").code == 0
        assert out.read_bytes() == undisturbed[name]


def test_the_manifest_has_checksums_and_no_paths(model: Path, shards: Path, undisturbed: dict[str, bytes]) -> None:
    manifest = json.loads(undisturbed["manifest.json"])
    assert manifest["models"] == [digest_of_folder(model)]
    assert (manifest["threads_per_worker"], manifest["format"]) == (1, 1)
    for entry in manifest["shards"]:
        for side, content in (("output", undisturbed[entry["name"]]), ("input", (shards / entry["name"]).read_bytes())):
            assert entry[f"{side}_sha256"] == hashlib.sha256(content).hexdigest()
            assert entry[f"{side}_bytes"] == len(content)
        assert entry["lines"] == 40
    text = undisturbed["manifest.json"].decode()
    assert str(shards.parent) not in text
    assert str(model) not in text
    assert not [name for name in undisturbed if name.startswith(("claims", "."))]


def test_two_workers_give_the_same_bytes(
    transduce: Callable[..., Any], model: Path, shards: Path, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    command = ("translate", model, "--in", f"{shards}/part*", "--out", out, "--workers", 2, "--device", "cpu")
    done = transduce(*command)
    assert done.code == 0
    assert says(done.err, "6 files translated")
    assert contents(out) == undisturbed
    again = transduce(*command)  # nothing is left to do
    assert again.code == 0
    assert says(again.err.splitlines()[-1], "0 files", 6)
    assert contents(out) == undisturbed


@pytest.mark.merge
def test_a_worker_that_dies_is_replaced(
    model: Path, shards: Path, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    made = list[LocalExecutor]()
    lines = list[str]()

    class Mortal(LocalExecutor):
        """The first two die with a shard in hand."""

        def translate(self, shard: Shard, out: Path) -> None:
            if len(made) <= 2:
                self.end()
            super().translate(shard, out)

    def make(job: TranslationJob) -> LocalExecutor:
        made.append(Mortal(job))
        return made[-1]

    out = tmp_path / "out"
    report = translated(model, f"{shards}/part*", out, make_executor=make, log=lines.append)
    assert report.n_translated == 6
    assert contents(out) == undisturbed
    assert [says(line, "worker", "part000.gz", "SIGKILL") for line in lines] == [True] * 2


def test_a_shard_that_kills_every_worker_ends_the_command(model: Path, shards: Path, tmp_path: Path) -> None:
    class Doomed:
        def translate(self, shard: Shard, out: Path) -> None:
            raise WorkerDied("by SIGKILL")

        def end(self) -> None:
            pass

        close = end

    out = tmp_path / "out"
    with pytest.raises(TransduceError, match=naming("part000.gz", 3)):
        translated(model, f"{shards}/*", out, make_executor=lambda job: Doomed())


def test_an_interrupt_ends_all_workers_at_once(
    model: Path, shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_work = threading.Barrier(4)

    class Busy:
        def __init__(self, job: TranslationJob) -> None:
            self._is_ended = threading.Event()

        def translate(self, shard: Shard, out: Path) -> None:
            part_path(out, shard.name).write_text("half")
            at_work.wait(30)
            self._is_ended.wait(30)
            raise WorkerDied("by SIGKILL")

        def end(self) -> None:
            self._is_ended.set()

        close = end

    def interrupted(seconds: float) -> None:
        at_work.wait(30)
        raise KeyboardInterrupt

    out, begun = tmp_path / "out", time.monotonic()
    monkeypatch.setattr(driver_module, "time", SimpleNamespace(sleep=interrupted))
    with pytest.raises(KeyboardInterrupt):
        translated(model, f"{shards}/*", out, n_workers=3, make_executor=Busy)
    assert time.monotonic() - begun < 9
    assert list((out / "claims").iterdir()) == []
    assert not list(out.glob(".*"))


def test_an_interrupt_says_how_to_go_on(
    transduce: Callable[..., Any], model: Path, shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object, on_progress: Callable[[int], None], **options: object) -> None:
        on_progress(2)
        raise KeyboardInterrupt

    monkeypatch.setattr(bulk, "translate_shards", interrupted)
    outcome = transduce("translate", model, "--in", f"{shards}/*", "--out", tmp_path / "out", "--device", "cpu")
    assert outcome.code == 130
    *_, told, last = outcome.err.splitlines()
    assert says(told, f"2 of {len(list(shards.iterdir()))} files", tmp_path / "out", "same command")
    assert last == "interrupted"


def test_workers_elsewhere_find_the_lists(
    transduce: Callable[..., Any], model: Path, shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[TranslationJob]()
    monkeypatch.setattr(bulk, "translate_shards", lambda job, *_, **__: asked.append(job) or BulkReport(0, 0))
    monkeypatch.chdir(tmp_path)
    lists = {"terms": "terms.tsv", "avoid": "avoided.txt", "memory": "memory.tsv"}
    options = [word for name, file in lists.items() for word in (f"--{name}", file)]
    for name in lists.values():
        Path(name).write_text("dog\tHund\n")
    assert transduce("translate", model, "--in", f"{shards}/*", "--out", "out", *options).code == 0
    [job] = asked
    assert {name: getattr(job.loading, name) for name in lists} == {
        name: tmp_path / file for name, file in lists.items()
    }


def start(forks: Forks, model: Path, shards: Path, out: Path, *options: object, before: str = "os.setsid()") -> Process:
    command = ("translate", model, "--in", f"{shards}/part*", "--out", out, "--device", "cpu")
    return forks.start(*command, *options, before=before)


@pytest.mark.reliability
def test_a_killed_command_goes_on_where_it_was(
    forks: Forks, model: Path, shards: Path, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    process = start(forks, model, shards, out)
    give_up = time.monotonic() + 60
    while not (out / "part001.xz").exists():
        assert time.monotonic() < give_up
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert not (out / "manifest.json").exists()
    report = translated(model, f"{shards}/part*", out)
    assert 0 < report.n_translated < 6
    assert contents(out) == undisturbed


@pytest.mark.reliability
@pytest.mark.merge
def test_a_full_disk_is_one_line_and_leaves_no_part_of_a_shard(forks: Forks, model: Path, tmp_path: Path) -> None:
    folder, out, room = tmp_path / "in", tmp_path / "out", 6000
    write_shards(folder, 3, 40)
    (folder / "part002").write_text("the young woman sees the old dog\n" * 300)

    limit = f"resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room}))"
    process = start(forks, model, folder, out, before=limit)
    _, said = process.communicate()
    assert process.returncode == 1
    assert says(said.splitlines()[-1], "error", "File too large", "part002")
    assert not (out / "manifest.json").exists()
    assert {name for name in contents(out) if name.startswith("part")} == {"part000.gz", "part001.xz"}
    for place in (out, tmp_path / "once"):
        translated(model, f"{folder}/part*", place)
    assert contents(out) == contents(tmp_path / "once")
    assert len(contents(out)["part002"]) > room


@pytest.mark.reliability
@pytest.mark.slow
def test_two_hundred_thousand_lines_killed_ten_times(forks: Forks, model: Path, tmp_path: Path) -> None:
    write_shards(tmp_path / "in", 200, 1000)
    process = start(forks, model, tmp_path / "in", tmp_path / "once", "--workers", 2)
    process.communicate()
    assert process.returncode == 0
    draw, out = random.Random(7), tmp_path / "out"
    for _ in range(10):
        process = start(forks, model, tmp_path / "in", out, "--workers", 2)
        time.sleep(draw.uniform(3, 12))
        if draw.random() < 0.5:
            process.kill()
        else:  # everything, as when the machine loses power
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    process = start(forks, model, tmp_path / "in", out, "--workers", 2)
    process.communicate()
    assert process.returncode == 0
    assert contents(out) == contents(tmp_path / "once")


@pytest.mark.reliability
@pytest.mark.slow
def test_ray_gives_the_same_bytes_though_an_actor_is_killed(
    model: Path, shards: Path, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    ray = pytest.importorskip("ray")
    from transduce.bulk.on_ray import RayExecutor, connect

    n_processors, _ = connect("local", 2)
    assert n_processors == 2
    try:
        made, lines = list[RayExecutor](), list[str]()

        class Mortal(RayExecutor):
            def translate(self, shard: Shard, out: Path) -> None:
                if self is made[0]:
                    ray.kill(self._actor)
                super().translate(shard, out)

        def make(job: TranslationJob) -> RayExecutor:
            made.append(Mortal(job))
            return made[-1]

        out = tmp_path / "out"
        translated(model, f"{shards}/part*", out, n_workers=2, make_executor=make, log=lines.append)
        assert contents(out) == undisturbed
        assert any("worker" in line for line in lines)
    finally:
        ray.shutdown()


def test_what_cannot_be_read_does_not_stop_the_others(
    model: Path, shards: Path, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    (folder / "part000.gz").write_bytes((shards / "part000.gz").read_bytes()[:-9])
    (folder / "part002").write_bytes((shards / "part002").read_bytes())
    with pytest.raises(DataError, match=naming(1, 2, "part000.gz")):
        translated(model, f"{folder}/*", out)
    assert (out / "part002").read_bytes() == undisturbed["part002"]
    assert not (out / "part000.gz").exists()
    assert not (out / "manifest.json").exists()
    assert not list(out.glob(".*"))


def test_another_model_does_not_continue_a_job(
    model: Path, shards: Path, own_model: Path, undisturbed: dict[str, bytes]
) -> None:
    out = shards.parent / "undisturbed"
    found = find_shards(f"{shards}/part*", out)
    with pytest.raises(ConfigError, match=naming("bulk.json", "alpha", "beam")):
        translate_shards(job_of(model, DecodingOptions(beam_size=2, alpha=0.5)), found, out, n_workers=1)
    manifest = json.loads((own_model / "manifest.json").read_text())
    manifest["files"]["config.json"]["sha256"] = "0" * 64
    (own_model / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ConfigError, match=naming("models")):
        translate_shards(job_of(own_model), found, out, n_workers=1)
    with pytest.raises(ConfigError, match=naming("shards")):
        translate_shards(job_of(model), found[1:], out, n_workers=1)
    terms = shards.parent / "terms.tsv"
    terms.write_text("dog\tHund\n")
    with_terms = LoadingOptions([model], terms=terms)
    with pytest.raises(ConfigError, match=naming("terms")):
        translate_shards(TranslationJob(with_terms), found, out, n_workers=1)
    assert contents(out) == undisturbed


def test_a_job_goes_on_with_the_same_lists_only(model: Path, shards: Path, tmp_path: Path) -> None:
    """The content of memory and terms decides, not their names; leaving one out is another job, too."""
    found, memory = find_shards(f"{shards}/part*", tmp_path / "out"), tmp_path / "a.tsv"
    memory.write_text("The dog sleeps.\tDer Hund schläft.\n", encoding="utf-8")
    open_job(TranslationJob(LoadingOptions([model], memory=memory)), found, tmp_path / "out")
    same = memory.rename(tmp_path / "b.tsv")
    open_job(TranslationJob(LoadingOptions([model], memory=same)), found, tmp_path / "out")
    for other in (LoadingOptions([model]), LoadingOptions([model], memory=same, are_terms_required=True)):
        with pytest.raises(ConfigError, match=naming("bulk.json", "other")):
            open_job(TranslationJob(other), found, tmp_path / "out")
    same.write_text("The dog sleeps.\tEin Hund schläft.\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=naming("memory")):
        open_job(TranslationJob(LoadingOptions([model], memory=same)), found, tmp_path / "out")


def test_two_processes_that_finish_together_are_both_done(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One tidies up before the other's manifest has its name, or while it looks at claims."""
    folder, out, write_json = tmp_path / "in", tmp_path / "out", shards_module.write_json
    write_shards(folder, 2, 3)
    found = find_shards(f"{folder}/part*", out)
    open_job(job_of(model), found, out)
    claims = Claims(out)
    assert claims.take("part000")
    translator = InProcess(job_of(model))
    for shard in found:
        translator.translate(shard, out)

    def written_beside_another(path: Path, value: object) -> None:
        write_json(path, value)
        monkeypatch.setattr(shards_module, "write_json", write_json)
        shards_module.write_final_manifest(out, found)

    monkeypatch.setattr(shards_module, "write_json", written_beside_another)
    assert [each.name for each in shards_module.write_final_manifest(out, found)] == [each.name for each in found]
    read_text = Path.read_text
    monkeypatch.setattr(Path, "read_text", lambda path: (read_text(path), shutil.rmtree(out / "claims"))[0])
    (out / "claims").mkdir()
    assert claims.take("part000")
    assert not claims.take("part000")


@pytest.fixture
def claims(tmp_path: Path) -> tuple[Claims, Claims]:
    return Claims(tmp_path), Claims(tmp_path)


def test_a_claim_keeps_others_away(claims: tuple[Claims, Claims], tmp_path: Path) -> None:
    first, second = claims
    assert first.take("a")
    assert not second.take("a")
    assert second.take("b")
    first.give_back("a")
    assert second.take("a")
    first.give_back("a")  # not its own any more
    assert not first.take("a")


@pytest.mark.parametrize("host", ["here", "elsewhere"])
def test_a_claim_of_a_dead_process_is_taken_over(claims: tuple[Claims, Claims], tmp_path: Path, host: str) -> None:
    first, second = claims
    assert first.take("a")
    path = tmp_path / "claims" / "a"
    owner = json.loads(path.read_text())
    if host == "here":
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        path.write_text(json.dumps(owner | {"process": ended.pid}))
    else:
        path.write_text(json.dumps(owner | {"host": "another"}))
        assert not second.take("a")  # it may live
        old = time.time() - STALE_S - 5
        os.utime(path, (old, old))
    assert second.take("a")


def test_the_pattern_is_checked(
    transduce: Callable[..., Any], model: Path, shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pattern = f"{shards}/part*"
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "part002").write_text("x\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "other").write_text("x")
    file = tmp_path / "file"
    file.write_text("x")
    for options, facts in (
        (("--in", f"{tmp_path}/none*", "--out", tmp_path / "out"), ("none*",)),
        (("--in", pattern), ("--out",)),
        (("--in", pattern, "--out", file), ("--out",)),
        (("--in", pattern, "--out", shards), (shards,)),
        (("--in", pattern, "--out", tmp_path / "full"), ("full", "bulk.json")),
        (("--in", f"{tmp_path}/two/*", "--out", tmp_path / "out", "--json"), ("--json",)),
        (("--ray", "local", "--out", tmp_path / "out"), ("--in",)),
    ):
        refused = transduce("translate", model, *options)
        assert refused.code == 1, options
        assert says(refused.err, *facts)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a[b]").write_text("the dog\n")  # a file of that name is no pattern
    assert transduce("translate", model, "--in", "a[b]", "--out", "c").code == 0
    with pytest.raises(ConfigError, match=r"'\.\.'"):
        find_shards(f"{tmp_path}/*/../two/part002", tmp_path / "out")


def test_the_heartbeat_touches_claims(
    model: Path, shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_module, "HEARTBEAT_S", 0.02)
    ages = list[float]()

    class Slow(InProcess):
        def translate(self, shard: Shard, out: Path) -> None:
            path = out / "claims" / shard.name
            os.utime(path, (1.0, 1.0))
            time.sleep(0.2)
            ages.append(time.time() - path.stat().st_mtime)
            super().translate(shard, out)

    out = tmp_path / "out"
    translated(model, f"{shards}/part002", out, make_executor=Slow)
    assert ages
    assert max(ages) < 10
