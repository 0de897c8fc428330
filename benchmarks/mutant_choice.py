"""The choice of mutants, by the operators of cosmic-ray (the extra "mutation")."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import cosmic_ray.plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from mutant_list import FOLDERS, Mutant, functions

if TYPE_CHECKING:
    from mutants import Map

MIN_PER_FOLDER = 4
OPERATORS = [
    f"core/{name}"
    for name in (
        *(f"ReplaceBinaryOperator_{name}" for name in (
            "Add_Sub", "Sub_Add", "Mul_Div", "Mul_Add", "Div_Mul", "FloorDiv_Mul", "FloorDiv_Div", "Mod_Mul", "Pow_Mul",
            "BitOr_BitAnd", "BitAnd_BitOr",
        )),
        *(f"ReplaceComparisonOperator_{name}" for name in (
            "Eq_NotEq", "NotEq_Eq", "Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Lt_GtE", "Gt_LtE", "Is_IsNot", "IsNot_Is",
        )),
        *(f"ReplaceUnaryOperator_{name}" for name in ("USub_UAdd", "Delete_Invert", "Delete_Not")),
        "AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd",
        "ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ExceptionReplacer", "NumberReplacer",
        "ZeroIterationForLoop",
    )
]  # fmt: skip
# What the CPU of one process cannot show, and what only words are made of.
SKIPPED_FILES = {"training/distributed.py", "training/parallel.py", "training/memory_preflight.py"}
SKIPPED = re.compile(
    r"cuda|mps|fsdp|distributed|rank\b|world|torchrun|shard|n_processes|compil|__repr__|__str__|describe|format|message"
    r"|assert_never|TYPE_CHECKING|__all__|slots=|frozen=|strict=|default_rng|hash_seed"
    r"|(root|path|folder|temporary|controllers?) / ",  # of paths, no quotients
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Place:
    """Where an operator of cosmic-ray applies."""

    file: str
    source: str
    line: int
    function: tuple[str, int, int]
    operator: str
    index: int  # of the operator's places in the file

    def mutant(self, number: int) -> Mutant | None:
        """The mutant, if it is one changed line of a program that means something else."""
        lines = self.source.splitlines()
        mutated = mutate_code(self.source, cosmic_ray.plugins.get_operator(self.operator)(), self.index)
        changed = changed_line(lines, mutated.splitlines()) if mutated else None
        if changed is None or not is_another_program(self.source, mutated):
            return None
        before, after = lines[changed].strip(), mutated.splitlines()[changed].strip()
        name, first, _ = self.function
        occurrence = sum(line.strip() == before for line in lines[first - 1 : changed])
        return Mutant(number, self.file, name, self.operator, occurrence, before, after)


def choose(tests_of: Map, seed: int, n: int) -> list[Mutant]:
    """``n`` mutants of lines that some test executes: of each folder by its share of such lines, one a line."""
    random = Random(seed)
    places: dict[str, list[list[Place]]] = {}
    for folder in FOLDERS:
        root = tests_of.root / folder
        files = sorted(root.rglob("*.py")) if root.is_dir() else [root]
        names = [path.relative_to(tests_of.root).as_posix() for path in files]
        lines = [line for name in names if name not in SKIPPED_FILES for line in places_by_line(name, tests_of)]
        random.shuffle(lines)
        places[folder] = lines
    n_lines = sum(map(len, places.values()))
    counts = {folder: max(MIN_PER_FOLDER, round(n * len(lines) / n_lines)) for folder, lines in places.items()}
    counts[max(counts, key=lambda folder: counts[folder])] += n - sum(counts.values())
    mutants: list[Mutant] = []
    for folder, lines in places.items():
        wanted = len(mutants) + counts[folder]
        for line in lines:
            operators = sorted({place.operator for place in line})
            operator = random.choice(operators)
            mutant = random.choice([place for place in line if place.operator == operator]).mutant(len(mutants) + 1)
            if mutant:
                mutants.append(mutant)
            if len(mutants) == wanted:
                break
    print(f"seed {seed}: {len(mutants)} mutants of {n_lines} lines; {counts}")
    return mutants


def places_by_line(file: str, tests_of: Map) -> list[list[Place]]:
    """The places of a file that some test executes, those of the same line together."""
    source = (tests_of.root / file).read_text()
    nodes = list(ast_nodes(get_ast(source)))
    skipped, lines = skipped_positions(source), source.splitlines()
    found: dict[int, list[Place]] = defaultdict(list)
    for name in OPERATORS:
        operator = cosmic_ray.plugins.get_operator(name)()
        positions = [tuple(start) for node in nodes for start, _ in operator.mutation_positions(node)]
        for index, start in enumerate(positions):
            function = next((f for f in functions(source) if f[1] <= start[0] <= f[2]), None)
            if (
                function is not None
                and not any(first <= start < last for first, last in skipped)
                and not SKIPPED.search(f"{function[0]} {lines[start[0] - 1]}")
                and tests_of.tests(file, source, start[0])
            ):
                found[start[0]].append(Place(file, source, start[0], function, name, index))
    return [found[line] for line in sorted(found)]


def changed_line(before: Sequence[str], after: Sequence[str]) -> int | None:
    """The only line that differs; None if there are more."""
    changed = [i for i, (old, new) in enumerate(zip(before, after, strict=False)) if old != new]
    return changed[0] if len(before) == len(after) and len(changed) == 1 else None


def is_another_program(before: str, after: str) -> bool:
    """Whether the mutated source is Python and means something else."""
    try:
        return ast.dump(ast.parse(before)) != ast.dump(ast.parse(after))
    except SyntaxError:
        return False


Position = tuple[int, int]


def skipped_positions(source: str) -> list[tuple[Position, Position]]:
    """Annotations, decorators, errors raised, texts with numbers in them, and types of casts."""
    nodes: list[ast.AST] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert):
            nodes.append(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            nodes += [*node.decorator_list, *([node.returns] if node.returns else [])]
        elif isinstance(node, ast.ClassDef):
            nodes += node.decorator_list
        elif isinstance(node, ast.AnnAssign) or (isinstance(node, ast.arg) and node.annotation):
            nodes.append(node.annotation)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"cast", "isinstance"}:
            nodes += [node.args[0 if node.func.id == "cast" else 1]]
    return [((n.lineno, n.col_offset), (n.end_lineno, n.end_col_offset)) for n in nodes]
