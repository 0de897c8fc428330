"""What numbers and names may be. Past these limits a run does not end in the time, or fit into the memory, that anybody
has, or a number overflows. They are far above what is of use: who meets one has made a slip.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field

from transduce.errors import quoted

__all__ = [
    "CORPUS_PATTERN",
    "DIRECTION_PATTERN",
    "HOW_TO_SWITCH_OFF",
    "LARGEST_ALPHA",
    "LARGEST_BEAM",
    "LARGEST_SEED",
    "LARGEST_VOCABULARY",
    "MOST_BATCHES",
    "MOST_MINUTES",
    "MOST_PAIRS",
    "PATTERNS_IN_WORDS",
    "SPLITS",
    "InferencePrecision",
    "Precision",
    "Split",
]

LARGEST_SEED = 2**63 - 1
LARGEST_VOCABULARY = 10**7
LARGEST_BEAM = 1000
LARGEST_ALPHA = 100.0
MOST_BATCHES = MOST_MINUTES = 10**6  # of minutes, that is two years
MOST_PAIRS = 10**8
Count = Annotated[int, Field(ge=1, le=10**12)]
Natural = Annotated[int, Field(ge=0, le=10**12)]
Layers = Annotated[int, Field(ge=1, le=1000)]
Width = Annotated[int, Field(ge=1, le=10**6)]
Heads = Annotated[int, Field(ge=1, le=10_000)]
HeadWidth = Annotated[int, Field(ge=1, le=100_000)]
Experts = Annotated[int, Field(ge=1, le=10_000)]
KernelWidth = Annotated[int, Field(ge=1, le=10_000)]
Places = Annotated[int, Field(ge=1, le=10**7)]
Batches = Annotated[int, Field(ge=1, le=MOST_BATCHES)]
Pairs = Annotated[int, Field(ge=1, le=MOST_PAIRS)]
Copies = Annotated[int, Field(ge=1, le=1000)]  # of a pair or a tree
VocabularySize = Annotated[int, Field(ge=4, le=LARGEST_VOCABULARY)]
ByteLevelSize = Annotated[int, Field(ge=260, le=LARGEST_VOCABULARY)]  # 256 bytes and 4 special symbols
Seed = Annotated[int, Field(ge=0, le=LARGEST_SEED)]
BeamSize = Annotated[int, Field(ge=1, le=LARGEST_BEAM)]
ExtraTokens = Annotated[int, Field(ge=0, le=10_000)]
PenaltyExponent = Annotated[float, Field(ge=0.0, le=LARGEST_ALPHA)]
Minutes = Annotated[float, Field(gt=0, le=MOST_MINUTES)]
Factor = Annotated[float, Field(gt=0, le=10**6)]
Norm = Annotated[float, Field(gt=0, le=10**12)]
Share = Annotated[float, Field(ge=0.0, lt=1.0)]
WholeShare = Annotated[float, Field(ge=0.0, le=1.0)]
RatioLimit = Annotated[float, Field(ge=1.0, le=10**9)]
Weight = Annotated[float, Field(gt=0, le=1000)]
Precision = Literal["fp32", "bf16"]  # of training
InferencePrecision = Literal["fp32", "bf16", "int8"]
Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)

CORPUS_PATTERN, DIRECTION_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]*$", r"^[a-z]{2,3}-[a-z]{2,3}$"
TASK_PATTERN = r"^[a-z][a-z0-9-]*$"
PATTERNS_IN_WORDS: Mapping[str, str] = {
    CORPUS_PATTERN: "should be a name of letters, digits, '.', '_' and '-', as in multi30k",
    DIRECTION_PATTERN: "should be two languages, as in en-de",
    TASK_PATTERN: "should be a name of small letters, digits and '-', as in translation",
}
CorpusName = Annotated[str, Field(pattern=CORPUS_PATTERN, max_length=100)]
Direction = Annotated[str, Field(pattern=DIRECTION_PATTERN)]
TaskName = Annotated[str, Field(pattern=TASK_PATTERN, max_length=100)]

# Numbers that some would set to infinity: what says the same.
HOW_TO_SWITCH_OFF: Mapping[str, str] = {
    "max_length_ratio": "1e9 leaves all pairs in",
    "max_minutes": "leave it out for a run without limit",
    "checkpoint_every_minutes": "leave it out for none",
    "clip_norm": "leave it out for none",
}


def _without_nul(name: str) -> str:
    if "\0" in name:
        raise ValueError(f"no file has a NUL in its name, got {quoted(name)}")
    return name


FileName = Annotated[str, Field(min_length=1), AfterValidator(_without_nul)]
