"""Attention as a picture: one HTML page that needs no network."""

from transduce.view.attention_page import AttentionMaps, write_attention_page
from transduce.view.translation_attention import attention_of_translation

__all__ = ["AttentionMaps", "attention_of_translation", "write_attention_page"]
