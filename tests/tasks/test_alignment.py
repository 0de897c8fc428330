"""The pipeline from base model to PPO on the built-in corpus: its models, data and errors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from small_recipes import SmallRuns
from task_suite import SmallRun

from run_records import records
from said import says
from transduce.config import TrainingConfig
from transduce.corpora.grammar.instructions import generate_instructions
from transduce.data.responses import RankingBatches, prompt_of, responses_of
from transduce.errors import ConfigError, TransduceError
from transduce.inference import LanguageModel, ResponseModel, RewardModel, best_of_n
from transduce.inference.folder import read_saved_weights
from transduce.model.weights_file import read_tensors
from transduce.preferences.rankings import DirectPreference, RewardObjective
from transduce.recipes import read_recipe
from transduce.runs import read_run_config, train
from transduce.search.sampling import Sampling
from transduce.tasks import open_prepared, task_named
from transduce.tasks.prompts import ppo
from transduce.tasks.prompts.response_task import blocked_ids
from transduce.tasks.prompts.reward import margins_of_pairs
from transduce.text import BOS_ID, EOS_ID
from transduce.training import DistributedContext, Score, UpdateRecord, ValidationRecord, load_weights

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


@pytest.mark.parametrize(("name", "of_validation"), [("reward", set()), ("dpo", {"kl"})])
def test_accuracy_and_margin_are_recorded(stages: Mapping[str, SmallRun], name: str, of_validation: set[str]) -> None:
    for record in records(stages[name].folder, "update"):
        assert 0 <= record["accuracy"] <= 1
        assert {"margin"} <= record.keys()
    for record in records(stages[name].folder, "validation"):
        assert {"accuracy", "margin"} | of_validation <= record.keys()


def test_dpo_starts_at_the_reference(stages: Mapping[str, SmallRun]) -> None:
    """Equal policies have no divergence and no margin; another policy has the mean log ratio of its own draws."""
    prepared = open_prepared(stages["dpo"].folder / "store")
    assert prepared.dev is not None
    start, config = LanguageModel.load(stages["sft"].model).model, read_run_config(stages["dpo"].folder)
    objective = DirectPreference(start, beta=0.3, blocked_ids=blocked_ids(config.model))
    prompts = [prompt_of(prepared.dev, row) for row in range(len(prepared.dev))]
    batches = RankingBatches(prepared.dev, max_tokens=400, seed=0)
    assert objective.divergence(prompts, max_tokens=6, seed=0) == 0
    assert not margins_of_pairs(objective, batches).any()
    policy, last = LanguageModel.load(stages["dpo"].model).model, stages["dpo"].folder / "checkpoints/update-00000006"
    load_weights(policy, read_tensors(last / "model.safetensors"), where=last)
    after = objective.of(policy)
    kl = after.divergence(prompts, max_tokens=6, seed=0)
    assert kl == after.divergence(prompts, max_tokens=6, seed=0) != 0
    margins_P, losses = margins_of_pairs(after, batches), list[float]()
    for index in range(batches.n_batches(0)):
        batch = batches.batch(0, index)
        of_rankings = torch.split(after.scores(batch), batch.sizes)
        losses += torch.cat([after.pair_losses(scores_J) for scores_J in of_rankings]).tolist()
    assert losses == pytest.approx(torch.log1p(torch.exp(-margins_P)).tolist(), abs=1e-5)  # of the logistic model
    *_, record = records(stages["dpo"].folder, "validation")
    assert record["margin"] == pytest.approx(float(margins_P.mean()) / 3, rel=0.01)  # beta was 0.1
    assert record["accuracy"] == pytest.approx(float((margins_P > 0).float().mean()))


def test_measured_values_are_means_over_all_pairs_since_they_were_taken() -> None:
    objective = RewardObjective(torch.nn.Identity())
    objective.scores = lambda batch: batch.rewards  # type: ignore[method-assign,attr-defined]
    for rewards, sizes in (([3.0, 1.0], [2]), ([0.0, 1.0, 2.0, 5.0, 4.0], [3, 2])):
        objective(SimpleNamespace(rewards=torch.tensor(rewards), sizes=sizes))  # type: ignore[arg-type]
    again = RewardObjective(torch.nn.Identity())
    again.load_state(objective.state())  # as in a checkpoint
    for each in (objective, again):
        assert each.measured() == {"accuracy": (2.0, 5), "margin": (2 - 1 - 2 - 1 + 1, 5)}
        assert each.measured() == {}


def test_what_is_no_loss_of_tokens_has_no_perplexity(
    stages: Mapping[str, SmallRun], capsys: pytest.CaptureFixture[str]
) -> None:
    from transduce.cli.progress import TrainingProgress

    folder = stages["reward"].folder
    written = [
        (folder / "metrics.jsonl").read_text(encoding="utf-8"),
        (folder / "model" / "README.md").read_text(encoding="utf-8"),
        *(path.read_bytes().decode("latin-1") for path in (folder / "tensorboard").glob("*")),
    ]
    assert not any("perplexity" in each for each in written)
    assert re.search(r" \d+ rankings, ", written[1])
    assert "target tokens" not in written[1]
    update = UpdateRecord(2, 0, 0.7, 0.7, 0.1, 1.0, 5, 5, 9.0, 1.0, is_logged=True, measures={"accuracy": 0.75})
    of_pairs = ValidationRecord(2, 0.69, {"accuracy": Score(0.75)}, True, 1.0, is_of_tokens=False)
    of_tokens = ValidationRecord(2, 0.69, {}, True, 1.0)
    with TrainingProgress(TrainingConfig(), counted="rankings") as progress:
        for record in (update, of_pairs, of_tokens):
            progress(record)
    *shown, last = capsys.readouterr().err.splitlines()
    assert not any("perplexity" in line or "tokens" in line for line in shown)
    assert says(shown[-1], "update 2", "loss", "0.6900", "ACCURACY", "0.75")
    assert says(last, "dev perplexity", "1.994")


def test_best_of_n_takes_the_highest_reward(stages: Mapping[str, SmallRun]) -> None:
    model, rater = LanguageModel.load(stages["sft"].model), RewardModel.load(stages["reward"].model)
    assert isinstance(model, ResponseModel)
    prompts = ["Negate: The dog sleeps.", "Past: He sings."]
    best = best_of_n(model, rater, prompts, n=4, max_tokens=6)
    drawn = model.generate([prompt for prompt in prompts for _ in range(4)], max_tokens=6)
    for number, prompt in enumerate(prompts):
        rewards = rater.rate([(prompt, each.text) for each in drawn[4 * number : 4 * number + 4]])
        assert rater.rate([(prompt, best[number].text)])[0] == pytest.approx(max(rewards), abs=1e-4)
    shortest = min((each.text for each in drawn[:4]), key=lambda text: len(rater._encoded(prompts[0], text)[1]))
    rater.window = sum(map(len, rater._encoded(prompts[0], shortest)))
    [chosen] = best_of_n(model, rater, prompts[:1], n=4, max_tokens=6)
    assert rater.rate([(prompts[0], chosen.text)])  # the others are too long for its window
    rater.window = 1
    assert len(best_of_n(model, rater, prompts, n=4, max_tokens=6)) == 2


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
    with pytest.raises(TransduceError, match="for sft, not a reward model"):
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


def test_scores_are_of_answered_prompts(stages: Mapping[str, SmallRun], tmp_path: Path) -> None:
    """A prompt without a response is no reason to prefer a policy that writes none."""
    prompts = [{"prompt": f"Negate: {who} sleeps."} for who in ("He", "She", "Anna")]
    for name, answer in (("train", {}), ("dev", {"response": "Anna does not sleep."}), ("test", {})):
        lines = [json.dumps(each) for each in (*prompts[:2], prompts[2] | answer)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    files = [f"data.{name}_prompts='{tmp_path / name}.jsonl'" for name in ("train", "dev", "test")]
    log = list[str]()
    result = train(
        stages["ppo"].config("data.corpus=files", *files, "training.max_updates=1"), tmp_path / "run", log=log.append
    )
    prepared = open_prepared(tmp_path / "run" / "store")
    assert (len(prepared.train), None if prepared.dev is None else len(prepared.dev)) == (3, 1)
    assert (result.scored_split, list(prepared.text_names)) == ("dev", ["dev"])
    assert says("\n".join(log), tmp_path / "test.jsonl", "no prompt has a response")


def test_a_policy_is_trained_in_one_process(stages: Mapping[str, SmallRun], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="one process"):
        train(stages["ppo"].config(), tmp_path / "run", distributed=DistributedContext(rank=0, n=2))
    two = DistributedContext(rank=0, n=2)
    with pytest.raises(ConfigError, match="--shard"):
        train(stages["dpo"].config(), tmp_path / "run", distributed=two, is_sharded=True)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["ppo", "reinforce"])
def test_a_start_reads_the_reward_model_and_builds_batches_once(
    stages: Mapping[str, SmallRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    read, built, task = list[Path](), list[object](), task_named(name)
    model_of, batches_of = ppo.read_model_folder, task.batches
    monkeypatch.setattr(ppo, "read_model_folder", lambda folder, **on: (read.append(folder), model_of(folder, **on))[1])
    monkeypatch.setattr(task, "batches", lambda *given: (built.append(given), batches_of(*given))[1])
    train(stages[name].config(), tmp_path / "run", store=stages[name].folder / "store")
    assert (len(read), len(built)) == (1, 1)
