"""Diagnostics of files of prompts with responses: damaged lines, ties, and prompts in both train and test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from transduce.config import SPLITS, DataConfig
from transduce.corpora.catalogue import BUILT_IN, OWN_FILES
from transduce.corpora.cleaning import Tally
from transduce.corpora.responses import is_json_lines, parsed_line
from transduce.files import read_lines
from transduce.findings.finding import Finding, counted, good, guard, note, on_lines, problem

__all__ = ["examine_prompts_of", "examine_ranking_file", "examine_shared_prompts", "is_ranking_file"]


def is_ranking_file(path: Path) -> bool:
    """Return whether a file holds prompts with responses as JSON Lines, by its name."""
    return path.is_file() and is_json_lines(path)


def examine_ranking_file(path: Path) -> Iterator[Finding]:
    """Examine a file of prompts with responses, JSON Lines or tab-separated."""
    damaged, empty, single, without, ties, again = (Tally() for _ in range(6))
    first_error = ""
    n_prompts = n_responses = 0
    seen: set[str] = set()
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        try:
            prompt, responses = parsed_line(path, line)
        except ValueError as error:
            damaged.add(number)
            first_error = first_error or str(error)
            continue
        n_prompts += 1
        n_responses += len(responses)
        if not prompt.strip() or any(not each.strip() for each in responses):
            empty.add(number)
        if prompt in seen:
            again.add(number)
        seen.add(prompt)
        different = len(set(responses))
        if different < len(responses):
            ties.add(number)
        if not responses:
            without.add(number)
        elif different == 1:
            single.add(number)
    yield from on_lines(
        "problem", path, damaged, "line", f"that cannot be read: the first {first_error}", "repair them"
    )
    yield from on_lines("problem", path, empty, "line", "with an empty prompt or response", "leave the empty ones out")
    if not n_prompts:
        if not damaged.count:
            yield problem(path, 'is empty; a line should be {"prompt": "...", "responses": ["the best", "..."]}')
        return
    only_one = "enough for task = 'sft'; 'reward' and 'dpo', which compare responses, leave them out"
    is_for_sft = single.count + without.count == n_prompts
    if not is_for_sft:
        yield from on_lines("note", path, single, "ranking", "with one response", only_one)
    yield from on_lines("note", path, without, "prompt", "without a response", "enough for task = 'ppo' only")
    tied = "with a response that occurs twice, a tie"
    yield from on_lines("note", path, ties, "ranking", tied, "only the first place of each counts")
    yield from on_lines("note", path, again, "prompt", "that came before", "each line is an example of its own")
    kind = "prompts with one response each" if is_for_sft and single.count else "rankings"
    yield good(path, f"{kind}: {counted(n_prompts, 'prompt')}, {counted(n_responses, 'response')}")


def examine_prompts_of(data: DataConfig, recipe: Path, data_folder: Path | None) -> Iterator[Finding]:
    """Examine the prompts with responses of each split that a recipe reads."""
    if BUILT_IN in data.weights:
        yield good(BUILT_IN, "the instructions of the built-in corpus, generated from a seed; they need no files")
    if OWN_FILES in data.weights and data.file_of("train") is None:
        yield problem(recipe, "corpus = 'files' needs data.train_prompts, a file of prompts with responses")
    paths = [Path(name) for split in SPLITS if (name := data.file_of(split)) is not None]
    for path in paths:
        yield from guard(path, examine_ranking_file(path))
    if len(paths) > 1:
        yield from guard(paths[0], examine_shared_prompts(paths))


def examine_shared_prompts(paths: Sequence[Path]) -> Iterator[Finding]:
    """Report prompts of the first file, which may be the training text, that the others have too."""
    first, *others = (set(_prompts(path)) for path in paths)
    for path, prompts in zip(paths[1:], others, strict=True):
        n_shared = len(first & prompts)
        if n_shared:
            verb = "is" if n_shared == 1 else "are"
            message = f"{counted(n_shared, 'prompt')} of {len(prompts):,} {verb} in {paths[0]}, too"
            advice = "scores on them say nothing about new prompts; leave them out of one"
            finding = problem if n_shared * 2 > len(prompts) else note
            yield finding(path, f"{message}; {advice}")


def _prompts(path: Path) -> Iterator[str]:
    for line in read_lines(path):
        try:
            yield parsed_line(path, line)[0]
        except ValueError:
            continue
