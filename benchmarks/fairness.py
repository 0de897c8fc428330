"""Short requests to ``transduce serve`` alone, and beside a request of many sentences.

    python benchmarks/fairness.py MODEL --text sentences.en --long 2000 --short 50

A short request is one sentence. They are sent one after another, and then all at once; each time to an idle server, and
while one request with ``--long`` sentences is under way. Prints one JSON object for each of these four, and one for the
long request.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from machine import machine

from serving import running
from transduce.config import split_direction

PAUSE_S = 1.0  # from the beginning of the long request to the first short one


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="the model folder of a translator")
    parser.add_argument("--text", type=Path, required=True, help="sentences to translate, one per line")
    parser.add_argument("--long", type=int, default=2000, help="sentences of the long request")
    parser.add_argument("--short", type=int, default=50, help="short requests")
    parser.add_argument("--precision", default="fp32", help="fp32 or int8")
    parser.add_argument("--beam", type=int, default=4, help="beam size")
    parser.add_argument("--timeout-s", type=float, default=600.0, help="--timeout-s of the server")
    parser.add_argument("--batch", type=int, default=32, help="--batch of the server")
    arguments = parser.parse_args()
    sentences = [line for line in arguments.text.read_text(encoding="utf-8").splitlines() if line.strip()]
    long, short = sentences[: arguments.long], sentences[arguments.long : arguments.long + arguments.short]
    if len(short) < arguments.short:
        sys.exit(f"{arguments.text} has {len(sentences):,} lines; {arguments.long + arguments.short:,} are needed")
    direction = json.loads((arguments.model / "config.json").read_text())["direction"]
    print(json.dumps(machine()), file=sys.stderr)
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as keys:
        keys.write(f"[anonymous]\ncharacters = {10 * sum(map(len, sentences))}\n")
        keys.flush()
        report(arguments, direction, long, short, keys.name)


def report(arguments: argparse.Namespace, direction: str, long: Sequence[str], short: Sequence[str], keys: str) -> None:
    """Start the server, measure, and print."""

    async def show(url: str) -> None:
        async for result in measured(url, direction, long, short):
            print(json.dumps(result), flush=True)

    with running("transduce", arguments, "--keys", keys, "--timeout-s", str(arguments.timeout_s)) as (url, _):
        asyncio.run(show(url))


async def measured(
    url: str, direction: str, long: Sequence[str], short: Sequence[str]
) -> AsyncIterator[dict[str, Any]]:
    """Yield the times of short requests, alone and beside the long one, and then that of the long one."""
    source, target = split_direction(direction)
    ask = Client(url, source, target).ask
    for sentence in short[:5]:  # the first ones are slow
        await ask(sentence)
    alone: dict[str, float] = {}
    for is_beside in (False, True):
        under_way = asyncio.ensure_future(ask(list(long))) if is_beside else None
        await asyncio.sleep(PAUSE_S)
        for how in ("one after another", "at once"):
            if how == "at once":
                answers = await asyncio.gather(*(ask(sentence) for sentence in short))
            else:
                answers = [await ask(sentence) for sentence in short]
            result: dict[str, Any] = {"short": how, "beside": len(long) if is_beside else 0, **_summary(answers)}
            alone.setdefault(how, result["median_s"])
            if under_way is not None:
                result |= {"times_alone": round(result["median_s"] / alone[how], 2), "was_beside": not under_way.done()}
            yield result
        if under_way is not None:
            status, seconds = await under_way
            yield {"long": len(long), "status": status, "s": round(seconds, 1)}


class Client:
    """Asks for translations, each over a connection of its own."""

    def __init__(self, url: str, source: str, target: str) -> None:
        self._host, _, port = url.removeprefix("http://").partition(":")
        self._port, self._languages = int(port), {"source": source, "target": target}

    async def ask(self, q: str | list[str]) -> tuple[int, float]:
        """Return the status of the answer and the seconds it took."""
        begun = time.perf_counter()
        reader, writer = await asyncio.open_connection(self._host, self._port, limit=1 << 24)
        body = json.dumps({"q": "\n".join(q) if isinstance(q, list) else q} | self._languages).encode()
        writer.write(
            b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        )
        answer = await reader.read()
        writer.close()
        return int(answer.split(None, 2)[1]), time.perf_counter() - begun


def _summary(answers: Sequence[tuple[int, float]]) -> dict[str, Any]:
    times = [seconds for _, seconds in answers]
    statuses = Counter(str(status) for status, _ in answers)
    return {
        "n": len(answers), "statuses": dict(statuses), "median_s": round(statistics.median(times), 3),
        "worst_s": round(max(times), 3),
    }  # fmt: skip


if __name__ == "__main__":
    main()
