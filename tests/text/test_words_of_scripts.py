"""In every script, what stands between spaces is one word for a tokenizer, and may become one token."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tokenizers import models

from transduce.text import (
    Tokenizer,
    byte_tokenizer,
    load_tokenizer,
    normalise,
    train_bpe,
    train_characters,
    train_wordpiece,
    word_spans,
)
from transduce.text.byte_level import from_byte_level
from transduce.text.tokenizer_pipelines import byte_level_pipeline

# The first article of the Universal Declaration of Human Rights, or as much of it, in some languages only a few words.
SCRIPTS = {
    "Latin": "All human beings are born free and equal in dignity and rights",
    "Vietnamese": "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm",
    "Yoruba": "Gbogbo ènìyàn ni a bí ní òmìnira; iyì àti ẹ̀tọ́ kọ̀ọ̀kan sì dọ́gba",
    "Cyrillic": "Все люди рождаются свободными и равными в своём достоинстве",
    "Greek": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι",
    "Armenian": "Բոլոր մարդիկ ծնվում են ազատ ու հավասար",
    "Georgian": "ყველა ადამიანი იბადება თავისუფალი და თანასწორი",
    "Hebrew": "כָּל בְּנֵי הָאָדָם נוֹלְדוּ בְּנֵי חוֹרִין",
    "Arabic": "يُولَدُ جَمِيعُ النَّاسِ أَحْرَارًا مُتَسَاوِينَ",
    "Persian": "تمام افراد بشر آزاد به دنیا می\u200cآیند و حیثیت\u200cشان برابر است",
    "Urdu": "تمام انسان آزاد اور حقوق و عزت کے اعتبار سے برابر پیدا ہوئے ہیں",
    "Syriac": "ܟܠܢܵܫܵܐ ܒܪܸܢܫܵܐ ܡܫܲܒܚܵܐ",
    "Thaana": "ހުރިހާ އިންސާނުން ވެސް އުފަންވަނީ މިނިވަންކަމުގައި",
    "N'Ko": "ߡߐ߱ ߓߍ߯ ߘߐ߫ ߣߌ߫ ߟߊ߫",
    "Amharic": "የሰው ልጅ ሁሉ ሲወለድ ነጻ ነው",
    "Hindi": "सभी मनुष्यों को गौरव और अधिकारों के विषय में स्वतन्त्रता प्राप्त है",
    "Marathi": "सर्व मनुष्यजात जन्मतःच स्वतंत्र आहे",
    "Bengali": "সমস্ত মানুষ স্বাধীনভাবে সমান মর্যাদা এবং অধিকার নিয়ে জন্মগ্রহণ করে",
    "Punjabi": "ਸਾਰਾ ਮਨੁੱਖੀ ਪਰਿਵਾਰ ਆਪਣੀ ਮਹਿਮਾ ਅਤੇ ਹੱਕਾਂ",
    "Gujarati": "પ્રતિષ્ઠા અને અધિકારોની દૃષ્ટિએ સર્વ માનવો જન્મથી સ્વતંત્ર",
    "Odia": "ସମସ୍ତ ମନୁଷ୍ୟ ଜନ୍ମକାଳରୁ ସ୍ୱାଧୀନ",
    "Tamil": "மனிதப் பிறவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர்",
    "Telugu": "ప్రతిపత్తిస్వత్వముల విషయమున మానవులెల్లరును జన్మతః స్వతంత్రులు",
    "Kannada": "ಎಲ್ಲಾ ಮಾನವರೂ ಸ್ವತಂತ್ರರಾಗಿಯೇ ಜನಿಸಿದ್ದಾರೆ",
    "Malayalam": "മനുഷ്യരെല്ലാവരും തുല്യാവകാശങ്ങളോടും സ്വാതന്ത്ര്യത്തോടുംകൂടി ജനിച്ചിട്ടുള്ളവരാണ്",
    "Sinhala": "සියලු මනුෂ්‍යයෝ නිදහස්ව උපත ලබා ඇත",
    "Tibetan": "འགྲོ་བ་མིའི་རིགས་རྒྱུད་ཡོངས་ལ་སྐྱེས་ཙམ་ཉིད་ནས་ཆེ་མཐོངས་དང་",
    "Thai": "มนุษย์ทั้งหลายเกิดมามีอิสระ และเสมอภาคกัน ในเกียรติศักดิ์และสิทธิ",
    "Lao": "ມະນຸດທຸກຄົນເກີດມາມີ ກຽດສັກສີ ສິດທິ",
    "Khmer": "មនុស្សទាំងអស់ កើតមកមានសេរីភាព និងភាពស្មើៗគ្នា",
    "Burmese": "လူတိုင်းသည် တူညီလွတ်လပ်သော ဂုဏ်သိက္ခာဖြင့်",
    "Mongolian": "ᠬᠦᠮᠦᠨ ᠪᠦᠷ ᠲᠥᠷᠥᠵᠦ ᠮᠡᠨᠳᠡᠯᠡᠬᠦ",
    "Chinese": "人人生而自由，在尊严和权利上一律平等。",
    "Japanese": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
    "Korean": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다",
    "Javanese": "ꦱꦧꦼꦤ꧀ ꦲꦸꦮꦺꦴꦁ ꦏꦭꦲꦶꦫꦏꦺ ꦏꦤ꧀ꦛꦶ",
    "Cherokee": "ᏂᎦᏓ ᎠᏂᏴᏫ ᏂᎨᎫᏓᎸᎾ ᎠᎴ ᎤᏂᏠᏱ",
}
TEXTS = {name: normalise(text) for name, text in SCRIPTS.items()}
PUNCTUATION = "([;,，。、་])"


def pieces_of(text: str) -> list[str]:
    """Words as people see them: between spaces, without punctuation. Tibetan writes a point between syllables."""
    return [piece for piece in re.split(rf"\s|{PUNCTUATION}", text) if piece]


@pytest.fixture(scope="module")
def tokenizers() -> dict[str, Tokenizer]:
    texts = list(TEXTS.values())
    return {
        "BPE": train_bpe(texts * 3, vocab_size=5000),
        "BPE of characters": train_bpe(texts * 3, vocab_size=6000, alphabet="characters"),
        "WordPiece": train_wordpiece(texts * 3, vocab_size=7000, min_pair_count=1),
    }


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_word_is_not_divided_before_it_is_read(tokenizers: dict[str, Tokenizer], script: str) -> None:
    text = TEXTS[script]
    words = [from_byte_level(word).strip() for word in tokenizers["BPE"].words(text)]
    assert words == pieces_of(text)
    spans = [text[start:end] for start, end in word_spans(text)]
    assert "".join(spans) == "".join(text.split())
    if script not in ("Tibetan", "Thai", "Lao", "Khmer", "Burmese", "Chinese", "Japanese"):
        assert spans == words


@pytest.mark.parametrize("script", SCRIPTS)
def test_words_that_training_has_seen_are_a_token_each(tokenizers: dict[str, Tokenizer], script: str) -> None:
    n_words = len(pieces_of(TEXTS[script]))
    for name, tokenizer in tokenizers.items():
        ids = tokenizer.encode(TEXTS[script])
        assert tokenizer.decode(ids) == TEXTS[script]
        if name != "WordPiece":  # which divides words of more than 64 bytes
            assert len(ids) <= 1.2 * n_words, name


def test_long_words_of_wordpieces_are_divided_between_characters() -> None:
    tokenizer = train_wordpiece(["ไ" * 100, "é" * 200, "x" * 200, "😀" * 50], vocab_size=700)
    for text in ("ไ" * 100, "aไ" + "ไ" * 100, "é" * 200, "xé" + "é" * 200, "😀" * 50, "x😀" * 50):
        for word in tokenizer.words(text):
            assert len(word) <= 64
            assert not re.search("[\ud800-\udfff]", from_byte_level(word))  # no byte without its character


def test_tokenizers_of_the_first_version_read_as_they_did(tmp_path: Path) -> None:
    """Their words, and so their ids, do not change."""
    texts = ["किताब खिड़की", "the cat's hats", "l’été d'Anna"] * 3
    new = train_bpe(texts, vocab_size=300)
    for description in (
        new.description,
        byte_tokenizer().description,
        train_characters(texts, vocab_size=400).description,
    ):
        values = json.loads(description)
        values["pre_tokenizer"] = {
            "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True,
        }  # fmt: skip
        path = tmp_path / "tokenizer.json"
        path.write_text(json.dumps(values, ensure_ascii=False))
        old = load_tokenizer(path)
        assert old.description == path.read_text()
        assert [from_byte_level(word) for word in old.words("किताब")] == [" क", "ि", "त", "ा", "ब"]
        assert [from_byte_level(word) for word in new.words("किताब")] == [" किताब"]
        assert old.encode("the cat's 12 hats, l’été!") == Tokenizer(description).encode("the cat's 12 hats, l’été!")


def test_both_versions_divide_text_without_marks_alike() -> None:
    first, second = (byte_level_pipeline(models.BPE(), version).pre_tokenizer for version in (1, 2))
    for text in (
        " The cat's 12 hats, don't  they'll\t(x) ",
        "ße é 東京 日本語 한국어",
        "a1b2 3.5% </s> …",
        "",
        "\n \n'",
    ):
        assert first.pre_tokenize_str(text) == second.pre_tokenize_str(text)
