"""Error messages for paths that are not model folders. Imports no torch."""

from __future__ import annotations

from pathlib import Path

from transduce.errors import CheckpointError

__all__ = ["require_model_folders"]

MODEL_FILES = ("config.json", "model.safetensors")


def require_model_folders(*paths: Path | None, text_usage: str = "") -> None:
    """Raise CheckpointError, saying what to use instead, if a path is clearly not a model folder; None is skipped.

    Problems inside a model folder are left to its reader. ``text_usage`` shows how the command takes a text file, such
    as ``"--in {}"``.
    """
    for path in filter(None, paths):
        message = _describe_file(path, text_usage) if path.is_file() else _describe_folder(path)
        if message is not None:
            raise CheckpointError(message)


def _describe_file(path: Path, text_usage: str) -> str:
    if all((path.parent / name).is_file() for name in MODEL_FILES):
        return f"{path} is a file of a model folder; name the folder: {path.parent}"
    text = f"; if it is the text to read: {text_usage.format(path)}, or < {path}" if text_usage else ""
    return f"{path} is a file and not a folder; name a model, as in RUN/model{text}"


def _describe_folder(path: Path) -> str | None:
    """Say what a folder is that is not a model folder, or that it does not exist; None if it may be a model folder."""
    if not path.exists():
        is_not_made_yet = path.name == "model" and _is_run(path.parent)
        missing = "it does not exist; name a model, as in RUN/model"
        return f"{path} is not a folder: {_describe_run(path.parent) if is_not_made_yet else missing}"
    if _is_run(path):
        return _describe_run(path)
    if any((path / name).is_file() for name in ("state.json", "optimizer.safetensors")):
        return f"{path} is a checkpoint of a run, not a model; {_model_hint(path.parent.parent)}"
    if any(path.glob("update-*/state.json")):
        return f"{path} holds the checkpoints of a run, not a model; {_model_hint(path.parent)}"
    if (path / "prepared.json").is_file():
        usage = f"train a model on it: transduce train RECIPE --store {path}"
        return f"{path} is prepared text, not a model; {_model_hint(path.parent) if _is_run(path.parent) else usage}"
    if (path / "store.json").is_file():
        return f"{path} is a token store, a part of prepared text, not a model"
    if not any((path / name).exists() for name in (*MODEL_FILES, "manifest.json")):
        inside = [each for each in sorted(path.iterdir()) if (each / MODEL_FILES[0]).is_file()]
        hint = f": it contains {inside[0]}" if inside else ", as in RUN/model"
        return f"{path} is a folder without {' and '.join(MODEL_FILES)}; name a model{hint}"
    return None


def _is_run(path: Path) -> bool:
    return (path / "run.json").is_file()


def _describe_run(run: Path) -> str:
    return f"{run} is a run folder; {_model_hint(run)}"


def _model_hint(run: Path) -> str:
    """Say where the model of a run is, or how to create it."""
    if (run / "model" / MODEL_FILES[0]).is_file():
        return f"its model is {run / 'model'}"
    if any(run.glob("checkpoints/update-*")):
        return f"it has no model yet: create it with transduce average {run}"
    return f"it has no model and no checkpoint yet: transduce train --resume --out {run}"
