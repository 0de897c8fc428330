"""Translation of a large collection: files are the unit of work, on the cores of one machine, of several, or on Ray."""

from transduce.bulk.driver import BulkReport, translate_shards
from transduce.bulk.job import BulkJob, find_shards

__all__ = ["BulkJob", "BulkReport", "find_shards", "translate_shards"]
