"""``transduce export``."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

from typer import Option

from transduce.cli import options
from transduce.cli.imports import command_imports
from transduce.cli.model_folders import require_model_folders
from transduce.cli.output import echo, print_json, print_line
from transduce.cli.paths import require_folder, require_utf8_name
from transduce.config import InferencePrecision

__all__ = ["export"]

N_LINES = 16


def export(
    folder: options.Model,
    to: Annotated[
        Literal["hf", "ct2", "onnx", "wasm"],
        Option(help="Hugging Face, CTranslate2, ONNX, or a page for browsers.", show_default=False),
    ],
    out: Annotated[Path, Option(help="Write the export to this new folder.", show_default=False)],
    text: Annotated[
        Path | None,
        Option(
            help=f"Compare the outputs on the first {N_LINES} lines of this file. Default: random tokens.",
            show_default=False,
        ),
    ] = None,
    license_id: Annotated[str, Option("--license", help="The licence that the card names.")] = "unknown",
    precision: Annotated[
        InferencePrecision | None,
        Option(help="Pack the weights of a page in this precision. Default: int8.", show_default=False),
    ] = None,
    json: options.Json = False,
) -> None:
    """Export a model to Hugging Face, CTranslate2, ONNX or a page.

    The export is checked in the other library: logits, greedy outputs, tokenizer. --to wasm writes a translator as a
    page that browsers run without a connection.

    Examples:
        transduce export runs/my/model --to ct2 --out my-ct2
        transduce export runs/my/model --to wasm --out my-page
    """
    require_model_folders(folder)
    require_folder("--out", out)
    require_utf8_name("--out", out)
    if to == "wasm":
        options.require_alone(
            "a page for browsers has no card and is not compared",
            {"--text": text, "--license": license_id != "unknown"},
        )
        with command_imports():
            from transduce.exchange import export_page

        page = export_page(folder, out, precision=precision or "int8", log=echo)
        print_json(page.as_json()) if json else print_line(f"exported to {out}")
        return
    options.require_alone("--precision is for --to wasm; other exports have all of theirs", {"--precision": precision})
    with command_imports():
        from transduce.exchange import export_model
        from transduce.files import read_lines

    texts = None if text is None else [line for line in islice(read_lines(text), N_LINES) if line.strip()]
    report = export_model(folder, to, out, texts=texts, license_id=license_id, log=echo)
    print_json(report.as_json()) if json else print_line(f"exported to {out}")
