"""Translation of all files of a pattern (``translate --in 'shards/*.gz' --out DIR``)."""

from __future__ import annotations

import glob
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from transduce.cli import options
from transduce.cli.documents import AUTO
from transduce.cli.machine import chosen_device
from transduce.cli.output import STANDARD
from transduce.cli.paths import require_writable
from transduce.cli.progress import ShardProgress
from transduce.cli.signals import EndedBySignal
from transduce.errors import ConfigError, TransduceError
from transduce.files import MANIFEST_NAME, write_json
from transduce.inference.devices import usable_precision

if TYPE_CHECKING:
    from transduce.bulk import TranslationJob

__all__ = ["is_pattern", "translate_pattern"]


def is_pattern(source: Path) -> bool:
    """Return whether a path names several files: it has a wildcard, and no file has that name."""
    return glob.has_magic(str(source)) and not source.exists()


def translate_pattern(
    job: TranslationJob,
    source: Path | None,
    out: Path | None,
    *,
    n_workers: int,
    ray: str | None,
    report: Path | None = None,
) -> None:
    """Translate each file of a folder or pattern to a file of the same name in the folder ``out``.

    ``report`` gets the reports of documents, and the errors of those that could not be translated.

    What is done already is not done again. Raises ConfigError, DataError or CheckpointError.
    """
    from transduce.bulk import find_shards, translate_shards
    from transduce.bulk.driver import Executor, LocalExecutor, ShardsFailed
    from transduce.bulk.job import LISTS
    from transduce.bulk.on_ray import connect
    from transduce.bulk.shards import reports
    from transduce.findings.finding import counted
    from transduce.inference.translation.document_files import format_of_file

    if source is None or source == STANDARD:
        raise ConfigError("--ray translates the files of a pattern; name them with --in 'shards/*.gz'")
    if out is None or out == STANDARD or (out.exists() and not out.is_dir()):
        raise ConfigError(f"--in {source} names several files; name a folder for their translations with --out")
    if report is not None:
        require_writable("--report", report)
    shards = find_shards(str(source), out)
    if job.format == AUTO and not any(format_of_file(shard.path) for shard in shards):
        job = replace(job, format="text")  # the same job as before there were documents
    if job.format == "text":
        of_documents = {"--report": report, "--wanted": job.wanted != "empty", "--trust": job.is_trusted}
        options.require_alone(f"the files of {source} are lines of text, no documents", of_documents)
    else:
        options.require_alone(f"files of {source} are translated as documents", {"--prefix": job.prefix})
    loading = job.loading
    device = chosen_device(loading.device)
    # Workers on other machines have another working directory.
    paths = {name: path.resolve() for name in ("shortlist", *LISTS) if (path := getattr(loading, name)) is not None}
    resolved = replace(
        loading,
        device=device,
        precision=usable_precision(loading.precision, device),
        folders=[folder.resolve() for folder in loading.folders],
        **paths,
    )
    job = replace(job, loading=resolved)
    job.as_json()  # a folder without a manifest is reported before anything is started
    make_executor: Callable[[TranslationJob], Executor] = LocalExecutor
    if ray is not None:
        n_of_cluster, make_executor = connect(ray, n_workers)
        n_workers = n_workers if n_workers > 1 else n_of_cluster
    failed: Mapping[str, TransduceError] = {}
    with ShardProgress("translating", len(shards)) as progress:
        try:
            result = translate_shards(
                job, shards, out, n_workers=n_workers, make_executor=make_executor, on_progress=progress,
                log=progress.log,
            )  # fmt: skip
        except ShardsFailed as error:
            failed = error.failed
            raise
        except (KeyboardInterrupt, EndedBySignal):
            done = f"{progress.n_done:,} of {counted(len(shards), 'file')}"
            progress.log(f"stopped with {done} done: {out}; start the same command again to go on")
            raise
        finally:
            if report is not None and out.exists():
                errors = {name: str(error) for name, error in sorted(failed.items())}
                write_json(report, {"documents": reports(out, shards), "failed": errors})
        n_others = result.n_shards - result.n_translated
        others = f"; {n_others:,} were done before, or by others" if n_others else ""
        progress.log(f"{counted(result.n_translated, 'file')} translated{others}: {out}")
        for what in ("truncated", "invalid"):
            counts = [n for each in result.results if (n := getattr(each, f"{what}_lines"))]
            if counts:
                files = counted(len(counts), "file")
                progress.log(f"warning: {sum(counts):,} {what} lines in {files}; {out / MANIFEST_NAME} has them")
