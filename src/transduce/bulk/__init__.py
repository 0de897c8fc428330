"""Translation by worker processes: of a stream of lines, or of a collection of files, on one machine or several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transduce.imports import imported_on_use

if TYPE_CHECKING:
    from transduce.bulk.driver import BulkReport, translate_shards
    from transduce.bulk.job import TranslationJob, find_shards
    from transduce.bulk.workers import TranslationWorkers

__all__ = ["BulkReport", "TranslationJob", "TranslationWorkers", "find_shards", "translate_shards"]

imported_on_use(__name__)
