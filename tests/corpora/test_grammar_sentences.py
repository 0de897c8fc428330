"""One hand-checked pair for each construction, from a hand-written derivation."""

from __future__ import annotations

import pytest

from transduce.corpora.grammar.clauses import COPULA, Clause, Comparison
from transduce.corpora.grammar.german import Person
from transduce.corpora.grammar.lexicon import Adverb, TimeAdverbial, Verb, load_lexicon
from transduce.corpora.grammar.phrases import (
    DETERMINERS,
    PREPOSITIONS,
    PRONOUNS,
    Coordination,
    Gap,
    Name,
    NounPhrase,
    PrepositionalPhrase,
    name_as_owner,
)
from transduce.corpora.grammar.sentences import (
    QUESTION_WORDS,
    Command,
    Existence,
    Joined,
    Linked,
    OpenQuestion,
    Sentence,
    Statement,
    YesNoQuestion,
    realize,
)
from transduce.corpora.grammar.subordinate import (
    CONJUNCTIONS,
    InfinitiveClause,
    PurposeClause,
    RelativeClause,
    SubordinateClause,
)
from transduce.corpora.grammar.tenses import MODALS, Tense

WORDS = load_lexicon()
ME, YOU, HE, SHE, IT, WE, THEY = (PRONOUNS[word] for word in ("I", "you", "he", "she", "it", "we", "they"))
ANNA = Name("(NP (NNP Anna))", "Anna")


def noun(words: str, *, is_plural: bool = False) -> NounPhrase:
    """``the old dog``, as a record; an article that is absent is written ``-``."""
    determiner, *adjective, lemma = words.split()
    return NounPhrase(
        DETERMINERS[determiner.strip("-")],
        WORDS.nouns[lemma],
        is_plural,
        WORDS.adjectives[adjective[0]] if adjective else None,
    )


def verb(lemma: str, group: str = "transitive") -> Verb:
    [found] = [entry for entry in WORDS.verbs[group] if entry.lemma == lemma]
    return found


def time(german: str) -> TimeAdverbial:
    [found] = [entry for entries in WORDS.times.values() for entry in entries if entry.german == german]
    return found


def adverb(lemma: str) -> Adverb:
    adverbs = (*WORDS.frequencies, *(entry for group in WORDS.manners.values() for entry in group))
    return next(entry for entry in adverbs if entry.lemma == lemma)


def at(lemma: str) -> PrepositionalPhrase:
    place = WORDS.nouns[lemma]
    assert place.location
    return PrepositionalPhrase(place.location, noun(f"the {lemma}"))


def to(lemma: str) -> PrepositionalPhrase:
    place = WORDS.nouns[lemma]
    assert place.goal
    return PrepositionalPhrase(place.goal, noun(f"the {lemma}"))


READ, BUY, SEE, HELP, CALL, TURN_ON = (verb(word) for word in ("read", "buy", "see", "help", "call", "turn on"))
GIVE, GO, SLEEP = verb("give", "ditransitive"), verb("go", "motion"), verb("sleep", "intransitive")
MAN_READS = Clause(noun("the man"), READ, Tense.PAST, direct=noun("the book"))

STATEMENTS: list[tuple[Clause, str, str]] = [
    (
        Clause(noun("the old dog"), SEE, is_negated=True, direct=noun("the red car")),
        "The old dog does not see the red car.",
        "Der alte Hund sieht das rote Auto nicht.",
    ),
    (Clause(HE, READ, direct=IT), "He reads it.", "Er liest es."),
    (Clause(YOU, SEE, direct=noun("a bear")), "You see a bear.", "Du siehst einen Bären."),
    (Clause(noun("the man"), READ, Tense.PROGRESSIVE, direct=noun("the book")),
     "The man is reading the book.", "Der Mann liest gerade das Buch."),
    (Clause(noun("the man"), READ, Tense.PROGRESSIVE, direct=noun("the book"), time=time("jetzt")),
     "The man is reading the book now.", "Der Mann liest jetzt das Buch."),
    (Clause(THEY, READ, Tense.FUTURE, is_negated=True, direct=noun("the book"), time=time("morgen")),
     "They will not read the book tomorrow.", "Sie werden das Buch morgen nicht lesen."),
    (Clause(SHE, BUY, Tense.PERFECT, direct=noun("a ring"), frequency=adverb("never")),
     "She has never bought a ring.", "Sie hat nie einen Ring gekauft."),
    (Clause(SHE, READ, Tense.PERFECT, direct=noun("the letter"), frequency=adverb("already")),
     "She has already read the letter.", "Sie hat den Brief schon gelesen."),
    (Clause(WE, verb("drink"), is_negated=True, direct=noun("- cold milk")),
     "We do not drink cold milk.", "Wir trinken keine kalte Milch."),
    (Clause(ME, verb("eat"), Tense.PAST, is_negated=True, direct=noun("- apple", is_plural=True)),
     "I did not eat apples.", "Ich habe keine Äpfel gegessen."),
    (Clause(noun("my son"), HELP, Tense.PAST, direct=noun("the old woman")),
     "My son helped the old woman.", "Mein Sohn hat der alten Frau geholfen."),
    (Clause(HE, CALL, direct=noun("the doctor")), "He calls the doctor.", "Er ruft den Arzt an."),
    (Clause(HE, CALL, Tense.PAST, direct=ANNA, time=time("gestern")),
     "He called Anna yesterday.", "Er hat Anna gestern angerufen."),
    (Clause(HE, TURN_ON, direct=noun("the lamp")), "He turns on the lamp.", "Er schaltet die Lampe ein."),
    (Clause(HE, TURN_ON, Tense.PAST, direct=IT), "He turned it on.", "Er hat es eingeschaltet."),
    (Clause(HE, TURN_ON, modal=MODALS["must"], direct=noun("the lamp")),
     "He must turn on the lamp.", "Er muss die Lampe einschalten."),
    (Clause(HE, TURN_ON, modal=MODALS["must"], is_negated=True, direct=noun("the lamp")),
     "He must not turn on the lamp.", "Er darf die Lampe nicht einschalten."),
    (Clause(SHE, READ, modal=MODALS["want to"], is_negated=True, direct=noun("the book")),
     "She does not want to read the book.", "Sie will das Buch nicht lesen."),
    (Clause(WE, GO, modal=MODALS["had to"], goal=to("station")),
     "We had to go to the station.", "Wir mussten zum Bahnhof gehen."),
    (Clause(ME, SLEEP, modal=MODALS["would like to"]), "I would like to sleep.", "Ich möchte schlafen."),
    (Clause(ME, GO, modal=MODALS["can"], is_negated=True, goal=to("city")),
     "I cannot go to the city.", "Ich kann nicht in die Stadt gehen."),
    (Clause(noun("the man"), GIVE, indirect=noun("the child"), direct=noun("a book")),
     "The man gives the child a book.", "Der Mann gibt dem Kind ein Buch."),
    (Clause(noun("the man"), GIVE, Tense.PAST, indirect=noun("the child"), direct=IT),
     "The man gave it to the child.", "Der Mann hat es dem Kind gegeben."),
    (Clause(noun("the man"), GIVE, Tense.PAST, indirect=THEY, direct=IT, time=time("gestern")),
     "The man gave it to them yesterday.", "Der Mann hat es ihnen gestern gegeben."),
    (Clause(noun("the child", is_plural=True), verb("play", "intransitive"), Tense.PAST, place=at("garden"),
            time=time("gestern"), manner=adverb("happily")),
     "The children played happily in the garden yesterday.", "Die Kinder haben gestern fröhlich im Garten gespielt."),
    (Clause(SHE, verb("travel", "travel"), Tense.PAST, time=time("letztes Jahr"),
            companion=PrepositionalPhrase(PREPOSITIONS["by a vehicle"], noun("by train")),
            goal=PrepositionalPhrase(PREPOSITIONS["to a city"], Name("(NP (NNP Munich))", "München"))),
     "She traveled to Munich by train last year.", "Sie ist letztes Jahr mit dem Zug nach München gereist."),
    (Clause(ME, verb("put", "placing"), Tense.PAST, direct=noun("the book"),
            goal=PrepositionalPhrase(PREPOSITIONS["put on"], noun("the table"))),
     "I put the book on the table.", "Ich habe das Buch auf den Tisch gelegt."),
    (Clause(noun("the letter"), verb("write"), Tense.PAST, is_passive=True,
            companion=PrepositionalPhrase(PREPOSITIONS["by"], noun("the teacher"))),
     "The letter was written by the teacher.", "Der Brief wurde vom Lehrer geschrieben."),
    (Clause(noun("the lamp"), TURN_ON, Tense.PERFECT, is_passive=True, frequency=adverb("just")),
     "The lamp has just been turned on.", "Die Lampe ist gerade eingeschaltet worden."),
    (Clause(noun("the lamp"), TURN_ON, modal=MODALS["must"], is_passive=True),
     "The lamp must be turned on.", "Die Lampe muss eingeschaltet werden."),
    (Clause(noun("the house"), COPULA, Tense.PAST, predicate=Comparison(WORDS.adjectives["dark"], "very")),
     "The house was very dark.", "Das Haus war sehr dunkel."),
    (Clause(noun("the house"), COPULA,
            predicate=Comparison(WORDS.adjectives["old"], "than", noun("the church"))),
     "The house is older than the church.", "Das Haus ist älter als die Kirche."),
    (Clause(noun("the house"), COPULA,
            predicate=Comparison(WORDS.adjectives["beautiful"], "than", noun("the church"))),
     "The house is more beautiful than the church.", "Das Haus ist schöner als die Kirche."),
    (Clause(ANNA, COPULA, predicate=Comparison(WORDS.adjectives["old"], "as", noun("my uncle"))),
     "Anna is as old as my uncle.", "Anna ist so alt wie mein Onkel."),
    (Clause(SHE, COPULA, Tense.FUTURE, is_negated=True, place=at("kitchen")),
     "She will not be in the kitchen.", "Sie wird nicht in der Küche sein."),
    (Clause(noun("the teacher"), verb("sell"), Tense.PAST,
            direct=noun("the old car")._replace(owner=noun("my brother"))),
     "The teacher sold my brother's old car.", "Der Lehrer hat das alte Auto meines Bruders verkauft."),
    (Clause(HE, verb("repair"), direct=noun("the old car")._replace(determiner=name_as_owner("Anna"))),
     "He repairs Anna's old car.", "Er repariert Annas altes Auto."),
    (Clause(Coordination(noun("the man"), noun("his dog")), SLEEP),
     "The man and his dog sleep.", "Der Mann und sein Hund schlafen."),
    (Clause(noun("the man")._replace(modifier=PrepositionalPhrase(PREPOSITIONS["with"], noun("the red hat"))), SLEEP),
     "The man with the red hat sleeps.", "Der Mann mit dem roten Hut schläft."),
    (Clause(HE, verb("know", "clausal"), complement=SubordinateClause(CONJUNCTIONS["that"], MAN_READS)),
     "He knows that the man read the book.", "Er weiß, dass der Mann das Buch gelesen hat."),
    (Clause(HE, verb("know", "clausal"), is_negated=True, complement=SubordinateClause(
        CONJUNCTIONS["whether"], Clause(SHE, TURN_ON, direct=noun("the lamp")))),
     "He does not know whether she turns on the lamp.", "Er weiß nicht, ob sie die Lampe einschaltet."),
    (Clause(HE, verb("try", "infinitival"), Tense.PAST, complement=InfinitiveClause(
        Clause(Gap(), TURN_ON, direct=noun("the lamp")))),
     "He tried to turn on the lamp.", "Er hat versucht, die Lampe einzuschalten."),
    (Clause(HE, GO, goal=to("shop"), complement=PurposeClause(Clause(Gap(), BUY, direct=noun("- bread")))),
     "He goes into the shop in order to buy bread.", "Er geht ins Geschäft, um Brot zu kaufen."),
]  # fmt: skip


@pytest.mark.parametrize(("clause", "en", "de"), STATEMENTS, ids=[en for _, en, _ in STATEMENTS])
def test_statements(clause: Clause, en: str, de: str) -> None:
    pair = realize(Statement(clause))
    assert (pair.en, pair.de) == (en, de)


def relative(host: NounPhrase, clause: Clause) -> NounPhrase:
    return host._replace(modifier=RelativeClause(host.noun, host.is_plural, clause))


MAN, WOMEN = WORDS.nouns["man"], WORDS.nouns["woman"]
SLEEPER = relative(noun("the man"), Clause(Gap(MAN), SLEEP))
HELPED = relative(noun("the woman", is_plural=True), Clause(HE, HELP, direct=Gap(WOMEN, Person.THEY)))
BOUGHT = relative(noun("the book"), Clause(noun("the woman"), BUY, Tense.PAST, direct=Gap(WORDS.nouns["book"])))

SENTENCES: list[tuple[Sentence, str, str]] = [
    (Statement(MAN_READS._replace(time=time("gestern")), "time"),
     "Yesterday the man read the book.", "Gestern hat der Mann das Buch gelesen."),
    (Statement(Clause(noun("the man"), SLEEP, place=at("garden")), "place"),
     "In the garden the man sleeps.", "Im Garten schläft der Mann."),
    (YesNoQuestion(MAN_READS), "Did the man read the book?", "Hat der Mann das Buch gelesen?"),
    (YesNoQuestion(Clause(YOU, COPULA, predicate=Comparison(WORDS.adjectives["tired"]))),
     "Are you tired?", "Bist du müde?"),
    (OpenQuestion(QUESTION_WORDS["who"], MAN_READS._replace(subject=Gap())),
     "Who read the book?", "Wer hat das Buch gelesen?"),
    (OpenQuestion(QUESTION_WORDS["what"], MAN_READS._replace(direct=Gap())),
     "What did the man read?", "Was hat der Mann gelesen?"),
    (OpenQuestion(QUESTION_WORDS["whom, dative"], Clause(SHE, HELP, Tense.FUTURE, direct=Gap())),
     "Whom will she help?", "Wem wird sie helfen?"),
    (OpenQuestion(QUESTION_WORDS["where to"], Clause(noun("the child"), GO, Tense.PROGRESSIVE)),
     "Where is the child going?", "Wohin geht das Kind gerade?"),
    (OpenQuestion(QUESTION_WORDS["why"], Clause(HE, GO, modal=MODALS["want to"], goal=to("school"))),
     "Why does he want to go to the school?", "Warum will er zur Schule gehen?"),
    (OpenQuestion(noun("which man"), Clause(SHE, SEE, Tense.PAST, direct=Gap(MAN))),
     "Which man did she see?", "Welchen Mann hat sie gesehen?"),
    (OpenQuestion(noun("which man"), Clause(Gap(MAN), SEE, Tense.PAST, direct=noun("the dog"))),
     "Which man saw the dog?", "Welcher Mann hat den Hund gesehen?"),
    (Command(Clause(Gap(person=Person.YOU), TURN_ON, direct=noun("the lamp")), is_polite=True),
     "Please turn on the lamp.", "Bitte schalte die Lampe ein."),
    (Command(Clause(Gap(person=Person.YOU), READ, is_negated=True, direct=noun("the letter")), is_polite=False),
     "Do not read the letter!", "Lies den Brief nicht!"),
    (Existence(noun("two cat", is_plural=True), at("garden"), is_past=False),
     "There are two cats in the garden.", "Im Garten sind zwei Katzen."),
    (Joined(Clause(HE, SLEEP), Clause(SHE, GO, goal=to("city")), "and"),
     "He sleeps, and she goes to the city.", "Er schläft und sie geht in die Stadt."),
    (Joined(Clause(HE, SLEEP), Clause(SHE, GO, goal=to("city")), "but"),
     "He sleeps, but she goes to the city.", "Er schläft, aber sie geht in die Stadt."),
    (Linked(Clause(HE, SLEEP), SubordinateClause(CONJUNCTIONS["because"], MAN_READS), is_fronted=False),
     "He sleeps because the man read the book.", "Er schläft, weil der Mann das Buch gelesen hat."),
    (Linked(Clause(HE, SLEEP, Tense.PAST), SubordinateClause(CONJUNCTIONS["when, once"], MAN_READS), is_fronted=True),
     "When the man read the book, he slept.", "Als der Mann das Buch gelesen hat, hat er geschlafen."),
    (Linked(Clause(ME, GO, Tense.FUTURE, goal=to("park")),
            SubordinateClause(CONJUNCTIONS["if"], Clause(YOU, CALL, direct=ME)), is_fronted=True),
     "If you call me, I will go to the park.", "Wenn du mich anrufst, werde ich in den Park gehen."),
    (Linked(MAN_READS, SubordinateClause(CONJUNCTIONS["after"], Clause(SHE, GO, Tense.PLUPERFECT, goal=to("house"))),
            is_fronted=False),
     "The man read the book after she had gone into the house.",
     "Der Mann hat das Buch gelesen, nachdem sie ins Haus gegangen war."),
    (Statement(Clause(SLEEPER, SEE, direct=noun("a dog"))),
     "The man who sleeps sees a dog.", "Der Mann, der schläft, sieht einen Hund."),
    (Statement(Clause(ME, SEE, Tense.PAST, direct=HELPED)),
     "I saw the women that he helps.", "Ich habe die Frauen gesehen, denen er hilft."),
    (Statement(Clause(HE, READ, Tense.PAST, is_negated=True, direct=BOUGHT)),
     "He did not read the book that the woman bought.",
     "Er hat das Buch nicht gelesen, das die Frau gekauft hat."),
    (YesNoQuestion(Clause(SLEEPER, SLEEP)), "Does the man who sleeps sleep?", "Schläft der Mann, der schläft?"),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "en", "de"), SENTENCES, ids=[en for _, en, _ in SENTENCES])
def test_sentences(sentence: Sentence, en: str, de: str) -> None:
    pair = realize(sentence)
    assert (pair.en, pair.de) == (en, de)


def test_trees() -> None:
    negation = Clause(noun("the old dog"), SEE, is_negated=True, direct=noun("the red car"))
    assert realize(Statement(negation)).tree == (
        "(TOP (S (NP (DT The) (JJ old) (NN dog)) (VP (VBZ does) (RB not) (VP (VB see) (NP (DT the) (JJ red) (NN car))))"
        " (. .)))"
    )
    question = OpenQuestion(QUESTION_WORDS["what"], Clause(SHE, TURN_ON, modal=MODALS["want to"], direct=Gap()))
    assert realize(question).tree == (
        "(TOP (SBARQ (WHNP (WP What)) (SQ (VBZ does) (NP (PRP she)) (VP (VB want) (S (VP (TO to) (VP (VB turn)"
        " (PRT (RP on))))))) (. ?)))"
    )
    fronted = Linked(Clause(HE, SLEEP), SubordinateClause(CONJUNCTIONS["when"], Clause(ME, SLEEP)), is_fronted=True)
    assert realize(fronted).tree == (
        "(TOP (S (SBAR (WHADVP (WRB When)) (S (NP (PRP I)) (VP (VBP sleep)))) (, ,) (NP (PRP he)) (VP (VBZ sleeps))"
        " (. .)))"
    )
    told = Statement(Clause(ME, SEE, direct=SLEEPER))
    assert realize(told).tree == (
        "(TOP (S (NP (PRP I)) (VP (VBP see) (NP (NP (DT the) (NN man)) (SBAR (WHNP (WP who)) (S (VP (VBZ sleeps))))))"
        " (. .)))"
    )
    passive = Statement(STATEMENTS[27][0])
    assert realize(passive).tree == (
        "(TOP (S (NP (DT The) (NN letter)) (VP (VBD was) (VP (VBN written) (PP (IN by) (NP (DT the) (NN teacher)))))"
        " (. .)))"
    )


def test_combinations_are_those_of_all_clauses() -> None:
    sentence = Linked(
        Clause(noun("the man"), READ, direct=noun("the old book")),
        SubordinateClause(CONJUNCTIONS["because"], Clause(noun("the letter"), BUY, is_passive=True)),
        is_fronted=False,
    )
    assert set(sentence.combinations()) == {
        ("subject", "man", "read"),
        ("object", "read", "book"),
        ("adjective", "old", "book"),
        ("object", "buy", "letter"),
    }
