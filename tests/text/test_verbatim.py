"""Which strings are verbatim, in every kind, and which words are not."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

from transduce.text.verbatim import find_verbatim, verbatim_strings

# Each text and its verbatim strings, separated by " | ".
VERBATIM = {
    "Write to jane.doe+x@mail.example.org today.": "jane.doe+x@mail.example.org",
    "See https://example.org/a?b=1&c=(2), or www.example.org.": "https://example.org/a?b=1&c=(2) | www.example.org",
    "(https://x.org/a), https://en.org/Foo_(bar). <https://y.org>": (
        "https://x.org/a | https://en.org/Foo_(bar) | <https://y.org>"
    ),
    "Look at example.com/page, x.org/a or Example.com.": "example.com/page | x.org/a | Example.com",
    "HTTP://EXAMPLE.ORG/A IN CAPITALS": "HTTP://EXAMPLE.ORG/A",
    "Press <b>OK</b> or <img src='a.png'/>, &amp; wait.": "<b> | </b> | <img src='a.png'/> | &amp;",
    'A <x id="1">b</x>, <0>c</0>, <1/> and <% d %>': '<x id="1"> | </x> | <0> | </0> | <1/> | <% d %>',
    f"An <img src='{'a' * 5000}'> inline": f"<img src='{'a' * 5000}'>",
    "Hello %s, you have %1$d files in {folder} and ${HOME}, %(name)s.": "%s | %1$d | {folder} | ${HOME} | %(name)s",
    "Replace $1 by {0}, {0:.2f}, {a.b} and {{user}} or {{{x}}}.": "$1 | {0} | {0:.2f} | {a.b} | {{user}} | {{{x}}}",
    "Hello $Username, %name%, [[x]], __X__, @x@, ${x}, $(Y)": (
        "$Username | %name% | [[x]] | __X__ | @x@ | ${x} | $(Y)"
    ),
    "See $t(common:key, {'n': 1}) and %#@files@.": "$t(common:key, {'n': 1}) | %#@files@",
    "Dialogs have [X16X] or [X0X] for :name and :smile:.": "[X16X] | [X0X] | :name | :smile:",
    "%@ has %lu, %5d, %.2f, %-3s, %%, %1, %L2 on %Y-%m-%d": "%@ | %lu | %5d | %.2f | %-3s | %% | %1 | %L2 | %Y-%m-%d",
    "{n, plural, one {# file} other {{n} files}} in {d, date, short}": (
        "{n, plural, one {# file} other {{n} files}} | {d, date, short}"
    ),
    "{ $var } {% if x %} %{count} <<foo>>": "{ $var } | {% if x %} | %{count} | <<foo>>",
    "Open report.pdf, /etc/passwd, ~/notes or C:\\Windows\\x.ini.": (
        "report.pdf | /etc/passwd | ~/notes | C:\\Windows\\x.ini"
    ),
    "It weighs 12.5 kg, runs 80 km/h, costs $3.50 or 5 €, and holds 16 GB.": (
        "12.5 kg | 80 km/h | $3.50 | 5 € | 16 GB"
    ),
    "10,000-20,000 km, 1.5–2.5 kg, 3.5x4.5 cm, 3 x 4 cm, 1.5 - 2.5 m or 500-1,000": (
        "10,000-20,000 km | 1.5–2.5 kg | 3.5x4.5 cm | 3 x 4 cm | 1.5 - 2.5 m | 500-1,000"
    ),
    "Pay US$3.50, CAD$ 5, $5-$10, $5 - $10, $5-10, 3,50 US$ or 5-10 €, not $1-$2.": (
        "US$3.50 | CAD$ 5 | $5-$10 | $5 - $10 | $5-10 | 3,50 US$ | 5-10 € | $1 | $2"
    ),
    "Version 1.5 - 16 GB": "16 GB",
    "Version 1.2.3 has the number 1234567.": "1.2.3 | 1234567",
    "Version 1.2.3-rc1 or v2 from 192.168.0.1": "1.2.3-rc1 | v2 | 192.168.0.1",
    "v2.10.3-rc1, 3.0.0-Beta.2, 1.2rc3, not 2.5-inch": "v2.10.3-rc1 | 3.0.0-Beta.2 | 1.2rc3",
    "1:3.4p1-0woody4, 1.4.1-1.1, 2.2r1, 2.8.4.1b-3.4; not 2.5-3.5": (
        "1:3.4p1-0woody4 | 1.4.1-1.1 | 2.2r1 | 2.8.4.1b-3.4"
    ),
    "zsync_0.3.3-1.sarge.1.2 by POSIX.1-2001": "zsync_0.3.3-1.sarge.1.2 | POSIX.1-2001",
    "$side.name of $side. See <URL:https://x.org/a>": "$side.name | $side | <URL:https://x.org/a>",
    "rgb(255, 136, 0) or hsla(120 50% 50% / 0.5)": "rgb(255, 136, 0) | hsla(120 50% 50% / 0.5)",
    "It is 2024-11-26T14:05:33Z, 1/2/2024, 24.12.2025 or 12-24-2025.": (
        "2024-11-26T14:05:33Z | 1/2/2024 | 24.12.2025 | 12-24-2025"
    ),
    "At 10:30, 14:05:33 or 5:30pm; 10:30-11:30": "10:30 | 14:05:33 | 5:30 | 10:30 | 11:30",
    "[00:00:00.000 --> 00:00:02.000] 00:00:01,000 --> 00:00:02,500": (
        "[00:00:00.000 --> 00:00:02.000] | 00:00:01,000 --> 00:00:02,500"
    ),
    "In 1999, 2019 to 2021, 2003-2005 or 2003–2005, 1500 people": "1999 | 2019 | 2021 | 2003-2005 | 2003–2005 | 1500",
    "Call +49 30 1234567, 030/123-456, (030) 1234567 or 555-123-4567.": (
        "+49 30 1234567 | 030/123-456 | (030) 1234567 | 555-123-4567"
    ),
    "IBAN DE89 3704 0044 0532 0130 00 AND VAT BE0768880101": "DE89 3704 0044 0532 0130 00 | BE0768880101",
    "ISBN 978-3-16-148410-0": "978-3-16-148410-0",
    "The color #FF8800, #fff, issue #123": "#FF8800 | #fff | #123",
    "3/4 of ½ or 2½": "3/4 | ½ | 2½",
    "1,000.5, 1.000,5 and 1,234,567": "1,000.5 | 1.000,5 | 1,234,567",
    "AB-1234, ISO-8859-1, x86_64, MP3s, CVE-2021-44228, 1A2B3C": (
        "AB-1234 | ISO-8859-1 | x86_64 | MP3s | CVE-2021-44228 | 1A2B3C"
    ),
    "Eine MP3-Datei": "MP3",
    "fe80::1:2:3, aa:bb:cc:dd:ee:ff": "fe80::1:2:3 | aa:bb:cc:dd:ee:ff",
    "请访问https://x.org/a获取2024年的x.pdf文件,发邮件到a@b.org吧": "https://x.org/a | 2024 | x.pdf | a@b.org",
    "Great 👍🏽 work 🇩🇪 ℹ️!": "👍🏽 | 🇩🇪 | ℹ️",
    "A private \ue123 character and a mask: \ue000.": "\ue123 | \ue000",
}
NOT_VERBATIM = [
    "He and/or she said: yes, no. It is 5 o'clock.",
    "Three of 20 men were there (x < y and y > z), at 7.4 percent, 16:9 or 2:1.",
    "A 4-year-old dog, i.e. a young one, e.g. mine, with 16-bit, the 2nd of 3.",
    "50 million people on the 3rd floor, the top-10 in 3D, 4x4",
    "Das ist, d.h. es war, in Washington, D.C., z.B./d.h. bzw./usw.",
    "It cost $5-$10 million, $10-12 million, $3.1 million, $5-billion or € 20 Millionen.",
    "In the 1990s or 1980-1990s it was 20s music, for a film of the 80s.",
    "Noise, d.h. Lärm, from Washington D.C. and the U.S.A. was sold for £5m.",
]
HARD = [
    "<a ", "http://", "{a, plural, ", "((", "1,000", "1.1", "a-1", "%", "[[", "1 000 ", "A1-", "ab:", "{", "1/", "0",
    "a@", "www.", "$", ":a", "AB", "+1 ", "aa:", "(a", "x1.", "é", "1'000", "-->", "{a", "<!--", "x.txt ",
]  # fmt: skip


@pytest.mark.parametrize("text", VERBATIM)
def test_verbatim_strings_are_found(text: str) -> None:
    assert " | ".join(find_verbatim(text)) == VERBATIM[text]


@pytest.mark.parametrize("text", NOT_VERBATIM)
def test_ordinary_text_is_not_verbatim(text: str) -> None:
    assert find_verbatim(text) == []


def test_strings_are_at_their_places() -> None:
    for text in VERBATIM:
        found = list(verbatim_strings(text))
        assert [text[each.start : each.end] for each in found] == [each.text for each in found]
        assert all(left.end <= right.start for left, right in pairwise(found))


def test_no_text_takes_quadratic_time() -> None:
    """Not timed closely: quadratic time in 10,000 characters takes far longer."""
    start = time.monotonic()
    for part in HARD:
        list(verbatim_strings(part * (10_000 // len(part)) + "!"))
    for beginning in ("1.0rc", "+1"):
        list(verbatim_strings(f"{beginning}{'1' * 10_000}x"))
    for signs in ("-/", "-./"):
        list(verbatim_strings(signs * 50_000))
    assert time.monotonic() - start < 20
