"""The task of recordings of speech: writing down what is said."""

from __future__ import annotations

from transduce.config import DataConfig
from transduce.inference.media_model import Transcriber
from transduce.tasks.media.media_task import MediaTask, MediaValidation
from transduce.tasks.registry import register
from transduce.tasks.task import Use

__all__ = ["SpeechToText"]


class TranscriberValidation(MediaValidation):
    """Perplexity and word error rate of a transcriber, or BLEU of one that translates."""

    user = Transcriber


class SpeechToText(MediaTask):
    """Writing down speech, in its language or another one."""

    name = "speech-to-text"
    rows = "recordings"
    doing = "transcribing"
    validation = TranscriberValidation

    def use(self, data: DataConfig) -> Use:
        """Describe the use of a transcriber."""
        spoken, written = data.src_language, data.tgt_language
        what = f"speech in {spoken} to text in {written}"
        return Use(what, "transcribe", 'Transcriber.load(folder).transcribe(["speech.wav"])')


register(SpeechToText())
