"""One step of the recurrent networks, as functions over a cell's weights and as modules.

Each step takes the input's part of the gates already multiplied, so that rnn.py can do that for all steps at once.
Sources: LSTM, Hochreiter and Schmidhuber 1997 with the forget gate of Gers et al. 2000; GRU, arXiv:1406.1078 in the
form whose reset gate acts after the product.
"""

from __future__ import annotations

import math

import strata
from strata import Tensor

from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def tanh_step(x_gates: Tensor, h: Tensor, w_hh: Tensor, b_hh: Tensor | None) -> Tensor:
    """tanh(x_gates + w_hh h + b_hh)."""
    return (x_gates + F.linear(h, w_hh, b_hh)).tanh()


def relu_step(x_gates: Tensor, h: Tensor, w_hh: Tensor, b_hh: Tensor | None) -> Tensor:
    """max(0, x_gates + w_hh h + b_hh)."""
    return (x_gates + F.linear(h, w_hh, b_hh)).relu()


def gru_step(x_gates: Tensor, h: Tensor, w_hh: Tensor, b_hh: Tensor | None) -> Tensor:
    """Reset, update and new gates: h moves from the new value towards the old one by the update gate."""
    x_reset, x_update, x_new = x_gates.chunk(3, -1)
    h_reset, h_update, h_new = F.linear(h, w_hh, b_hh).chunk(3, -1)
    reset = (x_reset + h_reset).sigmoid()
    update = (x_update + h_update).sigmoid()
    new = (x_new + reset * h_new).tanh()
    return new + update * (h - new)


def lstm_step(
    x_gates: Tensor, h: Tensor, c: Tensor, w_hh: Tensor, b_hh: Tensor | None, w_hr: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Input, forget, cell and output gates; w_hr projects the new hidden state (arXiv:1402.1128)."""
    enter, forget, cell, out = (x_gates + F.linear(h, w_hh, b_hh)).chunk(4, -1)
    c = forget.sigmoid() * c + enter.sigmoid() * cell.tanh()
    h = out.sigmoid() * c.tanh()
    return (h if w_hr is None else F.linear(h, w_hr)), c


class RNNCellBase(Module):
    """Weights of one step: weight_ih (chunks * hidden, input), weight_hh (chunks * hidden, hidden) and two biases."""

    __module__ = "strata.nn.modules.rnn"  # where PyTorch's files have it

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        shapes = {"weight_ih": (rows, input_size), "weight_hh": (rows, hidden_size)}
        for name, shape in shapes.items():
            setattr(self, name, Parameter(strata.empty(shape, device=device, dtype=dtype)))
        for name in ("bias_ih", "bias_hh"):
            values = Parameter(strata.empty(rows, device=device, dtype=dtype)) if bias else None
            self.register_parameter(name, values)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform in +-1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def _checked(self, input: Tensor, states: tuple[Tensor, ...], count: int) -> tuple[Tensor, list[Tensor]]:
        """The input as (N, input_size) and `count` states as (N, hidden_size); ValueError names a wrong rank."""
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        for state in states:
            if state.dim() != input.dim():
                raise ValueError(
                    f"{name}: Expected hidden to be {input.dim()}D like its input, got {state.dim()}D instead"
                )
        if input.dim() == 1:
            input = input.unsqueeze(0)
            states = tuple(state.unsqueeze(0) for state in states)
        if input.size(1) != self.input_size:
            raise RuntimeError(
                f"{name}: input has inconsistent input_size: got {input.size(1)} expected {self.input_size}"
            )
        if not states:
            zeros = input.new_zeros(input.size(0), self.hidden_size)
            states = (zeros,) * count
        return input, list(states)

    def _input_gates(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight_ih, self.bias_ih)


class RNNCell(RNNCellBase):
    """h' = tanh(or relu)(weight_ih x + bias_ih + weight_hh h + bias_hh), for x (N, input) or (input)."""

    __module__ = "strata.nn.modules.rnn"  # where PyTorch's files have it

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        x, (h,) = self._checked(input, () if hx is None else (hx,), 1)
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        step = tanh_step if self.nonlinearity == "tanh" else relu_step
        result = step(self._input_gates(x), h, self.weight_hh, self.bias_hh)
        return result.squeeze(0) if input.dim() == 1 else result


class GRUCell(RNNCellBase):
    """One step of a gated recurrent unit, for x (N, input) or (input)."""

    __module__ = "strata.nn.modules.rnn"  # where PyTorch's files have it

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        x, (h,) = self._checked(input, () if hx is None else (hx,), 1)
        result = gru_step(self._input_gates(x), h, self.weight_hh, self.bias_hh)
        return result.squeeze(0) if input.dim() == 1 else result


class LSTMCell(RNNCellBase):
    """One step of a long short-term memory, for x (N, input) or (input); the state is (h, c)."""

    __module__ = "strata.nn.modules.rnn"  # where PyTorch's files have it

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        x, (h, c) = self._checked(input, () if hx is None else tuple(hx), 2)
        h, c = lstm_step(self._input_gates(x), h, c, self.weight_hh, self.bias_hh)
        return (h.squeeze(0), c.squeeze(0)) if input.dim() == 1 else (h, c)
