"""The curves: peaks of equation 3, sinusoids as rotations, and scores by sentence length."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from messages import naming
from transduce.errors import DataError
from transduce.inference import Translator
from transduce.model import sinusoid
from transduce.text import BOS_ID, EOS_ID, Tokenizers, normalise, train_bpe
from transduce_paper import ARTEFACTS, Experiments, Request, write_report
from transduce_paper.curves import deviation_of_shift, peak, shift_matrix
from transduce_paper.curves.extrapolation import CLASSES, MAX_TRAINED, by_length, experiment, pairs_of_classes


@pytest.fixture(scope="module")
def experiments(tmp_path_factory: pytest.TempPathFactory) -> Experiments:
    """Experiments shared by all tests."""
    folder = tmp_path_factory.mktemp("experiments")
    return Experiments(folder / "runs", folder / "work", scale="test")


def test_the_peaks_of_equation_3() -> None:
    assert peak(512, 4000) == (4000, pytest.approx(512**-0.5 * 4000**-0.5))
    assert f"{peak(512, 4000)[1]:.2e} {peak(1024, 4000)[1]:.2e}" == "6.99e-04 4.94e-04"
    assert peak(512, 8000)[0] == 8000


@pytest.mark.parametrize("k", [0, 1, 7, 500])
def test_shift_matrix_is_a_rotation(k: int) -> None:
    d_model = 16
    matrix = shift_matrix(k, d_model)
    assert deviation_of_shift(matrix, k, 1000) < 1e-12
    torch.testing.assert_close(matrix, torch.linalg.matrix_power(shift_matrix(1, d_model), k))
    torch.testing.assert_close(matrix @ matrix.T, torch.eye(d_model, dtype=torch.float64))
    # As complex numbers cos + i sin, a shift is a product with e^(i k w).
    pe = sinusoid(20, d_model).numpy()
    w = 10000.0 ** (-np.arange(0, d_model, 2) / d_model)
    moved = (pe[:, 1::2] + 1j * pe[:, 0::2]) * np.exp(1j * k * w)
    np.testing.assert_allclose(pe @ matrix.numpy().T, np.stack((moved.imag, moved.real), axis=-1).reshape(20, -1))


def test_a_wrong_matrix_has_a_large_deviation() -> None:
    assert deviation_of_shift(shift_matrix(4, 16), 3, 100) > 0.1
    assert deviation_of_shift(shift_matrix(3, 16).T, 3, 100) > 0.1


def test_the_two_experiments_differ_in_their_positions_only(tmp_path: Path) -> None:
    experiments = Experiments(tmp_path, tmp_path, scale="cpu")
    one, other = (experiment(experiments, positions) for positions in ("sinusoidal", "learned"))
    assert one.name != other.name
    assert one.config.model.model_copy(update={"positions": "learned"}) == other.config.model
    assert (one.config.data, one.config.training, one.config.search) == (
        other.config.data,
        other.config.training,
        other.config.search,
    )
    assert one.config.data.max_length == MAX_TRAINED == CLASSES[0].longest
    assert one.config.model.n_positions > CLASSES[-1].longest + one.config.search.max_extra_tokens


def test_pairs_are_grouped_by_their_longer_side() -> None:
    tokenizer = train_bpe(["A small dog sees the cat .", "Ein kleiner Hund sieht die Katze ."], vocab_size=300)
    classes = pairs_of_classes(Tokenizers(tokenizer, tokenizer), n_pairs=60, n_in_class=3)
    assert [each.shortest for each in CLASSES[1:]] == [each.longest + 1 for each in CLASSES[:-1]]
    assert any(classes)
    for each, pairs in zip(CLASSES, classes, strict=True):
        assert len(pairs) <= 3
        for pair in pairs:
            assert each.shortest <= max(len(tokenizer.encode(normalise(side))) + 1 for side in pair) <= each.longest


def test_scores_by_length_are_cached_beside_the_record(
    experiments: Experiments, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: list[str] = []
    monkeypatch.setattr(experiments, "log", log.append)
    short = experiment(experiments, "sinusoidal")
    scores = by_length(experiments, short)
    assert len(scores) == len(CLASSES)
    translator = Translator.load(experiments.model_folder(short))
    for each, pairs in zip(scores, pairs_of_classes(translator.tokenizers, n_pairs=300, n_in_class=2), strict=True):
        nats, n_tokens = 0.0, 0
        for src, tgt in pairs:  # one by one, so without padding
            src_ids, tgt_ids = translator.tokenizers.src.encode(src), translator.tokenizers.tgt.encode(tgt)
            src_BS, tgt_BT = torch.tensor([[*src_ids, EOS_ID]]), torch.tensor([[BOS_ID, *tgt_ids]])
            with torch.no_grad():
                log_p_TV = translator.model.logits(translator.model(src_BS, tgt_BT)).log_softmax(dim=-1)
            nats -= float(log_p_TV.gather(1, torch.tensor([[*tgt_ids, EOS_ID]]).T).sum())
            n_tokens += len(tgt_ids) + 1
        assert each.sentences == 2
        assert each.perplexity == pytest.approx(math.exp(nats / n_tokens), rel=1e-4)
    assert any(short.name in line for line in log)
    log.clear()
    assert by_length(experiments, short) == scores
    assert log == []
    record = experiments.record_path(short)
    cache = record.with_suffix(".by_length.json")
    original = cache.read_text(encoding="utf-8")
    weights = experiments.run(short).weights_sha256
    for changed in (original.replace(weights, "0" * 64), original.replace('"n_in_class": 2', '"n_in_class": 3')):
        assert changed != original
        cache.write_text(changed, encoding="utf-8")  # changed weights or settings: measured again
        assert by_length(experiments, short) == scores
        assert any(short.name in line for line in log)
        assert cache.read_text(encoding="utf-8") == original
        log.clear()
    cache.write_text(original.replace('"bleu"', '"blue"'), encoding="utf-8")
    with pytest.raises(DataError, match=naming(short.name, "'blue'")):
        by_length(experiments, short)
    cache.write_text(original.replace('"by_length"', '"by_size"'), encoding="utf-8")
    with pytest.raises(DataError, match=naming("by_length")):
        by_length(experiments, short)
    cache.write_text(original, encoding="utf-8")


def test_short_report(experiments: Experiments, tmp_path: Path) -> None:
    report = ARTEFACTS["curves"](experiments, Request())
    names = {path.name for path in write_report(report, tmp_path / "out")}
    assert names == {
        "curves.md",
        "curves-schedule.csv",
        "curves-shifts.csv",
        "curves-lengths.csv",
        "curves-schedule.svg",
        "curves-sinusoids.svg",
        "curves-lengths.svg",
    }
    with (tmp_path / "out" / "curves-shifts.csv").open(encoding="utf-8", newline="") as lines:
        assert all(float(row["largest deviation"]) < 1e-11 for row in csv.DictReader(lines))
    with (tmp_path / "out" / "curves-lengths.csv").open(encoding="utf-8", newline="") as lines:
        assert [row["tokens"] for row in csv.DictReader(lines)] == [str(each) for each in CLASSES]
