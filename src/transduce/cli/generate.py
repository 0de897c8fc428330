"""``transduce generate``."""

from __future__ import annotations

import sys
from typing import Annotated

from typer import Option

from transduce.cli import options
from transduce.cli.decoding import decoding_options
from transduce.cli.imports import command_imports
from transduce.cli.machine import chosen_device
from transduce.cli.model_folders import require_model_folders
from transduce.cli.output import STANDARD, print_json
from transduce.cli.paths import require_writable
from transduce.cli.stdin import is_interactive, piped_lines, typed_lines
from transduce.config.decoding import NO_CHANGES, DecodingOptions
from transduce.errors import ConfigError

__all__ = ["generate"]

MAX_TOKENS = 1_000_000
PROMPTS_PER_CHUNK = 32


@decoding_options(
    "temperature",
    "top_k",
    "top_p",
    "beam_size",
    "seed",
    temperature="Divide the logits by this; 0 always takes the most probable token. Default: 1.",
    beam_size="Search with this many beams instead of sampling.",
    seed="Use this random seed; the same gives the same text.",
)
def generate(
    folder: options.Model,
    max_tokens: Annotated[int, Option(min=1, max=MAX_TOKENS, help="Stop after this many new tokens.")] = 100,
    decoding: DecodingOptions = NO_CHANGES,
    samples: Annotated[int, Option(min=1, max=options.MAX_SAMPLES, help="Write this many texts for each prompt.")] = 1,
    best_of: options.BestOf = None,
    reward_model: options.RewardModelFolder = None,
    device: options.Device = "auto",
    engine: options.Engine = "auto",
    json: options.Json = False,
) -> None:
    r"""Continue prompts by a language model, or respond to them.

    Reads a prompt from each line of stdin; on a terminal, type prompts. Line ends in a prompt are written as \n, and
    so are those of the text. A fine-tuned model responds to prompts.

    Examples:
        echo 'The dog' | transduce generate runs/lm/model --temperature 0.8
    """
    with command_imports():
        from transduce.inference import LanguageModel, ResponseModel, RewardModel, best_of_n
        from transduce.search.sampling import Sampling
        from transduce.text.chunks import chunks

    require_writable("stdout", STANDARD)
    given = decoding.changes
    sampling = Sampling(given.get("temperature", 1.0), given.get("top_k"), given.get("top_p"))
    beam, seed = given.get("beam_size"), given["seed"]
    options.require_best_of(best_of, reward_model, {"--beam": beam, "--samples": samples > 1})
    require_model_folders(folder, reward_model, text_usage="transduce generate MODEL < {}")
    model = LanguageModel.load(folder, device=chosen_device(device), engine=engine)
    responds = isinstance(model, ResponseModel)
    rater = None if reward_model is None else RewardModel.load(reward_model, device=chosen_device(device))
    if rater is not None and not responds:
        raise ConfigError(
            f"{folder} continues text; --best-of needs a model that responds to prompts (task = 'sft', ...)"
        )
    is_typed = is_interactive()
    is_streamed = is_typed and not json and beam is None and samples == 1 and rater is None
    lines = typed_lines("text", history="generate") if is_typed else piped_lines()
    prompts = (line.replace("\\n", "\n") for line in lines)
    number = 0
    for chunk in chunks(prompts, 1 if is_typed else PROMPTS_PER_CHUNK, len):
        if is_streamed and not responds:
            print(shown(chunk[0]), end="", flush=True)
        repeated = [prompt for prompt in chunk for _ in range(samples)]
        if rater is not None and best_of is not None:
            assert isinstance(model, ResponseModel)
            continued = best_of_n(
                model, rater, chunk, n=best_of, max_tokens=max_tokens, sampling=sampling, seed=seed, first_number=number
            )
        else:
            continued = model.generate(
                repeated,
                max_tokens=max_tokens,
                sampling=sampling,
                beam_size=beam,
                seed=seed,
                first_number=number,
                on_text=(lambda text: print(shown(text), end="", flush=True)) if is_streamed else None,
            )
        for each in continued:
            number += 1
            if json:
                print_json(
                    {
                        "line": 1 + (number - 1) // samples, "prompt": each.prompt, "text": each.text,
                        "log_prob": each.log_prob, "tokens": each.tokens,
                    }
                )  # fmt: skip
            elif is_streamed:
                print()
            else:
                print(shown(each.text if responds else each.prompt + each.text))
            sys.stdout.flush()


def shown(text: str) -> str:
    """Return a text on one line."""
    return text.replace("\n", "\\n")
