"""The register of cases: each name with its check, and what a check runs the product with."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from running_server import TRANSDUCE, Server

Check = Callable[["Setting"], "str | None"]  # None if all is right, else what came
CHECKS: dict[str, tuple[Check, tuple[str, ...]]] = {}  # of each case: the check, and the models it needs


def case(*names: str, models: Sequence[str] = ()) -> Callable[[Check], Check]:
    """Register the check of some cases."""

    def register(check: Check) -> Check:
        for name in names:
            CHECKS[name] = (check, tuple(models))
        return check

    return register


def wrong(*found: object) -> str:
    """What came, for the table."""
    return " | ".join(str(each) for each in found)


class Setting:
    """The folders of the cases and models, and servers that are started when the first case needs them."""

    def __init__(self, cases: Path, models: Path) -> None:
        self.cases, self.models = cases.resolve(), models.resolve()
        self._servers: dict[tuple[str, ...], Server] = {}

    def model(self, name: str) -> Path:
        """The model folder of a name."""
        return self.models / name / "model"

    def run(self, *arguments: object, stdin: str = "", folder: Path | None = None) -> tuple[int, str, str]:
        """Run a command line, perhaps in a folder; return exit code, stdout, stderr."""
        done = subprocess.run(
            [TRANSDUCE, *map(str, arguments)],
            input=stdin, capture_output=True, text=True, check=False, encoding="utf-8", cwd=folder,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    def output(self, *arguments: object, stdin: str = "", folder: Path | None = None) -> tuple[str, str]:
        """Run a command line that must succeed; return stdout and stderr. Raises ValueError if it does not."""
        code, out, errors = self.run(*arguments, stdin=stdin, folder=folder)
        if code:
            raise ValueError(f"{arguments[0]}: exit {code}: {errors.strip()}")
        return out, errors

    def translate(self, name: str, text: str, *options: object) -> list[str]:
        """Translate lines by the command line."""
        return self.output("translate", self.model(name), *options, stdin=text)[0].split("\n")[:-1]

    def server(self, *models: str) -> Server:
        """A server with some models, shared by the cases."""
        if models not in self._servers:
            self._servers[models] = Server([self.model(name) for name in models])
        return self._servers[models]

    def ask(self, models: Sequence[str], path: str, body: object) -> tuple[int, Any]:
        """Ask a shared server with some models; return status and answer."""
        return self.server(*models).ask(path, body)

    def input(self, case: str, name: str = "input.json") -> Any:
        """An input of a case."""
        text = (self.cases / case / name).read_text(encoding="utf-8")
        return json.loads(text) if name.endswith(".json") else text

    def close(self) -> None:
        """End the shared servers."""
        for server in self._servers.values():
            server.end()
