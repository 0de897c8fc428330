"""The same numbers on a GPU as on a CPU: model, loss, search and a few updates. Skipped where there is no GPU."""

from __future__ import annotations

import pytest
import torch

from transduce.config import ModelConfig, SearchConfig
from transduce.inference.run_search import run_search
from transduce.model import Transformer, for_inference
from transduce.training import cross_entropy

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine"),
]

CONFIG = ModelConfig(
    n_encoder_layers=2, n_decoder_layers=2, d_model=64, d_ff=128, n_heads=4, d_k=16, d_v=16, p_drop=0.0,
    src_vocab_size=90, tgt_vocab_size=90,
)  # fmt: skip
SRC = torch.tensor([[4, 5, 6, 7, 8, 2], [9, 10, 2, 0, 0, 0], [11, 12, 13, 2, 0, 0]])
TGT = torch.tensor([[1, 20, 21, 22], [1, 23, 0, 0], [1, 24, 25, 0]])
TARGETS = torch.tensor([20, 21, 22, 2, 23, 2, 24, 25, 2])


def pair(kernel: str) -> tuple[Transformer, Transformer]:
    """The same weights on both devices, in float64."""
    torch.manual_seed(3)
    on_cpu = Transformer(CONFIG, kernel=kernel).double().eval()  # type: ignore[arg-type]
    on_gpu = Transformer(CONFIG, kernel=kernel).double().eval()  # type: ignore[arg-type]
    on_gpu.load_state_dict(on_cpu.state_dict())
    return on_cpu, on_gpu.cuda()


@pytest.mark.parametrize("kernel", ["auto", "reference", "fused"])
def test_loss_and_gradients(kernel: str) -> None:
    values = []
    for model in pair(kernel):
        device = model.output_weight.device
        states = model(SRC.to(device), TGT.to(device))
        loss = cross_entropy(states, model.output_weight, TARGETS.to(device), eps_ls=0.1, smoothing="uniform")
        loss.loss_nats.backward()
        values.append([loss.loss_nats.detach().cpu(), *(weight.grad.cpu() for weight in model.parameters())])
    for ours, expected in zip(*values, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-9, atol=1e-9)


@torch.no_grad()
@pytest.mark.parametrize("beam_size", [1, 4])
def test_search(beam_size: int) -> None:
    search = SearchConfig(beam_size=beam_size, n_best=min(2, beam_size))
    found = []
    for model in pair("auto"):
        device = model.output_weight.device
        found.append(run_search(model, SRC.to(device), torch.tensor([12, 9, 10], device=device), search))
    for ours, expected in zip(*found, strict=True):
        assert [hypothesis.ids for hypothesis in ours] == [hypothesis.ids for hypothesis in expected]


def test_bf16_updates_lower_the_loss() -> None:
    torch.manual_seed(0)
    model = Transformer(CONFIG).cuda()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    losses = []
    for _ in range(20):
        optimiser.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            states = model(SRC.cuda(), TGT.cuda())
            loss = cross_entropy(states, model.output_weight, TARGETS.cuda(), eps_ls=0.1, smoothing="uniform")
        (loss.loss_nats / loss.n_tokens).backward()
        optimiser.step()
        losses.append(float(loss.loss_nats.detach()))
    assert losses[-1] < 0.7 * losses[0]


@torch.no_grad()
def test_a_model_for_translating_in_bf16_scores_alike() -> None:
    torch.manual_seed(3)
    model = Transformer(CONFIG).cuda().eval()
    fast = for_inference(model, "bf16")
    expected, _ = model.step(torch.tensor([1, 1, 1]).cuda(), model.start(SRC.cuda()))
    got, _ = fast.step(torch.tensor([1, 1, 1]).cuda(), fast.start(SRC.cuda()))
    torch.testing.assert_close(got.float(), expected, rtol=0, atol=0.03 * float(expected.abs().max()))


@pytest.mark.filterwarnings("ignore")  # tracing reads attributes that warn
def test_compiled_layers_have_the_loss_and_gradients_of_eager_ones() -> None:
    values = []
    for is_compiled in (False, True):
        torch.manual_seed(3)
        model = Transformer(CONFIG).cuda()
        if is_compiled:
            for layer in [*model.encoder, *model.decoder]:
                layer.compile(dynamic=True)
        states = model(SRC.cuda(), TGT.cuda())
        loss = cross_entropy(states, model.output_weight, TARGETS.cuda(), eps_ls=0.1, smoothing="uniform")
        loss.loss_nats.backward()
        values.append([loss.loss_nats.detach(), *(weight.grad for weight in model.parameters())])
    for ours, expected in zip(*values, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-3, atol=1e-3)
