"""Try a wheel as a user has it: python scripts/try_wheel.py DIST [--torch ==2.11.0] [--python PYTHON].

Makes an environment outside the repository by uv, installs the wheel of DIST that fits, first alone and then with the
extras train and serve, and runs there: the demo (shortened), translate, serve, export. Prints sizes and seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

# A demo of a minute, in place of a model: its translations are wrong.
SHORT = [
    "data.n_pairs=2000", "training.max_updates=20", "training.checkpoint_every_updates=10", "training.average_last=2",
    "training.validate_every_updates=20", "training.max_tokens_per_batch=1000", "model.n_encoder_layers=1",
    "model.n_decoder_layers=1", "model.d_model=32", "model.d_ff=64", "search.beam_size=1", "search.max_extra_tokens=2",
]  # fmt: skip
SENTENCE = "The old dog sleeps."


class Watch:
    """Measures a step: seconds, and seconds of processors, which other work on the machine changes less."""

    def __init__(self) -> None:
        self._start = time.monotonic(), self._of_processors()

    @staticmethod
    def _of_processors() -> float:
        return os.times().children_user + os.times().children_system  # 0 on Windows

    def report(self, step: str, remark: str = "") -> None:
        """Print what the step took."""
        seconds, of_processors = time.monotonic() - self._start[0], self._of_processors() - self._start[1]
        print(f"{step:<10}{seconds:8.1f} s {of_processors:8.1f} s of processors  {remark}", flush=True)


class Environment:
    """A virtual environment and a working folder in it."""

    def __init__(self, folder: Path, python: str) -> None:
        self.folder, self.scripts = folder, folder / ("Scripts" if os.name == "nt" else "bin")
        self.work = folder / "work"
        self.python = self.scripts / "python"
        if not folder.exists():
            self._uv("venv", "--quiet", "--python", python, folder)
        self.work.mkdir(exist_ok=True)

    def _uv(self, *words: str | Path) -> None:
        subprocess.run([shutil.which("uv") or sys.exit("uv is missing: pip install uv"), *words], check=True)

    def install(self, *requirements: str) -> None:
        """Install, and print how large the environment then is."""
        watch = Watch()
        self._uv("pip", "install", "--quiet", "--python", self.python, *requirements)
        size = sum(path.lstat().st_size for path in self.folder.rglob("*") if path.is_file())
        watch.report("install", f"{size / 1e6:,.0f} MB with {' '.join(requirements)}")

    def run(self, verb: str, *words: str | Path, stdin: str = "") -> str:
        """Run a verb in the working folder, print its seconds, and return what it prints."""
        watch = Watch()
        command = [self.scripts / "transduce", verb, *words]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, cwd=self.work, encoding="utf-8")
        if done.returncode:
            sys.exit(f"transduce {verb} ended with {done.returncode}:\n{done.stderr}")
        watch.report(verb)
        return done.stdout

    def serve(self, model: Path) -> str:
        """Start a server, send it one request, end it, and return the answer."""
        watch = Watch()
        command = [self.scripts / "transduce", "serve", model, "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=self.work) as server:
            assert server.stdout is not None
            address = next(word for word in server.stdout.readline().split() if word.startswith("http"))
            content = json.dumps({"q": SENTENCE, "source": "en", "target": "de"}).encode()
            request = urllib.request.Request(f"{address}/translate", content, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=60) as answer:
                translation = json.load(answer)["translatedText"]
            server.terminate()
            code = server.wait(60)
        if code and os.name != "nt":  # where the end of a process is always abrupt
            sys.exit(f"transduce serve ended with {code}")
        watch.report("serve")
        return str(translation)


def try_wheel(wheel: str, torch: str, environment: Environment) -> None:
    """Install the wheel and run what a user runs first."""
    environment.install(wheel)
    version = environment.run("--version").split()[1]
    assert f"-{version}-" in wheel, (version, wheel)
    assert "multi30k-en-de" in environment.run("train", "--list")
    environment.install(f"torch{torch}", f"transduce[train,serve] @ {Path(wheel).as_uri()}")
    run = environment.work / "demo"
    shutil.rmtree(run, ignore_errors=True)
    environment.run("demo", "--out", run, *(f"--set={each}" for each in SHORT))
    translations = {
        engine: environment.run("translate", run / "model", "--engine", engine, stdin=SENTENCE).strip()
        for engine in ("native", "torch")
    }
    translations["serve"] = environment.serve(run / "model")
    assert len(set(translations.values())) == 1, translations
    shutil.rmtree(environment.work / "page", ignore_errors=True)
    environment.run("export", run / "model", "--to", "wasm", "--out", environment.work / "page")


def main() -> None:
    """Try the wheel in an environment that is deleted afterwards, unless it is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dist", type=Path)
    parser.add_argument("--torch", default="", help="a requirement, such as ==2.11.0; default: the newest")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--environment", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        environment = Environment(arguments.environment or Path(temporary) / "environment", arguments.python)
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-index"]
        subprocess.run([*download, "--find-links", arguments.dist, "--dest", temporary, "transduce"], check=True)
        (wheel,) = Path(temporary).glob("*.whl")
        try_wheel(str(wheel), arguments.torch, environment)


if __name__ == "__main__":
    main()
