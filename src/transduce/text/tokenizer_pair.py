"""The tokenizers of source and target, which may be one, and their files in a model folder. Section 5.1."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from transduce.text.tokenizer import Tokenizer, load_tokenizer

__all__ = ["Tokenizers"]

SHARED_FILE, SRC_FILE, TGT_FILE = "tokenizer.json", "tokenizer.src.json", "tokenizer.tgt.json"


@dataclass(frozen=True, slots=True)
class Tokenizers:
    """The source and target tokenizers; the same object twice is a shared vocabulary (section 5.1)."""

    src: Tokenizer
    tgt: Tokenizer

    @property
    def is_shared(self) -> bool:
        """Whether source and target share one tokenizer."""
        return self.src is self.tgt

    @property
    def sizes(self) -> tuple[int, int]:
        """The sizes of the vocabularies of source and target."""
        return self.src.size, self.tgt.size

    @property
    def has_one_vocabulary(self) -> bool:
        """Whether the ids of source and target are the same tokens; two SentencePiece models may share a vocabulary."""
        return self.is_shared or self.src.vocabulary == self.tgt.vocabulary

    @property
    def fingerprint(self) -> str:
        """A SHA-256 hash of both tokenizers, 64 hexadecimal digits."""
        return hashlib.sha256(f"{self.src.fingerprint} {self.tgt.fingerprint}".encode()).hexdigest()

    @staticmethod
    def files(folder: Path) -> tuple[str, ...]:
        """Return the names of the files that ``load`` reads in ``folder``."""
        is_separate = (folder / SRC_FILE).exists() or (folder / TGT_FILE).exists()
        return (SRC_FILE, TGT_FILE) if is_separate else (SHARED_FILE,)

    def save(self, folder: Path) -> None:
        """Write ``tokenizer.json`` if shared, else ``tokenizer.src.json`` and ``tokenizer.tgt.json``."""
        if self.is_shared:
            self.src.save(folder / SHARED_FILE)
        else:
            self.src.save(folder / SRC_FILE)
            self.tgt.save(folder / TGT_FILE)

    @classmethod
    def load(cls, folder: Path) -> Tokenizers:
        """Read what ``save`` wrote. Raises CheckpointError if a file is missing or invalid."""
        tokenizers = [load_tokenizer(folder / name) for name in cls.files(folder)]
        return cls(tokenizers[0], tokenizers[-1])
