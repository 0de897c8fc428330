"""``transduce attention``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from transduce.cli import options
from transduce.cli.imports import command_imports
from transduce.cli.machine import chosen_device
from transduce.cli.model_folders import require_model_folders
from transduce.cli.output import STANDARD, echo
from transduce.cli.paths import require_writable
from transduce.errors import ConfigError

__all__ = ["attention"]


def attention(
    folder: options.Model,
    src: Annotated[
        str,
        Option(
            help="Translate this sentence; of a language model, the text to read; else the image or recording.",
            show_default=False,
        ),
    ],
    tgt: Annotated[str | None, Option(help="Use this translation instead of the model's.")] = None,
    out: Annotated[Path, Option(help="Write the HTML page to this file; - is stdout.")] = Path("attention.html"),
    device: options.Device = "auto",
) -> None:
    """Draw the attention of a model as one HTML page.

    The weights are those of a translation, a text, an image or a recording. Figures 3 to 5.

    Examples:
        transduce attention runs/my/model --src 'The dog sleeps.'
    """
    with command_imports():
        from transduce.inference import LanguageModel, MediaModel, Translator, load
        from transduce.view import attention_of_media, attention_of_text, attention_of_translation, write_attention_page
        from transduce.view.attention_page import attention_page

    require_model_folders(folder)
    require_writable("--out", out)
    match load(folder, device=chosen_device(device)):
        case LanguageModel() as model:
            if tgt is not None:
                raise ConfigError(f"--tgt needs a translator; {folder} holds {model.capabilities.what}")
            maps = attention_of_text(model, src.replace("\\n", "\n"))
        case MediaModel() as model:
            maps = attention_of_media(model, src, tgt)
        case Translator() as model:
            maps = attention_of_translation(model, src, tgt)
        case _:
            raise ConfigError(f"{folder} holds no translator and no model of text, images or audio")
    title = f"Attention: {maps.source or maps.translation}".replace("\n", " ")
    translation = maps.translation if maps.cross is not None else ""  # else the text itself, or nothing
    if out == STANDARD:
        print(attention_page([maps], title=title))
        if maps.cross is not None:
            echo(translation)
        return
    write_attention_page(out, [maps], title=title)
    print("\n".join(filter(None, (translation, f"attention page: {out}"))))
