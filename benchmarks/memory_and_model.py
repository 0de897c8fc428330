"""BLEU of a translation memory alone, of a model alone, and of both, on a test set.

    python benchmarks/memory_and_model.py MEMORY.tm --src test.en --tgt test.de [--model MODEL]

Memory alone: the translation of an equal line, else that of the most similar one, else the source line itself. Both:
the memory's translations of equal lines, else the model's. One JSON object for each; ``equal`` and ``similar`` count
the lines that the memory has.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from transduce.files import read_lines
from transduce.inference import Translator
from transduce.memories import Memory
from transduce.metrics import sacrebleu_score


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
        print(
            json.dumps({"of": name, "bleu": round(score.score, 1), "signature": score.signature, **counts}), flush=True
        )


if __name__ == "__main__":
    main()
