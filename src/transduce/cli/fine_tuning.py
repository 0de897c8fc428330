"""``transduce train --from MODEL --tmx FILE``: no recipe is needed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from transduce.cli.options import TEXT
from transduce.cli.output import echo, echo_error
from transduce.cli.pair_files import Given, written_pairs
from transduce.errors import CheckpointError, ConfigError
from transduce.files import remove

if TYPE_CHECKING:
    import torch

    from transduce.config import RunConfig
    from transduce.runs import RunResult
    from transduce.runs.fine_tuning import Change

__all__ = ["FineTuning", "Mix", "changes_of"]

Mix = Annotated[
    list[str] | None,
    Option(
        "--mix",
        metavar="CORPUS|PATH",
        help="With --from: mix in this old text, a corpus, a folder of one, or TMX, PO, XLIFF or TSV; repeatable. "
        "Default: the text of the model's own run; 'none' mixes in nothing.",
        show_default=False,
        rich_help_panel=TEXT,
    ),
]


@dataclass(frozen=True)
class FineTuning:
    """A model that learns from files of pairs, in a run folder; their text is written beside it."""

    model: Path
    given: Given
    folder: Path
    device: str
    mix: Sequence[str] = ()
    data_folder: Path | None = None
    minutes: float | None = None

    def config(self, changes: list[str]) -> RunConfig:
        """Write the text and return the configuration of the run, with changes of its settings."""
        import torch

        from transduce.recipes import with_settings
        from transduce.runs import OwnText, holds_run
        from transduce.runs.fine_tuning import direction_of, fine_tuning

        if os.environ.get("WORLD_SIZE", "1") != "1":
            raise ConfigError("--tmx, --po and --xliff are read by one process; start it without torchrun")
        if self.folder.exists():
            way = "--resume it without the files" if holds_run(self.folder) else "remove it"
            raise ConfigError(f"{self.folder} exists already; choose another --out, or {way}")
        languages, (tsv, text) = direction_of(self.model), self._written
        with written_pairs(self.given, languages, tsv, log=echo):
            plan = fine_tuning(
                self.model,
                OwnText(*languages, tsv=tsv, is_kept=False, to_allow=""),
                text,
                device=torch.device(self.device),
                log=echo,
                mix=self.mix,
                data_folder=self.data_folder,
                minutes=self.minutes,
            )
            try:
                return with_settings(plan.config, changes, log=echo)
            except ConfigError:
                remove(text)
                raise

    @contextmanager
    def undone_on_error(self) -> Iterator[None]:
        """Remove what was written if the run fails before it has begun: else the corrected command would be refused."""
        from transduce.runs import holds_run
        from transduce.runs.lock import LOCK_FILE

        try:
            yield
        except BaseException:
            if not holds_run(self.folder):
                is_locked = (self.folder / LOCK_FILE).exists()  # another process is beginning a run there
                for path in self._written if is_locked else (*self._written, self.folder):
                    remove(path)
            raise

    @property
    def _written(self) -> tuple[Path, Path]:
        """The pairs and the folder of the text, beside that of the run."""
        name = self.folder.name
        return self.folder.with_name(f"{name}-pairs.tsv"), self.folder.with_name(f"{name}-text")


def changes_of(config: RunConfig, result: RunResult, device: str | torch.device) -> list[Change]:
    """Return how a run changed what the translator that it started from makes of the dev sets of new and old text.

    Nothing, with a warning, if that translator is no longer there.
    """
    import torch

    from transduce.inference.folder import read_model_folder
    from transduce.runs.fine_tuning import changes_by

    start = config.training.init_from
    if start is None or result.model_folder is None or config.data.task != "translation":
        return []
    try:
        there = read_model_folder(Path(start), device="cpu")
        if (there.task, there.direction) != (config.data.task, config.data.direction):
            return []
        return list(changes_by(Path(start), result.folder, result.model_folder, device=torch.device(device)))
    except CheckpointError as error:
        echo_error(f"warning: not compared with the model that the run started from: {error}")
        return []
