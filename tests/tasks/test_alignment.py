"""The pipeline from base model to PPO on the built-in corpus: small, but whole; its data, resume and errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from transduce.config import RunConfig
from transduce.corpora.grammar.instructions import generate_instructions
from transduce.data.responses import prompt_of, responses_of
from transduce.errors import ConfigError, TransduceError
from transduce.recipes import preset, with_settings
from transduce.search.sampling import Sampling
from transduce.tasks import LanguageModel, ResponseModel, RewardModel, best_of_n, open_prepared, prepare, train
from transduce.tasks.model_folder import read_saved_weights
from transduce.text import BOS_ID, EOS_ID
from transduce.training import DistributedContext

SMALL = (
    "model.system=language-model", "model.n_layers=1", "model.d_model=32", "model.d_ff=32", "model.n_heads=2",
    "model.d_k=16", "model.d_v=16", "model.p_drop=0.0", "model.norm=pre", "model.n_positions=192",
    "data.corpus=grammar", "data.n_pairs=60", "data.vocab_size=400", "data.max_length=192", "training.max_updates=4",
    "training.max_tokens_per_batch=1024", "training.warmup_steps=4", "training.eps_ls=0.0", "training.average_last=1",
    "training.validate_every_updates=4", "training.checkpoint_every_updates=2", "training.log_every_updates=2",
)  # fmt: skip
ROLLOUTS = ("alignment.rollout_size=8", "alignment.batch_size=4", "alignment.n_passes=2", "alignment.max_response=6")


HELD_OUT = "Negate: The dog sleeps.\tThe dog does not sleep.\tThe dog.\nPast: He sings.\tHe sang.\tHe sung.\n"


def config_of(task: str, folder: Path, *settings: str) -> RunConfig:
    """The run of a task; dev and test are two prompts, in a file in ``folder``."""
    if task == "causal-lm":
        own = ["data.language=en"]
    else:
        path = folder / "held-out.tsv"
        path.write_text(HELD_OUT, encoding="utf-8")
        own = [f"data.{split}_prompts='{path}'" for split in ("dev", "test")]
    return with_settings(preset("tiny"), [*SMALL, f"data.task={task}", *own, *settings])


def from_model(folder: Path) -> tuple[str, str]:
    return f"training.init_from='{folder}'", f"data.tokenizer_from='{folder}'"


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """The run folders of all stages."""
    folder = tmp_path_factory.mktemp("alignment")
    runs: dict[str, Path] = {}

    def run(name: str, task: str, *settings: str) -> None:
        runs[name] = folder / name
        train(config_of(task, folder, *settings), runs[name])

    run("base", "causal-lm")
    run("sft", "sft", *from_model(folder / "base" / "model"), "training.max_updates=30", "training.lr_factor=3.0")
    start = from_model(folder / "sft" / "model")
    run("reward", "reward", *start, "data.n_pairs=20")
    run("dpo", "dpo", *start, "data.n_pairs=20")
    rewarded = f"alignment.reward_model='{folder / 'reward' / 'model'}'"
    run("ppo", "ppo", *start, *ROLLOUTS, rewarded, "training.max_updates=6")
    reinforce = ("alignment.n_samples=4", "alignment.batch_size=8", "training.max_updates=3")
    run("reinforce", "reinforce", *start, *ROLLOUTS, rewarded, *reinforce)
    return runs


def test_each_stage_ends_with_a_model_that_responds_or_rates(stages: Mapping[str, Path]) -> None:
    for name in ("sft", "dpo", "ppo", "reinforce"):
        model = LanguageModel.load(stages[name] / "model")
        assert isinstance(model, ResponseModel)
        (response,) = model.generate(["Negate: The dog sleeps."], sampling=Sampling(temperature=0.0), max_tokens=5)
        assert response.prompt == "Negate: The dog sleeps."
    reward_model = RewardModel.load(stages["reward"] / "model")
    rewards = reward_model.rate([("Negate: The dog sleeps.", each) for each in ("The dog does not sleep.", "Dog.")])
    assert len(set(rewards)) == 2


def test_ancestry_names_every_stage(stages: Mapping[str, Path]) -> None:
    ancestry = read_saved_weights(stages["ppo"] / "model").ancestry
    assert [ancestor.task for ancestor in ancestry] == ["causal-lm", "sft", "ppo"]


def test_a_prompt_ends_where_the_response_begins(stages: Mapping[str, Path]) -> None:
    prepared = open_prepared(stages["sft"] / "store")
    store, tokenizer = prepared.train, prepared.tokenizers.src
    instructions = list(generate_instructions("train", n=60, seed=1))
    assert len(store) == 60
    for row, instruction in enumerate(instructions):
        prompt, (response,) = prompt_of(store, row), responses_of(store, row)
        assert (prompt[0], response[-1]) == (BOS_ID, EOS_ID)
        assert tokenizer.decode(prompt[1:-1]) == instruction.prompt
        assert tokenizer.decode(response[:-1]) == instruction.response


def test_rankings_are_responses_of_the_model(stages: Mapping[str, Path], tmp_path: Path) -> None:
    prepared = open_prepared(stages["reward"] / "store")
    for row in range(len(prepared.train)):
        assert len(responses_of(prepared.train, row)) >= 2
    again = prepare(
        config_of("reward", tmp_path, *from_model(stages["sft"] / "model"), "data.n_pairs=20").data,
        tmp_path / "again",
    )
    assert again.fingerprint == prepared.fingerprint


def test_rewards_of_the_training_responses_are_normalised(stages: Mapping[str, Path]) -> None:
    prepared = open_prepared(stages["reward"] / "store")
    model, store = RewardModel.load(stages["reward"] / "model"), prepared.train
    codec = model.codec
    pairs = [
        (codec.decode(prompt_of(store, row)).removesuffix("\n"), codec.decode(response))
        for row in range(len(store))
        for response in responses_of(store, row)
    ]
    rewards = torch.tensor(model.rate(pairs))
    assert float(rewards.mean()) == pytest.approx(0, abs=0.05)
    assert float(rewards.std(correction=0)) == pytest.approx(1, abs=0.05)


def records_of(run: Path) -> Iterator[dict[str, Any]]:
    return map(json.loads, (run / "metrics.jsonl").read_text().splitlines())


def test_ppo_starts_at_the_reference(stages: Mapping[str, Path]) -> None:
    """In the first rollout the divergence is 0; in its first update no token is clipped."""
    first = next(record for record in records_of(stages["ppo"]) if record["kind"] == "update")
    assert first["kl"] == pytest.approx(0, abs=1e-5)
    assert first["length"] <= 6
    assert {
        "score",
        "reward",
        "kl",
        "beta",
        "finished",
        "entropy",
        "policy_loss",
        "value_loss",
        "clipped",
    } <= first.keys()


@pytest.mark.parametrize("stop_after", [2, 3, 5])  # between rollouts of 4 updates, and within
def test_ppo_resumes_bit_exactly(stages: Mapping[str, Path], tmp_path: Path, stop_after: int) -> None:
    settings = (
        *from_model(stages["sft"] / "model"), *ROLLOUTS, f"alignment.reward_model='{stages['reward'] / 'model'}'",
        "training.max_updates=6",
    )  # fmt: skip
    config, updates = config_of("ppo", tmp_path, *settings), [0]

    def count(record: Any) -> None:
        updates[0] = max(updates[0], record.update)

    result = train(config, tmp_path / "run", listeners=[count], should_stop=lambda: updates[0] >= stop_after)
    assert result.reason == "interrupted"
    train(config, tmp_path / "run", resume=True)
    expected, got = (
        (run / "checkpoints" / "update-00000006" / name).read_bytes()
        for run, name in ((stages["ppo"], "model.safetensors"), (tmp_path / "run", "model.safetensors"))
    )
    assert got == expected


def test_best_of_n_takes_the_highest_reward(stages: Mapping[str, Path]) -> None:
    model, rater = LanguageModel.load(stages["sft"] / "model"), RewardModel.load(stages["reward"] / "model")
    assert isinstance(model, ResponseModel)
    prompts = ["Negate: The dog sleeps.", "Past: He sings."]
    best = best_of_n(model, rater, prompts, n=4, max_tokens=6)
    drawn = model.generate([prompt for prompt in prompts for _ in range(4)], max_tokens=6)
    for number, prompt in enumerate(prompts):
        rewards = rater.rate([(prompt, each.text) for each in drawn[4 * number : 4 * number + 4]])
        assert rater.rate([(prompt, best[number].text)])[0] == pytest.approx(max(rewards), abs=1e-4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["data.task=ppo"], "alignment.reward_model should name"),
        (["data.task=ppo", "alignment.rollout_size=10", "alignment.batch_size=4"], "multiple of batch_size"),
        (["data.task=reinforce"], "n_samples of at least 2"),
        (
            ["data.task=reinforce", "alignment.n_samples=2", "alignment.batch_size=4", "alignment.rollout_size=8"],
            "one update",
        ),
        (["data.task=sft", "data.max_length=500"], "above the window"),
        (["data.task=reward"], "name one with --from"),
    ],
)
def test_settings_that_do_not_fit(
    stages: Mapping[str, Path], tmp_path: Path, settings: list[str], message: str
) -> None:
    given = [f"alignment.reward_model='{stages['reward'] / 'model'}'"] if "reward_model" not in message else []
    start = [] if "--from" in message else from_model(stages["sft"] / "model")
    with pytest.raises(ConfigError, match=message):
        train(config_of("sft", tmp_path, *start, *given, *settings), tmp_path / "run")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['{"prompt": "a"'], ":1 is not JSON"),
        (['{"prompt": "a", "response": "b"}', '{"response": "b"}'], ":2 should be an object"),
        (['{"prompt": "a", "responses": ["b", 3]}'], "should be a list of texts"),
        (['{"prompt": " ", "response": "b"}'], ":1 has an empty prompt"),
        (['{"prompt": "a", "responses": ["b", ""]}'], "empty response"),
        (['{"prompt": "a", "response": "b", "responses": []}'], "give one of them"),
    ],
)
def test_damaged_rankings_name_their_line(
    stages: Mapping[str, Path], tmp_path: Path, lines: Sequence[str], message: str
) -> None:
    path = tmp_path / "rankings.jsonl"
    path.write_text("\n".join(lines))
    config = config_of(
        "sft", tmp_path, *from_model(stages["sft"] / "model"), "data.corpus=files", f"data.train_prompts='{path}'"
    )
    with pytest.raises(TransduceError, match=message):
        train(config, tmp_path / "run")


def test_own_rankings(stages: Mapping[str, Path], tmp_path: Path) -> None:
    """Equal responses count once; a ranking of one response is left out and counted."""
    path, log = tmp_path / "rankings.tsv", list[str]()
    path.write_text("say a\ta\tb\ta\nsay b\tb\tb\nsay c\tc\\nd\te\n")
    config = config_of(
        "reward", tmp_path, *from_model(stages["sft"] / "model"), "data.corpus=files", f"data.train_prompts='{path}'"
    )
    train(config, tmp_path / "run", log=log.append)
    assert any("2 prompts, 1 with fewer than 2 different responses" in line for line in log)
    prepared = open_prepared(tmp_path / "run" / "store")
    tokenizer = prepared.tokenizers.src
    assert [len(responses_of(prepared.train, row)) for row in (0, 1)] == [2, 2]
    first, _ = responses_of(prepared.train, 1)
    assert tokenizer.decode(first[:1]) == "c"


def test_a_model_of_another_kind_is_refused(stages: Mapping[str, Path], tmp_path: Path) -> None:
    with pytest.raises(TransduceError, match="reward"):
        ResponseModel.load(stages["reward"] / "model")
    with pytest.raises(TransduceError, match="sft"):
        RewardModel.load(stages["sft"] / "model")
    config = config_of(
        "ppo", tmp_path, *from_model(stages["sft"] / "model"), f"alignment.reward_model='{stages['sft'] / 'model'}'"
    )
    with pytest.raises(TransduceError, match="for sft, not for reward"):
        train(config, tmp_path / "run")


def test_generate_prints_responses(stages: Mapping[str, Path], transduce: Callable[..., Any]) -> None:
    sft, reward = stages["sft"] / "model", stages["reward"] / "model"
    prompts = b"Negate: The dog sleeps.\nPast: He sings.\n"
    texts = transduce("generate", sft, "--max-tokens", "5", stdin=prompts).out.splitlines()
    lines = transduce("generate", sft, "--max-tokens", "5", "--json", stdin=prompts).out.splitlines()
    assert [json.loads(line)["text"].replace("\n", "\\n") for line in lines] == texts
    assert [json.loads(line)["prompt"] for line in lines] == prompts.decode().splitlines()
    several = transduce(
        "generate", sft, "--max-tokens", "5", "--samples", "3", "--json", stdin=prompts
    ).out.splitlines()
    assert [json.loads(line)["line"] for line in several] == [1, 1, 1, 2, 2, 2]
    assert len({json.loads(line)["text"] for line in several[:3]}) > 1
    best = transduce("generate", sft, "--max-tokens", "5", "--best-of", "3", "--reward-model", reward, stdin=prompts)
    assert len(best.out.splitlines()) == 2
    for arguments in (
        [sft, "--best-of", "3"],
        [sft, "--best-of", "3", "--reward-model", reward, "--beam", "2"],
        [sft, "--best-of", "3", "--reward-model", sft],
        [stages["base"] / "model", "--best-of", "3", "--reward-model", reward],
        [reward],
    ):
        outcome = transduce("generate", *arguments, stdin=prompts)
        assert (outcome.code, len(outcome.err.splitlines())) == (1, 1), outcome.err


def test_prompts_alone_are_enough_for_ppo(stages: Mapping[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text("\n".join(json.dumps({"prompt": f"Negate: {who} sleeps."}) for who in ("He", "She", "Anna")))
    files = "data.corpus=files", f"data.train_prompts='{path}'"
    rewarded = f"alignment.reward_model='{stages['reward'] / 'model'}'"
    start = from_model(stages["sft"] / "model")
    train(config_of("ppo", tmp_path, *start, *files, *ROLLOUTS, rewarded), tmp_path / "run")
    assert len(open_prepared(tmp_path / "run" / "store").train) == 3
    with pytest.raises(TransduceError, match="no "):
        train(config_of("sft", tmp_path, *start, *files), tmp_path / "sft")


def test_a_prompt_without_room_for_a_response_is_refused(stages: Mapping[str, Path], tmp_path: Path) -> None:
    rewarded = f"alignment.reward_model='{stages['reward'] / 'model'}'"
    settings = *from_model(stages["sft"] / "model"), *ROLLOUTS, rewarded, "alignment.max_response=180"
    with pytest.raises(ConfigError, match="the longest prompt has"):
        train(config_of("ppo", tmp_path, *settings), tmp_path / "run")


def test_a_policy_is_trained_in_one_process(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="one process"):
        train(config_of("ppo", tmp_path), tmp_path / "run", distributed=DistributedContext(rank=0, n=2))
    assert not (tmp_path / "run").exists()
