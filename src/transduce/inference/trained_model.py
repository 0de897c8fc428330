"""What users call of a model folder: each class says whose models it uses, and what can be done with them.

So serving, exchange, diagnostics and the command line know no names of tasks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from transduce.config.decoding import EngineName
from transduce.errors import CheckpointError
from transduce.inference.devices import usable_device
from transduce.inference.folder import ModelFolder, SavedModel, read_model_folder
from transduce.inference.process_bound import ProcessBound
from transduce.inference.stored_model import StoredModel, in_torch

if TYPE_CHECKING:
    import torch

__all__ = ["Capabilities", "ExportedAs", "ServedAs", "TrainedModel", "added_task"]

TASK_GROUP = "transduce.tasks"  # the group of entry points of tasks that other distributions define

# The modules whose classes register themselves, imported until one is for a task.
KINDS = (
    "translation.translator", "parser", "language_models.causal", "language_models.responses", "language_models.masked",
    "language_models.spans", "language_models.pixels", "media_model",
)  # fmt: skip

ServedAs = Literal["translator", "parser", "generator"]
ExportedAs = Literal["encoder-decoder", "decoder"]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What can be done with models."""

    tasks: tuple[str, ...]  # those that they are trained for, by ``used_as`` or ``task`` in ``config.json``
    what: str  # "a translator"
    verb: str  # of the command line, that does what they are for
    served_as: ServedAs | None = None
    exported_as: ExportedAs | None = None
    why_not_exported: str = "other libraries have no such model"


class TrainedModel(ProcessBound, ABC):
    """A trained model as users call it. A subclass with ``capabilities`` registers itself for their tasks."""

    capabilities: ClassVar[Capabilities] = Capabilities((), "a model", "")
    by_task: ClassVar[dict[str, type[TrainedModel]]] = {}  # of the modules that have been imported

    def __init__(self, model: Any) -> None:
        """``model``: a module of PyTorch, or a ``StoredModel``."""
        self._model = model

    @property
    def model(self) -> Any:
        """The model as a module of PyTorch; that of a folder is read when it is asked for first."""
        return in_torch(self._model)

    @property
    def device(self) -> str:
        """The device of the model."""
        return (
            self._model.device if isinstance(self._model, StoredModel) else str(next(self._model.parameters()).device)
        )

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "capabilities" in cls.__dict__:
            TrainedModel.by_task |= dict.fromkeys(cls.capabilities.tasks, cls)

    @classmethod
    def load(cls, folder: str | Path, *, device: str | torch.device = "cpu", engine: EngineName = "auto") -> Self:
        """Load a model folder; the class of the result, this one or a subclass, follows from its task.

        Raises CheckpointError if it cannot be used, or holds another kind of model.
        """
        loaded = read_model_folder(Path(folder), device=usable_device(device))
        return cls.class_for(loaded).from_folder(loaded, engine=engine)

    @classmethod
    @abstractmethod
    def from_folder(cls, loaded: ModelFolder, *, engine: EngineName = "auto") -> Self:
        """Return the model of a folder that has been read. Raises CheckpointError as ``load``."""

    @staticmethod
    def class_of(*tasks: str) -> type[TrainedModel] | None:
        """Return the class for the first of these tasks that has one, here or in what another package has imported."""
        for task in tasks:
            for module in KINDS:
                if task in TrainedModel.by_task:
                    break
                import_module(f"{__package__}.{module}")
            if task in TrainedModel.by_task:
                return TrainedModel.by_task[task]
        return None

    @classmethod
    def class_for(cls, saved: SavedModel) -> type[Self]:
        """Return the class for a model, by what it is used as, else by its task: this one or a subclass.

        Raises CheckpointError, saying what the folder holds and which verb uses it, if there is none.
        """
        folder, task = saved.folder, saved.task
        if not {saved.used_as, task}.isdisjoint(cls.capabilities.tasks):
            return cls
        found = cls.class_of(saved.used_as, task)
        if found is None:
            added_task(task, folder)  # its module may define the class
            found = cls.class_of(saved.used_as, task)
        if found is None:
            raise CheckpointError(f"{folder} holds a model for {task}; load it by the package that defines this task")
        if not issubclass(found, cls):
            raise CheckpointError(
                f"{folder} holds a model for {task}, not {cls.capabilities.what}; use it by: transduce"
                f" {found.capabilities.verb}"
            )
        return found


def added_task(name: str, folder: Path) -> Any:
    """Return what the entry point of a task of another distribution names, imported; None if there is none.

    Raises CheckpointError if it cannot be imported.
    """
    from importlib.metadata import entry_points

    for entry_point in entry_points(group=TASK_GROUP, name=name):
        try:
            return entry_point.load()
        except Exception as error:
            raise CheckpointError(
                f"{folder} holds a model for {name}, and {entry_point.value} cannot be imported: {error}"
            ) from error
    return None
