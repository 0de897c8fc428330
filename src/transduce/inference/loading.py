"""``load(folder)``: what users call, whatever the model in the folder is for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from transduce.config.decoding import EngineName
from transduce.inference.devices import usable_device
from transduce.inference.folder import read_model_folder
from transduce.inference.trained_model import TrainedModel, added_task

if TYPE_CHECKING:
    import torch

__all__ = ["load"]

ModelT = TypeVar("ModelT", bound=TrainedModel)  # its class may be abstract, which type[ModelT] may not


@overload
def load(
    folder: str | Path, kind: Callable[..., ModelT], *, device: str | torch.device = "cpu", engine: EngineName = "auto"
) -> ModelT: ...


@overload
def load(
    folder: str | Path, kind: None = None, *, device: str | torch.device = "cpu", engine: EngineName = "auto"
) -> Any: ...


def load(
    folder: str | Path, kind: Any = None, *, device: str | torch.device = "cpu", engine: EngineName = "auto"
) -> Any:
    """Load a model folder: a ``Translator``, a ``Parser``, a ``LanguageModel``, a ``Reader``, ... by its task.

    ``kind``: the class that is wanted, as in ``load(folder, Translator)``. ``engine``: what computes. Other options,
    such as a precision, are those of the classes, ``Translator.load(folder, precision="bf16")``. A task of another
    distribution whose models no class uses is asked for the model by ``load(folder, device=...)``: its entry point in
    the group ``transduce.tasks`` has its name.
    Raises CheckpointError if the folder cannot be used, or its model is of another kind, or for an unknown task.
    """
    folder, wanted = Path(folder), kind or TrainedModel
    loaded = read_model_folder(folder, device=usable_device(device))
    tasks = loaded.used_as, loaded.task
    if kind is None and TrainedModel.class_of(*tasks) is None:
        added = added_task(loaded.task, folder)
        if TrainedModel.class_of(*tasks) is None and hasattr(added, "load"):
            return added.load(folder, device=device)
    return wanted.class_for(loaded).from_folder(loaded, engine=engine)
