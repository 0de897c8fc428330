"""``transduce export --to wasm``: a translator as a folder for any web server, which browsers run without a connection.

The page (``browser.html``) and what is around the model (``browser_translator.js``: tokenizers, sentences) run the
engine in C as WebAssembly, on weights that are packed here. Nothing needs torch.
"""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from transduce.config import (
    BeamSearchConfig,
    GreedySearchConfig,
    InferencePrecision,
    TransformerConfig,
    split_direction,
)
from transduce.errors import ConfigError
from transduce.exchange.javascript_patterns import javascript_pattern
from transduce.exchange.libraries import is_installed
from transduce.files import atomic_folder, write_text
from transduce.inference import Translator
from transduce.inference.engines.native import packed, reason_against
from transduce.inference.folder import ModelFolder, read_model_config, read_model_folder
from transduce.inference.text_search import MAX_SOURCE_TOKENS
from transduce.inference.translation.mask_statistics import mask_rules
from transduce.inference.translation.segment_text import MIN_CAPS_FRACTION
from transduce.native_library import FOLDER
from transduce.text import BOS_ID, PAD_ID, SentencePieceTokenizer, Tokenizer
from transduce.text.abbreviations import abbreviations
from transduce.text.characters import SPACELESS
from transduce.text.normalise import INVISIBLE, LONE_JOINERS
from transduce.text.quotes import QuoteStyle
from transduce.text.verbatim import UNSPACED, VERBATIM

__all__ = ["PageReport", "export_page"]

ENGINE_FILE, MODEL_FILE, SETTINGS_FILE = "engine.wasm", "model.bin", "model.json"
FILES = {"browser.html": "index.html", "browser_translator.js": "translator.js"}  # beside this module, and exported
# The settings of a search that a page reads, and those that change no translation of it.
SEARCH_FIELDS = ("beam_size", "alpha", "max_extra_tokens", "max_length", "min_length", "no_repeat_ngram")
OTHER_FIELDS = frozenset({"kind", "n_best", "block_size", "max_tokens_per_batch"})
WASM_TARGET = "wasm32-wasi"


@dataclass(frozen=True, slots=True)
class PageReport:
    """The bytes of an exported page."""

    precision: InferencePrecision
    engine_bytes: int
    model_bytes: int
    all_bytes: int  # of the folder

    def as_json(self) -> dict[str, Any]:
        """Return the JSON values that the command line prints."""
        return {"format": "wasm", **asdict(self)}


def export_page(
    folder: Path,
    out: Path,
    *,
    precision: InferencePrecision = "int8",
    log: Callable[[str], None] = lambda line: None,
) -> PageReport:
    """Write the translator in ``folder`` and a page for it to the new folder ``out``.

    Raises ConfigError, naming the setting, for a model that the engine in C does not know and where the engine for
    browsers cannot be compiled; CheckpointError if the model folder cannot be used, or holds no translator.
    """
    Translator.class_for(read_model_config(folder))
    loaded = read_model_folder(folder, device="cpu")
    reason = _reason_against(loaded)
    if reason is not None:
        raise ConfigError(f"{folder} cannot be exported for browsers: {reason}")
    engine = engine_for_browsers()
    with atomic_folder(out) as temporary:
        model = temporary / MODEL_FILE
        with loaded.stored.weights_file.verified_while_read():
            packed(loaded.stored, precision).save(model, "")
        weights = model.read_bytes()
        compressed = gzip.compress(weights, mtime=0)
        model.write_bytes(compressed)
        settings = _settings(loaded) | {
            "precision": precision, "bytes": len(weights), "file_bytes": len(compressed)
        }  # fmt: skip
        text = json.dumps(settings, ensure_ascii=False, separators=(",", ":"))
        write_text(temporary / SETTINGS_FILE, text)
        shutil.copyfile(engine, temporary / ENGINE_FILE)
        for name, exported in FILES.items():
            write_text(temporary / exported, (resources.files("transduce.exchange") / name).read_text(encoding="utf-8"))
        sizes = {each.name: each.stat().st_size for each in temporary.iterdir()}
    report = PageReport(precision, sizes[ENGINE_FILE], sizes[MODEL_FILE], sum(sizes.values()))
    log(
        f"a page of {report.all_bytes / 1e6:.1f} MB; serve the folder and open it:"
        f" python3 -m http.server --directory {out}"
    )
    return report


def _reason_against(loaded: ModelFolder) -> str | None:
    """Return why a page cannot run a model; None if it can."""
    if isinstance(loaded.tokenizers.src, SentencePieceTokenizer):
        return "its tokenizer is a SentencePiece model; a page has byte-level ones only"
    if not isinstance(loaded.search, BeamSearchConfig | GreedySearchConfig):
        return f"search.kind = {loaded.search.kind!r}; a page searches with a beam, or greedily"
    if unread := loaded.search.changed - OTHER_FIELDS - {*SEARCH_FIELDS}:
        return f"a page does not read {' and '.join(f'search.{name}' for name in sorted(unread))}"
    if isinstance(loaded.config, TransformerConfig) and loaded.config.positions == "words":
        return "positions = 'words'; a page counts tokens"
    return reason_against([loaded.stored])


def engine_for_browsers() -> Path:
    """Return the compiled engine; in a checkout it is compiled on first use. Raises ConfigError without it."""
    engine = FOLDER / ENGINE_FILE
    script = engine.parents[4] / "native" / "build.py"
    changed = max((each.stat().st_mtime for each in script.parent.glob("*.[ch]")), default=0.0)
    if script.is_file() and not (engine.is_file() and engine.stat().st_mtime >= changed):
        if not is_installed("ziglang"):
            raise ConfigError("the engine for browsers is compiled on first use, by zig; pip install ziglang")
        command = [sys.executable, str(script), "--target", WASM_TARGET]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ConfigError(f"the engine for browsers cannot be compiled: {done.stderr.strip()[-300:]}")
    if not engine.is_file():
        raise ConfigError(f"{engine} is missing; install transduce from a wheel, or from its sources with ziglang")
    return engine


def _settings(loaded: ModelFolder) -> dict[str, Any]:
    """Return what a page knows beside the weights."""
    source, target = split_direction(loaded.direction)
    tokenizers, lines, config, search = loaded.tokenizers, loaded.statistics, loaded.config, loaded.search
    assert isinstance(config, TransformerConfig)
    sides = [tokenizers.src] if tokenizers.is_shared else [tokenizers.src, tokenizers.tgt]
    quotes = None if lines is None else lines.quotes
    n_positions = config.n_positions if config.positions == "learned" else None
    longest = min(MAX_SOURCE_TOKENS, n_positions or MAX_SOURCE_TOKENS)
    return {
        "source": source,
        "target": target,
        "search": {name: getattr(search, name) for name in SEARCH_FIELDS},
        "suppressed": [PAD_ID, BOS_ID, *tokenizers.tgt.suppressed_ids],
        "max_source": longest,
        "max_output": n_positions or MAX_SOURCE_TOKENS + search.max_extra_tokens,
        "lines": {
            "sentences": lines.sentences if lines else 1,
            "tokens": min(lines.tokens if lines else longest, longest),
            "longest": min(lines.longest if lines else longest, longest),
        },
        "quotes": quotes or QuoteStyle.of_vocabulary(tokenizers.src.vocabulary).as_text(),
        "invisible": [INVISIBLE, LONE_JOINERS],
        "spaceless": SPACELESS,
        "lowers_caps": lines is None or lines.caps < MIN_CAPS_FRACTION,
        "masks": _masks(loaded),
        "abbreviations": sorted(abbreviations(source)),
        "tokenizers": list(map(_tokenizer, sides)),
    }


def _masks(loaded: ModelFolder) -> dict[str, Any] | None:
    """Return what is masked: patterns of strings, and those that are not masked; None for a model without masks."""
    if not (loaded.tokenizers.src.has_masks and loaded.tokenizers.tgt.has_masks):
        return None
    lines = loaded.statistics
    rules = mask_rules(*split_direction(loaded.direction), lines.masks if lines else None)
    strings, unspaced = (javascript_pattern(each.pattern) for each in (VERBATIM, UNSPACED))
    return {"unmasked": sorted(rules.unmasked), "strings": strings, "unspaced": unspaced}


def _tokenizer(tokenizer: Tokenizer) -> dict[str, Any]:
    values = json.loads(tokenizer.description)
    return {"model": values["model"], "pre_tokenizer": values["pre_tokenizer"]}
