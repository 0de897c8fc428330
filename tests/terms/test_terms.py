"""Terms in texts and in translations, and the files that have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from transduce.errors import DataError
from transduce.terms import Term, Terms, read_avoided, read_terms

TBX = """<?xml version="1.0"?>
<!DOCTYPE martif SYSTEM "TBXBasiccoreStructV02.dtd">
<martif type="TBX-Basic" xml:lang="en"><text><body>
<termEntry id="1"><langSet xml:lang="en-US"><tig><term>dog</term></tig><tig><term>hound</term></tig></langSet>
<langSet xml:lang="de"><tig><term>Hund</term></tig><tig><term>Köter</term></tig></langSet></termEntry>
<termEntry id="2"><langSet xml:lang="fr"><tig><term>chat</term></tig></langSet>
<langSet xml:lang="de"><tig><term>Katze</term></tig></langSet></termEntry>
</body></text></martif>"""


def targets(terms: Terms, text: str) -> list[str]:
    return [each.target for each in terms.found(text)]


def test_terms_in_a_text() -> None:
    terms = Terms((Term("e-mail", "E-Mail"), Term("Turkey", "Türkei"), Term("犬", "Hund"), Term("mail", "post")))
    assert targets(terms, "An e-mail, E-Mail or E-MAIL.") == ["E-Mail", "E-Mail", "E-MAIL"]
    assert targets(terms, "A turkey in Turkey") == ["Türkei"]
    assert targets(terms, "この犬は") == ["Hund"]
    assert targets(terms, "Mails; Mail me") == ["Post"]
    assert targets(terms, "see https://x.org/mail, {mail} and <mail>") == []
    assert targets(terms, "") == []


def test_quotes_and_hyphens_have_many_forms() -> None:
    terms = Terms((Term("user's guide", "l'aide"), Term("e\u2011mail", "e-mail")), ("d’un", "re-do"))
    assert targets(terms, "The user’s guide, the user's guide, e-mail, e\u2010mail") == ["l'aide"] * 2 + ["e-mail"] * 2
    assert not terms.lost("The user’s guide by e-mail", "l’aide par e\u2011mail")
    assert len(terms.lost("The user’s guide by e-mail", "guide")) == 2
    assert terms.said("d'un re\u2011do") == ["d’un", "re-do"]
    assert "’s" in terms.hinted("The user’s guide")  # the text stays as it was


def test_the_longest_and_then_the_first_counts() -> None:
    terms = Terms((Term("a", "1"), Term("a b", "2"), Term("a", "3"), Term("b c", "4")))
    assert targets(terms, "a b c a") == ["2", "1"]


def test_a_term_that_occurs_twice_is_needed_twice() -> None:
    terms = Terms((Term("dog", "Hund"), Term("hound", "Hund")), avoided=("Köter",))
    assert terms.are_kept("A dog and a hound.", "Ein Hund und ein HUND.")
    assert [each.source for each in terms.lost("A dog and a hound.", "Ein Hund.")] == ["hound"]
    assert not terms.are_kept("A cat.", "Ein Köter.")
    assert terms.are_kept("A cat.", "Ein Köterchen, köter.")


def test_tables(tmp_path: Path) -> None:
    table = tmp_path / "terms.tsv"
    table.write_text("dog\tHund\tnote\n\npower  plant\t Kraftwerk\ndog\tHund\n", "utf-8")
    assert read_terms(table, src_language="en", tgt_language="de") == (
        Term("dog", "Hund"), Term("power plant", "Kraftwerk"),
    )  # fmt: skip
    for bad in ("dog Hund", "\tHund", "dog\t "):
        table.write_text(f"a\tb\n{bad}\n", "utf-8")
        with pytest.raises(DataError, match=r"terms\.tsv:2 .*TAB"):
            read_terms(table, src_language="en", tgt_language="de")
    table.write_text("bad  word\n\nworse\n", "utf-8")
    assert read_avoided(table) == ("bad word", "worse")


def test_tbx(tmp_path: Path) -> None:
    path = tmp_path / "terms.tbx"
    wanted = (Term("dog", "Hund"), Term("hound", "Hund"))
    path.write_text(TBX, "utf-8")
    assert read_terms(path, src_language="en", tgt_language="de-AT") == wanted
    of_version_3 = TBX.replace("termEntry", "conceptEntry").replace("langSet", "langSec").replace("tig", "termSec")
    path.write_bytes(of_version_3.encode("utf-16"))
    assert read_terms(path, src_language="en", tgt_language="de") == wanted
    bomb = '<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]><a>&c;</a>'
    unknown = '<?xml version="1.0" encoding="klingon"?><a/>'
    for damaged in (TBX[:500], unknown, "", "<a/>", bomb, "<a>" * 100_000, "\ud7ff", "dog\tHund"):
        path.write_text(damaged, "utf-8")
        with pytest.raises(DataError, match=str(path)) as raised:
            read_terms(path, src_language="en", tgt_language="de")
        assert "\n" not in str(raised.value)


def test_a_text_with_its_terms_beside_them() -> None:
    terms = Terms((Term("power plant", "Kraftwerk"), Term("dog", "Hund")))
    hinted = terms.hinted("Power Plant {dog}; the dog.").translate({0xE00A: "<", 0xE00B: "|", 0xE00C: ">"})
    assert hinted == "<Power Plant| Kraftwerk> {dog}; the< dog| Hund>."
    assert terms.hinted("") == ""
    assert terms.hinted("a cat") == "a cat"
