"""How a clause can stand in time: tense, modal verb, and the kind of time adverbial that goes with them."""

from __future__ import annotations

from typing import Literal, NamedTuple

from transduce.corpora.grammar.tenses import MODALS, Modal, Tense

__all__ = ["ALL", "DATED_QUESTION", "FUTURE", "PAST", "PLUPERFECT", "PRESENT", "QUESTION", "Mood", "Moods"]


class Mood(NamedTuple):
    """Tense and modal verb; ``time_kind`` is empty where no time is told."""

    tense: Tense
    modal: Modal | None = None
    time_kind: str = ""


Moods = dict[Literal["action", "happening", "state"], tuple[Mood, ...]]  # each as often as it is likely

_PRESENT = Mood(Tense.PRESENT, time_kind="habit")
_PROGRESSIVE = Mood(Tense.PROGRESSIVE, time_kind="now")
_PAST = Mood(Tense.PAST, time_kind="past")
_PERFECT = Mood(Tense.PERFECT)
_FUTURE = Mood(Tense.FUTURE, time_kind="future")
_MODALS = tuple(Mood(Tense.PRESENT, modal, "future") for modal in MODALS.values() if not modal.is_past)
_PAST_MODALS = tuple(Mood(Tense.PRESENT, modal, "past") for modal in MODALS.values() if modal.is_past)


def _by_aspect(moods: tuple[Mood, ...]) -> Moods:
    """A happening has no progressive; a state has neither that nor a perfect nor a modal verb."""
    return {
        "action": moods,
        "happening": tuple(mood for mood in moods if mood is not _PROGRESSIVE),
        "state": tuple(mood for mood in moods if mood in (_PRESENT, _PAST, _FUTURE, Mood(Tense.PLUPERFECT))),
    }


PAST = _by_aspect((_PAST,) * 9 + _PAST_MODALS)
PRESENT = _by_aspect((_PRESENT,) * 8 + _MODALS)
FUTURE = _by_aspect((_FUTURE,) * 8 + _MODALS)
PLUPERFECT = _by_aspect((Mood(Tense.PLUPERFECT),))
QUESTION = _by_aspect((_PROGRESSIVE,) * 4 + (_PAST,) * 9 + (_FUTURE,) * 3 + _MODALS + _PAST_MODALS)
DATED_QUESTION = _by_aspect((_PAST,) * 9 + (_FUTURE,) * 5 + _MODALS)  # when? how?
ALL = _by_aspect(
    (_PRESENT,) * 20
    + (_PROGRESSIVE,) * 15
    + (_PAST,) * 35
    + (_PERFECT,) * 8
    + (_FUTURE,) * 12
    + _MODALS * 2
    + _PAST_MODALS
)
