"""Antecedents of pronouns by word lists: a heuristic for image captions without coreference annotation.

If exactly one earlier noun agrees with a pronoun, it is taken as the antecedent: "A man in a hat is painting his
house." Pronouns with no or several agreeing nouns are not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Anaphor", "find_anaphors", "is_pronoun"]


@dataclass(frozen=True, slots=True)
class Anaphor:
    """A pronoun and the earlier nouns that agree with it, as word positions from 0."""

    pronoun: int
    nouns: tuple[int, ...]


# Agreement of pronouns and nouns. Nouns without gender agree with "he" and "she", animals also with "it".
HE, SHE, IT, THEY = "he him his himself", "she her hers herself", "its itself", "they them their theirs themselves"
MALE = "man boy guy gentleman male father dad son husband brother grandfather uncle king prince groom bridegroom"
MALE_AT_WORK = "policeman fireman fisherman businessman cowboy waiter actor salesman craftsman snowman"
FEMALE = "woman girl lady female mother mom daughter wife sister grandmother aunt queen princess bride"
FEMALE_AT_WORK = "policewoman businesswoman cowgirl waitress actress ballerina"
ANYBODY = "person child kid baby toddler infant teenager teen adult youth student teacher player worker singer"
ANYBODY_AT_WORK = (
    "officer athlete skateboarder surfer skier snowboarder climber biker cyclist rider runner hiker swimmer diver "
    "guitarist musician drummer dancer artist painter photographer performer vendor chef cook farmer soldier driver "
    "boxer wrestler golfer gymnast batter pitcher catcher goalie jockey bicyclist skater jogger passenger pedestrian "
    "referee coach doctor nurse scientist lawyer engineer pilot gardener baker thief neighbor friend"
)
ANIMAL = "dog puppy cat kitten horse bird cow bull goat sheep elephant monkey bear duck animal poodle terrier"
SEVERAL = (
    "people men women boys girls guys gentlemen ladies males females fathers sons brothers mothers daughters sisters "
    "persons children kids babies toddlers infants teenagers teens adults youths students teachers players workers "
    "singers officers athletes skateboarders surfers skiers snowboarders climbers bikers cyclists riders runners "
    "hikers swimmers divers guitarists musicians drummers dancers artists painters photographers performers vendors "
    "chefs cooks farmers soldiers drivers boxers wrestlers golfers gymnasts skaters joggers passengers pedestrians "
    "friends policemen firemen fishermen businessmen cowboys doctors nurses scientists lawyers engineers pilots "
    "neighbors dogs puppies cats kittens horses birds cows goats sheep elephants monkeys ducks animals "
    "group crowd couple team family band pair"
)


def _agreement() -> dict[str, frozenset[str]]:
    """Return the possible antecedents of each pronoun."""
    groups = {
        HE: (MALE, MALE_AT_WORK, ANYBODY, ANYBODY_AT_WORK, ANIMAL),
        SHE: (FEMALE, FEMALE_AT_WORK, ANYBODY, ANYBODY_AT_WORK, ANIMAL),
        IT: (ANIMAL,),
        THEY: (SEVERAL,),
    }
    return {
        pronoun: frozenset(" ".join(nouns).split())
        for pronouns, nouns in groups.items()
        for pronoun in pronouns.split()
    }


AGREEMENT = _agreement()
OTHER_PRONOUNS = frozenset(["it"])  # often expletive or of unclear reference, so not counted


def is_pronoun(word: str) -> bool:
    """Return whether a word is a personal, possessive or reflexive pronoun of the third person."""
    return word.lower() in AGREEMENT or word.lower() in OTHER_PRONOUNS


def find_anaphors(words: Sequence[str]) -> list[Anaphor]:
    """Return the countable pronouns of a sentence, each with the earlier nouns that agree with it (none to several).

    >>> find_anaphors("A man and a woman in a car wave to her brother .".split())
    [Anaphor(pronoun=10, nouns=(4,))]
    """
    lower = [word.lower() for word in words]
    return [
        Anaphor(position, tuple(earlier for earlier in range(position) if lower[earlier] in AGREEMENT[word]))
        for position, word in enumerate(lower)
        if word in AGREEMENT
    ]
