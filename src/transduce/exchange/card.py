"""Cards of exported models: the front matter that model hubs read, what was measured, what is different there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from transduce.config import LanguageModelConfig, TransformerConfig, split_direction
from transduce.inference.folder import ModelFolder
from transduce.inference.translation.segment_text import MIN_CAPS_FRACTION
from transduce.text import SentencePieceTokenizer
from transduce.text.masks import MASKS
from transduce.text.tokenizer import WORD_START

__all__ = ["export_card"]

LIBRARY_NAMES = {"hf": "transformers", "ct2": "ctranslate2", "onnx": "transformers.js"}
SCORES_HEADING = re.compile(r"^## Scores on (?P<split>\w+): (?P<text>.+)$", re.MULTILINE)
SCORE_ROW = re.compile(r"^\| (?P<metric>\w+) \| (?P<score>[\d.]+) \| `(?P<signature>[^`]*)` \|$", re.MULTILINE)


def export_card(measured: Mapping[str, Any], loaded: ModelFolder, card: str, *, license_id: str) -> str:
    """Return the Markdown text: front matter, use, what was measured, then the model's own card."""
    target = str(measured["format"])
    is_causal = isinstance(loaded.config, LanguageModelConfig)
    title = card.splitlines()[0].removeprefix("# ") if card.startswith("# ") else "A Transformer"
    lines = [
        *_front_matter(target, loaded, card, is_causal=is_causal, license_id=license_id),
        "", f"# {title}", "", "Exported by transduce.", "",
    ]  # fmt: skip
    differences = [*_differences(target, loaded, is_causal=is_causal), *_strings_that_stay(measured, loaded)]
    for heading, section in (
        ("Use", _use(target, loaded, is_causal=is_causal)),
        ("Measured at the export", _measured(measured)),
        ("What is different", differences),
    ):
        lines += [f"## {heading}", "", *section, ""]
    return "\n".join([*lines, *_own_card(card)])


def _front_matter(target: str, loaded: ModelFolder, card: str, *, is_causal: bool, license_id: str) -> Iterator[str]:
    """Yield the YAML block; strings are quoted as JSON, which YAML reads too (else ``no`` would be a truth value)."""
    languages = dict.fromkeys(split_direction(loaded.direction))
    yield "---"
    yield "language:"
    yield from (f"- {json.dumps(language)}" for language in languages)
    yield f"license: {json.dumps(license_id)}"
    yield f"library_name: {LIBRARY_NAMES[target]}"
    yield f"pipeline_tag: {'text-generation' if is_causal else 'translation'}"
    yield "tags:"
    yield "- transduce"
    scores = list(_scores(card))
    if scores:
        yield "metrics:"
        yield from (f"- {json.dumps(metric)}" for metric in dict.fromkeys(metric for metric, *_ in scores))
        yield "model-index:"
        yield f"- name: {json.dumps(f'transduce-{loaded.direction}')}"
        yield "  results:"
        for metric, score, signature, text in scores:
            yield "  - task:"
            yield "      type: translation"
            yield "    dataset:"
            yield f"      name: {json.dumps(text)}"
            yield f"      type: {json.dumps(re.sub('[^A-Za-z0-9-]+', '-', text).strip('-'))}"
            yield "    metrics:"
            yield f"    - type: {json.dumps(metric)}"
            yield f"      value: {score}"
            yield f"      name: {json.dumps(signature)}"
    yield "---"


def _scores(card: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield metric, score, signature and text of the scores in a model's card."""
    heading = SCORES_HEADING.search(card)
    if heading is not None:
        for row in SCORE_ROW.finditer(card, heading.end()):
            yield row["metric"], row["score"], row["signature"], f"{heading['text']}, {heading['split']}"


def _use(target: str, loaded: ModelFolder, *, is_causal: bool) -> list[str]:
    two = not loaded.tokenizers.is_shared and not isinstance(loaded.tokenizers.src, SentencePieceTokenizer)
    decoder = 'AutoTokenizer.from_pretrained(folder, subfolder="target")' if two else "tokenizer"
    match target:
        case "hf":
            auto = "AutoModelForCausalLM" if is_causal else "AutoModelForSeq2SeqLM"
            return [
                "```python",
                f"from transformers import {auto}, AutoTokenizer",
                "",
                "tokenizer = AutoTokenizer.from_pretrained(folder)",
                f"model = {auto}.from_pretrained(folder)",
                'inputs = tokenizer(["A dog runs."], return_tensors="pt", padding=True)',
                f"print({decoder}.batch_decode(model.generate(**inputs), skip_special_tokens=True))",
                "```",
            ]
        case "ct2":
            library, encode, decode = _coding_of_tokens(loaded)
            return [
                "```python",
                f"import ctranslate2, {library}",
                "",
                'translator = ctranslate2.Translator(folder, compute_type="float32")  # or folder + "/int8", "int8"',
                *encode,
                "[result] = translator.translate_batch([tokens], beam_size=4)",
                *decode,
                "```",
                "",
                "The text should be in NFC, with single spaces and none at its ends. EOS is appended by the model.",
            ]
        case _:
            return [
                "```js",
                "import { pipeline } from '@huggingface/transformers';",
                "",
                "const translator = await pipeline('translation', folder, { dtype: 'fp32' });  // or 'q8'",
                "console.log(await translator('A dog runs.'));",
                "```",
                "",
                "`onnx/encoder_model.onnx` and `onnx/decoder_model_merged.onnx` run in onnxruntime, too; `_quantized`",
                "are the same with int8 weights.",
            ]


def _coding_of_tokens(loaded: ModelFolder) -> tuple[str, list[str], list[str]]:
    """Return what makes tokens of a text and a text of tokens in Python: the library, and the lines of each."""
    if isinstance(loaded.tokenizers.src, SentencePieceTokenizer):
        return (
            "sentencepiece",
            [
                'source = sentencepiece.SentencePieceProcessor(model_file=folder + "/source.spm")',
                'target = sentencepiece.SentencePieceProcessor(model_file=folder + "/target.spm")',
                'tokens = source.encode("A dog runs.", out_type=str)  # after ">>deu<<" if the model has codes',
            ],
            [
                'tokens = [token for token in result.hypotheses[0] if token != "<unk>"]',
                f'print(target.decode(tokens).replace("{WORD_START}", " ").strip())',
            ],
        )
    source, target = ("",) * 2 if loaded.tokenizers.is_shared else (".src", ".tgt")
    return (
        "tokenizers",
        [
            f'tokenizer = tokenizers.Tokenizer.from_file(folder + "/tokenizer{source}.json")',
            f'target_tokenizer = tokenizers.Tokenizer.from_file(folder + "/tokenizer{target}.json")',
            'tokens = tokenizer.encode("A dog runs.").tokens',
        ],
        [
            "ids = [target_tokenizer.token_to_id(token) for token in result.hypotheses[0]]",
            "print(target_tokenizer.decode(ids))",
        ],
    )


def _measured(measured: Mapping[str, Any]) -> Iterator[str]:
    yield from _comparison("fp32", measured)
    if "int8" in measured:
        yield from _comparison("int8", measured["int8"])
    yield f"- tokenizer: {measured['odd_texts_equal']} odd texts encoded and decoded alike"


def _comparison(precision: str, measured: Mapping[str, Any]) -> Iterator[str]:
    ties = f", {measured['near_ties']} more differ where the two best tokens are equal" if measured["near_ties"] else ""
    yield (
        f"- {precision}: {measured['equal_greedy']} of {measured['sentences']} greedy outputs equal to ours{ties};"
        f" logits or log-probabilities differ by at most {measured['max_logit_difference']:.1e}"
    )


def _differences(target: str, loaded: ModelFolder, *, is_causal: bool) -> Iterator[str]:
    config = loaded.config
    assert isinstance(config, TransformerConfig | LanguageModelConfig)
    if not is_causal:
        yield (
            f"- Beam search: transduce divides the log-probability by ((5 + n) / 6)^{loaded.search.alpha:g}, here it is"
            " divided by n^p with EOS counted; greedy outputs agree."
        )
        yield (
            f"- Length: transduce stops {loaded.search.max_extra_tokens} tokens beyond the length of the source; here"
            " the limit is a fixed number."
        )
    if target == "hf" and config.norm == "post" and config.norm_eps != 1e-5:
        yield f"- Layer norms there add 1e-5 to the variance, these were trained with {config.norm_eps:g}."
    if target == "hf" and config.norm == "post" and config.positions == "learned" and not is_causal:
        yield "- The learned positions are in the file; `save_pretrained` of Marian models leaves them out."
    if is_causal:
        yield "- Sinusoids are a table of the model's window; longer texts need a sliding window."
    if isinstance(config, TransformerConfig) and config.block_size > 1:
        yield "- The further heads of blockwise decoding are left out."
    if isinstance(config, LanguageModelConfig) and config.output == "tokens-and-value":
        yield "- The value head of the policy is left out."
    if target == "ct2":
        yield "- `ct2-transformers-converter` does not read the Hugging Face form of this model; use this folder."
    if target == "onnx":
        yield "- transformers.js has no beam search, and reads `</s>` in a text as the end."
    if not is_causal:
        yield "- Lines are translated as they are; transduce also splits them into sentences."


def _strings_that_stay(measured: Mapping[str, Any], loaded: ModelFolder) -> Iterator[str]:
    """Yield what happens to strings that no translation may change, and what to do."""
    if "sentences_with_losses" not in measured:
        return
    lost = measured["sentences_with_losses"]
    yield (
        "- URLs, e-mail addresses, placeholders, file names, numbers with units, emoji: transduce copies them around"
        f" the model. Here the model reads them like words: {lost['lost']} of {lost['sentences']} sentences lost some"
        " in the greedy output. Translate such text with transduce (`transduce serve` for other programs), or take"
        " these strings out before and put them back after."
    )
    if loaded.tokenizers.src.has_masks:
        first, last = (f"U+{ord(each):04X}" for each in (MASKS[0], MASKS[-1]))
        yield (
            f"- This model was trained to keep the place of such strings: put one of the characters {first} to {last}"
            " in place of each, equal strings the same one, and in the translation the strings back in their places."
        )
    statistics = loaded.statistics
    if statistics is not None and statistics.caps < MIN_CAPS_FRACTION:
        yield (
            "- Sentences in capitals: the model has hardly read any; transduce gives it lower-case letters and writes"
            " the translation in capitals. Do the same here."
        )


def _own_card(card: str) -> list[str]:
    """Return the model's card with its headings one level lower, without its title and use."""
    start = card.find("## ")
    if start < 0:
        return []
    return ["## The model's own card", "", re.sub("^## ", "### ", card[start:], flags=re.MULTILINE).rstrip(), ""]
