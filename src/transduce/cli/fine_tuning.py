"""``transduce train --from MODEL --tmx FILE``: no recipe is needed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from transduce.cli.output import echo
from transduce.cli.pair_files import Given, written_pairs
from transduce.errors import ConfigError

if TYPE_CHECKING:
    from transduce.config import RunConfig
    from transduce.runs import OwnText
    from transduce.runs.fine_tuning import Change

__all__ = ["FineTuning"]


@dataclass(frozen=True)
class FineTuning:
    """A model that learns from files of pairs, in a run folder; their text is written beside it."""

    model: Path
    given: Given
    folder: Path
    device: str

    @cached_property
    def _pairs(self) -> OwnText:
        from transduce.runs import OwnText
        from transduce.runs.fine_tuning import direction_of

        return OwnText(*direction_of(self.model), tsv=self.folder.with_name(f"{self.folder.name}-pairs.tsv"))

    @property
    def _text(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}-text")

    def config(self, changes: list[str]) -> RunConfig:
        """Write the text and return the configuration of the run, with changes of its settings."""
        import torch

        from transduce.recipes import with_settings
        from transduce.runs.fine_tuning import fine_tuning

        if os.environ.get("WORLD_SIZE", "1") != "1":
            raise ConfigError("--tmx, --po and --xliff are read by one process; start it without torchrun")
        if self.folder.exists():
            raise ConfigError(f"{self.folder} exists already; choose another --out, or --resume it without the files")
        pairs = self._pairs
        assert pairs.tsv is not None
        with written_pairs(self.given, (pairs.src_language, pairs.tgt_language), pairs.tsv, log=echo):
            config = fine_tuning(self.model, pairs, self._text, device=torch.device(self.device), log=echo)
            return with_settings(config, changes, log=echo)

    def changes(self, tuned: Path) -> list[Change]:
        """Return how the translations of the dev sets changed."""
        import torch

        from transduce.runs.fine_tuning import changes_by

        return list(changes_by(self.model, tuned, self._text, self._pairs, device=torch.device(self.device)))
