"""The task of recordings of speech: writing down what is said."""

from __future__ import annotations

from transduce.config import DataConfig, SpeechData
from transduce.inference.media_model import Transcriber
from transduce.media import FeaturesReader, reader_of
from transduce.media.audio import FRAMES_PER_SECOND
from transduce.tasks.media.media_task import MediaTask
from transduce.tasks.registry import register
from transduce.tasks.task import CardUsage

__all__ = ["SpeechToText"]


class SpeechToText(MediaTask):
    """Writing down speech, in its language or another one."""

    name = used_as = "speech-to-text"
    example_noun = "recordings"
    progress_verb = "transcribing"
    settings = SpeechData
    source = "frames"
    user = Transcriber

    def reader(self, config: SpeechData) -> FeaturesReader:
        """Return the reader of recordings."""
        return reader_of("audio", width=config.n_bands, max_columns=int(config.max_seconds * FRAMES_PER_SECOND))

    def use(self, data: DataConfig) -> CardUsage:
        """Describe the use of a transcriber."""
        spoken, written = data.src_language, data.tgt_language
        what = f"speech in {spoken} to text in {written}"
        return CardUsage(what, "transcribe", 'Transcriber.load(folder).transcribe(["speech.wav"])')


register(SpeechToText())
