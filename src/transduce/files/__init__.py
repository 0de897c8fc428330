"""Files: streamed lines of text, atomic writes of files and folders, versioned JSON, manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transduce.imports import imported_on_use

if TYPE_CHECKING:
    from transduce.files.compressed import READ_ERRORS, XzStreams, compressing, cwd_note, open_binary
    from transduce.files.folders import (
        atomic_folder,
        created_folder,
        is_leftover,
        is_running,
        named_in_errors,
        remove,
        remove_leftovers,
        renamed_beside,
        restore,
    )
    from transduce.files.json_files import Migration, migrated, read_json, write_json
    from transduce.files.lines import (
        MAX_LINE_BYTES,
        LineFault,
        TruncatedLine,
        decoded_lines,
        raw_lines,
        read_lines,
        repaired_lines,
    )
    from transduce.files.manifests import (
        MANIFEST_NAME,
        UnverifiedFile,
        verified_except,
        verify_manifest,
        write_manifest,
    )
    from transduce.files.regular import open_regular, require_regular, sha256_of_file
    from transduce.files.writing import atomic_write, descriptor_named, open_in_place, write_lines, write_text

__all__ = [
    "MANIFEST_NAME", "MAX_LINE_BYTES", "READ_ERRORS", "LineFault", "Migration", "TruncatedLine", "UnverifiedFile",
    "XzStreams", "atomic_folder", "atomic_write", "compressing", "created_folder", "cwd_note", "decoded_lines",
    "descriptor_named", "is_leftover", "is_running", "migrated", "named_in_errors", "open_binary", "open_in_place",
    "open_regular", "raw_lines", "read_json", "read_lines", "remove", "remove_leftovers", "renamed_beside",
    "repaired_lines", "require_regular", "restore", "sha256_of_file", "verified_except",
    "verify_manifest", "write_json", "write_lines", "write_manifest", "write_text",
]  # fmt: skip

imported_on_use(__name__)
