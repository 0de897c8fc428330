"""``transduce attention``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from transduce.cli.machine import chosen_device
from transduce.cli.options import DeviceOption, ModelArgument

__all__ = ["attention"]


def attention(
    folder: ModelArgument,
    src: Annotated[str, typer.Option(help="A sentence to translate.", show_default=False)],
    tgt: Annotated[str | None, typer.Option(help="Its translation. Default: the model's own.")] = None,
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("attention.html"),
    device: DeviceOption = "auto",
) -> None:
    """Draw the attention of a translation: one self-contained HTML page, every layer and head. Figures 3 to 5."""
    from transduce.tasks import Translator
    from transduce.view import attention_of_translation, write_attention_page

    translator = Translator.load(folder, device=chosen_device(device))
    maps = attention_of_translation(translator, src, tgt)
    write_attention_page(out, [maps], title=f"Attention: {maps.source}")
    print(f"{maps.translation}\nattention page: {out}")
