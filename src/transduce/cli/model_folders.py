"""Folders that stand where a model should: what they are, and what would work. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from transduce.errors import CheckpointError

__all__ = ["require_model_folder", "require_model_folders"]

MODEL_FILES = ("config.json", "model.safetensors")


def require_model_folder(path: Path, *, text_usage: str = "") -> None:
    """Raises CheckpointError, with what to use instead, if ``path`` is clearly something else than a model folder.

    What is wrong inside of one is for its reader to tell. ``text_usage`` is how the command is given a file of text:
    ``"--in {}"``.
    """
    about = _about_file(path, text_usage) if path.is_file() else _about_folder(path)
    if about is not None:
        raise CheckpointError(about)


def require_model_folders(paths: Iterable[Path], *others: Path | None, text_usage: str = "") -> None:
    """The same for several, of which some may not be named at all."""
    for path in (*paths, *others):
        if path is not None:
            require_model_folder(path, text_usage=text_usage)


def _about_file(path: Path, text_usage: str) -> str:
    if all((path.parent / name).is_file() for name in MODEL_FILES):
        return f"{path} is a file of a model folder; name the folder: {path.parent}"
    text = f"; if it is the text to read: {text_usage.format(path)}, or < {path}" if text_usage else ""
    return f"{path} is a file and not a folder; name a model, as in RUN/model{text}"


def _about_folder(path: Path) -> str | None:
    """What a folder is that is no model folder, or that there is none; None if it may be one."""
    if not path.exists():
        is_to_come = path.name == "model" and _is_run(path.parent)
        nothing = "there is nothing of that name; name a model, as in RUN/model"
        return f"{path} is not a folder: {_about_run(path.parent) if is_to_come else nothing}"
    if _is_run(path):
        return _about_run(path)
    if any((path / name).is_file() for name in ("state.json", "optimizer.safetensors")):
        return f"{path} is a checkpoint of a run and no model; {_model_of(path.parent.parent)}"
    if any(path.glob("update-*/state.json")):
        return f"{path} holds the checkpoints of a run and no model; {_model_of(path.parent)}"
    if (path / "prepared.json").is_file():
        used = f"train one on it: transduce train RECIPE --store {path}"
        return f"{path} is prepared text and no model; {_model_of(path.parent) if _is_run(path.parent) else used}"
    if (path / "store.json").is_file():
        return f"{path} is a token store, a part of prepared text, and no model"
    if not any((path / name).exists() for name in (*MODEL_FILES, "manifest.json")):
        inside = [each for each in sorted(path.iterdir()) if (each / MODEL_FILES[0]).is_file()]
        hint = f"; there is {inside[0]}" if inside else ", as in RUN/model"
        return f"{path} is a folder without {' and '.join(MODEL_FILES)}; name a model{hint}"
    return None


def _is_run(path: Path) -> bool:
    return (path / "run.json").is_file()


def _about_run(run: Path) -> str:
    return f"{run} is a run folder; {_model_of(run)}"


def _model_of(run: Path) -> str:
    """Where the model of a run is, or how one is made."""
    if (run / "model" / MODEL_FILES[0]).is_file():
        return f"its model is {run / 'model'}"
    if any(run.glob("checkpoints/update-*")):
        return f"it has no model yet: transduce average {run} makes one of its checkpoints"
    return f"it has no model and no checkpoint yet: transduce train --resume --out {run}"
