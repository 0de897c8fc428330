"""Moods: combinations of tense and modal verb that a clause can have, with the kind of time adverbial to use."""

from __future__ import annotations

from typing import Literal, NamedTuple

from transduce.corpora.grammar.tenses import MODALS, Modal, Tense

__all__ = [
    "ALL", "DATED_QUESTION", "FUTURE", "PASSIVE", "PAST", "PLUPERFECT", "PRESENT", "PROGRESSIVE", "QUESTION",
    "SIMPLE_PRESENT", "Mood", "Moods",
]  # fmt: skip


class Mood(NamedTuple):
    """Tense and modal verb of a clause; ``time_kind`` is its kind of time adverbial, empty for none."""

    tense: Tense
    modal: Modal | None = None
    time_kind: str = ""


# The moods of each lexical aspect; a mood is repeated in proportion to its probability.
Moods = dict[Literal["action", "happening", "state"], tuple[Mood, ...]]

SIMPLE_PRESENT = Mood(Tense.PRESENT, time_kind="habit")
PROGRESSIVE = Mood(Tense.PROGRESSIVE, time_kind="now")
_PAST = Mood(Tense.PAST, time_kind="past")
_PERFECT = Mood(Tense.PERFECT)
_PLUPERFECT = Mood(Tense.PLUPERFECT)
_FUTURE = Mood(Tense.FUTURE, time_kind="future")
_MODALS = tuple(Mood(Tense.PRESENT, modal, "future") for modal in MODALS.values() if not modal.is_past)
_PAST_MODALS = tuple(Mood(Tense.PRESENT, modal, "past") for modal in MODALS.values() if modal.is_past)
_NEUTRAL_MODALS = tuple(Mood(Tense.PRESENT, MODALS[name], "future") for name in ("can", "must", "should"))


def _by_aspect(moods: tuple[Mood, ...]) -> Moods:
    """Select the moods of each aspect: happenings have no progressive and no modal verb, states no perfect either."""
    happening = tuple(mood for mood in moods if not mood.modal and mood is not PROGRESSIVE)
    return {"action": moods, "happening": happening, "state": tuple(mood for mood in happening if mood is not _PERFECT)}


PAST = _by_aspect((_PAST,) * 9 + _PAST_MODALS)
PRESENT = _by_aspect((SIMPLE_PRESENT,) * 8 + _MODALS)
FUTURE = _by_aspect((_FUTURE,) * 8 + _MODALS)
PLUPERFECT = _by_aspect((_PLUPERFECT,))
QUESTION = _by_aspect((PROGRESSIVE,) * 4 + (_PAST,) * 9 + (_FUTURE,) * 3 + _MODALS + _PAST_MODALS)
DATED_QUESTION = _by_aspect((_PAST,) * 9 + (_FUTURE,) * 5 + _NEUTRAL_MODALS)  # when? how?
PASSIVE = (_PAST,) * 20 + (_PERFECT,) * 6 + (_FUTURE,) * 6 + (SIMPLE_PRESENT,) * 3 + _NEUTRAL_MODALS * 2
ALL = _by_aspect(
    (SIMPLE_PRESENT,) * 20
    + (PROGRESSIVE,) * 15
    + (_PAST,) * 35
    + (_PERFECT,) * 8
    + (_FUTURE,) * 12
    + _MODALS * 2
    + _PAST_MODALS
)
