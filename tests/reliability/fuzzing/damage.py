"""Ways to damage a file: its bytes, its JSON or TOML, the headers of its format. All are determined by a seed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from fuzzing.strange_values import ODD_TEXTS, quoted_toml, strange_toml

Edit = Callable[[bytes, Random], bytes]
Damage = Callable[[Path, Random], None]


def _span(content: bytes, draw: Random, *, most: int = 64) -> tuple[int, int]:
    start = draw.randrange(len(content))
    return start, min(len(content), start + draw.randint(1, most))


def truncate(content: bytes, draw: Random) -> bytes:
    return content[: draw.randrange(len(content))]


def flip_a_bit(content: bytes, draw: Random) -> bytes:
    place = draw.randrange(len(content))
    return content[:place] + bytes([content[place] ^ (1 << draw.randrange(8))]) + content[place + 1 :]


def flip_a_bit_at_the_start(content: bytes, draw: Random) -> bytes:
    return flip_a_bit(content[:200], draw) + content[200:]  # where headers are


def change_bytes(content: bytes, draw: Random) -> bytes:
    start, end = _span(content, draw, most=16)
    return content[:start] + draw.randbytes(end - start) + content[end:]


def grow(content: bytes, draw: Random) -> bytes:
    return content + draw.choice([b"\0" * draw.randint(1, 4096), draw.randbytes(draw.randint(1, 99)), content, b"{}"])


def zero_a_range(content: bytes, draw: Random) -> bytes:
    start, end = _span(content, draw)
    return content[:start] + bytes(end - start) + content[end:]


def swap_two_blocks(content: bytes, draw: Random) -> bytes:
    size = draw.randint(1, max(1, min(64, len(content) // 3)))
    first, second = sorted(draw.sample(range(max(2, len(content) - size)), 2))
    second = max(second, first + size)
    a, b = content[first : first + size], content[second : second + size]
    return content[:first] + b + content[first + size : second] + a + content[second + size :]


def duplicate_a_part(content: bytes, draw: Random) -> bytes:
    start, end = _span(content, draw)
    return content[:end] + content[start:end] + content[end:]


def drop_a_part(content: bytes, draw: Random) -> bytes:
    start, end = _span(content, draw)
    return content[:start] + content[end:]


def empty(content: bytes, draw: Random) -> bytes:
    return b""


BYTES: dict[str, Edit] = {
    edit.__name__: edit
    for edit in (
        truncate,
        flip_a_bit,
        flip_a_bit_at_the_start,
        change_bytes,
        grow,
        zero_a_range,
        swap_two_blocks,
        duplicate_a_part,
        drop_a_part,
        empty,
    )
}


def delete(path: Path, draw: Random) -> None:
    path.unlink()


def make_a_folder(path: Path, draw: Random) -> None:
    path.unlink()
    path.mkdir()
    if draw.random() < 0.5:
        (path / "inside").write_bytes(b"x")


def link_to_nothing(path: Path, draw: Random) -> None:
    path.unlink()
    path.symlink_to(draw.choice([path.with_name("nowhere"), path]))  # the second is a loop


def exchange(path: Path, draw: Random) -> None:
    """Replace it by another file of the folder."""
    others = sorted(other for other in path.parent.iterdir() if other.is_file() and other != path)
    if others:
        shutil.copyfile(draw.choice(others), path)


ENTRIES: dict[str, Damage] = {damage.__name__: damage for damage in (delete, make_a_folder, link_to_nothing, exchange)}


# JSON


def _deep(n_levels: int) -> Any:
    value: Any = 1
    for level in range(n_levels):
        value = [value] if level % 2 else {"a": value}
    return value


def _strange_values(draw: Random) -> Any:
    return draw.choice(
        [
            None, True, False, 0, 1, -1, 2**31, 2**63, -(2**63) - 1, 10**30, 10**4000, 0.5, -0.0, 1e308, float("nan"),
            float("inf"), -float("inf"), "", "1", "x" * 100_000, "a\nb", "\u2028", "\ud800", "../..",
            "/dev/zero", "\0",
            [], [[]], {}, {"a": 1}, [None] * 1000, _deep(50), _deep(400), _deep(900), 3, 7, 1000, 65_536,
        ]
    )  # fmt: skip


def _places(value: Any, depth: int = 0) -> list[tuple[Any, Any]]:
    """Every (container, key) of a JSON value; of long containers only some."""
    found: list[tuple[Any, Any]] = []
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in list(keys)[:40]:
        found.append((value, key))
        if depth < 6:
            found.extend(_places(value[key], depth + 1))
    return found


def _change_json(edit: Callable[[Any, Any, Random], None]) -> Edit:
    def change(content: bytes, draw: Random) -> bytes:
        value = json.loads(content)
        places = _places(value)
        top = [place for place in places if place[0] is value]
        container, key = draw.choice(places if draw.random() < 0.7 else top)
        edit(container, key, draw)
        return json.dumps(value).encode()

    return change


def _replace(container: Any, key: Any, draw: Random) -> None:
    container[key] = _strange_values(draw)


def _scale(container: Any, key: Any, draw: Random) -> None:
    """Numbers become other numbers of their type; anything else another text of its length."""
    value = container[key]
    if isinstance(value, bool):
        container[key] = not value
    elif isinstance(value, int):
        container[key] = draw.choice([value + 1, value - 1, -value, value * 2, value * 10**6, 0, value + 2**32])
    elif isinstance(value, float):
        container[key] = draw.choice([-value, value * 1e10, value / 3, 0.0])
    elif isinstance(value, str):
        container[key] = draw.choice([value[::-1], value.upper(), value + "\n", " " + value, value[1:], value * 2])
    elif isinstance(value, list):
        container[key] = draw.choice([value[::-1], value[1:], value * 2])
    elif isinstance(value, dict):
        container[key] = dict(list(value.items())[::-1][draw.randint(0, 2) :])


def _remove(container: Any, key: Any, draw: Random) -> None:
    del container[key]


def _rename(container: Any, key: Any, draw: Random) -> None:
    name = draw.choice(["", "x", f"{key}_", "format", "\ud800", "a\nb", "y" * 10_000, "../x", "__class__"])
    if isinstance(container, dict):
        container[name] = container.pop(key)
    else:
        container[key] = name


def _add(container: Any, key: Any, draw: Random) -> None:
    if isinstance(container, dict):
        container[draw.choice(["extra", "", f"{key} ", "\0", "a\nb", "../../x", "z" * 300])] = _strange_values(draw)
    else:
        container.append(_strange_values(draw))


def not_an_object(content: bytes, draw: Random) -> bytes:
    return json.dumps(draw.choice([None, 1, "x", [], [json.loads(content)], _deep(900)])).encode()


def nest_without_end(content: bytes, draw: Random) -> bytes:
    return draw.choice([b"[", b'{"a":', b"[{}, "]) * 200_000


def other_encoding(content: bytes, draw: Random) -> bytes:
    return content.decode().encode(draw.choice(["utf-16", "utf-32", "utf-8-sig", "utf-16-le"]))


def a_key_twice(content: bytes, draw: Random) -> bytes:
    value = json.loads(content)
    key = draw.choice(list(value))
    again = json.dumps({key: _strange_values(draw)})[1:-1]
    rest = json.dumps(value)
    return (draw.choice([f"{{{again}, {rest[1:]}", f"{rest[:-1]}, {again}}}"])).encode()


def spread_out(content: bytes, draw: Random) -> bytes:
    """Return other bytes with the same meaning."""
    return json.dumps(json.loads(content), indent=draw.randint(0, 9)).encode() + b" \n" * draw.randrange(9)


JSON: dict[str, Edit] = {
    "json_replace": _change_json(_replace),
    "json_scale": _change_json(_scale),
    "json_remove": _change_json(_remove),
    "json_rename": _change_json(_rename),
    "json_add": _change_json(_add),
    "json_no_object": not_an_object,
    "json_nest": nest_without_end,
    "json_encoding": other_encoding,
    "json_twice": a_key_twice,
    "json_spread": spread_out,
}


# safetensors: 8 bytes of length, a JSON header, the bytes of all tensors


def _with_header(change: Callable[[dict[str, Any], bytearray, Random], None]) -> Edit:
    def edit(content: bytes, draw: Random) -> bytes:
        length = int.from_bytes(content[:8], "little")
        header, data = json.loads(content[8 : 8 + length]), bytearray(content[8 + length :])
        change(header, data, draw)
        written = json.dumps(header).encode()
        return len(written).to_bytes(8, "little") + written + bytes(data)

    return edit


def _some_tensor(header: dict[str, Any], draw: Random) -> dict[str, Any]:
    tensor: dict[str, Any] = header[draw.choice([name for name in header if name != "__metadata__"])]
    return tensor


def _other_dtype(header: dict[str, Any], data: bytearray, draw: Random) -> None:
    """Another type of as many bytes, so that only the type is wrong."""
    tensor = _some_tensor(header, draw)
    dtype, factor = draw.choice(
        [("I32", 1), ("U32", 1), ("F64", 0.5), ("I64", 0.5), ("F16", 2), ("BF16", 2), ("I16", 2), ("BOOL", 4),
         ("U8", 4), ("F8_E4M3", 4), ("F8_E5M2", 4), ("F8_E8M0", 4), ("C64", 0.5), ("F4", 8), ("F6_E2M3", 4),
         ("Q3", 1), (7, 1)]
    )  # fmt: skip
    tensor["dtype"] = dtype
    if tensor["shape"]:
        tensor["shape"][-1] = int(tensor["shape"][-1] * factor)


def _other_shape(header: dict[str, Any], data: bytearray, draw: Random) -> None:
    tensor = _some_tensor(header, draw)
    shape = tensor["shape"]
    tensor["shape"] = draw.choice(
        [
            shape[::-1],
            [*shape, 1],
            [1, *shape],
            [],
            [0],
            [2**63],
            [2**62, 4],
            [-1],
            [1.5],
            "x",
            None,
            shape * 2,
            [10**30],
        ]
    )


def _other_offsets(header: dict[str, Any], data: bytearray, draw: Random) -> None:
    tensor = _some_tensor(header, draw)
    start, end = tensor["data_offsets"]
    tensor["data_offsets"] = draw.choice(
        [[end, start], [start, end + 4], [0, end - start], [start, 2**63], [start, 2**64 - 1], [-4, end], [start], [],
         [start + 4, end + 4], [start, start], [len(data), len(data) + end - start], [10**30, 10**30 + 4]]
    )  # fmt: skip


def _lost_tensor(header: dict[str, Any], data: bytearray, draw: Random) -> None:
    """The last one, with its bytes."""
    last = max((name for name in header if name != "__metadata__"), key=lambda name: header[name]["data_offsets"][1])
    start, _ = header.pop(last)["data_offsets"]
    del data[start:]


def _extra_tensor(header: dict[str, Any], data: bytearray, draw: Random) -> None:
    name = draw.choice(["extra", "", "a\nb", "x" * 10_000, "\u2028", "tgt_embedding.weight/momentum"])
    header[name] = {"dtype": "F32", "shape": [2], "data_offsets": [len(data), len(data) + 8]}
    data.extend(bytes(8))


def _other_name(header: dict[str, Any], data: bytearray, draw: Random) -> None:
    name = draw.choice([name for name in header if name != "__metadata__"])
    header[draw.choice([name + "_", name.upper(), "x", "a\nb"])] = header.pop(name)


def _tensors_exchanged(header: dict[str, Any], data: bytearray, draw: Random) -> None:
    """Exchange two tensors of the same shape, which cannot be detected but must not fail."""
    names = [name for name in header if name != "__metadata__"]
    one = draw.choice(names)
    other = draw.choice([name for name in names if header[name]["shape"] == header[one]["shape"]])
    header[one], header[other] = header[other], header[one]


def _metadata(header: dict[str, Any], data: bytearray, draw: Random) -> None:
    header["__metadata__"] = draw.choice([{"a": "b"}, {"a": 1}, [], "x", {"x": "y" * 100_000}, _deep(100), None])


def _odd_numbers(header: dict[str, Any], data: bytearray, draw: Random) -> None:
    """NaN, infinities and the greatest numbers in place of a weight or of many."""
    pattern = draw.choice([b"\0\0\xc0\x7f", b"\0\0\x80\x7f", b"\0\0\x80\xff", b"\xff\xff\x7f\x7f", b"\x01\0\0\0"])
    start = 4 * draw.randrange(len(data) // 4)
    end = min(len(data), start + 4 * draw.choice([1, 1, 100]))
    data[start:end] = pattern * ((end - start) // 4)


def header_length(content: bytes, draw: Random) -> bytes:
    length = int.from_bytes(content[:8], "little")
    wrong = draw.choice([0, 1, length - 1, length + 1, length + 4096, len(content), 2**31, 2**40, 2**63, 2**64 - 1])
    return wrong.to_bytes(8, "little") + content[8:]


SAFETENSORS: dict[str, Edit] = {
    "tensors_dtype": _with_header(_other_dtype),
    "tensors_shape": _with_header(_other_shape),
    "tensors_offsets": _with_header(_other_offsets),
    "tensors_lost": _with_header(_lost_tensor),
    "tensors_extra": _with_header(_extra_tensor),
    "tensors_name": _with_header(_other_name),
    "tensors_exchanged": _with_header(_tensors_exchanged),
    "tensors_metadata": _with_header(_metadata),
    "tensors_numbers": _with_header(_odd_numbers),
    "tensors_header_length": header_length,
}


# npy: magic, version, 2 bytes of length, a header like a Python dict, the numbers


def _npy(header: str, numbers: bytes, *, version: bytes = b"\x01\x00") -> bytes:
    written = header.encode()
    return b"\x93NUMPY" + version + len(written).to_bytes(2, "little") + written + numbers


def npy_header(content: bytes, draw: Random) -> bytes:
    length = int.from_bytes(content[8:10], "little")
    header, numbers = content[10 : 10 + length].decode(), content[10 + length :]
    descr = header.split("'descr': '")[1].split("'")[0]
    n = int(header.split("(")[1].split(",")[0])
    descr, order, shape = draw.choice(
        [
            (repr(descr), "False", f"({10**15},)"), (repr(descr), "False", f"({2**63},)"), ("'|O'", "False",
            f"({n},)"),
            ("'|V2'", "False", f"({n},)"), ("'<f8'", "False", f"({n},)"), ("'>i8'", "False", f"({n},)"),
            ("'<i4'", "False", f"({n},)"), ("'<u1'", "False", f"({n},)"), ("'<M8[s]'", "False", f"({n},)"),
            ("[('a', '<u2')]", "False", f"({n},)"), (repr(descr), "True", f"({n},)"), (repr(descr), "False", "()"),
            (repr(descr), "False", f"(1, {n})"), (repr(descr), "False", f"({n - 1},)"), (repr(descr), "False",
            "(-1,)"),
            (repr(descr), "False", "(0,)"), (repr(descr), "__import__('os').abort()", f"({n},)"),
            ("(" * 90 + ")" * 90, "False", f"({n},)"), ("'<u3'", "False", f"({n},)"), ("'<a9'", "False", f"({n},)"),
        ]
    )  # fmt: skip
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"
    return _npy(text.ljust(117) + "\n", numbers, version=draw.choice([b"\x01\x00"] * 4 + [b"\x02\x00", b"\x09\x00"]))


def npy_numbers(content: bytes, draw: Random) -> bytes:
    """Write special or out-of-range ids, or offsets that decrease, overlap or overflow."""
    length = int.from_bytes(content[8:10], "little")
    start = 10 + length
    size = int(content[10:start].decode().split("'descr': '")[1][2])
    numbers = bytearray(content[start:])
    for _ in range(draw.choice([1, 1, 20])):
        place = size * draw.randrange(len(numbers) // size)
        value = draw.choice([0, 1, 2, 3, 399, 400, 2**16 - 1, 2 ** (8 * size) - 1, 2 ** (8 * size - 1), 5000])
        numbers[place : place + size] = value.to_bytes(8, "little")[:size]
    return content[:start] + bytes(numbers)


NPY: dict[str, Edit] = {"npy_header": npy_header, "npy_numbers": npy_numbers}


# TOML


def _on_a_line(change: Callable[[str, str, Random], str]) -> Edit:
    """An edit of one line ``key = value``."""

    def edit(content: bytes, draw: Random) -> bytes:
        lines = content.decode().split("\n")
        places = [n for n, line in enumerate(lines) if " = " in line and not line.startswith("#")]
        place = draw.choice(places)
        key, _, value = lines[place].partition(" = ")
        lines[place] = change(key, value, draw)
        return "\n".join(lines).encode("utf-8", "surrogatepass")

    return edit


def _toml_key(key: str, value: str, draw: Random) -> str:
    odd = quoted_toml(draw.choice(ODD_TEXTS))
    name = draw.choice([key + "_", key.upper(), key[1:], odd, odd, "model", "x" * 10_000, f"{key}.{key}", "__class__"])
    return f"{name} = {value}"


def _toml_all_at_once(content: bytes, draw: Random) -> bytes:
    return draw.choice(
        [
            b"[" * 3000, b"a = " + b"[" * 3000 + b"]" * 3000, b"a." * 3000 + b"a = 1", b"[[model]]\n", b"model = 1\n",
            b"[model.x.y]\n", b"\x1b[31m = 1", b"\0", b"\xff\xfe", b"a = 1" * 10_000, b"x = " + b"9" * 5000,
            b"#" * 1_000_000,
            b"[" + b"x" * 100_000 + b"]", b'preset = "\x1b[2J"', b'preset = "' + b"x" * 100_000 + b'"', b"preset = 1",
            b'preset = "tiny"\nmodel = []\n', b"[data]\ncorpus = {}\n", b"\r\r\r", b"[data]\r\nn_pairs = 5\r\n",
        ]
    )  # fmt: skip


TOML: dict[str, Edit] = {
    "toml_value": _on_a_line(lambda key, value, draw: f"{key} = {strange_toml(draw)}"),
    "toml_key": _on_a_line(_toml_key),
    "toml_twice": _on_a_line(lambda key, value, draw: f"{key} = {value}\n{key} = {value}"),
    "toml_lost": _on_a_line(lambda key, value, draw: ""),
    "toml_table": _on_a_line(
        lambda key, value, draw: f"[{draw.choice(['model', 'x', key, 'a.b', ''])}]\n{key} = {value}"
    ),
    "toml_encoding": other_encoding,
    "toml_other": _toml_all_at_once,
}


# JSON, an object on each line


def _on_a_json_line(edit: Edit) -> Edit:
    def change(content: bytes, draw: Random) -> bytes:
        lines = content.splitlines()
        place = draw.randrange(len(lines))
        lines[place] = edit(lines[place], draw).replace(b"\n", b" ")
        return b"".join(line + b"\n" for line in lines)

    return change


def _lines_moved(content: bytes, draw: Random) -> bytes:
    lines = content.splitlines(keepends=True)
    draw.shuffle(lines)
    return b"".join(lines[: draw.randint(0, len(lines))])


JSON_LINES: dict[str, Edit] = {
    **{f"line_{name}": _on_a_json_line(edit) for name, edit in JSON.items() if name != "json_encoding"},
    "lines_moved": _lines_moved,
}


def kinds_for(name: str) -> list[str]:
    """Return the names of all kinds of damage that apply to a file."""
    by_format = {".json": JSON, ".safetensors": SAFETENSORS, ".npy": NPY, ".toml": TOML, ".jsonl": JSON_LINES}
    return [*BYTES, *ENTRIES, *by_format.get(Path(name).suffix, {})]


def inflict(kind: str, path: Path, draw: Random) -> None:
    """Damage a file in one way."""
    if kind in ENTRIES:
        ENTRIES[kind](path, draw)
        return
    edit = (BYTES | JSON | SAFETENSORS | NPY | TOML | JSON_LINES)[kind]
    path.write_bytes(edit(path.read_bytes(), draw))
