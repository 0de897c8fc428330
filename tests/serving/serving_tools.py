"""Servers for tests: in this process or another, with small untrained models."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from starlette.testclient import TestClient

from forks import Forks
from small_models import write_model
from transduce.config import ModelConfig, SearchConfig
from transduce.model import make_model
from transduce.serving.access import Access
from transduce.serving.app import make_app
from transduce.serving.compute_threads import ComputeThreads
from transduce.serving.metrics import Metrics
from transduce.serving.models import ServingOptions, load_served
from transduce.serving.state import ServerState
from transduce.text import Tokenizers, train_bpe, train_word_level

WORDS = "the a dog cat sees does not sleeps man woman book reads red old young in city of and is".split()
SIZES = {"n_encoder_layers": 1, "n_decoder_layers": 1, "d_model": 16, "d_ff": 24, "n_heads": 2, "d_k": 8, "d_v": 8}


def translator(folder: Path, *, direction: str = "en-de", seed: int = 3, masks: bool = False, **model: Any) -> Path:
    """Write an untrained translator: its translations are long and senseless."""
    texts = [" ".join(WORDS), "Die Katze sieht den alten Hund nicht"] * 2
    tokenizer = train_bpe(texts, vocab_size=400, masks=masks)
    config = ModelConfig(
        **SIZES | {"n_decoder_layers": 2} | model, src_vocab_size=tokenizer.size, tgt_vocab_size=tokenizer.size
    )
    return _written(folder, config, Tokenizers(tokenizer, tokenizer), "translation", direction=direction, seed=seed)


def parser(folder: Path) -> Path:
    """Write an untrained parser."""
    src = train_bpe([" ".join(WORDS)], vocab_size=300)
    tgt = train_word_level(["(S (NP XX DT NN )NP (VP VBZ )VP . )S"])
    tokenizers = Tokenizers(src, tgt)
    config = ModelConfig(**SIZES, src_vocab_size=src.size, tgt_vocab_size=tgt.size, embeddings="separate")
    return _written(folder, config, tokenizers, "parsing")


def language_model(folder: Path) -> Path:
    """Write an untrained causal language model."""
    tokenizer = train_bpe([" ".join(WORDS)] * 2, vocab_size=300)
    sizes = {"n_layers": 1, "d_model": 16, "d_ff": 24, "n_heads": 2, "d_k": 8, "d_v": 8, "n_positions": 64}
    config = ModelConfig(system="language-model", **sizes, vocab_size=tokenizer.size)
    return _written(folder, config, Tokenizers(tokenizer, tokenizer), "causal-lm")


def _written(
    folder: Path, config: ModelConfig, tokenizers: Tokenizers, task: str, *, direction: str = "en-de", seed: int = 3
) -> Path:
    torch.manual_seed(seed)
    search = SearchConfig(max_extra_tokens=5)
    return write_model(
        folder, make_model(config, tokenizers), tokenizers, search=search, task=task, direction=direction
    )


def make_state(*folders: Path, access: Access | None = None, **options: Any) -> ServerState:
    metrics, compute, serving = Metrics(), ComputeThreads(), ServingOptions(**{"max_wait_s": 0.002, **options})
    models = [load_served(each, options=serving, compute=compute, metrics_of=metrics.of_model) for each in folders]
    return ServerState(models, access=access or Access(), metrics=metrics)


@contextmanager
def serving(*folders: Path, **options: Any) -> Iterator[TestClient]:
    state = make_state(*folders, **options)
    try:
        with TestClient(make_app(state)) as client:
            client.app_state = state  # type: ignore[assignment]
            yield client
    finally:
        state.close()


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value fits a schema, of the few keywords that the description uses; no key is undescribed."""
    if "oneOf" in schema:
        return any(fits(value, each) for each in schema["oneOf"])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    types = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict,
             "null": type(None)}  # fmt: skip
    if not any(isinstance(value, types[kind]) for kind in kinds):
        return False
    if isinstance(value, list):
        return all(fits(each, schema["items"]) for each in value)
    if isinstance(value, dict) and "properties" in schema:
        required, known = set(schema["required"]), schema["properties"]
        return required <= value.keys() <= known.keys() and all(fits(value[key], known[key]) for key in value)
    return "enum" not in schema or value in schema["enum"]


class RunningServer:
    """``transduce serve`` as a process of its own."""

    def __init__(self, forks: Forks, *arguments: object, before: str = "") -> None:
        self.process = forks.start("serve", *arguments, "--port", "0", "--device", "cpu", before=before)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.log = list[str]()
        self._reader = threading.Thread(target=self.log.extend, args=(self.process.stderr,), daemon=True)
        self._reader.start()
        self.url = self.process.stdout.readline().strip()
        assert self.url.startswith("http://"), self.stop()

    def wait_for_log(self, words: str, timeout_s: float = 30) -> None:
        give_up = time.monotonic() + timeout_s
        while not any(words in line for line in self.log):
            assert time.monotonic() < give_up, self.log
            time.sleep(0.01)

    def stop(self, number: signal.Signals | None = signal.SIGTERM) -> tuple[int, list[str]]:
        if number is not None and self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(60)
        self._reader.join(10)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        return code, self.log


def connected(url: str, request: bytes = b"", *, receive_bytes: int | None = None) -> socket.socket:
    """Send a request, or its beginning; ``receive_bytes``: what the system takes of the answer before it is read."""
    host, _, port = url.removeprefix("http://").partition(":")
    connection = socket.socket()
    if receive_bytes is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    connection.settimeout(30)
    connection.connect((host, int(port)))
    connection.sendall(request)
    return connection


def posted(path: str, **fields: Any) -> bytes:
    body = json.dumps(fields).encode()
    head = "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head.encode() % (path.encode(), len(body)) + body
