"""``transduce parse``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from transduce.cli import options
from transduce.cli.decoding import decoding_options
from transduce.cli.imports import command_imports
from transduce.cli.machine import chosen_device
from transduce.cli.model_folders import require_model_folders
from transduce.cli.output import STANDARD, echo, print_json
from transduce.cli.paths import require_writable
from transduce.cli.stdin import is_interactive, piped_lines, plain_trees, typed_lines
from transduce.config.decoding import NO_CHANGES, DecodingOptions
from transduce.errors import ConfigError
from transduce.inference.devices import usable_precision

if TYPE_CHECKING:
    from transduce.inference.parser import TaggedWords

__all__ = ["parse"]

NO_TREE = "()"


@decoding_options("beam_size", "alpha")
def parse(
    folder: options.Model,
    raw: Annotated[bool, Option("--raw", help="Read raw text and tokenize it as treebanks do.")] = False,
    trees: Annotated[
        Path | None,
        Option(
            help="Parse the sentences of these trees (- is stdin) with their gold punctuation, as in evaluation.",
            show_default=False,
        ),
    ] = None,
    pretty: Annotated[bool, Option("--pretty", help="Print each tree indented, on several lines.")] = False,
    svg: Annotated[Path | None, Option(help="Also draw the first tree to this file.", show_default=False)] = None,
    unconstrained: Annotated[
        bool,
        Option(
            "--unconstrained",
            help="Search without the tree constraint and repair invalid output.",
            rich_help_panel=options.SEARCH,
        ),
    ] = False,
    decoding: DecodingOptions = NO_CHANGES,
    buffer: Annotated[
        int,
        Option(
            min=1,
            max=options.MAX_BUFFER_LINES,
            help="Read this many lines before parsing; 1 answers each line at once, more is faster.",
            rich_help_panel=options.SPEED,
        ),
    ] = 1000,
    device: options.Device = "auto",
    precision: options.Precision = "fp32",
    engine: options.Engine = "auto",
    json: options.Json = False,
) -> None:
    """Parse English sentences to trees in Penn brackets.

    Reads stdin, a sentence in each line with spaces between words (--raw reads plain text), and writes a tree in each
    line. On a terminal, type sentences at a prompt.

    Examples:
        transduce parse runs/parser/model --raw < text.en
    """
    with command_imports():
        from transduce.files import open_binary, write_text
        from transduce.inference import Parser
        from transduce.view.trees import draw_tree, indented

    if raw and trees is not None:
        raise ConfigError("--raw and --trees exclude each other: trees are tokenized already")
    if svg == STANDARD:
        raise ConfigError("--svg -: stdout is used for the trees; name a file")
    if svg is not None:
        require_writable("--svg", svg)
    require_writable("stdout", STANDARD)
    if trees is not None and trees != STANDARD:
        open_binary(trees).close()  # checked before the model is loaded
    require_model_folders(folder, text_usage="transduce parse MODEL < {}")
    device = chosen_device(device)
    precision = usable_precision(precision, device)
    parser = Parser.load(folder, device=device, precision=precision, engine=engine, is_constrained=not unconstrained)
    search = decoding.applied_to(parser.search)
    is_typed = trees is None and is_interactive()
    lines = typed_lines("en", history="parse") if is_typed else piped_lines()
    sentences = _sentences(trees, lines, is_raw=raw)
    chunk, is_drawn = 1 if is_typed else buffer, False
    for number, result in enumerate(parser.parse_tagged(sentences, search=search, chunk_lines=chunk), start=1):
        if result.is_truncated:
            echo(f"warning: sentence {number} is too long: the model read its beginning, the tree has all words")
        if svg is not None and not is_drawn and result.tree is not None:
            write_text(svg, draw_tree(result.tree))
            is_drawn = True
        tree = None if result.tree is None else str(result.tree)
        if json:
            print_json({"line": number, "words": list(result.words), "tree": tree, "score": result.score})
        elif result.tree is None:
            print(NO_TREE)
        else:
            print(indented(result.tree) if pretty else tree)
        sys.stdout.flush()
    if svg is not None and not is_drawn:
        echo(f"no sentence has words, so {svg} was not drawn")


def _sentences(trees: Path | None, lines: Iterator[str], *, is_raw: bool) -> Iterator[TaggedWords]:
    from transduce.inference import tagged_words
    from transduce.text.treebank_words import treebank_words

    if trees is not None:
        return ([] if tree is None else tagged_words(tree) for tree in plain_trees(trees))
    return map(tagged_words, (" ".join(treebank_words(line)) for line in lines) if is_raw else lines)
