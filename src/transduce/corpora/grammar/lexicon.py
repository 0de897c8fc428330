"""The bilingual lexicon, read from the tables of words.

Each English lexeme has one German equivalent in each construction, so the English sentence determines the German.
Entries are identified by their English lemma and have all inflected forms.
"""

from __future__ import annotations

from functools import cache
from typing import Literal, NamedTuple

from transduce.corpora.grammar import english, german, modifiers, nouns, verbs
from transduce.corpora.grammar.german import Case, Column, Endings, GermanVerb

__all__ = [
    "Adjective", "Adverb", "Lexicon", "Noun", "Ownership", "Preposition", "TimeAdverbial", "Verb", "load_lexicon",
]  # fmt: skip

Ownership = Literal["maybe", "never", "mostly", "once"]  # whether a noun takes possessives, see ``nouns``

_COLUMNS = {"der": Column.MASCULINE, "die": Column.FEMININE, "das": Column.NEUTER}


class Preposition(NamedTuple):
    """An English preposition with its German rendering and the case that the latter governs."""

    tree: str  # "(IN in)"
    german: str
    case: Case


class Noun(NamedTuple):
    """A noun; ``trees`` and ``forms`` are indexed by number: 0 is the singular, 1 the plural."""

    lemma: str
    category: str
    words: tuple[str, str]
    trees: tuple[str, str]
    column: Column
    forms: Endings
    is_countable: bool
    owned: Ownership
    location: Preposition | None  # of places only: "in the garden"
    goal: Preposition | None  # of places only: "into the garden"


class Adjective(NamedTuple):
    """An adjective; the comparatives are English leaves and a German word, both empty if it is not gradable."""

    lemma: str
    tree: str
    comparative_tree: str  # "(JJR older)" or "(RBR more) (JJ expensive)"
    german: str
    stem: str
    german_comparative: str
    categories: tuple[str, ...]


class Adverb(NamedTuple):
    """An adverb of manner or frequency. ``follows_object``: in German it follows a definite object, like nicht."""

    lemma: str
    tree: str
    german: str
    follows_object: bool


class TimeAdverbial(NamedTuple):
    """A time adverbial; ``kind`` is past, habit, now or future, see ``moods``."""

    kind: str
    tree: str
    german: str


class Verb(NamedTuple):
    """A verb of one construction, with the noun classes or nouns that it takes as arguments."""

    lemma: str
    english: english.EnglishVerb
    german: GermanVerb
    object_case: Case
    subjects: tuple[str, ...]
    objects: tuple[str, ...]
    manners: tuple[str, ...]
    aspect: Literal["action", "state", "happening"]


class Lexicon(NamedTuple):
    """All entries of the lexicon."""

    nouns: dict[str, Noun]
    adjectives: dict[str, Adjective]
    verbs: dict[str, tuple[Verb, ...]]  # by construction
    manners: dict[str, tuple[Adverb, ...]]  # by group
    frequencies: tuple[Adverb, ...]
    times: dict[str, tuple[TimeAdverbial, ...]]  # by kind
    names: dict[str, tuple[str, ...]]  # by pronoun
    cities: dict[str, str]  # German by English

    def nouns_of(self, selection: tuple[str, ...]) -> tuple[Noun, ...]:
        """Return the nouns of a selection of classes and single nouns, each once."""
        chosen = dict.fromkeys(
            noun for name in selection for noun in self.nouns.values() if name in (noun.category, noun.lemma)
        )
        return tuple(chosen)


def _rows(table: str) -> list[str]:
    return [line.strip() for line in table.strip().splitlines()]


def _preposition(entry: str, *, is_goal: bool) -> Preposition:
    """Parse ``into/in`` of the table of places; a goal takes the accusative, except for ``zu``."""
    english_word, _, german_word = entry.partition("/")
    case = Case.ACCUSATIVE if is_goal and german_word != "zu" else Case.DATIVE
    tag = "TO" if english_word == "to" else "IN"
    return Preposition(f"({tag} {english_word})", german_word, case)


def _ownership(lemma: str) -> Ownership:
    if lemma in nouns.MOSTLY_OWNED.split():
        return "mostly"
    if lemma in nouns.OWNED_ONCE.split():
        return "once"
    return "never" if lemma in nouns.NEVER_OWNED.split() else "maybe"


def _noun(row: str, category: str) -> Noun:
    singular, plural, article, german_singular, german_plural, *places = row.split()
    column = _COLUMNS[article.removesuffix("*")]
    return Noun(
        lemma=singular,
        category=category,
        words=(singular, plural),
        trees=(f"(NN {singular})", f"(NNS {plural})"),
        column=column,
        forms=german.noun_forms(german_singular, german_plural, column, is_weak=article.endswith("*")),
        is_countable=plural != "-",
        owned=_ownership(singular),
        location=_preposition(places[0], is_goal=False) if places else None,
        goal=_preposition(places[1], is_goal=True) if places else None,
    )


def _adjective(row: str) -> Adjective:
    word, comparative, german_word, german_comparative, *categories = row.split()
    leaf = f"(JJ {word})"
    is_gradable = comparative != "-"
    comparative_tree = f"(RBR more) {leaf}" if comparative == "more" else f"(JJR {comparative})"
    return Adjective(
        lemma=word,
        tree=leaf,
        comparative_tree=comparative_tree if is_gradable else "",
        german=german_word,
        stem=german.adjective_stem(german_word),
        german_comparative=german_comparative if is_gradable else "",
        categories=tuple(categories),
    )


def _verb(row: str) -> Verb:
    words, subjects, objects, manners = (part.strip() for part in row.split(";"))
    english_words, _, german_words = words.partition(" = ")
    dictionary_forms, _, particle = english_words.partition(" +")
    german_forms = [word for word in german_words.split() if word not in ("sein", "+dat")]
    english_verb = english.verb_from_dictionary(*dictionary_forms.split(), particle=particle)
    subject_words = subjects.split()  # nouns and noun classes, and the mark of the aspect
    return Verb(
        lemma=english_verb.lemma,
        english=english_verb,
        german=german.verb_from_dictionary(*german_forms, takes_sein="sein" in german_words.split()[1:]),
        object_case=Case.DATIVE if "+dat" in german_words else Case.ACCUSATIVE,
        subjects=tuple(word for word in subject_words if word not in "!~"),
        objects=tuple(objects.split()),
        manners=tuple(manners.split()),
        aspect="state" if "!" in subject_words else "happening" if "~" in subject_words else "action",
    )


def _manners() -> dict[str, tuple[Adverb, ...]]:
    groups: dict[str, tuple[Adverb, ...]] = {}
    for group, word, german_word in map(str.split, _rows(modifiers.MANNER_TABLE)):
        adverb = Adverb(word, f"(ADVP (RB {word}))", german_word, follows_object=True)
        groups[group] = (*groups.get(group, ()), adverb)
    return groups


def _frequencies() -> tuple[Adverb, ...]:
    rows = map(str.split, _rows(modifiers.FREQUENCY_TABLE))
    return tuple(Adverb(word, f"(ADVP (RB {word}))", german, position == "behind") for word, german, position in rows)


def _times() -> dict[str, tuple[TimeAdverbial, ...]]:
    entries = [TimeAdverbial(*row.split(" | ")) for row in _rows(modifiers.TIME_TABLE)]
    return {
        kind: tuple(entry for entry in entries if entry.kind == kind) for kind in ("past", "habit", "now", "future")
    }


@cache
def load_lexicon() -> Lexicon:
    """Read the tables (cached).

    >>> load_lexicon().nouns["boy"].forms[0]
    ('Junge', 'Jungen', 'Jungen', 'Jungen')
    """
    tables = nouns.NOUN_TABLE | nouns.PLACE_TABLE
    entries = [_noun(row, category) for category, table in tables.items() for row in _rows(table)]
    adjectives = map(_adjective, _rows(modifiers.ADJECTIVE_TABLE))
    return Lexicon(
        nouns={noun.lemma: noun for noun in entries},
        adjectives={adjective.lemma: adjective for adjective in adjectives},
        verbs={group: tuple(map(_verb, _rows(table))) for group, table in verbs.VERB_TABLES.items()},
        manners=_manners(),
        frequencies=_frequencies(),
        times=_times(),
        names={pronoun: tuple(names.split()) for pronoun, names in modifiers.NAMES.items()},
        cities=dict(map(str.split, _rows(modifiers.CITY_TABLE))),
    )
