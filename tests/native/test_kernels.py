"""The kernels compute what is defined, with the same bits on all processors; AVX-512 and AMX run in ``emulated.h``."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NATIVE = HERE.parents[1] / "native"
sys.path.insert(0, str(NATIVE))

from build import FLAGS, compiler  # noqa: E402

EMULATED = ("-Wno-psabi", "-include", str(HERE / "emulated.h"))
KERNELS = {"portable": (), "avx512": EMULATED, "amx": (*EMULATED, "-DEMULATED_AMX")}

pytestmark = pytest.mark.skipif(compiler() is None or sys.platform == "win32", reason="no C compiler that has fork")


@cache
def outputs(name: str, folder: Path) -> list[str]:
    """The checksums of what kernels compute: products in fp32, bf16 and int8, and the rest."""
    command = [*(compiler() or ()), *FLAGS, "-O0", f"-I{NATIVE}"]
    kernels, program = folder / f"{name}.o", folder / name
    compiled = [*command, *KERNELS[name], f"-DISA_NAME={name}", "-c", str(NATIVE / "kernels.c"), "-o", str(kernels)]
    subprocess.run(compiled, check=True)
    test = [*command, f"-DKERNELS=kernels_{name}", str(HERE / "compare_kernels.c"), str(kernels), "-o", str(program)]
    subprocess.run([*test, "-lm"], check=True)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    found, said = done.stdout.split(": ")
    assert (found, said.split()[:3]) == (name, ["0", "faults,", "outputs"])
    return said.split()[3:]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


@pytest.mark.parametrize("name", KERNELS)
def test_they_compute_what_is_defined(name: str, folder: Path) -> None:
    assert len(outputs(name, folder)) == 4


def test_bits_are_the_same_on_all_processors(folder: Path) -> None:
    """Those of bf16 are not: tiles round inputs, too."""
    [vectors, tiles] = (outputs(name, folder) for name in ("avx512", "amx"))
    assert [vectors[kind] == tiles[kind] for kind in range(4)] == [True, False, True, True]
