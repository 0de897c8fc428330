"""Recurrent layers: each state is made of the one before it. Table 1: n d^2, n steps, n links.

Shapes: B batch, T positions, D d_model, E width of a state, G gates.
"""

from __future__ import annotations

from typing import Literal, assert_never

import torch
from torch import Tensor, nn

from transduce.errors import ShapeError
from transduce.model.sequence_layers.sequence_layer import SequenceLayer

__all__ = ["Recurrent", "RecurrentCell", "gru_step", "lstm_step"]

RecurrentCell = Literal["lstm", "gru"]
N_GATES: dict[RecurrentCell, int] = {"lstm": 4, "gru": 3}


class Recurrent(SequenceLayer):
    """An LSTM or a GRU; forwards if causal, else one forwards and one backwards, side by side, of half the width.

    ``kernel``: "fused" is torch's; "reference" takes the formulas step by step, so that one can read and count them.
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
            raise ShapeError(f"two directions share d_model, got an odd one: {d_model}")
        self.cell, self.kernel = cell, kernel
        self.width = d_model if is_causal else d_model // 2
        kind: type[nn.LSTM | nn.GRU] = {"lstm": nn.LSTM, "gru": nn.GRU}[cell]
        directions = (kind(d_model, self.width, batch_first=True) for _ in range(1 if is_causal else 2))
        self.directions = nn.ModuleList(directions)

    def forward(self, x_BTD: Tensor, is_real_BT: Tensor) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        forwards_BTE = self._run(self.directions[0], x_BTD)  # padding comes after all that is real
        if self.is_causal:
            return forwards_BTE
        order_BT1 = _backwards(is_real_BT).unsqueeze(-1)
        reversed_BTD = x_BTD.gather(1, order_BT1.expand_as(x_BTD))
        backwards_BTE = self._run(self.directions[1], reversed_BTD)
        return torch.cat((forwards_BTE, backwards_BTE.gather(1, order_BT1.expand_as(backwards_BTE))), dim=-1)

    def _run(self, direction: nn.Module, x_BTD: Tensor) -> Tensor:
        match self.kernel:
            case "fused":
                states_BTE: Tensor = direction(x_BTD)[0]
                return states_BTE
            case "reference":
                return _by_steps(direction, x_BTD, self.cell)
            case _:
                assert_never(self.kernel)

    def multiplications(self, n_positions: int) -> int:
        """Each gate has a matrix for the input and one for the state."""
        of_a_direction = N_GATES[self.cell] * self.width * (self.d_model + self.width)
        return n_positions * len(self.directions) * of_a_direction


def _backwards(is_real_BT: Tensor) -> Tensor:
    """For each row, its real places from the last to the first, then those of its padding; its own inverse."""
    n_positions = is_real_BT.shape[1]
    place_1T = torch.arange(n_positions, device=is_real_BT.device).unsqueeze(0)
    n_real_B1 = is_real_BT.sum(dim=1, keepdim=True)
    return torch.where(place_1T < n_real_B1, n_real_B1 - 1 - place_1T, place_1T)


def _by_steps(direction: nn.Module, x_BTD: Tensor, cell: RecurrentCell) -> Tensor:
    """The states of one direction, (B, T, E), one after the other."""
    w_input_GED, w_state_GEE, b_input, b_state = (
        getattr(direction, f"{name}_l0") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    from_input_BTG = x_BTD @ w_input_GED.T + b_input  # of all positions at once: they wait for nothing
    h_BE = memory_BE = x_BTD.new_zeros(len(x_BTD), w_state_GEE.shape[1])
    states = []
    for position in range(x_BTD.shape[1]):
        from_state_BG = h_BE @ w_state_GEE.T + b_state
        match cell:
            case "lstm":
                h_BE, memory_BE = lstm_step(from_input_BTG[:, position] + from_state_BG, memory_BE)
            case "gru":
                h_BE = gru_step(from_input_BTG[:, position], from_state_BG, h_BE)
            case _:
                assert_never(cell)
        states.append(h_BE)
    return torch.stack(states, dim=1)


def lstm_step(gates_BG: Tensor, memory_BE: Tensor) -> tuple[Tensor, Tensor]:
    """Hochreiter and Schmidhuber's cell, with a forget gate: the state and the memory, (B, E) each."""
    take_BE, keep_BE, new_BE, show_BE = gates_BG.chunk(4, dim=-1)
    memory_BE = keep_BE.sigmoid() * memory_BE + take_BE.sigmoid() * new_BE.tanh()
    return show_BE.sigmoid() * memory_BE.tanh(), memory_BE


def gru_step(from_input_BG: Tensor, from_state_BG: Tensor, h_BE: Tensor) -> Tensor:
    """Cho et al.'s cell, as torch and cuDNN have it: the state, (B, E)."""
    (reset_x, keep_x, new_x), (reset_h, keep_h, new_h) = from_input_BG.chunk(3, dim=-1), from_state_BG.chunk(3, dim=-1)
    keep_BE = (keep_x + keep_h).sigmoid()
    new_BE = (new_x + (reset_x + reset_h).sigmoid() * new_h).tanh()
    return keep_BE * h_BE + (1 - keep_BE) * new_BE
