"""Load on ``transduce serve``, beside a server that translates one request after another, and beside the offline rate,
which depends on how many sentences are translated together.

    python benchmarks/serving.py MODEL --text sentences.en --clients 1,8,64,256 --seconds 30 --precision int8

Each client sends one sentence, waits for its translation, and sends the next, over one connection. The clients run in
one process of their own, on the loopback, whose processor time is reported: it is taken from the servers where they
share cores. The other server is the usual way: CTranslate2 with the same weights and beam behind Flask and waitress;
requests wait for each other in a lock. Its length penalty differs a little from ours, so some translations do.

After a warm-up, rates count the answers that come within ``--seconds``; times are those of the requests that are sent
within them, however late they are answered.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from machine import machine, memory_mb, peak_memory_mb
from needed import BENCH, need

SYSTEMS = ("offline", "transduce", "one-by-one")
WARM_UP_S = 3.0
PATIENCE_S = 600


def main() -> None:
    """Measure, and print one JSON object for each system and number of clients."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="the model folder of a translator")
    parser.add_argument("--text", type=Path, required=True, help="sentences to translate, one per line")
    parser.add_argument("--clients", type=_numbers, default="1,8,64,256", help="numbers of clients, with commas")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each measurement")
    parser.add_argument("--precision", choices=("fp32", "int8"), default="int8", help="of both systems")
    parser.add_argument("--beam", type=int, default=4, help="beam size of both systems")
    parser.add_argument("--batch", type=int, default=32, help="--batch of transduce serve")
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="what to measure, with commas")
    parser.add_argument("--out", type=Path, help="also write the results to this JSON file")
    parser.add_argument("--one-by-one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--load", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one_by_one:
        serve_one_by_one(arguments.model, precision=arguments.precision, beam=arguments.beam)
        return
    sentences = [line for line in arguments.text.read_text(encoding="utf-8").splitlines() if line.strip()]
    if arguments.load:
        url, n_clients = arguments.load.split()
        print(json.dumps(asyncio.run(load(url, int(n_clients), sentences, arguments.seconds))))
        return
    systems = arguments.systems.split(",")
    if unknown := set(systems) - {*SYSTEMS}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known are {', '.join(SYSTEMS)}")
    if "one-by-one" in systems:
        need(parser, "ctranslate2", "flask", "waitress", how=f"{BENCH}, or choose other --systems")
    direction = json.loads((arguments.model / "config.json").read_text())["direction"]
    print(json.dumps(machine()), file=sys.stderr)
    results: list[dict[str, Any]] = []

    def report(result: dict[str, Any]) -> None:
        results.append(result)
        print(json.dumps(result), flush=True)

    if "offline" in systems:
        for n_together in (len(sentences), 64, 32):  # equal sentences are translated once: no more than there are
            report(offline(arguments, sentences, n_together))
    for system in ("transduce", "one-by-one"):
        if system not in systems:
            continue
        with running(system, arguments) as (url, process):
            for n_clients in arguments.clients:
                report(
                    {"system": system, "direction": direction}
                    | measured(arguments, url, n_clients)
                    | {"server_mb": round(memory_mb(process)), "server_peak_mb": round(peak_memory_mb(process))}
                )
    if arguments.out is not None:
        settings = {"seconds": arguments.seconds, "precision": arguments.precision, "beam": arguments.beam}
        arguments.out.write_text(json.dumps({"machine": machine(), **settings, "results": results}, indent=1) + "\n")


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def offline(arguments: argparse.Namespace, sentences: Sequence[str], n_together: int) -> dict[str, Any]:
    """Measure the rate of ``translate`` on so many sentences at once, in this process."""
    from transduce.cli.machine import keep_freed_memory
    from transduce.inference import Translator

    keep_freed_memory()
    translator = Translator.load(arguments.model, precision=arguments.precision)
    translator.translate(sentences[:32], beam_size=arguments.beam)
    n_done, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < arguments.seconds:
        some = [sentences[(n_done + place) % len(sentences)] for place in range(n_together)]
        translator.translate(some, beam_size=arguments.beam)
        n_done += n_together
    rate = n_done / (time.perf_counter() - begun)
    return {"system": "offline", "together": n_together, "sentences_per_s": round(rate, 2)}


@contextmanager
def running(system: str, arguments: argparse.Namespace, *more: str) -> Iterator[tuple[str, int]]:
    """Run a server, with more options for ``transduce serve``; yield its address and process id."""
    options = ["--precision", arguments.precision, "--beam", str(arguments.beam)]
    if system == "transduce":
        command = [sys.executable, "-m", "transduce", "serve", str(arguments.model), "--port", "0", "--device", "cpu",
                   "--batch", str(arguments.batch), *options, *more]  # fmt: skip
    else:
        command = [
            sys.executable,
            __file__,
            str(arguments.model),
            "--text",
            str(arguments.text),
            "--one-by-one",
            *options,
        ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        if not url.startswith("http"):
            sys.exit(f"{system} did not start; see above")
        yield url, process.pid
    finally:
        process.terminate()
        process.wait(60)


def measured(arguments: argparse.Namespace, url: str, n_clients: int) -> dict[str, Any]:
    """Run the clients in a process of their own; return what they saw."""
    command = [sys.executable, __file__, str(arguments.model), "--text", str(arguments.text), "--seconds",
               str(arguments.seconds), "--load", f"{url} {n_clients}"]  # fmt: skip
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, timeout=arguments.seconds + PATIENCE_S
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


async def load(url: str, n_clients: int, sentences: Sequence[str], seconds: float) -> dict[str, Any]:
    """Be ``n_clients`` clients; return rates, times and errors after a warm-up."""
    host, _, port = url.removeprefix("http://").partition(":")
    begun = time.perf_counter()
    start, end = begun + WARM_UP_S, begun + WARM_UP_S + seconds
    times, statuses = list[float](), Counter[int]()

    async def client(number: int) -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        place = number * 7919
        try:
            while (sent := time.perf_counter()) < end:
                sentence = sentences[place % len(sentences)]
                place += 1
                body = json.dumps({"q": sentence} | languages).encode()
                writer.write(
                    b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
                )
                status, answer = await _answer(reader)
                received = time.perf_counter()
                if status == 429:
                    await asyncio.sleep(0.1)
                if start <= received <= end:
                    statuses[status] += 1
                if status == 200:
                    assert "translatedText" in answer
                    if sent >= start:  # a slow server has answered few of these at the end, and the quick ones first
                        times.append(received - sent)
        finally:
            writer.close()

    languages = await _languages(host, int(port))
    before = time.process_time()
    await asyncio.gather(*(client(number) for number in range(n_clients)))
    cpu_s = time.process_time() - before
    quantiles = statistics.quantiles(times, n=100, method="inclusive") if len(times) > 1 else None
    return {
        "clients": n_clients,
        "sentences_per_s": round(statuses[200] / seconds, 2),
        **{f"p{n}_ms": round(1000 * quantiles[n - 1], 1) if quantiles else None for n in (50, 95, 99)},
        "statuses": {str(status): n for status, n in sorted(statuses.items())},
        "client_cpu_s": round(cpu_s, 2),
    }


async def _languages(host: str, port: int) -> dict[str, str]:
    """Return the direction of the server."""
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(b"GET /languages HTTP/1.1\r\nHost: localhost\r\n\r\n")
    _, answer = await _answer(reader)
    writer.close()
    source = next(each for each in json.loads(answer) if each["targets"])
    return {"source": source["code"], "target": source["targets"][0]}


async def _answer(reader: asyncio.StreamReader) -> tuple[int, str]:
    """Read one answer of HTTP/1.1 with a content length."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    length = next(int(line.partition(":")[2]) for line in lines if line.lower().startswith("content-length:"))
    return int(lines[0].split()[1]), (await reader.readexactly(length)).decode()


def serve_one_by_one(folder: Path, *, precision: str, beam: int) -> None:
    """Serve with CTranslate2, Flask and waitress; print the address when ready."""
    import logging

    import ctranslate2
    import waitress
    from decoders import token_names
    from flask import Flask, jsonify, request

    from transduce.exchange.ctranslate2 import write_ctranslate2
    from transduce.inference import Translator
    from transduce.model import Transformer
    from transduce.text import normalise

    loaded = Translator.load(folder)
    tokenizers = loaded.tokenizers
    src_names, tgt_names = token_names(tokenizers.src.size), token_names(tokenizers.tgt.size)
    with tempfile.TemporaryDirectory() as temporary:
        assert isinstance(loaded.model, Transformer)
        write_ctranslate2(Path(temporary), loaded.model, src_tokens=src_names, tgt_tokens=tgt_names)
        threads = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))
        compute = {"fp32": "float32"}.get(precision, precision)
        model = ctranslate2.Translator(temporary, compute_type=compute, inter_threads=1, intra_threads=threads)
    ids_of, n_more = {name: id for id, name in enumerate(tgt_names)}, loaded.search.max_extra_tokens
    lock, app = threading.Lock(), Flask("one-by-one")

    def translated(text: str) -> str:
        pieces = []
        for segment in loaded.split_line(text):
            tokens = [src_names[id] for id in tokenizers.src.encode(normalise(segment.text))]
            [result] = model.translate_batch([tokens], beam_size=beam, max_decoding_length=len(tokens) + n_more)
            pieces.append(tokenizers.tgt.decode([ids_of[name] for name in result.hypotheses[0]]) + segment.space)
        return "".join(pieces)

    @app.post("/translate")
    def translate() -> Any:
        with lock:
            return jsonify(translatedText=translated(request.get_json()["q"]))

    @app.get("/languages")
    def languages() -> Any:
        source, target = loaded.src_language, loaded.tgt_language
        return jsonify([{"code": source, "name": source, "targets": [target]}])

    logging.getLogger("waitress").setLevel(logging.ERROR)  # it reports each request that waits
    server = waitress.create_server(app, host="127.0.0.1", port=0, threads=4, connection_limit=2000)
    print(f"http://127.0.0.1:{server.effective_port}", flush=True)
    server.run()


if __name__ == "__main__":
    main()
