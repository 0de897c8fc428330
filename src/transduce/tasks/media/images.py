"""The task of images with text: reading."""

from __future__ import annotations

from transduce.config import DataConfig
from transduce.inference.media_model import Reader
from transduce.tasks.media.media_task import MediaTask, MediaValidation
from transduce.tasks.registry import register
from transduce.tasks.task import Use

__all__ = ["ImageToText"]


class ReaderValidation(MediaValidation):
    """Perplexity and character error rate of a reader."""

    user = Reader


class ImageToText(MediaTask):
    """Reading the text of images."""

    name = "image-to-text"
    rows = "images"
    doing = "reading"
    validation = ReaderValidation

    def use(self, data: DataConfig) -> Use:
        """Describe the use of a reader."""
        return Use("images to text", "read", 'Reader.load(folder).read(["line.png"])')


register(ImageToText())
