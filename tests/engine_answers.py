"""What engines answer to requests of many kinds, without torch: ``python tests/engine_answers.py`` writes PyTorch's."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from random_models import stored_model
from transduce.config import (
    BeamSearchConfig,
    GreedySearchConfig,
    LanguageModelConfig,
    SampledSearchConfig,
    TransformerConfig,
)
from transduce.inference.engine import Constraints, Engine, EngineSettings, ForcedPair, Request
from transduce.inference.engines import make_engine
from transduce.text import BOS_ID, EOS_ID

ON_FILE = Path(__file__).parent / "golden" / "engine_answers.json"
V = 30
SOURCES = [[5, 6, 7, EOS_ID], [9, EOS_ID], [8, 8, 4, 20, 21, 22, EOS_ID], [11, 12, EOS_ID]]
PROMPTS = [[BOS_ID, 5, 6, 7], [BOS_ID], [BOS_ID, 8, 9], [BOS_ID, 4, 4, 4]]
SIZES = {"d_model": 32, "d_ff": 64, "n_heads": 2, "d_k": 16, "d_v": 16}
PAIR = TransformerConfig(
    n_encoder_layers=1, n_decoder_layers=2, embeddings="separate", src_vocab_size=V, tgt_vocab_size=V, **SIZES
)
MODELS: dict[str, TransformerConfig | LanguageModelConfig] = {
    "text": PAIR,
    "images": PAIR.model_copy(update={"source": "patches", "source_width": 8, "patch_height": 4, "patch_width": 3}),
    "audio": PAIR.model_copy(update={"source": "frames", "source_width": 5, "norm": "pre"}),
    "prompts": LanguageModelConfig(n_layers=2, vocab_size=V, tied_embeddings=False, **SIZES),
}
BEAM, GREEDY = BeamSearchConfig(beam_size=3, n_best=3), GreedySearchConfig(min_length=3)
SAMPLED = SampledSearchConfig(seed=3, top_k=5)


def asked(kind: str) -> list[Request]:
    """The requests to a model of ``MODELS``."""
    if kind == "text":
        return [Request(9, ids) for ids in SOURCES]
    if kind == "prompts":
        return [Request(9, prompt=ids, number=number) for number, ids in enumerate(PROMPTS)]
    random, is_image = np.random.default_rng(1), kind == "images"
    shapes = [(n, 8 if is_image else 5) for n in (1, 7, 40)]
    rows = [random.integers(0, 256, shape) if is_image else random.normal(size=shape) for shape in shapes]
    return [Request(9, each.astype(np.uint8 if is_image else np.float16)) for each in rows]


def answers(kind: str, engine: Engine) -> list[Any]:
    """What an engine of a model of ``MODELS`` says, as JSON values."""
    requests, searches = asked(kind), [(BEAM, {}), (SAMPLED, {})]
    if kind != "prompts":
        searches += [(GREEDY, {}), (BEAM, {"prefix": [6, 7]}), (GREEDY, {"prefix": [6, 7]})]
        searches += [
            (BEAM, {"phrases": [[7, 8, 9], [10], [10]], "avoided": [[11, 12], [5]]}),
            (GREEDY, {"avoided": [[7], [20]]}),
        ]
    said: list[Any] = []
    for search, constraints in searches:
        ask = [Request(9, each.source, each.prompt, Constraints(**constraints), each.number) for each in requests]
        found = engine.hypotheses(ask, search)
        assert found is not None  # not interrupted
        said += [[list(each.ids), round(each.log_prob, 5), round(each.score, 5)] for n_best in found for each in n_best]
    if kind in ("text", "prompts"):
        pairs = [ForcedPair(ids, [6, 7, EOS_ID]) for ids in (PROMPTS if kind == "prompts" else SOURCES)]
        said += [each.log_probs_T.round(5).tolist() for each in engine.forced_scores(pairs, max_tokens=20)]
    if kind == "text":
        said += [[[id, round(p, 5)] for id, p in gap] for gap in engine.next_tokens(requests[:1], 3)[0]]
    return said


if __name__ == "__main__":
    settings = EngineSettings(engine="torch")
    with TemporaryDirectory() as folder:
        written = {
            kind: answers(kind, make_engine(stored_model(config, Path(folder)), settings=settings))
            for kind, config in MODELS.items()
        }
    lines = ",\n".join(f"{json.dumps(kind)}: {json.dumps(said)}" for kind, said in written.items())
    ON_FILE.write_text(f"{{\n{lines}\n}}\n")
