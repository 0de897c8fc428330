"""Exported models in the other library: greedy ids of 500 sentences, BLEU of int8, sentences a second beside ours.

Four small translators (norms, positions, ties, narrow heads) are trained on the built-in grammar, exported, and used by
Hugging Face transformers, CTranslate2 and onnxruntime, each in an environment of its own that has no transduce:

    python benchmarks/exchange.py --out exchange.json
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from machine import machine

from transduce import Translator
from transduce.cli.machine import keep_freed_memory
from transduce.config import GreedySearchConfig
from transduce.corpora import ParallelText
from transduce.exchange.probes import TIE, Probes
from transduce.metrics import sacrebleu_score
from transduce.metrics.significance import paired_bootstrap
from transduce.model import Transformer, fast_precision
from transduce.recipes import read_recipe
from transduce.text import normalise

RECIPE = Path("grammar-en-de")
MAX_NEW_TOKENS, N_ROUNDS = 80, 3
PACKAGES: Mapping[str, Sequence[str]] = {
    "hf": ("torch", "transformers"), "ct2": ("ctranslate2", "tokenizers"), "onnx": ("onnxruntime", "tokenizers"),
}  # fmt: skip
MODELS: Mapping[str, Sequence[str]] = {
    "post-norm, sinusoids, three-way": (),
    "pre-norm, sinusoids, target": ("model.norm=pre", "model.embeddings=target"),
    "pre-norm, learned, separate": ("model.norm=pre", "model.positions=learned", "model.embeddings=separate"),
    "post-norm, learned, d_k 24": ("model.positions=learned", "model.d_k=24", "model.d_v=24"),
}


def main() -> None:
    """Train, export, compare; write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=1600, help="training of each model")
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--out", type=Path, required=True, help="the JSON file; written after each model")
    parser.add_argument(
        "--work", type=Path, help="a folder to keep everything in; models that are there are not trained"
    )
    parser.add_argument("--same-environment", action="store_true", help="do not create environments (a quick try)")
    arguments = parser.parse_args()
    keep_freed_memory()
    with tempfile.TemporaryDirectory() as temporary:
        work = arguments.work or Path(temporary)
        pythons = dict.fromkeys(PACKAGES, sys.executable)
        if not arguments.same_environment:
            pythons = {name: fresh_environment(work / f"env-{name}", each) for name, each in PACKAGES.items()}
        models: dict[str, Any] = {}
        for number, (name, settings) in enumerate(MODELS.items()):
            models[name] = measured(work / f"model-{number}", settings, pythons, arguments)
            arguments.out.write_text(json.dumps({"machine": machine(), "models": models}, indent=2) + "\n")
    print(json.dumps(models, indent=2))


def fresh_environment(folder: Path, packages: Sequence[str]) -> str:
    """Return the interpreter of a new environment with these packages in the versions of ours."""
    from importlib.metadata import version

    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = str(folder / "bin" / "python")
    for package in packages:  # torch first, so that it is the CPU's
        command = [python, "-m", "pip", "install", "--quiet", f"{package}=={version(package).partition('+')[0]}"]
        subprocess.run(command, check=True)
    return python


def measured(
    folder: Path, settings: Sequence[str], pythons: Mapping[str, str], arguments: argparse.Namespace
) -> dict[str, Any]:
    """Train a model, export it three times, and compare."""
    transduce = [sys.executable, "-m", "transduce"]
    options = [f"--set={each}" for each in (*settings, f"training.precision={fast_precision('cpu')}")]
    updates = f"--set=training.max_updates={arguments.updates}"
    if not (folder / "model" / "config.json").exists():
        subprocess.run([*transduce, "train", str(RECIPE), *options, updates, "--out", str(folder)], check=True)
    pairs = list(ParallelText(read_recipe(RECIPE).data).of("test"))[: arguments.sentences]
    sources, references = [normalise(source) for source, _ in pairs], [target for _, target in pairs]
    text = folder / "sentences.txt"
    text.write_text("\n".join(sources) + "\n", encoding="utf-8")
    translator = Translator.load(folder / "model")
    ours, seconds = our_greedy(translator, sources)
    in_int8 = Translator.load(folder / "model", precision="int8")
    results: dict[str, Any] = {
        "sentences": len(sources),
        "ours": {"sentences_per_second": len(sources) / seconds, "bleu": bleu(translator, ours, references)},
        "ours-int8": {"sentences_per_second": len(sources) / our_greedy(in_int8, sources)[1]},
    }
    for target, python in pythons.items():
        out = folder / target
        shutil.rmtree(out, ignore_errors=True)
        exported = subprocess.run(
            [*transduce, "export", str(folder / "model"), "--to", target, "--out", str(out), "--text", str(text),
             "--json"],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        results[target] = {"export": json.loads(exported.stdout)}
        for peer in ("ct2", "ct2-int8") if target == "ct2" else (target,):
            peer_script = str(Path(__file__).with_name("exchange_peer.py"))
            ran = subprocess.run(
                [python, "-I", peer_script, peer, str(out), str(text)], check=True, capture_output=True, text=True
            )
            printed = json.loads(ran.stdout.splitlines()[-1])
            results[peer] = results.get(peer, {}) | compared(translator, sources, references, ours, printed)
    return results


def our_greedy(translator: Translator, sources: Sequence[str]) -> tuple[list[list[int]], float]:
    """Return the ids of our greedy outputs, and the seconds they took: the best of three."""
    import torch

    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    search, config = translator._text_search, GreedySearchConfig(max_extra_tokens=0)
    lengths, seconds = [MAX_NEW_TOKENS] * len(sources), []
    for _ in range(1 + N_ROUNDS):  # the first warms up
        start = time.perf_counter()
        results = search(sources, config, min_tokens=lengths, is_scored=False)
        seconds.append(time.perf_counter() - start)
    assert results is not None
    return [list(result.hypotheses[0].ids) for result in results], min(seconds[1:])


def bleu(translator: Translator, rows: Sequence[Sequence[int]], references: Sequence[str]) -> float:
    """Return sacreBLEU of the texts of ids."""
    return sacrebleu_score(translator.tokenizers.tgt.decode_batch(rows), references).score


def compared(
    translator: Translator, sources: Sequence[str], references: Sequence[str], ours: Sequence[list[int]], printed: Any
) -> dict[str, Any]:
    """Compare the ids of another library with ours; a difference at a tie is counted apart."""
    theirs = printed["ids"]
    differing = [number for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)) if mine != other]
    ties = 0
    if differing:
        assert isinstance(translator.model, Transformer)
        probes = Probes.of_translator(
            translator.model, translator.tokenizers, [sources[number] for number in differing]
        )
        for number, probe in zip(differing, probes.greedy, strict=True):
            pairs = enumerate(zip([*ours[number], 2], [*theirs[number], 2], strict=False))
            first = next(step for step, (mine, other) in pairs if mine != other)
            ties += first < len(probe.margins) and probe.margins[first] <= TIE
    decode = translator.tokenizers.tgt.decode_batch
    difference = paired_bootstrap(decode(ours), decode(theirs), references, seed=1)
    return {
        "equal": len(theirs) - len(differing),
        "ties": ties,
        "sentences_per_second": len(theirs) / printed["seconds"],
        "bleu": bleu(translator, theirs, references),
        "bootstrap": {name: difference.as_json()[name] for name in ("difference", "interval", "p_value")},
    }


if __name__ == "__main__":
    main()
