"""German and English inflection against hand-checked forms."""

from __future__ import annotations

import pytest

from transduce.corpora.grammar import english
from transduce.corpora.grammar.german import Case, Person
from transduce.corpora.grammar.lexicon import Verb, load_lexicon
from transduce.corpora.grammar.phrases import DETERMINERS, PREPOSITIONS, NounPhrase, PrepositionalPhrase

WORDS = load_lexicon()


def verb(lemma: str, group: str = "transitive") -> Verb:
    [found] = [entry for entry in WORDS.verbs[group] if entry.lemma == lemma]
    return found


def declined(determiner: str, noun: str, *, is_plural: bool = False) -> list[str]:
    phrase = NounPhrase(DETERMINERS[determiner], WORDS.nouns[noun], is_plural, WORDS.adjectives["old"])
    return [phrase.german(case) for case in Case]


@pytest.mark.parametrize(
    ("determiner", "noun", "forms"),
    [
        ("the", "man", ["der alte Mann", "den alten Mann", "dem alten Mann", "des alten Mannes"]),
        ("the", "woman", ["die alte Frau", "die alte Frau", "der alten Frau", "der alten Frau"]),
        ("the", "house", ["das alte Haus", "das alte Haus", "dem alten Haus", "des alten Hauses"]),
        ("a", "man", ["ein alter Mann", "einen alten Mann", "einem alten Mann", "eines alten Mannes"]),
        ("a", "woman", ["eine alte Frau", "eine alte Frau", "einer alten Frau", "einer alten Frau"]),
        ("my", "house", ["mein altes Haus", "mein altes Haus", "meinem alten Haus", "meines alten Hauses"]),
        ("our", "dog", ["unser alter Hund", "unseren alten Hund", "unserem alten Hund", "unseres alten Hundes"]),
        (
            "this",
            "teacher",
            ["dieser alte Lehrer", "diesen alten Lehrer", "diesem alten Lehrer", "dieses alten Lehrers"],
        ),
        ("", "wine", ["alter Wein", "alten Wein", "altem Wein", "alten Weines"]),
        ("", "milk", ["alte Milch", "alte Milch", "alter Milch", "alter Milch"]),
        ("every", "bear", ["jeder alte Bär", "jeden alten Bären", "jedem alten Bären", "jedes alten Bären"]),
    ],
)
def test_singular_noun_phrases(determiner: str, noun: str, forms: list[str]) -> None:
    assert declined(determiner, noun) == forms


@pytest.mark.parametrize(
    ("determiner", "noun", "forms"),
    [
        ("the", "child", ["die alten Kinder", "die alten Kinder", "den alten Kindern", "der alten Kinder"]),
        ("", "car", ["alte Autos", "alte Autos", "alten Autos", "alter Autos"]),
        ("two", "tree", ["zwei alte Bäume", "zwei alte Bäume", "zwei alten Bäumen", "zwei alter Bäume"]),
        (
            "many",
            "friend",
            ["viele alte Freunde", "viele alte Freunde", "vielen alten Freunden", "vieler alter Freunde"],
        ),
        ("all", "boy", ["alle alten Jungen", "alle alten Jungen", "allen alten Jungen", "aller alten Jungen"]),
        ("no", "book", ["keine alten Bücher", "keine alten Bücher", "keinen alten Büchern", "keiner alten Bücher"]),
    ],
)
def test_plural_noun_phrases(determiner: str, noun: str, forms: list[str]) -> None:
    assert declined(determiner, noun, is_plural=True) == forms


def test_weak_masculines_have_one_form_but_for_the_nominative() -> None:
    weak = {"neighbor": "Nachbarn", "farmer": "Bauern", "student": "Studenten", "hero": "Helden", "lion": "Löwen"}
    for lemma, form in weak.items():
        nominative, *others = WORDS.nouns[lemma].forms[0]
        assert nominative != form
        assert others == [form] * 3


@pytest.mark.parametrize(
    ("noun", "genitive"),
    [("king", "Königs"), ("secret", "Geheimnisses"), ("bus", "Busses"), ("car", "Autos"), ("table", "Tisches")],
)
def test_genitives(noun: str, genitive: str) -> None:
    assert WORDS.nouns[noun].forms[0][Case.GENITIVE] == genitive


def test_adjectives_change_their_stems() -> None:
    tree = WORDS.nouns["tree"]
    tall, expensive, dark = (WORDS.adjectives[word] for word in ("tall", "expensive", "dark"))
    assert NounPhrase(DETERMINERS["a"], tree, False, tall).german(Case.NOMINATIVE) == "ein hoher Baum"
    assert NounPhrase(DETERMINERS["a"], tree, False, expensive).german(Case.NOMINATIVE) == "ein teurer Baum"
    assert NounPhrase(DETERMINERS["the"], tree, False, dark).german(Case.DATIVE) == "dem dunklen Baum"
    assert (tall.german, expensive.german_comparative, dark.german) == ("hoch", "teurer", "dunkel")


@pytest.mark.parametrize(
    ("lemma", "group", "present", "participle", "imperative", "zu"),
    [
        ("read", "transitive", "lese liest liest lesen lesen", "gelesen", "lies", "zu lesen"),
        ("see", "transitive", "sehe siehst sieht sehen sehen", "gesehen", "sieh", "zu sehen"),
        ("wash", "transitive", "wasche wäschst wäscht waschen waschen", "gewaschen", "wasch", "zu waschen"),
        ("open", "transitive", "öffne öffnest öffnet öffnen öffnen", "geöffnet", "öffne", "zu öffnen"),
        ("hold", "transitive", "halte hältst hält halten halten", "gehalten", "halte", "zu halten"),
        ("turn on", "transitive", "schalte schaltest schaltet schalten schalten", "eingeschaltet", "schalte",
         "einzuschalten"),
        ("invite", "transitive", "lade lädst lädt laden laden", "eingeladen", "lade", "einzuladen"),
        ("visit", "transitive", "besuche besuchst besucht besuchen besuchen", "besucht", "besuch", "zu besuchen"),
        ("repair", "transitive", "repariere reparierst repariert reparieren reparieren", "repariert", "repariere",
         "zu reparieren"),
        ("forget", "transitive", "vergesse vergisst vergisst vergessen vergessen", "vergessen", "vergiss",
         "zu vergessen"),
        ("collect", "transitive", "sammle sammelst sammelt sammeln sammeln", "gesammelt", "sammle", "zu sammeln"),
        ("feed", "transitive", "füttere fütterst füttert füttern füttern", "gefüttert", "füttere", "zu füttern"),
        ("play", "transitive", "spiele spielst spielt spielen spielen", "gespielt", "spiel", "zu spielen"),
        ("grow", "intransitive", "wachse wächst wächst wachsen wachsen", "gewachsen", "wachs", "zu wachsen"),
        ("bark", "intransitive", "belle bellst bellt bellen bellen", "gebellt", "bell", "zu bellen"),
        ("know", "clausal", "weiß weißt weiß wissen wissen", "gewusst", "wiss", "zu wissen"),
        ("give", "ditransitive", "gebe gibst gibt geben geben", "gegeben", "gib", "zu geben"),
    ],
)  # fmt: skip
def test_german_verbs(lemma: str, group: str, present: str, participle: str, imperative: str, zu: str) -> None:
    forms = verb(lemma, group).german
    assert " ".join(forms.present) == present
    assert (forms.participle, forms.imperative, forms.zu_infinitive) == (participle, imperative, zu)


def test_which_verbs_take_sein() -> None:
    taking_sein = {entry.lemma for group in WORDS.verbs.values() for entry in group if entry.german.takes_sein}
    assert {"go", "run", "arrive", "wake up", "get up", "follow", "fly", "travel", "grow", "swim"} <= taking_sein
    assert taking_sein.isdisjoint({"sleep", "work", "sit", "stand", "buy", "play", "help", "wait"})


@pytest.mark.parametrize(
    ("base", "third", "past", "gerund"),
    [
        ("cry", "cries", "cried", "crying"),
        ("stop", "stops", "stopped", "stopping"),
        ("plan", "plans", "planned", "planning"),
        ("open", "opens", "opened", "opening"),
        ("describe", "describes", "described", "describing"),
        ("watch", "watches", "watched", "watching"),
        ("admit", "admits", "admitted", "admitting"),
        ("play", "plays", "played", "playing"),
        ("wait", "waits", "waited", "waiting"),
    ],
)
def test_regular_english_verbs(base: str, third: str, past: str, gerund: str) -> None:
    forms = english.verb_from_dictionary(base)
    assert forms.present[Person.HE] == f"(VBZ {third})"
    assert (forms.past[Person.I], forms.gerund) == (f"(VBD {past})", f"(VBG {gerund})")


def test_doubled_gerunds_of_irregular_verbs() -> None:
    gerunds = [verb(lemma, group).english.gerund for lemma, group in [
        ("run", "motion"), ("swim", "motion"), ("put", "placing"), ("cut", "transitive"), ("sit", "intransitive"),
    ]]  # fmt: skip
    assert gerunds == ["(VBG running)", "(VBG swimming)", "(VBG putting)", "(VBG cutting)", "(VBG sitting)"]


def test_a_and_an() -> None:
    apple, university, cat = (WORDS.nouns[word] for word in ("apple", "university", "cat"))
    a, old, ripe = DETERMINERS["a"], WORDS.adjectives["old"], WORDS.adjectives["ripe"]
    assert NounPhrase(a, apple).english(Case.NOMINATIVE) == "(NP (DT an) (NN apple))"
    assert NounPhrase(a, apple, False, ripe).english(Case.NOMINATIVE) == "(NP (DT a) (JJ ripe) (NN apple))"
    assert NounPhrase(a, university).english(Case.NOMINATIVE) == "(NP (DT a) (NN university))"
    assert NounPhrase(a, cat, False, old).english(Case.NOMINATIVE) == "(NP (DT an) (JJ old) (NN cat))"


@pytest.mark.parametrize(
    ("noun", "where", "where_to"),
    [
        ("garden", "im Garten", "in den Garten"),
        ("house", "im Haus", "ins Haus"),
        ("kitchen", "in der Küche", "in die Küche"),
        ("station", "am Bahnhof", "zum Bahnhof"),
        ("university", "an der Universität", "zur Universität"),
        ("street", "auf der Straße", "auf die Straße"),
        ("beach", "am Strand", "zum Strand"),
        ("city", "in der Stadt", "in die Stadt"),
    ],
)
def test_places_and_contractions(noun: str, where: str, where_to: str) -> None:
    entry = WORDS.nouns[noun]
    assert entry.location
    assert entry.goal
    place = NounPhrase(DETERMINERS["the"], entry)
    assert PrepositionalPhrase(entry.location, place).german() == where
    assert PrepositionalPhrase(entry.goal, place).german() == where_to


def test_only_the_article_contracts() -> None:
    house = WORDS.nouns["house"]
    near = PREPOSITIONS["near"]
    assert PrepositionalPhrase(near, NounPhrase(DETERMINERS["the"], house)).german() == "beim Haus"
    assert PrepositionalPhrase(near, NounPhrase(DETERMINERS["this"], house)).german() == "bei diesem Haus"
    assert PrepositionalPhrase(near, NounPhrase(DETERMINERS["a"], house)).german() == "bei einem Haus"
