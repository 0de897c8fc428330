"""What real use did to the product, tried again on real models: a line for each case, right or what came.

    python tests/cases/run.py CASES MODELS [NAME...]

CASES is a folder with a folder of inputs for each case, MODELS that of ``models.sh``. A case whose model is absent is
left out and said so. Needs `scripts/install dev`, and about ten minutes on one thread.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from register import CHECKS, Check, Setting

for kind in ("text", "scores", "training", "files", "server"):
    import_module(kind)  # registers its cases


@contextmanager
def _setting(cases: Path, models: Path) -> Iterator[Setting]:
    setting = Setting(cases, models)
    try:
        yield setting
    finally:
        setting.close()


def main() -> int:
    """Run the cases; return the number of wrong ones."""
    parser = argparse.ArgumentParser(description="Try the cases of real use on real models.")
    parser.add_argument("cases", type=Path)
    parser.add_argument("models", type=Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    n_wrong = 0
    with _setting(arguments.cases, arguments.models) as setting:
        done = dict[Check, str | None]()
        for name, (check, models) in CHECKS.items():
            if arguments.names and name not in arguments.names:
                continue
            if absent := [model for model in models if not setting.model(model).exists()]:
                print(f"{name}: left out, no model {', '.join(absent)}")
                continue
            if check not in done:
                try:
                    done[check] = check(setting)
                except (ValueError, KeyError, OSError) as error:
                    done[check] = repr(error)
            n_wrong += done[check] is not None
            print(f"{name}: {'right' if done[check] is None else f'WRONG: {done[check]}'}", flush=True)
    return n_wrong


if __name__ == "__main__":
    sys.exit(main())
