"""Ctrl-C while the engine in C computes ends the search, whatever the engine calls, and says so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from array import array
from pathlib import Path

import pytest

from random_models import stored_model
from transduce.config import BeamSearchConfig, TransformerConfig
from transduce.inference.engine import Constraints, EngineSettings, Request
from transduce.inference.engines import make_engine
from transduce.inference.native.binding import library
from transduce.inference.native.interrupts import interruptibly

pytestmark = pytest.mark.skipif(library() is None, reason="the engine in C was not compiled")

SEARCHES = """
import os, signal, sys, threading, time
from pathlib import Path
import numpy as np
from random_models import stored_model
from transduce.config import BeamSearchConfig, GreedySearchConfig, LanguageModelConfig, SampledSearchConfig
from transduce.config import TransformerConfig
from transduce.inference.engine import Constraints, EngineSettings, Request, Run
from transduce.inference.engines import make_engine

kind, sizes = sys.argv[1], dict(d_model=64, d_ff=64, n_heads=4, d_k=16, d_v=16)
is_lm = kind == "sampling"
config = (
    LanguageModelConfig(vocab_size=2000, n_layers=2, **sizes) if is_lm else
    TransformerConfig(src_vocab_size=2000, tgt_vocab_size=2000, n_encoder_layers=2, n_decoder_layers=2, **sizes)
)
endless = EngineSettings(engine="native", suppressed_ids=(0, 1, 2), window=128 if is_lm else None)
engine = make_engine(stored_model(config, Path(sys.argv[2])), settings=endless)
ids, heard, long = np.arange(2000), threading.Event(), 20_000
request, search, run = {
    "sampling": (Request(long, prompt=[1, 5]), SampledSearchConfig(), Run(on_ids=lambda *_: heard.set())),
    "allowed": (
        Request(long, [5, 2], constraints=Constraints(allowed=lambda _: (heard.set(), ids)[1])),
        BeamSearchConfig(), Run(),
    ),
    "translation": (Request(long, [5, 2]), GreedySearchConfig(), Run()),
}[kind]

def interrupt():
    heard.wait(1)
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
try:
    engine.hypotheses([request], search, run)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.skipif(os.name == "nt", reason="os.kill ends a process on Windows")
@pytest.mark.parametrize("kind", ["sampling", "allowed", "translation"])
def test_ctrl_c_ends_a_search(kind: str, tmp_path: Path) -> None:
    paths = [str(Path(__file__).parents[1]), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    done = subprocess.run(
        [sys.executable, "-c", SEARCHES, kind, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "2"},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")


def test_an_exception_of_a_signal_handler_stops_the_work_and_arrives() -> None:
    stop, was_stopped = array("i", [0]), list[bool]()

    def work() -> None:
        signal.raise_signal(signal.SIGTERM)  # handled in the main thread
        while not stop[0]:
            pass
        was_stopped.append(True)

    def end(*_: object) -> None:
        raise SystemExit(143)

    before = signal.signal(signal.SIGTERM, end)
    try:
        with pytest.raises(SystemExit):
            interruptibly(work, stop)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert was_stopped == [True]


@pytest.mark.parametrize("ids", [[5, 61], [-1], [5] * 62])
def test_allowed_ids_outside_the_vocabulary_are_refused(ids: list[int], tmp_path: Path) -> None:
    sizes = {"d_model": 16, "d_ff": 16, "n_heads": 2, "d_k": 8, "d_v": 8, "src_vocab_size": 61, "tgt_vocab_size": 61}
    model = stored_model(TransformerConfig(n_encoder_layers=1, n_decoder_layers=1, **sizes), tmp_path)
    engine = make_engine(model, settings=EngineSettings(engine="native"))
    request = Request(5, [5, 2], constraints=Constraints(allowed=lambda _: ids))
    with pytest.raises((IndexError, ValueError), match=r"from 0 to 60, got (61|-1)|62"):
        engine.hypotheses([request], BeamSearchConfig())
