"""sacreBLEU's tokenizer follows the language, or the script; both sides are compared in NFC; several references."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu import BLEU, CHRF

from transduce.errors import ConfigError, DataError
from transduce.metrics import (
    TOKENISED_BLEUS,
    bleu_tokenizer,
    chrf_score,
    error_rates,
    multi30k_bleu,
    paired_bootstrap,
    paper_bleu,
    sacrebleu_score,
    score_translations,
    sentence_chrf_scores,
)

# A sentence of each script, and the same with one word changed.
UNSPACED = {
    "zh": ("zh", "那条老狗今天在花园的树下睡觉。", "那条老狗昨天在花园的树下睡觉。"),
    "zh-TW": ("zh", "那條老狗今天在花園的樹下睡覺。", "那條老狗昨天在花園的樹下睡覺。"),
    "yue": ("zh", "嗰隻老狗今日喺花園嘅樹下瞓覺。", "嗰隻老狗尋日喺花園嘅樹下瞓覺。"),
    "ja": ("char", "その老犬は今日、庭の木の下で眠っています。", "その老犬は昨日、庭の木の下で眠っています。"),
    "ko": ("char", "그 늙은 개는 오늘 정원의 나무 아래에서 잔다.", "그 늙은 개는 어제 정원의 나무 아래에서 잔다."),
    "th": ("char", "สุนัขแก่ตัวนั้นนอนหลับอยู่ใต้ต้นไม้ในสวนวันนี้", "สุนัขแก่ตัวนั้นนอนหลับอยู่ใต้ต้นไม้ในสวนเมื่อวาน"),
    "lo": ("char", "ໝາເຖົ້າໂຕນັ້ນນອນຢູ່ໃຕ້ຕົ້ນໄມ້ໃນສວນມື້ນີ້", "ໝາເຖົ້າໂຕນັ້ນນອນຢູ່ໃຕ້ຕົ້ນໄມ້ໃນສວນມື້ວານ"),
    "km": ("char", "ឆ្កែចាស់នោះដេកនៅក្រោមដើមឈើក្នុងសួនថ្ងៃនេះ", "ឆ្កែចាស់នោះដេកនៅក្រោមដើមឈើក្នុងសួនម្សិលមិញ"),
    "my": ("char", "ခွေးအိုကြီးသည်ယနေ့ဥယျာဉ်ထဲရှိသစ်ပင်အောက်တွင်အိပ်နေသည်။", "ခွေးအိုကြီးသည်မနေ့ကဥယျာဉ်ထဲရှိသစ်ပင်အောက်တွင်အိပ်နေသည်။"),
    "bo": ("char", "ཁྱི་རྒན་དེ་དེ་རིང་ལྡུམ་རའི་ཤིང་འོག་ཏུ་ཉལ་འདུག", "ཁྱི་རྒན་དེ་ཁ་སང་ལྡུམ་རའི་ཤིང་འོག་ཏུ་ཉལ་འདུག"),
}  # fmt: skip
SPACED = {
    "en": "The old dog sleeps under the tree.",
    "de": "Der alte Hund schläft unter dem Baum.",
    "ru": "Старая собака спит под деревом.",
    "el": "Ο γέρικος σκύλος κοιμάται κάτω από το δέντρο.",
    "ar": "الكلب العجوز ينام تحت الشجرة.",
    "he": "הכלב הזקן ישן מתחת לעץ.",
    "hi": "बूढ़ा कुत्ता पेड़ के नीचे सोता है।",
    "ta": "வயதான நாய் மரத்தின் கீழ் தூங்குகிறது.",
    "am": "አሮጌው ውሻ ከዛፉ ሥር ይተኛል።",
    "vi": "Con chó già ngủ dưới gốc cây.",
    "ka": "მოხუცი ძაღლი ხის ქვეშ სძინავს.",
}


@pytest.mark.parametrize("language", UNSPACED)
def test_nearly_right_text_without_spaces_is_scored_by_its_characters(language: str) -> None:
    name, right, nearly = UNSPACED[language]
    by_language = sacrebleu_score([nearly], [right], language=language)
    assert by_language == sacrebleu_score([nearly], [right])  # by its script
    assert f"|tok:{name}|" in by_language.signature
    assert by_language.score == pytest.approx(BLEU(tokenize=name, force=True).corpus_score([nearly], [[right]]).score)
    assert 60 < by_language.score < 100
    scores = score_translations([nearly], [right], language=language)
    assert scores.sacrebleu == by_language
    assert scores.chrf.score > 50
    assert sacrebleu_score([nearly], [right], tokenizer="13a").score < 60
    assert "|tok:13a|" in sacrebleu_score([nearly], [right], tokenizer="13a").signature


@pytest.mark.parametrize("language", SPACED)
def test_languages_with_spaces_keep_sacrebleus_default(language: str) -> None:
    line = SPACED[language]
    assert bleu_tokenizer(language, [line]) == bleu_tokenizer(None, [line]) == "13a"
    mixed = [line, f"{line} 東京", f"{line} ไทย"]  # some foreign words change nothing
    expected = BLEU().corpus_score(mixed[::-1], [mixed])
    score = sacrebleu_score(mixed[::-1], mixed, language=language)
    assert score.score == pytest.approx(expected.score)
    assert "norm" not in score.signature


@pytest.mark.parametrize(
    ("code", "name"), [("zh-Hans", "zh"), ("cmn", "zh"), ("zh-TW", "zh"), ("tha", "char"), ("pt-BR", "13a")]
)
def test_codes_are_of_two_or_three_letters_with_script_and_region(code: str, name: str) -> None:
    assert bleu_tokenizer(code, ["Ein Hund."]) == name


def test_a_language_that_is_not_known_has_the_tokenizer_of_its_script() -> None:
    assert bleu_tokenizer("xx", [UNSPACED["th"][1], "OK"]) == "char"
    assert bleu_tokenizer("xx", ["", "1, 2, 3"]) == "13a"
    assert bleu_tokenizer("xx", []) == "13a"


def test_other_tokenizers_by_name() -> None:
    assert "tok:intl" in sacrebleu_score(["a b"], ["a b"], tokenizer="intl").signature
    with pytest.raises(ConfigError, match=r"13a.*char.*'words'"):
        sacrebleu_score(["a b"], ["a b"], tokenizer="words")


def test_a_tokenizer_that_is_not_installed_is_an_error_that_names_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from sacrebleu.tokenizers import tokenizer_ja_mecab

    monkeypatch.setattr(tokenizer_ja_mecab, "MeCab", None)
    with pytest.raises(ConfigError, match=r"ja-mecab.*pip install 'sacrebleu\[ja\]'.*--tokenize char"):
        sacrebleu_score(["犬"], ["犬"], tokenizer="ja-mecab")


@pytest.mark.parametrize(
    "line",
    [
        "Ein Bär schläft im Garten.",
        "Tiếng Việt có dấu thanh.",
        "कृपया वह ख़बर पढ़ें जो छपी है।",
        "그 개는 정원에서 잔다.",
        "か゚",
    ],
)
def test_text_that_looks_the_same_is_the_same(line: str) -> None:
    forms = [unicodedata.normalize(form, line) for form in ("NFC", "NFD")]
    forms.append(line.replace("\u0921\u093c", "\u095c"))  # a letter that NFC always writes as two
    for hypothesis in forms:
        for reference in forms:
            has_changed = {hypothesis, reference} != {forms[0]}
            scores = score_translations([hypothesis], [reference], language="de", also=TOKENISED_BLEUS)
            for score in (scores.sacrebleu, scores.chrf, scores.paper_bleu, scores.multi30k_bleu):
                assert score is not None
                assert ("|norm:NFC|" in score.signature) == has_changed
            assert scores.chrf.score == pytest.approx(100.0)
            assert scores.sacrebleu == sacrebleu_score([hypothesis], [reference], language="de")
            assert scores.sacrebleu.score == sacrebleu_score([forms[0]], [forms[0]], language="de").score
            assert sentence_chrf_scores([hypothesis], reference) == [pytest.approx(100.0)]
            assert error_rates([hypothesis], [reference]).exact == 100.0
            test = paired_bootstrap([hypothesis], [forms[0]], [reference], n_resamples=5, seed=1)
            assert test.difference == 0.0
            assert test.interval == (0.0, 0.0)


FIRST = ["Ein Hund schläft im Garten.", "Zwei Kinder spielen draußen Ball."]
SECOND = ["Im Garten schläft ein Hund.", "Draußen spielen zwei Kinder mit einem Ball."]
HYPOTHESES = ["Im Garten schläft ein Hund.", "Zwei Kinder spielen draußen Ball."]


def test_several_references_are_scored_as_sacrebleu_scores_them() -> None:
    bleu = sacrebleu_score(HYPOTHESES, FIRST, SECOND)
    assert bleu.score == pytest.approx(100.0)
    assert bleu.signature.startswith("nrefs:2|")
    assert sacrebleu_score(HYPOTHESES, SECOND, FIRST) == bleu
    assert sacrebleu_score(HYPOTHESES, FIRST).score < 70
    worse = [HYPOTHESES[0], "Zwei Kinder spielen."]
    assert sacrebleu_score(worse, FIRST, SECOND).score == pytest.approx(
        BLEU().corpus_score(worse, [FIRST, SECOND]).score
    )
    chrf = chrf_score(worse, FIRST, SECOND)
    assert chrf.score == pytest.approx(CHRF().corpus_score(worse, [FIRST, SECOND]).score)
    assert chrf.signature.startswith("nrefs:2|")
    for tokenised in (paper_bleu, multi30k_bleu):
        score = tokenised(HYPOTHESES, FIRST, SECOND, language="de")
        assert score.score == pytest.approx(100.0)
        assert score.signature.startswith("nrefs:2|")
    test = paired_bootstrap(worse, HYPOTHESES, FIRST, SECOND, n_resamples=20, seed=1)
    assert test.b == bleu
    assert test.difference == pytest.approx(bleu.score - sacrebleu_score(worse, FIRST, SECOND).score)


def test_each_list_of_references_has_one_for_each_line() -> None:
    with pytest.raises(DataError, match=r"\b2\b.*\b1\b"):
        score_translations(HYPOTHESES, FIRST, SECOND[:1], language="de")


@given(st.lists(st.text(alphabet="犬が寝ている。สุนขأكلबूकुत्ताäü AB.", max_size=12), min_size=1, max_size=4))
def test_the_resampled_sums_are_those_of_the_score_in_every_script(lines: list[str]) -> None:
    """The whole test set, drawn once, has the difference of the scores: the sums use the same tokenizer and form."""
    test = paired_bootstrap(lines, lines[::-1], lines, n_resamples=2, seed=1)
    name = bleu_tokenizer(None, lines)
    assert test.a == sacrebleu_score(lines, lines, tokenizer=name)
    assert 0.0 <= test.a.score <= 100.0
