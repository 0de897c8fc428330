"""The task of images with text: reading."""

from __future__ import annotations

from transduce.config import DataConfig, ImagesData
from transduce.inference.media_model import Reader
from transduce.media import FeaturesReader, reader_of
from transduce.tasks.media.media_task import MediaTask, MediaValidation
from transduce.tasks.registry import register
from transduce.tasks.task import CardUsage

__all__ = ["ImageToText"]


class ReaderValidation(MediaValidation):
    """Perplexity and character error rate of a reader."""

    user = Reader


class ImageToText(MediaTask):
    """Reading the text of images."""

    name = "image-to-text"
    example_noun = "images"
    progress_verb = "reading"
    settings = ImagesData
    source = "patches"
    validation = ReaderValidation

    def reader(self, config: ImagesData) -> FeaturesReader:
        """Return the reader of images."""
        return reader_of("image", width=config.image_height, max_columns=config.max_image_width)

    def use(self, data: DataConfig) -> CardUsage:
        """Describe the use of a reader."""
        return CardUsage("images to text", "read", 'Reader.load(folder).read(["line.png"])')


register(ImageToText())
