"""Compile the engine: python native/build.py [--to FOLDER] [--target TARGET] [FLAGS...], as for a sanitizer.

The kernels are compiled once for each kind of processor, and the library chooses when it is loaded. The compiler is CC,
cc, gcc or clang, else zig's, from the package ziglang; with --target, such as aarch64-linux-gnu.2.17, it is zig's. The
target wasm32-wasi is the engine of browsers.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SOURCES = Path(__file__).resolve().parent
PACKAGE = SOURCES.parent / "src/transduce/inference/native"
FLAGS = ("-O3", "-std=gnu11", "-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden", "-Wall", "-Wextra")
AVX2 = ("-mavx2", "-mfma")
AVX512 = (*AVX2, "-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512vnni")
FILES = ("files", "weights", "model", "search", "beams", "phrases", "output", "draw")
KERNELS: dict[str, dict[str, tuple[str, ...]]] = {  # of each machine: names of kernels, and flags
    "x86_64": {
        "avx2": AVX2,
        "avx512": AVX512,
        "amx": (*AVX512, "-mavx512bf16", "-mamx-tile", "-mamx-int8", "-mamx-bf16"),
    },
    "aarch64": {"neon": ("-march=armv8.2-a+dotprod",)},
}
WASM = "wasm32-wasi"
ZIG = (sys.executable, "-m", "ziglang")
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


def compiler() -> list[str] | None:
    """Return the command of a C compiler of this machine; None if there is none."""
    named = os.environ.get("CC", "").split()
    if named:
        return named
    found = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
    return [found] if found else zig()


def zig() -> list[str] | None:
    """Return the command of zig's compiler; None where the package ziglang is not installed."""
    try:
        import ziglang  # noqa: F401
    except ImportError:
        return None
    return [*ZIG, "cc"]


def library_name(target: str | None = None) -> str:
    """Return the file name of the library on a system."""
    system = target or sys.platform
    if system == WASM:
        return "engine.wasm"
    if "windows" in system or system.startswith("win"):
        return "transduce.dll"
    return "libtransduce.dylib" if "macos" in system or system == "darwin" else "libtransduce.so"


def build(folder: Path, *, target: str | None = None, flags: Sequence[str] = ()) -> Path:
    """Compile the library into a folder and return its path. Raises RuntimeError with what the compiler said."""
    command = zig() if target else compiler()
    if command is None:
        raise RuntimeError("no C compiler: install gcc or clang, or the Python package ziglang")
    is_zig = "ziglang" in command
    machine = (target or platform.machine()).split("-")[0].lower()
    kernels = KERNELS.get(MACHINES.get(machine, machine), {})
    name, is_wasm = library_name(target), target == WASM
    common = [*command, *(("-target", target) if target else ()), *FLAGS, *flags]
    common += ["-msimd128"] if is_wasm else [] if name.endswith("dll") else ["-fPIC"]
    with tempfile.TemporaryDirectory() as work:

        def compiled(source: str, made: str, *options: str) -> str | None:
            if is_zig:  # it has -mcpu in place of -march
                options = tuple(each.replace("-march=armv8.2-a", "-mcpu=generic") for each in options)
            done = subprocess.run(
                [*common, *options, "-c", str(SOURCES / source), "-o", f"{work}/{made}.o"],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode and made not in kernels:
                raise RuntimeError(f"{' '.join(common)} {source}: {done.stderr[-2000:]}")
            if done.returncode:  # an old compiler does not know the newest processors
                print(f"without the kernels {made}: {done.stderr.strip()[:300]}", file=sys.stderr)
            return None if done.returncode else made

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            jobs = [pool.submit(compiled, "kernels.c", "portable", "-DISA_NAME=portable")]
            jobs += [pool.submit(compiled, "kernels.c", isa, f"-DISA_NAME={isa}", *own) for isa, own in kernels.items()]
            names = (*FILES, "browser" if is_wasm else "training")
            jobs += [pool.submit(compiled, f"{name}.c", name) for name in names]
            made = [job.result() for job in jobs]
        objects = [each for each in made if each is not None]
        usable = [f"-DWITH_{isa.upper()}" for isa in kernels if isa in objects]
        objects.append(str(compiled("cpu.c", "cpu", *usable)))
        # By relative names: the library contains its own, on macOS, and should be the same wherever it is built.
        kind = ("-mexec-model=reactor", "-Wl,--export=malloc", "-Wl,--export=free") if is_wasm else ("-shared",)
        link = [*common, *kind, *(f"{each}.o" for each in objects), "-o", name]
        link += [*(() if flags else ("-s",)), *(() if name.endswith("dll") else ("-lm",))]
        done = subprocess.run(link, capture_output=True, text=True, check=False, cwd=work)
        if done.returncode:
            raise RuntimeError(f"linking {name}: {done.stderr[-2000:]}")
        folder.mkdir(parents=True, exist_ok=True)
        new = folder / f".{name}.{os.getpid()}"
        shutil.copy(f"{work}/{name}", new)
        os.replace(new, folder / name)
    return folder / name


def main() -> None:
    """Print the path of the library."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, default=PACKAGE)
    parser.add_argument("--target")
    arguments, flags = parser.parse_known_args()
    print(build(arguments.to, target=arguments.target, flags=flags))


if __name__ == "__main__":
    main()
