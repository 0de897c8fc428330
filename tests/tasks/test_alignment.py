"""The pipeline from base model to PPO on the built-in corpus: its models, data and errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from small_recipes import SmallRuns
from task_suite import SmallRun, records

from transduce.corpora.grammar.instructions import generate_instructions
from transduce.data.responses import prompt_of, responses_of
from transduce.errors import ConfigError, TransduceError
from transduce.recipes import read_recipe
from transduce.search.sampling import Sampling
from transduce.tasks import LanguageModel, ResponseModel, RewardModel, best_of_n, open_prepared, train
from transduce.tasks.model_folder import read_saved_weights
from transduce.text import BOS_ID, EOS_ID
from transduce.training import DistributedContext

STAGES = ("causal-lm", "sft", "reward", "dpo", "ppo", "reinforce")


@pytest.fixture(scope="module")
def stages(small_runs: SmallRuns) -> Mapping[str, SmallRun]:
    """The runs of all stages."""
    return {name: small_runs[name] for name in STAGES}


def test_each_stage_ends_with_a_model_that_responds_or_rates(stages: Mapping[str, SmallRun]) -> None:
    for name in ("sft", "dpo", "ppo", "reinforce"):
        model = LanguageModel.load(stages[name].model)
        assert isinstance(model, ResponseModel)
        (response,) = model.generate(["Negate: The dog sleeps."], sampling=Sampling(temperature=0.0), max_tokens=5)
        assert response.prompt == "Negate: The dog sleeps."
    reward_model = RewardModel.load(stages["reward"].model)
    rewards = reward_model.rate([("Negate: The dog sleeps.", each) for each in ("The dog does not sleep.", "Dog.")])
    assert len(set(rewards)) == 2


def test_ancestry_names_every_stage(stages: Mapping[str, SmallRun]) -> None:
    ancestry = read_saved_weights(stages["ppo"].model).ancestry
    assert [ancestor.task for ancestor in ancestry] == ["causal-lm", "sft", "ppo"]


def test_a_prompt_ends_where_the_response_begins(stages: Mapping[str, SmallRun]) -> None:
    prepared = open_prepared(stages["sft"].folder / "store")
    store, tokenizer = prepared.train, prepared.tokenizers.src
    instructions = list(generate_instructions("train", n=40, seed=1))
    assert len(store) == 40
    for row, instruction in enumerate(instructions):
        prompt, (response,) = prompt_of(store, row), responses_of(store, row)
        assert (prompt[0], response[-1]) == (BOS_ID, EOS_ID)
        assert tokenizer.decode(prompt[1:-1]) == instruction.prompt
        assert tokenizer.decode(response[:-1]) == instruction.response


def test_rankings_have_several_responses_of_the_model(stages: Mapping[str, SmallRun]) -> None:
    store = open_prepared(stages["reward"].folder / "store").train
    assert all(len(responses_of(store, row)) >= 2 for row in range(len(store)))


def test_rewards_of_the_training_responses_are_normalised(stages: Mapping[str, SmallRun]) -> None:
    prepared = open_prepared(stages["reward"].folder / "store")
    model, store = RewardModel.load(stages["reward"].model), prepared.train
    codec = model.codec
    pairs = [
        (codec.decode(prompt_of(store, row)).removesuffix("\n"), codec.decode(response))
        for row in range(len(store))
        for response in responses_of(store, row)
    ]
    rewards = torch.tensor(model.rate(pairs))
    assert float(rewards.mean()) == pytest.approx(0, abs=0.05)
    assert float(rewards.std(correction=0)) == pytest.approx(1, abs=0.05)


def test_ppo_starts_at_the_reference(stages: Mapping[str, SmallRun]) -> None:
    """In the first rollout the divergence is 0; in its first update no token is clipped."""
    first = records(stages["ppo"].folder, "update")[0]
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


def test_best_of_n_takes_the_highest_reward(stages: Mapping[str, SmallRun]) -> None:
    model, rater = LanguageModel.load(stages["sft"].model), RewardModel.load(stages["reward"].model)
    assert isinstance(model, ResponseModel)
    prompts = ["Negate: The dog sleeps.", "Past: He sings."]
    best = best_of_n(model, rater, prompts, n=4, max_tokens=6)
    drawn = model.generate([prompt for prompt in prompts for _ in range(4)], max_tokens=6)
    for number, prompt in enumerate(prompts):
        rewards = rater.rate([(prompt, each.text) for each in drawn[4 * number : 4 * number + 4]])
        assert rater.rate([(prompt, best[number].text)])[0] == pytest.approx(max(rewards), abs=1e-4)


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
    stages: Mapping[str, SmallRun], tmp_path: Path, lines: Sequence[str], message: str
) -> None:
    path = tmp_path / "rankings.jsonl"
    path.write_text("\n".join(lines))
    config = stages["sft"].config("data.corpus=files", f"data.train_prompts='{path}'")
    with pytest.raises(TransduceError, match=message):
        train(config, tmp_path / "run")


def test_own_rankings(stages: Mapping[str, SmallRun], tmp_path: Path) -> None:
    """Equal responses count once; a ranking of one response is left out and counted."""
    path, log = tmp_path / "rankings.tsv", list[str]()
    path.write_text("say a\ta\tb\ta\nsay b\tb\tb\nsay c\tc\\nd\te\n")
    config = stages["reward"].config("data.corpus=files", f"data.train_prompts='{path}'")
    train(config, tmp_path / "run", log=log.append)
    assert any("2 prompts, 1 with fewer than 2 different responses" in line for line in log)
    prepared = open_prepared(tmp_path / "run" / "store")
    tokenizer = prepared.tokenizers.src
    assert [len(responses_of(prepared.train, row)) for row in (0, 1)] == [2, 2]
    first, _ = responses_of(prepared.train, 1)
    assert tokenizer.decode(first[:1]) == "c"


def test_a_model_of_another_kind_is_refused(stages: Mapping[str, SmallRun], tmp_path: Path) -> None:
    with pytest.raises(TransduceError, match="reward"):
        ResponseModel.load(stages["reward"].model)
    with pytest.raises(TransduceError, match="sft"):
        RewardModel.load(stages["sft"].model)
    ppo = stages["ppo"]
    config = ppo.config(f"alignment.reward_model='{stages['sft'].model}'")
    with pytest.raises(TransduceError, match="for sft, not for reward"):
        train(config, tmp_path / "run", store=ppo.folder / "store")


@pytest.mark.parametrize(
    ("task", "left_out", "message"),
    [
        ("ppo", ("alignment.reward_model",), "alignment.reward_model should name"),
        ("reward", ("data.tokenizer_from", "training.init_from"), "name one with --from"),
    ],
)
def test_a_stage_needs_the_models_before_it(
    stages: Mapping[str, SmallRun], tmp_path: Path, task: str, left_out: tuple[str, ...], message: str
) -> None:
    lines = stages[task].recipe.read_text(encoding="utf-8").splitlines()
    recipe = tmp_path / "recipe.toml"
    recipe.write_text("\n".join(line for line in lines if not line.startswith(left_out)), encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        train(read_recipe(recipe), tmp_path / "run", store=stages["ppo"].folder / "store" if task == "ppo" else None)


def test_generate_prints_responses(stages: Mapping[str, SmallRun], transduce: Callable[..., Any]) -> None:
    sft, reward = stages["sft"].model, stages["reward"].model
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
        [stages["causal-lm"].model, "--best-of", "3", "--reward-model", reward],
        [reward],
    ):
        outcome = transduce("generate", *arguments, stdin=prompts)
        assert (outcome.code, len(outcome.err.splitlines())) == (1, 1), outcome.err


def test_prompts_alone_are_enough_for_ppo(stages: Mapping[str, SmallRun], tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text("\n".join(json.dumps({"prompt": f"Negate: {who} sleeps."}) for who in ("He", "She", "Anna")))
    files = "data.corpus=files", f"data.train_prompts='{path}'"
    train(stages["ppo"].config(*files, "training.max_updates=1"), tmp_path / "run")
    assert len(open_prepared(tmp_path / "run" / "store").train) == 3
    with pytest.raises(TransduceError, match="no "):
        train(stages["sft"].config(*files), tmp_path / "sft")


def test_a_policy_is_trained_in_one_process(stages: Mapping[str, SmallRun], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="one process"):
        train(stages["ppo"].config(), tmp_path / "run", distributed=DistributedContext(rank=0, n=2))
    assert not (tmp_path / "run").exists()
