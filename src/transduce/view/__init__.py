"""Attention weights as a self-contained HTML page and as static SVG drawings; trees as text and as drawings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transduce.imports import imported_on_use

if TYPE_CHECKING:
    from transduce.view.attention_grid import attention_grid
    from transduce.view.attention_lines import HeadLines, LinePanel, attention_lines
    from transduce.view.attention_page import AttentionMaps, Picture, attention_page, write_attention_page
    from transduce.view.media_attention import attention_of_media
    from transduce.view.translation_attention import attention_of_text, attention_of_translation

__all__ = [
    "AttentionMaps", "HeadLines", "LinePanel", "Picture", "attention_grid", "attention_lines", "attention_of_media",
    "attention_of_text", "attention_of_translation", "attention_page", "write_attention_page",
]  # fmt: skip

imported_on_use(__name__)
