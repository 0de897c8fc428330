"""What the docstrings of ``benchmarks`` say of options, times and ratios, without measuring anything."""

from __future__ import annotations

import argparse
import ast
import asyncio
import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

pytestmark = pytest.mark.skipif(not BENCHMARKS.exists(), reason="an installed package has no benchmarks")


def _script(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCHMARKS)
    spec = importlib.util.spec_from_file_location(f"{name}_benchmark", BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_scripts_have_the_options_of_their_docstrings() -> None:
    commands = 0
    for path in sorted(BENCHMARKS.glob("*.py")):
        source = path.read_text(encoding="utf-8")
        said = (ast.get_docstring(ast.parse(source)) or "").replace("\\\n", " ")
        for command in re.findall(rf"^    python benchmarks/{path.name}(.*)$", said, re.MULTILINE):
            commands += 1
            unknown = [flag for flag in re.findall(r"--[a-z][\w-]*", command) if f'"{flag}"' not in source]
            assert unknown == [], path.name
    assert commands > 30


def test_what_is_missing_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    needed = _script("needed", monkeypatch)
    parser = argparse.ArgumentParser(prog="decode.py")
    needed.need(parser, "json", programs=["python3"])
    with pytest.raises(SystemExit):
        needed.need(parser, "json", "no_such_library", programs=["no-such-program"])
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == f"decode.py: error: no_such_library and no-such-program not found: {needed.BENCH}"


def test_times_of_a_slow_server_are_not_cut_off_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six clients, a request each 0.1 s: 0.6 s for each, though only 0.3 s are measured."""
    serving = _script("serving", monkeypatch)
    monkeypatch.setattr(serving, "WARM_UP_S", 0.3)

    async def measured() -> dict[str, float]:
        one_at_a_time = asyncio.Lock()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                while head := await reader.readuntil(b"\r\n\r\n"):
                    length = re.search(rb"Content-Length: (\d+)", head)
                    if length is None:
                        body = json.dumps([{"code": "en", "targets": ["de"]}])
                    else:
                        await reader.readexactly(int(length[1]))
                        async with one_at_a_time:
                            await asyncio.sleep(0.1)
                        body = '{"translatedText": "Ja"}'
                    writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            except asyncio.IncompleteReadError:
                writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        result: dict[str, float] = await serving.load(f"http://127.0.0.1:{port}", 6, ["Yes."], 0.3)
        server.close()
        return result

    result = asyncio.run(measured())
    assert result["p50_ms"] > 500
    assert result["sentences_per_s"] <= 14


def test_our_two_ways_to_encode_are_not_each_others_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAYON_NUM_THREADS", "1")  # which the script sets
    text = _script("text", monkeypatch)
    task = text.Task("encoding", "lines_per_s", 1, {})
    rates = {"encoding": {"transduce": [4.0], "transduce to bytes": [6.0], "sentencepiece": [3.0], "tokenizers": [1.0]}}
    assert text.as_json([task], rates)["encoding"]["ratio_to_best_peer"] == 2.0
