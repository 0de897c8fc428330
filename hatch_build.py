"""Compiles the engine in C where a wheel or an editable installation is made. Without a compiler the wheel has none."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "native"))

from build import PACKAGE, WASM, build, compiler, library_name, zig  # noqa: E402


class NativeBuild(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the library to a wheel. TRANSDUCE_TARGET names another machine, TRANSDUCE_WHEEL_TAG the tag of its wheel."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._work = TemporaryDirectory()

    def dependencies(self) -> list[str]:
        """Return what compiles where no compiler is installed."""
        needs_zig = compiler() is None or "TRANSDUCE_TARGET" in os.environ
        return ["ziglang>=0.13"] if needs_zig and self.target_name == "wheel" else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and make the wheel one of this platform."""
        if self.target_name != "wheel":
            return
        target = os.environ.get("TRANSDUCE_TARGET")
        folder = PACKAGE if target is None else Path(self._work.name)  # an installation here keeps its own
        try:
            library = build(folder, target=target)
        except (RuntimeError, OSError) as error:
            self.app.display_warning(f"without the engine in C, models run on PyTorch: {error}")
            (PACKAGE / library_name()).unlink(missing_ok=True)
            return
        if version != "editable":  # which reads the library where it was compiled
            made = [library, *([build(Path(self._work.name), target=WASM)] if zig() else [])]
            for each in made:
                build_data["force_include"][str(each)] = str((PACKAGE / each.name).relative_to(ROOT / "src"))
        build_data["pure_python"] = False
        tag = os.environ.get("TRANSDUCE_WHEEL_TAG") or sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{tag}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete what was compiled for another machine."""
        self._work.cleanup()
