"""A run of six updates for each task: one table, trained task by task when a test first asks for it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from task_suite import SmallRun, SmallTask, run_once

from transduce.search.sampling import Sampling

UPDATES = """
training.max_updates = 6
training.max_tokens_per_batch = 400
training.warmup_steps = 4
training.validate_every_updates = 3
training.validation_sentences = 2
training.checkpoint_every_updates = 3
training.log_every_updates = 2
training.average_last = 2
"""
SIZES = 'preset = "tiny"\nmodel.d_model = 16\nmodel.d_ff = 16\nmodel.n_heads = 2\nmodel.d_k = 8\nmodel.d_v = 8\n'
ENCODER_DECODER = f"{SIZES}model.n_encoder_layers = 1\nmodel.n_decoder_layers = 1\n{UPDATES}"
DECODER = f'{SIZES}model.system = "language-model"\nmodel.n_layers = 1\n{UPDATES}training.eps_ls = 0.0\n'
GREEDY = "search.beam_size = 1\nsearch.max_extra_tokens = 2\n"
GRAMMAR = 'data.corpus = "grammar"\ndata.n_pairs = 40\ndata.vocab_size = 400\n'
ENGLISH = f'{GRAMMAR}data.language = "en"\n'
RESPONSES = f"{DECODER}{GRAMMAR}model.n_positions = 192\ndata.max_length = 192\nmodel.p_drop = 0.0\n"
FROM = "training.init_from = '{model}'\ndata.tokenizer_from = '{model}'\n"
ROLLOUTS = "alignment.reward_model = '{reward_model}'\nalignment.rollout_size = 8\nalignment.max_response = 6\n"
MEDIA = (
    "".join(f"data.{split}_media = '{{folder}}/{split}.tsv'\n" for split in ("train", "dev", "test"))
    + 'data.corpus = "files"\ndata.tokenizer = "characters"\ndata.vocab_size = 300\n'
)
PROMPT = "Negate: The dog sleeps."

NO_BEAM = ("search.kind=mask-predict", ("'mask-predict'",))
DECODER_ONLY = ("model.system=transformer", ("'language-model'",))
CAUSAL = ("model.is_causal=false", ("is_causal",))
WINDOW = ("model.n_positions=100", ("data.max_length", 192, "model.n_positions", 100))
NO_ROOM = ("alignment.max_response=190", ("alignment.max_response", "model.n_positions", 192))


def respond(model: Any, files: Path) -> list[str]:
    """Greedy responses of a few tokens."""
    responses = model.generate([PROMPT], sampling=Sampling(temperature=0.0), max_tokens=5)
    return [each.text for each in responses]


def draw(path: Path, text: str) -> None:
    """Bars: as many as the digit says, then a gap."""
    from PIL import Image

    parts = [np.zeros((8, 2))]
    for digit in text:
        bars = np.zeros((8, 8))
        bars[:, 0 : 2 * int(digit) : 2] = 1
        parts += [bars, np.zeros((8, 2))]
    Image.fromarray((255 * (1 - np.concatenate(parts, axis=1))).astype(np.uint8)).save(path)


def write_images(folder: Path) -> None:
    """Write lists of images of bars, and ``flawed.tsv``, the training list with files that cannot be used."""
    from PIL import Image

    random = Random(1)
    for split, n in (("train", 24), ("dev", 4), ("test", 5)):
        lines = []
        for number in range(n):
            text = "".join(random.choices("1234", k=random.randint(1, 3)))
            draw(folder / f"{split}-{number}.png", text)
            lines.append(f"{split}-{number}.png\t{text}\n")
        (folder / f"{split}.tsv").write_text("".join(lines), encoding="utf-8")
    draw(folder / "wide.png", "1" * 9)
    Image.new("L", (9, 8), 255).save(folder / "blank.png")
    (folder / "bad.png").write_bytes(b"no image")
    with (folder / "flawed.tsv").open("w", encoding="utf-8") as stream:
        stream.write((folder / "train.tsv").read_text(encoding="utf-8"))
        stream.write("wide.png\t1\nblank.png\t2\nbad.png\t3\nmissing.png\t4\ntrain-1.png\t \n")


TONES = {"low": 300, "mid": 1000, "high": 3000}


def sing(path: Path, words: list[str]) -> None:
    """A tone for each word."""
    import soundfile

    time = np.arange(1600) / 16_000
    samples = np.concatenate([np.zeros(400), *(np.sin(2 * np.pi * TONES[word] * time) for word in words)])
    soundfile.write(path, (0.5 * samples).astype(np.float32), 16_000)


def write_sounds(folder: Path) -> None:
    """Write lists of recordings of tones, and ``flawed.tsv``, the training list with files that cannot be used."""
    import soundfile

    random = Random(1)
    for split, n in (("train", 16), ("dev", 3), ("test", 4)):
        lines = []
        for number in range(n):
            words = random.choices(list(TONES), k=random.randint(1, 4))
            ending = "flac" if number % 2 else "wav"
            sing(folder / f"{split}-{number}.{ending}", words)
            lines.append(f"{split}-{number}.{ending}\t{' '.join(words).capitalize()}.\n")
        (folder / f"{split}.tsv").write_text("".join(lines), encoding="utf-8")
    sing(folder / "long.wav", ["low"] * 12)
    soundfile.write(folder / "silent.wav", np.zeros(1000, np.float32), 16_000)
    (folder / "bad.wav").write_bytes(b"no sound")
    with (folder / "flawed.tsv").open("w", encoding="utf-8") as stream:
        stream.write((folder / "train.tsv").read_text(encoding="utf-8"))
        stream.write("long.wav\tlow\nsilent.wav\tlow\nbad.wav\tlow\n")


response_task = partial(
    SmallTask,
    score="perplexity",
    validated=None,
    card=("perplexity per token of the best responses", "started from"),
    kind="ResponseModel",
    use=respond,
    text="train_prompts",
)
SMALL_TASKS = [
    SmallTask(
        name="translation",
        recipe=f"{ENCODER_DECODER}{GREEDY}{GRAMMAR}",
        score="sacrebleu",
        validated="bleu",
        card=("1 + 1 layers", "| sacrebleu |", "5 sentences"),
        kind="Translator",
        use=lambda translator, files: translator.translate(["The dog sleeps."]),
        mistakes=(NO_BEAM, ("model.decoder=masked", ("model.decoder", "'masked'", "'translation'"))),
        text="train_tsv",
    ),
    SmallTask(
        name="mask-predict",
        recipe=f'{ENCODER_DECODER}{GRAMMAR}data.task = "mask-predict"\nsearch.kind = "mask-predict"\n'
        "search.n_iterations = 2\nsearch.n_lengths = 1\nsearch.max_extra_tokens = 2\n",
        score="sacrebleu",
        validated="bleu",
        card=("1 + 1 layers", "| sacrebleu |"),
        kind="MaskPredictTranslator",
        use=lambda translator, files: translator.translate(["The dog sleeps."]),
        mistakes=(
            ("search.kind=beam", ("task = 'mask-predict'", "'beam'")),
            ("model.block_size=4", ("task = 'mask-predict'",)),
            ("model.system=recurrent", ("task = 'mask-predict'",)),
        ),
        text="train_tsv",
    ),
    SmallTask(
        name="parsing",
        recipe=f'{ENCODER_DECODER}{GREEDY}{GRAMMAR}data.task = "parsing"\nmodel.embeddings = "separate"\n'
        "data.shared_vocabulary = false\n",
        score="f1",
        validated="f1",
        card=("| f1 |", "| errors | 0 | 0 |", "parsing en"),
        kind="Parser",
        use=lambda parser, files: list(map(str, parser.parse(["The dog sleeps ."]))),
        mistakes=(
            NO_BEAM,
            ("data.dev_tsv=few.tsv", ("dev_trees", "'parsing'")),
            ("data.shared_vocabulary=true", ("task = 'parsing'", "shared_vocabulary = false")),
            ("data.masks=true", ("masks", "'parsing'")),
        ),
        text="train_trees",
    ),
    SmallTask(
        name="causal-lm",
        recipe=f'{DECODER}{ENGLISH}data.task = "causal-lm"\nmodel.n_positions = 32\n',
        score="bits_per_byte",
        validated="bits_per_byte",
        card=("a window of 32 tokens", "bits per byte"),
        kind="CausalLanguageModel",
        use=lambda model, files: [each.text for each in model.generate(["The"], max_tokens=4)],
        mistakes=(DECODER_ONLY, ("model.output=scalar", ("model.output", "'scalar'", "'causal-lm'"))),
        text="train_text",
    ),
    SmallTask(
        name="masked-lm",
        recipe=f'{DECODER}{ENGLISH}data.task = "masked-lm"\nmodel.n_positions = 32\nmodel.is_causal = false\n',
        score="perplexity",
        validated=None,
        card=("a window of 32 tokens", "perplexity per target"),
        kind="MaskedLanguageModel",
        use=lambda model, files: [each.text for each in model.fill(["The <mask> sleeps."])],
        mistakes=(
            DECODER_ONLY,
            ("model.is_causal=true", ("is_causal = false",)),
            ("model.n_positions=1", ("at least 2",)),
        ),
        text="train_text",
    ),
    SmallTask(
        name="span-corruption",
        recipe=f'{ENCODER_DECODER}{GREEDY}{ENGLISH}data.task = "span-corruption"\ndata.max_length = 32\n',
        score="perplexity",
        validated=None,
        card=("1 + 1 layers", "perplexity per target"),
        kind="SpanLanguageModel",
        use=lambda model, files: [each.text for each in model.fill(["The <mask> sleeps."])],
        mistakes=(
            ("data.shared_vocabulary=false", ("shared_vocabulary",)),
            ("model.system=recurrent", ("'transformer'",)),
        ),
        text="train_text",
    ),
    SmallTask(
        name="pixels",
        recipe=f'{DECODER}data.task = "pixels"\ndata.corpus = "digits"\ndata.tokenizer = "characters"\n'
        "data.vocab_size = 400\ndata.max_pairs = 40\nmodel.n_positions = 68\n",
        score="bits_per_dimension",
        validated="bits_per_dimension",
        card=("a window of 68 tokens", "bits per dimension"),
        kind="PixelModel",
        use=lambda model, files: model.draw([3], seed=2).tolist(),
        mistakes=(
            CAUSAL,
            ("data.corpus=grammar", ("digits", "grammar")),
            ("data.tokenizer=bpe", ("characters", "bpe")),
            ("model.n_positions=67", ("model.n_positions", 67, 68)),
        ),
        text="digits",
        needs="sklearn",
    ),
    response_task(
        name="sft",
        recipe=f'{RESPONSES}{FROM}data.task = "sft"\ntraining.lr_factor = 3.0\n',
        mistakes=(CAUSAL, WINDOW),
        starts_from="causal-lm",
    ),
    SmallTask(
        name="reward",
        recipe=f'{RESPONSES}{FROM}data.task = "reward"\n',
        score="accuracy",
        validated="accuracy",
        card=("pairs of responses in the right order", "started from"),
        kind="RewardModel",
        use=lambda model, files: model.rate([(PROMPT, "The dog does not sleep.")]),
        mistakes=(CAUSAL, WINDOW),
        text="train_prompts",
        starts_from="sft",
    ),
    response_task(
        name="dpo",
        recipe=f'{RESPONSES}{FROM}data.task = "dpo"\n',
        mistakes=(CAUSAL, WINDOW),
        starts_from="sft",
    ),
    response_task(
        name="ppo",
        recipe=f'{RESPONSES}{FROM}{ROLLOUTS}data.task = "ppo"\nalignment.batch_size = 4\nalignment.n_passes = 2\n',
        mistakes=(
            CAUSAL,
            WINDOW,
            NO_ROOM,
            ("alignment.rollout_size=10", ("multiple of batch_size",)),
        ),
        starts_from="sft",
        stops=(2, 3, 5),  # between rollouts of four updates, and within
    ),
    response_task(
        name="reinforce",
        recipe=f'{RESPONSES}{FROM}{ROLLOUTS}data.task = "reinforce"\nalignment.batch_size = 8\n'
        "alignment.n_samples = 4\n",
        mistakes=(
            CAUSAL,
            WINDOW,
            NO_ROOM,
            ("alignment.n_samples=1", ("n_samples of at least 2",)),
            ("alignment.batch_size=4", ("one update",)),
        ),
        starts_from="sft",
    ),
    SmallTask(
        name="image-to-text",
        recipe=f'{ENCODER_DECODER}{GREEDY}{MEDIA}data.task = "image-to-text"\nmodel.source = "patches"\n'
        "model.source_width = 8\nmodel.patch_height = 4\nmodel.patch_width = 4\ndata.image_height = 8\n"
        "data.max_image_width = 60\n",
        score="character_error_rate",
        validated="character_error_rate",
        card=("patches of 4 x 4 pixels", "| character_error_rate |"),
        kind="Reader",
        use=lambda reader, files: reader.read([files / "test-0.png", files / "test-1.png"]),
        mistakes=(("data.corpus=multi30k", ("multi30k",)),),
        text="train_media",
        write_files=write_images,
        needs="PIL",
    ),
    SmallTask(
        name="speech-to-text",
        recipe=f'{ENCODER_DECODER}{GREEDY}{MEDIA}data.task = "speech-to-text"\nmodel.source = "frames"\n'
        'model.source_width = 20\ndata.direction = "en-en"\ndata.n_bands = 20\ndata.max_seconds = 1.0\n'
        "training.feature_masks = 1\ntraining.ctc_weight = 0.5\n",
        score="word_error_rate",
        validated="word_error_rate",
        card=("frames of 20 mel bands", "| word_error_rate |"),
        kind="Transcriber",
        use=lambda transcriber, files: transcriber.transcribe([files / "test-0.wav", files / "test-1.flac"]),
        mistakes=(("data.corpus=multi30k", ("multi30k",)),),
        text="train_media",
        write_files=write_sounds,
        needs="soundfile",
    ),
]
OF_NAME = {task.name: task for task in SMALL_TASKS}


class SmallRuns:
    """The runs of the small recipes by task, each trained when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._runs = folder, dict[str, SmallRun]()

    def __getitem__(self, name: str) -> SmallRun:
        task = OF_NAME[name]
        if task.needs is not None:
            pytest.importorskip(task.needs)
        if name not in self._runs:
            models = {} if task.starts_from is None else {"model": self[task.starts_from].model}
            if "{reward_model}" in task.recipe:
                models["reward_model"] = self["reward"].model
            self._runs[name] = run_once(task, self.folder / name, models=models)
        return self._runs[name]
