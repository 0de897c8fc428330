"""A fork server for commands: children start quickly, since everything is imported before.

Each input line is a JSON list: a log file and the arguments of ``transduce``. Each output line is a process id or an
exit status as of ``os.waitpid``.
"""

from __future__ import annotations

import importlib
import json
import os
import sys

from transduce.cli.main import run

BEFORE = ("torch._dynamo", "torch.utils.tensorboard", "transduce.tasks", "transduce.cli.progress", "rich.progress")


def main() -> None:
    """Serve until the input ends."""
    for name in BEFORE:
        importlib.import_module(name)
    for line in sys.stdin:
        log, *arguments = json.loads(line)
        child = os.fork()
        if child == 0:
            descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(descriptor, 1)
            os.dup2(descriptor, 2)
            code = 70
            try:
                code = run(arguments)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        print(child, flush=True)
        print(os.waitpid(child, 0)[1], flush=True)


if __name__ == "__main__":
    main()
