"""Prompts with responses, the best first: own files, or the instructions of the built-in corpus.

A file is tab-separated (prompt, then the responses) or JSON Lines, by its name: ``{"prompt": "...", "response":
"..."}`` or ``{"prompt": "...", "responses": ["the best", "...", "the worst"]}``; plain, .gz or .xz. In tab-separated
files ``\\n`` stands for a line end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from transduce.config import SPLITS, DataConfig, PromptsData, Split
from transduce.corpora.catalogue import BUILT_IN, OWN_FILES
from transduce.corpora.grammar.instructions import generate_instructions
from transduce.corpora.parallel_text import GRAMMAR_DEV_PAIRS, GRAMMAR_TEST_PAIRS, require_text
from transduce.corpora.source import Source
from transduce.errors import ConfigError, DataError, quoted
from transduce.files import read_lines

__all__ = ["PromptedText", "Ranking", "is_json_lines", "parsed_line", "read_rankings"]


@dataclass(frozen=True, slots=True)
class Ranking:
    """A prompt with its responses, the best first."""

    prompt: str
    responses: tuple[str, ...]


class PromptedText(Source[Ranking]):
    """Prompts with responses, by corpus and split."""

    def __init__(self, config: DataConfig) -> None:
        """Raises ConfigError unless the corpora are own files or the built-in one, DataError if a file is missing."""
        super().__init__(config)
        self.config = PromptsData.of(config)
        for corpus in self.corpora:
            if corpus not in (BUILT_IN, OWN_FILES):
                raise ConfigError(
                    f"{corpus} has no prompts with responses; use 'files' with data.train_prompts, or 'grammar'"
                )
        if OWN_FILES in self.corpora and config.file_of("train") is None:
            raise ConfigError("corpus = 'files' needs data.train_prompts, a file of prompts with responses")
        for split in SPLITS:
            path = config.file_of(split)
            if path is not None:
                require_text(Path(path), may_be_json=is_json_lines(Path(path)))

    def train(self, corpus: str) -> Iterator[Ranking]:
        """Yield the training prompts of a corpus with their responses."""
        return self._instructions("train") if corpus == BUILT_IN else self._of_file("train")

    def of(self, split: Split) -> Iterator[Ranking]:
        """Yield the prompts of dev or test with their responses."""
        return self._of_file(split) if self.config.file_of(split) else self._instructions(split)

    def name_of(self, split: Split) -> str:
        """Display name of dev or test; "" if there is none."""
        path = self.config.file_of(split)
        return path or (f"{BUILT_IN} {split} instructions" if BUILT_IN in self.corpora else "")

    def _instructions(self, split: Split) -> Iterator[Ranking]:
        n = {"train": self.config.n_pairs, "dev": GRAMMAR_DEV_PAIRS, "test": GRAMMAR_TEST_PAIRS}[split]
        for instruction in generate_instructions(split, n=n, seed=self.config.corpus_seed):
            yield Ranking(instruction.prompt, (instruction.response,))

    def _of_file(self, split: Split) -> Iterator[Ranking]:
        path = self.config.file_of(split)
        assert path is not None
        return read_rankings(Path(path))


def is_json_lines(path: Path) -> bool:
    """Return whether a file is JSON Lines, by its name."""
    return path.name.removesuffix(".gz").removesuffix(".xz").endswith((".jsonl", ".json"))


def read_rankings(path: Path) -> Iterator[Ranking]:
    """Yield the rankings of a file; of equal responses only the first counts.

    Raises DataError, with the line number, for a line that is none, and for an empty prompt or response.
    """
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip():
            try:
                prompt, responses = parsed_line(path, line)
            except ValueError as error:
                raise DataError(f"{path}:{number} {error}") from None
            if not prompt.strip():
                raise DataError(f"{path}:{number} has an empty prompt")
            if any(not each.strip() for each in responses):
                raise DataError(f"{path}:{number} has an empty response; leave it out")
            yield Ranking(prompt, tuple(dict.fromkeys(responses)))


def parsed_line(path: Path, line: str) -> tuple[str, list[str]]:
    """Return prompt and responses of a line of a file. Raises ValueError, with what is wrong, if it has none."""
    if not is_json_lines(path):
        prompt, *columns = (column.replace("\\n", "\n") for column in line.split("\t"))
        return prompt, columns
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not JSON: {error}") from None
    if not isinstance(values, dict) or not isinstance(values.get("prompt"), str):
        raise ValueError('should be an object with "prompt" and "response", or "responses"')
    if "response" in values and "responses" in values:
        raise ValueError('has "response" and "responses"; give one of them')
    responses = [values["response"]] if "response" in values else values.get("responses", [])
    if not isinstance(responses, list) or not all(isinstance(each, str) for each in responses):
        raise ValueError(f'"responses" should be a list of texts, the best first, got {quoted(responses)}')
    return values["prompt"], responses
