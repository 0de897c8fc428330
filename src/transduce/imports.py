"""Imports on first use, of what may be missing, and of many modules at once."""

from __future__ import annotations

import ast
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from transduce.errors import ConfigError

__all__ = ["INSTALL_TORCH", "imported_on_use", "library", "needing_train_extra", "numpy", "without_collection"]


INSTALL_TRAIN = "pip install 'transduce[train]'"
# On Linux the PyTorch of PyPI comes with gigabytes of CUDA.
INSTALL_TORCH = (
    f"{INSTALL_TRAIN}; without an NVIDIA GPU, before it: pip install torch --index-url"
    " https://download.pytorch.org/whl/cpu"
)
# The packages of the extra, by the names of their modules.
TRAIN_EXTRA = {"torch": "PyTorch", "sacrebleu": "sacrebleu", "sacremoses": "sacremoses", "py3langid": "py3langid"}
# Packages of other extras that are not called like their modules.
PACKAGES = {"PIL": "Pillow", "python_multipart": "python-multipart", "sklearn": "scikit-learn"}


class _Package(ModuleType):
    """A package whose public names are imported on first use."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in (homes := _homes(self.__name__)):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        module, attribute = homes[name]
        is_outermost = "." not in self.__name__  # which names what was asked for
        with without_collection(), needing_train_extra(f"{self.__name__}.{name}") if is_outermost else nullcontext():
            value = getattr(import_module(module), attribute)
        super().__setattr__(name, value)
        return value

    def __setattr__(self, name: str, value: object) -> None:
        # The import of a module of the package sets it, which may be called like what it defines.
        if not isinstance(value, ModuleType) or name not in _homes(self.__name__):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_homes(self.__name__)})


class _Module(ModuleType):
    """A module that is imported when one of its names is asked for."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self.__name__), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    import numpy
else:
    numpy = _Module("numpy")  # of modules on the way of a translation, which needs none and takes longer to import it


@cache
def _homes(package: str) -> dict[str, tuple[str, str]]:
    """Return the module and the name there of what a package imports where ``TYPE_CHECKING`` is true."""
    loader = find_spec(package).loader  # type: ignore[union-attr]
    body = ast.parse(loader.get_source(package)).body  # type: ignore[union-attr]
    imports = [each for node in body if isinstance(node, ast.If) for each in node.body]
    return {
        name.asname or name.name: (each.module or "", name.name)
        for each in imports
        if isinstance(each, ast.ImportFrom)
        for name in each.names
    }


def imported_on_use(package: str) -> None:
    """Make a package import its public names on first use: those that it imports where ``TYPE_CHECKING`` is true.

    So whoever needs one of its modules does not wait for the others, or need what they need.

    >>> import transduce.search
    >>> transduce.search.beam_search.__module__, "beam_search" in dir(transduce.search)
    ('transduce.search.beam', True)
    """
    sys.modules[package].__class__ = _Package


def library(module: str, *, needed_for: str, extra: str) -> Any:
    """Import a module of an extra. Raises ConfigError, with the command that installs it, if it is missing.

    >>> library("no_such_module", needed_for="a picture", extra="media")
    Traceback (most recent call last):
    transduce.errors.ConfigError: a picture needs no_such_module (No module named 'no_such_module'); pip install ...
    """
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise ConfigError(
            f"{needed_for} needs {PACKAGES.get(name, name)} ({error}); pip install 'transduce[{extra}]'"
        ) from error


@contextmanager
def needing_train_extra(what: str) -> Iterator[None]:
    """A context for what needs packages of the extra ``train``. Raises ConfigError for one that is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in TRAIN_EXTRA:
            raise
        how = INSTALL_TORCH if error.name == "torch" else INSTALL_TRAIN
        raise ConfigError(f"{what} needs {TRAIN_EXTRA[error.name]}: {how}") from error


@contextmanager
def without_collection() -> Iterator[None]:
    """A context in which Python does not search for garbage, for code that makes many objects and keeps them.

    Modules stay until the end of the process, and a vocabulary as long as its model. Searching through all of them
    again and again takes a fifth of the time of importing torch.
    """
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            gc.enable()
