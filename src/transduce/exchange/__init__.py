"""Models out of transduce and into it: Hugging Face, CTranslate2, ONNX, browsers, Marian.

``plain_weights.py`` has the weights in the layout that all of these share; each format has a module that writes or
reads it. ``exporting.py`` and ``importing.py`` are the two verbs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transduce.imports import imported_on_use

if TYPE_CHECKING:
    from transduce.exchange.browser import PageReport, export_page
    from transduce.exchange.ctranslate2 import write_ctranslate2
    from transduce.exchange.exporting import ExportReport, export_model
    from transduce.exchange.importing import ImportReport, import_model
    from transduce.exchange.refusals import Target

__all__ = [
    "ExportReport", "ImportReport", "PageReport", "Target", "export_model", "export_page", "import_model",
    "write_ctranslate2",
]  # fmt: skip

imported_on_use(__name__)
