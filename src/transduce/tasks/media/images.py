"""The task of images with text: reading."""

from __future__ import annotations

from transduce.config import ImagesData
from transduce.inference.media_model import Reader
from transduce.media import FeaturesReader, reader_of
from transduce.tasks.media.media_task import MediaTask
from transduce.tasks.registry import register
from transduce.tasks.task import CardUsage

__all__ = ["ImageToText"]


class ImageToText(MediaTask):
    """Reading the text of images."""

    name = used_as = "image-to-text"
    example_noun = "images"
    progress_verb = "reading"
    usage = CardUsage("images to text", "read", 'Reader.load(folder).read(["line.png"])')
    settings = ImagesData
    source = "patches"
    user = Reader

    def reader(self, config: ImagesData) -> FeaturesReader:
        """Return the reader of images."""
        return reader_of("image", width=config.image_height, max_columns=config.max_image_width)


register(ImageToText())
