"""Marks that end sentences and clauses, of every script that has its own.

Each string is a set of characters; none of them is special within the brackets of a regular expression.
"""

from __future__ import annotations

__all__ = ["COMMAS", "FOLLOWING", "SENTENCE_ENDS", "STRONG_PAUSES", "SURE_ENDS"]

# Full stops, question and exclamation marks that end nothing but a sentence.
SURE_ENDS = (
    "!?。！？｡︒‼⁇⁈⁉"  # Latin and others, East Asian
    "։"  # Armenian; its other marks stand within a word
    "؟۔؞"  # Arabic, Urdu
    "܀܁܂"  # Syriac
    "߹"  # N'Ko
    "।॥"  # Devanagari and other scripts of India
    "෴"  # Sinhala
    "။"  # Burmese
    "።፧፨"  # Ethiopic
    "។៕"  # Khmer
    "᠃᠉"  # Mongolian
    "᙮"  # Canadian syllabics
    "᭞᭟꧈꧉᪨᪩"  # Balinese, Javanese, Tai Tham
    "᱾᱿꯫"  # Ol Chiki, Meetei Mayek
    "꘎꘏꛳꛷"  # Vai, Bamum
    "༎༏༐༑"  # Tibetan
    "⳹⳾"  # Coptic
)
SENTENCE_ENDS = SURE_ENDS + ".．…"

# Semicolons and colons: a longer pause than that of a comma. The dot is Greek.
STRONG_PAUSES = ";:；：﹔﹕︔︓·؛܃܄܅፤፥፦᠄៖།꛶꛴"
COMMAS = ",，、､︐︑﹐﹑،⹁՝፣߸᠂᠈၊꓾꘍꛵"

FOLLOWING = SENTENCE_ENDS + STRONG_PAUSES + COMMAS + ")]}"  # signs without a space before them
