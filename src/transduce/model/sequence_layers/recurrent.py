"""Recurrent layers: plain RNN, LSTM and GRU. Table 1: n d^2 operations, n sequential operations, path length n.

Shapes: B sentences, T positions, D d_model, R width of a recurrent state, Z = R (RNN), 4 R (LSTM) or 3 R
(GRU) gate units.
"""

from __future__ import annotations

from typing import Literal, assert_never

import torch
from torch import Tensor, nn

from transduce.errors import ShapeError
from transduce.model.sequence_layers.sequence_layer import SequenceLayer, in_dtype_of

__all__ = ["Recurrent", "RecurrentCell", "gru_step", "lstm_step", "rnn_step"]

RecurrentCell = Literal["rnn", "lstm", "gru"]
N_GATES: dict[RecurrentCell, int] = {"rnn": 1, "lstm": 4, "gru": 3}


class Recurrent(SequenceLayer):
    """A plain RNN, LSTM or GRU: forwards if causal, else bidirectional, each direction of half the width.

    ``kernel`` "fused" is torch's; "reference" computes the formulas step by step, for reading and for counting FLOPs.
    """

    def __init__(
        self,
        d_model: int,
        *,
        cell: RecurrentCell = "lstm",
        is_causal: bool = False,
        kernel: Literal["fused", "reference"] = "fused",
    ) -> None:
        super().__init__(d_model, is_causal=is_causal)
        if d_model % 2 and not is_causal:
            raise ShapeError(f"d_model must be even for a bidirectional layer, got {d_model}")
        self.cell, self.kernel = cell, kernel
        self.width = d_model if is_causal else d_model // 2
        kind: type[nn.RNN | nn.LSTM | nn.GRU] = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}[cell]
        directions = (kind(d_model, self.width, batch_first=True) for _ in range(1 if is_causal else 2))
        self.directions = nn.ModuleList(directions)

    def forward(self, x_BTD: Tensor, is_real_BT: Tensor) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        x_BTD = in_dtype_of(next(self.directions[0].parameters()), x_BTD)
        forward_BTR = self._run(self.directions[0], x_BTD)  # padding is on the right, so no real position sees it
        if self.is_causal:
            return forward_BTR
        order_BT1 = _reversal(is_real_BT).unsqueeze(-1)
        reversed_BTD = x_BTD.gather(1, order_BT1.expand_as(x_BTD))
        backward_BTR = self._run(self.directions[1], reversed_BTD)
        return torch.cat((forward_BTR, backward_BTR.gather(1, order_BT1.expand_as(backward_BTR))), dim=-1)

    def _run(self, direction: nn.Module, x_BTD: Tensor) -> Tensor:
        match self.kernel:
            case "fused":
                return _fused(direction, x_BTD)
            case "reference":
                return _run_steps(direction, x_BTD, self.cell)
            case _:
                assert_never(self.kernel)

    def multiplications(self, n_positions: int) -> int:
        """The input matrix and the recurrent matrix of each gate, in each direction."""
        per_direction = N_GATES[self.cell] * self.width * (self.d_model + self.width)
        return n_positions * len(self.directions) * per_direction


def _fused(direction: nn.Module, x_BTD: Tensor) -> Tensor:
    """The states of one direction, (B, T, R), by torch's kernel; in fp32 on a CPU that has no products in bf16."""
    device = x_BTD.device.type
    has_bf16 = device != "cpu" or torch.ops.mkldnn._is_mkldnn_bf16_supported()
    with torch.autocast(device, enabled=has_bf16 and torch.is_autocast_enabled(device)):
        states_BTR: Tensor = direction(in_dtype_of(next(direction.parameters()), x_BTD))[0]
    return states_BTR


def _reversal(is_real_BT: Tensor) -> Tensor:
    """The permutation (B, T) that reverses the real positions of each row and keeps its padding; its own inverse."""
    n_positions = is_real_BT.shape[1]
    position_1T = torch.arange(n_positions, device=is_real_BT.device).unsqueeze(0)
    n_real_B1 = is_real_BT.sum(dim=1, keepdim=True)
    return torch.where(position_1T < n_real_B1, n_real_B1 - 1 - position_1T, position_1T)


def _run_steps(direction: nn.Module, x_BTD: Tensor, cell: RecurrentCell) -> Tensor:
    """The states of one direction, (B, T, R), computed step by step."""
    w_x_ZD, w_h_ZR, b_x_Z, b_h_Z = (
        getattr(direction, f"{name}_l0") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    gates_x_BTZ = x_BTD @ w_x_ZD.T + b_x_Z  # of all positions at once: independent of the states
    h_BR = c_BR = x_BTD.new_zeros(len(x_BTD), w_h_ZR.shape[1])
    states = []
    for position in range(x_BTD.shape[1]):
        gates_h_BZ = h_BR @ w_h_ZR.T + b_h_Z
        match cell:
            case "rnn":
                h_BR = rnn_step(gates_x_BTZ[:, position] + gates_h_BZ)
            case "lstm":
                h_BR, c_BR = lstm_step(gates_x_BTZ[:, position] + gates_h_BZ, c_BR)
            case "gru":
                h_BR = gru_step(gates_x_BTZ[:, position], gates_h_BZ, h_BR)
            case _:
                assert_never(cell)
        states.append(h_BR)
    return torch.stack(states, dim=1)


def rnn_step(inputs_BR: Tensor) -> Tensor:
    """One step of a plain RNN (Elman): h_t = tanh(W x_t + U h_t-1 + b), (B, R)."""
    return inputs_BR.tanh()


def lstm_step(gates_BZ: Tensor, c_BR: Tensor) -> tuple[Tensor, Tensor]:
    """One LSTM step with a forget gate (Hochreiter and Schmidhuber): the hidden and the cell state, (B, R) each."""
    i_BR, f_BR, g_BR, o_BR = gates_BZ.chunk(4, dim=-1)
    c_BR = f_BR.sigmoid() * c_BR + i_BR.sigmoid() * g_BR.tanh()
    return o_BR.sigmoid() * c_BR.tanh(), c_BR


def gru_step(gates_x_BZ: Tensor, gates_h_BZ: Tensor, h_BR: Tensor) -> Tensor:
    """One GRU step (Cho et al.), in the variant of torch and cuDNN: the hidden state, (B, R)."""
    (r_x, z_x, n_x), (r_h, z_h, n_h) = gates_x_BZ.chunk(3, dim=-1), gates_h_BZ.chunk(3, dim=-1)
    r_BR, z_BR = (r_x + r_h).sigmoid(), (z_x + z_h).sigmoid()
    n_BR = (n_x + r_BR * n_h).tanh()
    return z_BR * h_BR + (1 - z_BR) * n_BR
