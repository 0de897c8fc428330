"""Invalid and extreme values for TOML and command lines, and unusual text."""

from __future__ import annotations

from random import Random

__all__ = ["ODD_TEXTS", "odd_line", "odd_lines", "strange_toml", "strange_word"]

ODD_TEXTS = (
    "", " ", "a\nb", "a\rb", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x00", "a\x00b", "\x7f", "\x9b31m", "\u2028",
    "\u202e", "\ufeff", "\U0010ffff", "é" * 300, "x" * 100_000, "../../outside/canary", "/dev/zero", "/dev/full", "/",
    ".", "..", "~", "%s%n", "{0}", "$(id)", "`id`", "'", '"', "\\", "nan", "None", "true", "0", "-1", "-", "--",
    "🐕" * 50,
)  # fmt: skip
NUMBERS = (
    "0", "1", "2", "3", "-1", "7", "1000", "65536", "2147483648", "9223372036854775807", "9223372036854775808",
    "-9223372036854775809", "1" + "0" * 20, "1" + "0" * 30, "9" * 4300, "9" * 4301, "9" * 5000, "0.5", "-0.0",
    "1e-300", "1e308", "1e400", "-1e400", "0.1e-400", "nan", "-nan", "inf", "-inf", "1.0", "999.5", "100",
    "0.9999999999999999",
)  # fmt: skip


def quoted_toml(text: str) -> str:
    """A string of TOML with every character that may not stand in one escaped."""
    return '"' + "".join(
        char if char.isprintable() and char not in '"\\' else f"\\U{ord(char):08x}" for char in text
    ) + '"'  # fmt: skip


def strange_toml(draw: Random) -> str:
    """The value of a key, mostly one that TOML has."""
    kind = draw.randrange(10)
    if kind < 4:
        return draw.choice(NUMBERS)
    if kind < 7:
        return quoted_toml(draw.choice(ODD_TEXTS))
    return draw.choice(
        [
            "true", "false", "[]", "{}", "[[]]", "{a = 1}", '["a", 2]', "{grammar = nan}", "{grammar = 1e308}",
            "{grammar = 0.5, files = 1}", '{"" = 1.0}', '{"\\u001b" = 1.0}', "1979-05-27", "07:32:00",
            "1979-05-27T07:32:00Z", "[" * 3000 + "]" * 3000, "[" * 3000, "{a=" * 500 + "1" + "}" * 500,
            "[" * 90 + "]" * 90,
            "0x7fffffffffffffffff", "0o17", "0b1", "1_000", "1__0", "+1", "01", "'", '"""', "'''a\nb'''", "",
            "#", "bare",
            '"\\ud800"', "\x1b", "\x00", '"\x1b[2J"', '"\x00"', "é", "[" + "1," * 50_000 + "]",
        ]
    )  # fmt: skip


def strange_word(draw: Random) -> str:
    """A word of a command line: no NUL, since the system allows none there."""
    return draw.choice([*NUMBERS, *ODD_TEXTS]).replace("\0", "")


def odd_line(draw: Random) -> bytes:
    """A line of text, or of something else, without its end."""
    kind = draw.randrange(14)
    if kind == 0:
        return draw.randbytes(draw.randrange(60)).replace(b"\n", b"")
    if kind == 1:
        return draw.choice(ODD_TEXTS[:20]).replace("\n", " ").encode()
    if kind == 2:
        return "".join(chr(_code(draw)) for _ in range(draw.randrange(1, 40))).replace("\n", " ").encode()
    if kind == 3:
        piece = draw.choice(
            ["a", "the dog ", ".", " ", "é", "e\u0301\u0316", "(", "1,2.3-", "<a>", "\0", "\x1b[1m", "👩‍👩‍👧"]
        )
        return piece.encode() * draw.choice([10, 10, 100, 100, 1000, 5000])
    if kind == 4:
        return draw.choice(
            [b"\xed\xa0\x80", b"\xff\xfe dog", b"a cut \xe2\x82", b"\xc0\x80", b"caf\xe9", b"\xf4\x90\x80\x80"]
        )
    if kind == 5:
        return draw.choice(
            [b"", b"\t", b"\r", b"a\rb", b"\xef\xbb\xbf", b"a\tb\tc", b"\x0c", b"\x1c\x1d\x1e", b"\xc2\x85"]
        )
    if kind == 6:
        return draw.choice([b"</s> <pad> <unk> <s>", b"http://a.b/c?d=e&f <b>x</b> %s {0} 10 km/h :-)", b"{}",
                            b"(S (NP x))",
                            b"--help", b"a@b.c", b"&lt;&amp;&#0;", b'"', b"\\u0000", b"#" * 30])  # fmt: skip
    words = ["the", "dog", "Dog", "sleeps", "a", "cat", ",", ".", "süßer", "Hund", "10", "日本", "don't", "B."]
    return " ".join(draw.choices(words, k=draw.randrange(1, 15))).encode()


def _code(draw: Random) -> int:
    code = draw.choice(
        [draw.randrange(0x20, 0x7F), draw.randrange(0x250), draw.randrange(0x3000), draw.randrange(0x110000)]
    )
    return code if not 0xD800 <= code < 0xE000 else 0xFFFD


def odd_lines(draw: Random, *, most: int = 6) -> list[bytes]:
    """Some of them."""
    return [odd_line(draw) for _ in range(draw.randrange(most + 1))]
