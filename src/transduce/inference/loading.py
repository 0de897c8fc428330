"""``load(folder)``: what users call, whatever the model in the folder is for."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, overload

import torch

from transduce.errors import CheckpointError
from transduce.inference.folder import read_model_config, require_task
from transduce.inference.language_models.language_model import LanguageModel
from transduce.inference.language_models.responses import RewardModel
from transduce.inference.media_model import Reader, Transcriber
from transduce.inference.parser import Parser
from transduce.inference.translation.translator import Translator

__all__ = ["AnyModel", "load"]

AnyModel = Translator | Parser | LanguageModel | RewardModel | Reader | Transcriber


@overload
def load(
    folder: str | Path, task: Literal["translation", "mask-predict"], *, device: str | torch.device = "cpu"
) -> Translator: ...


@overload
def load(folder: str | Path, task: Literal["parsing"], *, device: str | torch.device = "cpu") -> Parser: ...


@overload
def load(folder: str | Path, task: Literal["reward"], *, device: str | torch.device = "cpu") -> RewardModel: ...


@overload
def load(folder: str | Path, task: Literal["image-to-text"], *, device: str | torch.device = "cpu") -> Reader: ...


@overload
def load(folder: str | Path, task: Literal["speech-to-text"], *, device: str | torch.device = "cpu") -> Transcriber: ...


@overload
def load(folder: str | Path, task: str | None = None, *, device: str | torch.device = "cpu") -> AnyModel: ...


def load(folder: str | Path, task: str | None = None, *, device: str | torch.device = "cpu") -> AnyModel:
    """Load a model folder: a ``Translator``, a ``Parser``, a ``LanguageModel``, a ``Reader``, ... by its task.

    ``task``: the one that the model must have been trained for. Options such as a precision are those of the classes,
    ``Translator.load(folder, precision="bf16")``.
    Raises CheckpointError if the folder cannot be used, or its model is for another task, or for one that another
    package has defined.
    """
    folder = Path(folder)
    _, found = read_model_config(folder)
    if task is not None:
        require_task(found, task, folder)
    match found:
        case "translation" | "mask-predict":
            return Translator.load(folder, device=device)
        case "parsing":
            return Parser.load(folder, device=device)
        case "reward":
            return RewardModel.load(folder, device=device)
        case "image-to-text":
            return Reader.load(folder, device=device)
        case "speech-to-text":
            return Transcriber.load(folder, device=device)
        case _ if found in LanguageModel.kinds:
            return LanguageModel.load(folder, device=device)
        case _:
            raise CheckpointError(f"{folder} holds a model for {found}; load it by the package that defines this task")
