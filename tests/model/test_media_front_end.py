"""Patches and frames against NumPy and torch's convolution; padding and batches change nothing."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from said import naming
from transduce.config import DataConfig, RunConfig, TransformerConfig, config_from_mapping
from transduce.data.media import padded_features
from transduce.errors import ConfigError
from transduce.media.images import PIXEL_SCALE
from transduce.model import Transformer, cost_of, for_inference
from transduce.model.media import FrameFrontEnd, PatchFrontEnd, PatchPositions, StridedConvolution
from transduce.model.padding import PaddingInfo
from transduce.recipes import with_settings

SIZES = {
    "n_encoder_layers": 1, "n_decoder_layers": 1, "d_model": 16, "d_ff": 24, "n_heads": 2, "d_k": 8, "d_v": 8,
    "p_drop": 0.0, "src_vocab_size": 12, "tgt_vocab_size": 12,
}  # fmt: skip
PATCHES = TransformerConfig(source="patches", source_width=8, patch_height=4, patch_width=3, **SIZES)
FRAMES = TransformerConfig(source="frames", source_width=5, **SIZES)


def sinusoid(position: int, width: int) -> np.ndarray:
    """Section 3.5, channel by channel."""
    angles = [position / 10000 ** (2 * (channel // 2) / width) for channel in range(width)]
    return np.array([np.cos(a) if channel % 2 else np.sin(a) for channel, a in enumerate(angles)])


def test_patches_are_projected_and_have_places_in_two_dimensions() -> None:
    front_end = PatchFrontEnd(PATCHES).double()
    image = np.random.default_rng(1).integers(0, 256, (8, 9), np.uint8)  # rows, columns
    states, padding = front_end(torch.from_numpy(image.T.copy()).unsqueeze(0))
    assert (padding.n_real, states.shape) == (6, (6, 16))
    weight, bias = (each.detach().numpy() for each in (front_end.projection.weight, front_end.projection.bias))
    for position in range(6):
        column, row = divmod(position, 2)
        patch = image[4 * row : 4 * row + 4, 3 * column : 3 * column + 3]
        place = np.concatenate([sinusoid(column, 8), sinusoid(row, 8)])
        expected = weight @ (patch.T.flatten() * PIXEL_SCALE) + bias + place
        np.testing.assert_allclose(states[position].detach().numpy(), expected, atol=1e-7)


def test_rows_and_columns_are_told_apart() -> None:
    encoding = PatchPositions(8, n_rows=3)(torch.arange(12), 12)
    assert len({tuple(each) for each in encoding.tolist()}) == 12
    torch.testing.assert_close(encoding[0, :4], encoding[2, :4])  # of one column
    torch.testing.assert_close(encoding[1, 4:], encoding[4, 4:])  # of one row


def test_a_strided_convolution_is_torch_s() -> None:
    layer = StridedConvolution(5, 7).double()
    x = torch.randn(2, 12, 5, dtype=torch.float64)
    weight = layer.linear.weight.view(7, 5, 3)
    expected = torch.nn.functional.conv1d(x.transpose(1, 2), weight, layer.linear.bias, stride=2, padding=1)
    torch.testing.assert_close(layer(x), expected.relu().transpose(1, 2))


def test_frames_have_a_position_for_every_four() -> None:
    front_end = FrameFrontEnd(FRAMES).double()
    states, padding = front_end(torch.randn(1, 20, 5, dtype=torch.float64))
    assert (padding.n_real, states.shape) == (5, (5, 16))
    hidden = front_end.second(front_end.first(torch.zeros(1, 20, 5, dtype=torch.float64)))
    assert hidden.shape == (1, 5, 16)


@pytest.mark.parametrize("config", [PATCHES, FRAMES], ids=["patches", "frames"])
def test_no_source_depends_on_the_others_in_its_batch(config: TransformerConfig) -> None:
    torch.manual_seed(1)
    model = Transformer(config).double().eval()
    random = np.random.default_rng(2)
    lengths = [config.source_stride * n for n in (5, 2, 3)]
    dtype = np.uint8 if config.source == "patches" else np.float32
    rows = [random.integers(0, 256, (n, config.source_width)).astype(dtype) for n in lengths]
    tgt_BT = torch.tensor([[1, 5, 6], [1, 7, 8], [1, 9, 4]])
    n_positions = np.array([config.n_source_positions(n) for n in lengths])

    def padding_of(positions: np.ndarray) -> PaddingInfo:
        return PaddingInfo.from_lengths(positions, n_positions=int(positions.max()), device=torch.device("cpu"))

    source = padded_features(rows, stride=config.source_stride)
    memory = model.encode(source, padding=padding_of(n_positions))
    states = model.decode(memory, tgt_BT).view(3, 3, -1)
    for row in range(3):
        alone = model.encode(torch.from_numpy(rows[row]).unsqueeze(0))
        torch.testing.assert_close(states[row], model.decode(alone, tgt_BT[row : row + 1]))
    state = model.start(source, padding=padding_of(n_positions))
    for position in range(3):
        logits, state = model.step(tgt_BT[:, position], state)
        torch.testing.assert_close(logits, model.logits(states[:, position]))


@pytest.mark.parametrize("config", [PATCHES, FRAMES], ids=["patches", "frames"])
@pytest.mark.parametrize("embeddings", ["three-way", "target", "separate"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_weights_are_counted_by_formula(config: TransformerConfig, embeddings: str, positions: str) -> None:
    config = config.model_copy(update={"embeddings": embeddings, "positions": positions})
    model = Transformer(config)
    assert sum(weight.numel() for weight in model.parameters()) == cost_of(config).parameters
    assert not any("embedding" in name and name.startswith("src") for name in model.canonical())


@pytest.mark.parametrize("config", [PATCHES, FRAMES], ids=["patches", "frames"])
def test_a_copy_for_inference_is_the_same_function(config: TransformerConfig) -> None:
    model = Transformer(config).eval()
    fast = for_inference(model, "fp32")
    source = torch.rand(1, 4 * config.source_stride, config.source_width)
    with torch.no_grad():
        torch.testing.assert_close(fast.encode(source).states_MD, model.encode(source).states_MD, atol=1e-4, rtol=1e-4)


def test_positions_are_counted_up() -> None:
    assert [PATCHES.n_source_positions(n) for n in (1, 3, 4, 9)] == [2, 2, 4, 6]
    assert [FRAMES.n_source_positions(n) for n in (1, 4, 5, 400)] == [1, 1, 2, 100]
    assert TransformerConfig().n_source_positions(7) == 7


@pytest.mark.parametrize(
    ("settings", "facts"),
    [
        (["model.source=patches", "model.patch_height=5"], ["patch_height", "source_width", 5, 32]),
        (["model.source=patches", "model.d_model=510"], ["d_model", 510]),
        (["model.source=frames", "model.positions=words"], ["positions = 'words'", "'frames'"]),
        (["model.source=patches"], ["task = 'translation'", "model.source = 'tokens'", "'patches'"]),
        (["data.task=image-to-text"], ["task = 'image-to-text'", "model.source = 'patches'", "'tokens'"]),
        (["data.task=speech-to-text", "model.source=frames"], ["source_width", "n_bands", 32, 80]),
        (["data.task=image-to-text", "model.system=bytenet"], ["image-to-text", "model.system = 'transformer'"]),
        (["data.train_media=a.tsv", "data.corpus=files"], ["train_media", "image-to-text", "'translation'"]),
        (["training.feature_masks=1"], ["feature_masks", "'translation'"]),
        (["training.ctc_weight=0.3"], ["ctc_weight", "'translation'"]),
        (["data.corpus=ocr-digits"], ["ocr-digits", "image-to-text", "'translation'"]),
    ],
)
def test_settings_that_do_not_fit(settings: list[str], facts: list[object]) -> None:
    with pytest.raises(ConfigError, match=naming(*facts)):
        with_settings(RunConfig(), settings)


def test_what_is_tested_was_never_trained_on() -> None:
    values = {"corpus": "ocr-lines", "task": "image-to-text"}
    with pytest.raises(ConfigError, match=naming("ocr-lines", "training_fonts")):
        config_from_mapping(DataConfig, values, where="here")
    fonts = {"training_fonts": ["a.ttf", "b.ttf"], "test_fonts": ["b.ttf"]}
    with pytest.raises(ConfigError, match=naming("test_fonts", "training_fonts", "'b.ttf'")):
        config_from_mapping(DataConfig, values | fonts, where="here")
    fonts["test_fonts"] = ["c.ttf"]
    noise = {"training_noise": ["blur"], "test_noise": ["blur"]}
    with pytest.raises(ConfigError, match=naming("test_noise", "'blur'")):
        config_from_mapping(DataConfig, values | fonts | noise, where="here")
    with pytest.raises(ConfigError, match="training_noise"):
        config_from_mapping(DataConfig, values | fonts | {"training_noise": ["rain"]}, where="here")
    assert config_from_mapping(DataConfig, values | fonts, where="here").training_fonts == ("a.ttf", "b.ttf")
