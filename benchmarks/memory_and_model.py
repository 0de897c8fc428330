"""A translation memory alone, a model alone, and both, on a test set such as the strings of programs never seen.

    python benchmarks/memory_and_model.py MEMORY.tm --src test.en --tgt test.de [--model MODEL]

Memory alone: the translation of an equal line, else that of the most similar one, else the source line itself. Both:
the memory's translations of equal lines, else the model's. One JSON object for each: BLEU, chrF, the percentage of
lines that are exactly the reference, and of the sources' placeholders that the outputs have. ``equal`` and ``similar``
count the lines that the memory has.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from pathlib import Path

from transduce.files import read_lines
from transduce.inference import Translator
from transduce.memories import Memory
from transduce.metrics import chrf_score, sacrebleu_score

# Of printf, Python, Qt and ICU: %s, %1$d, %(name)s, %1, {name}, ${name}.
PLACEHOLDER = re.compile(r"%(?:\(\w+\))?(?:\d+\$)?[-+#0]*\d*(?:\.\d+)?l*[sdifuxcg]\b|%\d+|\$?\{\w*\}")


def main() -> None:
    """Print the scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("memory", type=Path)
    parser.add_argument("--src", type=Path, required=True)
    parser.add_argument("--tgt", type=Path, required=True)
    parser.add_argument("--model", type=Path)
    arguments = parser.parse_args()
    sources, references = (list(read_lines(path)) for path in (arguments.src, arguments.tgt))
    memory = Memory(arguments.memory)
    equal = [memory.match(line) for line in sources]
    similar = [
        None if match else next(iter(memory.fuzzy(line)), None) for match, line in zip(equal, sources, strict=True)
    ]
    taken = [match.target if match else None for match in equal]
    counts = {"lines": len(sources), "equal": len(sources) - taken.count(None), "similar": sum(map(bool, similar))}
    outputs = {
        "memory": [
            target or (match.target if match else line)
            for target, match, line in zip(taken, similar, sources, strict=True)
        ]
    }
    if arguments.model is not None:
        translator = Translator.load(arguments.model)
        outputs["model"] = translator.translate(sources)
        outputs["both"] = [target or text for target, text in zip(taken, outputs["model"], strict=True)]
    for name, lines in outputs.items():
        score = sacrebleu_score(lines, references, language=memory.languages[1])
        told = {
            "of": name,
            "bleu": round(score.score, 1),
            "chrf": round(chrf_score(lines, references).score, 1),
            "exact": round(100 * sum(map(str.__eq__, lines, references)) / len(lines), 1),
            "placeholders": round(100 * kept(sources, lines), 1),
            "signature": score.signature,
        }
        print(json.dumps({**told, **counts}), flush=True)


def kept(sources: list[str], outputs: list[str]) -> float:
    """Return the share of the sources' placeholders that are in the outputs.

    >>> kept(["Copy %s to {name}"], ["%s kopieren"])
    0.5
    """
    wanted = [Counter(PLACEHOLDER.findall(line)) for line in sources]
    found = [Counter(PLACEHOLDER.findall(line)) & each for line, each in zip(outputs, wanted, strict=True)]
    return sum(each.total() for each in found) / max(1, sum(each.total() for each in wanted))


if __name__ == "__main__":
    main()
