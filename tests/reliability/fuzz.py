"""Fuzz transduce: ``python tests/reliability/fuzz.py --cases 2000``.

To repeat one case and print its command and failure: ``fuzz.py --only 'recipe/set/model.d_ff#3' --scratch NEW``; its
folder is then NEW/lane-0/case.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["TOKENIZERS_PARALLELISM"] = "false"  # its threads do not live on in children
os.environ["NO_COLOR"] = "1"
sys.dont_write_bytecode = True
sys.path.append(str(Path(__file__).parents[1]))  # for modules that all tests share

import torch  # noqa: E402
from fuzzing.cases import names_of  # noqa: E402
from fuzzing.formats import all_formats  # noqa: E402
from fuzzing.lanes import play_all  # noqa: E402
from fuzzing.report import as_markdown, as_table  # noqa: E402
from fuzzing.sources import Sources, make_sources  # noqa: E402

# Imported here so that children need not. Some exist only in some versions of a library.
IMPORTED_BEFORE = (
    "torch._dynamo", "torch.utils.tensorboard", "transduce.runs", "transduce.diagnostics", "transduce.demo",
    "transduce.cli.main", "transduce.cli.progress", "rich.progress", "pydantic.type_adapter", "typer._adapters",
    "numpy.ma", "numpy.ctypeslib", "encodings.ascii", "encodings.cp437", "importlib.readers", "py3langid",
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=50, help="of each format")
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--formats", nargs="+", help="these alone")
    parser.add_argument("--only", nargs="+", help="cases by their names")
    parser.add_argument("--hang", type=float, default=20.0, help="seconds after which a case hangs")
    parser.add_argument("--scratch", type=Path, help="a new folder; it is kept")
    parser.add_argument(
        "--sources", type=Path, help="a folder for the good files; those of an earlier run are used again"
    )
    parser.add_argument("--found", type=Path, help="a file for the failures, as Markdown")
    parser.add_argument("--json", type=Path, help="a file for how each case went, one a line")
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    for name in IMPORTED_BEFORE:
        with suppress(ModuleNotFoundError):
            importlib.import_module(name)
    importlib.import_module("py3langid").classify("It reads its table of languages when it is first asked.")
    with tempfile.TemporaryDirectory() as temporary:
        scratch = (arguments.scratch or Path(temporary) / "fuzz").resolve()
        scratch.mkdir(parents=True, exist_ok=True)
        return _fuzz(arguments, scratch)


def _fuzz(arguments: argparse.Namespace, scratch: Path) -> int:
    sources = Sources((arguments.sources or scratch / "sources").resolve())
    if not sources.folder.exists():
        _in_a_child(lambda: make_sources(sources.folder))  # a process that has computed gradients cannot fork
    formats = {format.name: format for format in all_formats(sources)}
    if arguments.only:
        names = arguments.only
    else:
        chosen = arguments.formats or [name for name in formats if name != "misbehaving"]
        names = [case for name in chosen for case in names_of(formats[name], arguments.cases, arguments.seed)]
    gc.collect()
    gc.freeze()
    played = []
    begin = time.monotonic()
    with (arguments.json or Path(os.devnull)).open("w") as log:
        for each in play_all(formats, names, scratch, watched=sources.folder, hang_s=arguments.hang):
            played.append(each)
            print(json.dumps(asdict(each)), file=log, flush=True)
            if each.outcome is None:
                last = each.detail.strip().splitlines()[-1:] or [""]
                print(f"FAULT {each.name}: {each.fault}: {last[0][:300]}", flush=True)
            if arguments.only:
                print(f"{each.name}: {each.outcome or each.fault}\n{each.command}\n{each.detail}".rstrip())
    print(as_table(played, seconds=time.monotonic() - begin))
    if arguments.found:
        arguments.found.write_text(as_markdown(played))
    return 1 if any(each.outcome is None for each in played) else 0


def _in_a_child(work: Callable[[], object]) -> None:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except Exception:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if status:
        raise RuntimeError(f"the good files could not be made: {status}")


if __name__ == "__main__":
    sys.exit(main())
