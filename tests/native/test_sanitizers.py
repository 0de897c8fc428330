"""The engine in C under the sanitizers of its compiler: addresses and undefined behaviour, threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "native"))

from build import build, compiler, library_name  # noqa: E402

pytestmark = [pytest.mark.merge, pytest.mark.timeout(1800)]
SANITIZERS = {"address,undefined": ("asan", "ubsan"), "thread": ("tsan",)}
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0",  # Python keeps what it has until the end
    "UBSAN_OPTIONS": "halt_on_error=1",
    "TSAN_OPTIONS": "ignore_noninstrumented_modules=1 halt_on_error=1",
}


def runtimes(sanitizer: str) -> list[str]:
    """The libraries that a program must load first; none where the compiler has no such sanitizer."""
    command = compiler() if sys.platform == "linux" else None
    if command is None:
        return []
    asked = [[*command, f"-print-file-name=lib{name}.so"] for name in SANITIZERS[sanitizer]]
    paths = [subprocess.run(each, capture_output=True, text=True, check=False).stdout.strip() for each in asked]
    return paths if all(os.path.isabs(path) for path in paths) else []


@pytest.fixture(scope="module", params=SANITIZERS)
def environment(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What makes a process use an engine with a sanitizer."""
    loaded = runtimes(request.param)
    if not loaded:
        pytest.skip(f"the compiler has no sanitizer of {request.param}")
    folder = tmp_path_factory.mktemp("sanitizer")
    build(folder, flags=("-O2", "-g", f"-fsanitize={request.param}"))
    library = str(folder / library_name())
    return {
        **os.environ,
        **OPTIONS,
        "TRANSDUCE_LIBRARY": library,
        "LD_PRELOAD": " ".join(loaded),
        "OMP_NUM_THREADS": "2",
    }


def passes(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_its_own_tests_pass(environment: dict[str, str]) -> None:
    files = ["tests/inference/test_native_engine.py"]
    if "tsan" not in environment["LD_PRELOAD"]:  # it knows nothing of the threads of torch
        files += ["tests/model/test_unpadded_attention.py", "tests/test_loss_in_c.py"]
    passes(environment, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files)


def test_what_is_odd_or_damaged_is_refused(environment: dict[str, str]) -> None:
    assert passes(environment, "tests/native/fuzz_engine.py", "200").startswith("200 cases")
