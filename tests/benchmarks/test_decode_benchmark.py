from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from transduce.config import ModelConfig, SearchConfig
from transduce.data import pad_rows
from transduce.exchange.ctranslate2 import write_ctranslate2
from transduce.inference.run_search import run_search
from transduce.model import Transformer
from transduce.text import BOS_ID, EOS_ID, PAD_ID, SPECIAL_TOKENS

ctranslate2 = pytest.importorskip("ctranslate2")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SOURCES = [[5, 9, 4], [17, 8, 8, 30, 11, 6], [25], [12, 39, 7, 20]]
N_TOKENS = 12


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"norm": "pre", "embeddings": "separate"},
        {"positions": "learned", "embeddings": "target", "n_encoder_layers": 1},
    ],
)
def test_ctranslate2_writes_the_same_greedy_ids_with_the_same_probability(
    fields: dict[str, Any], tmp_path: Path
) -> None:
    torch.manual_seed(1)
    sizes = {"n_encoder_layers": 2, "n_decoder_layers": 2, "d_model": 32, "d_ff": 48, "n_heads": 4, "d_k": 8, "d_v": 8}
    config = ModelConfig(**(sizes | fields), src_vocab_size=40, tgt_vocab_size=40)
    model = Transformer(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # biases and norms too
            parameter.add_(0.1 * torch.randn_like(parameter))
    names = [*SPECIAL_TOKENS, *map(str, range(4, 40))]
    write_ctranslate2(tmp_path, model, src_tokens=names, tgt_tokens=names)

    src_BS = pad_rows([[*ids, EOS_ID] for ids in SOURCES])
    with torch.no_grad():
        ours = run_search(model, src_BS, torch.full((4,), N_TOKENS), SearchConfig(beam_size=1, alpha=0.0))
    translator = ctranslate2.Translator(str(tmp_path), compute_type="float32", intra_threads=1)
    sources = [[names[id] for id in ids] for ids in SOURCES]
    theirs = translator.translate_batch(
        sources,
        beam_size=1,
        min_decoding_length=0,
        max_decoding_length=N_TOKENS,
        suppress_sequences=[[names[PAD_ID]], [names[BOS_ID]]],  # as ours
    )
    outputs = [result.hypotheses[0] for result in theirs]
    assert outputs == [[names[id] for id in best.ids] for [best] in ours]
    assert len({best.ids for [best] in ours}) > 1
    scores = translator.score_batch(sources, outputs)  # the last one is that of the end symbol
    for [best], score in zip(ours, scores, strict=True):
        log_prob = sum(score.log_probs if best.is_finished else score.log_probs[:-1])
        assert best.log_prob == pytest.approx(log_prob, abs=1e-4)


@pytest.mark.slow
def test_the_benchmark_prints_one_object_with_every_setting() -> None:
    systems = {"transduce_fp32", "ctranslate2_float32"}
    model = ["--preset", "tiny", "--vocab-size", "300", "--threads", "1"]
    command = [sys.executable, str(BENCHMARKS / "decode.py"), "--json", "--rounds", "1", *model, "--systems", *systems]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "64 of 64 sentences are the same as those of transduce_fp32" in ran.stderr
    printed = json.loads(ran.stdout)
    assert set(printed) == {"batch64_beam4", "batch1_beam4", "batch64_greedy", "machine"}
    for setting in ("batch64_beam4", "batch1_beam4", "batch64_greedy"):
        figures = printed[setting]
        assert set(figures) == systems | {"ratio_to_best_peer", "ratio_to_best_tuned_peer", "fp32_ratio"}
        ours, peer = figures["transduce_fp32"], figures["ctranslate2_float32"]
        assert ours["lowest"] <= ours["tokens_per_s"] <= ours["highest"]
        assert ours["peak_memory_mb"] > 0
        assert figures["fp32_ratio"] == figures["ratio_to_best_peer"] == figures["ratio_to_best_tuned_peer"]
        assert figures["fp32_ratio"] == pytest.approx(ours["tokens_per_s"] / peer["tokens_per_s"], rel=0.01)
