"""All fuzzed inputs."""

from __future__ import annotations

from fuzzing.cases import Format
from fuzzing.formats.archives import archive_format
from fuzzing.formats.command_lines import command_line_format
from fuzzing.formats.descriptors import descriptor_format
from fuzzing.formats.documents import document_format
from fuzzing.formats.loaded_files import loaded_formats
from fuzzing.formats.misbehaving import misbehaving_format
from fuzzing.formats.recipes import recipe_format
from fuzzing.formats.run_folders import entry_format, resume_format
from fuzzing.formats.texts import compressed_format, text_format
from fuzzing.formats.tree_files import tree_format
from fuzzing.sources import Sources

__all__ = ["all_formats"]


def all_formats(sources: Sources) -> list[Format]:
    """The formats, over good files."""
    return [
        *loaded_formats(sources),
        recipe_format(sources),
        resume_format(sources),
        entry_format(sources),
        archive_format(sources),
        text_format(sources),
        compressed_format(sources),
        tree_format(sources),
        command_line_format(sources),
        document_format(),
        descriptor_format(sources),
        misbehaving_format(sources),
    ]
