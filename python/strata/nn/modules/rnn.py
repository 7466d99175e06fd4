"""Recurrent networks over whole sequences: RNN, LSTM and GRU, as loops over the steps of rnn_cell.py.

Sequences are (length, N, size), or (N, length, size) where batch_first, or (length, size), or a PackedSequence, whose
result is packed too; states are (layers * directions, N, size).
"""

from __future__ import annotations

import math
import warnings

import strata
from strata import Tensor, _lazy

from .. import functional as F
from .. import init
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module
from .rnn_cell import gru_step, lstm_step, relu_step, tanh_step
from .utils import _check_layers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "GRU": 3, "LSTM": 4}
_STEPS = {"RNN_TANH": tanh_step, "RNN_RELU": relu_step, "GRU": gru_step}


class RNNBase(Module):
    """Weights of all layers and directions, and the walk over them; `mode` says which step."""

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if mode not in _GATES:
            raise ValueError(f"Unrecognized RNN mode: {mode}")
        if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if not isinstance(hidden_size, int):
            raise TypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
        if hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        _check_layers(num_layers)
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=2,
            )
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        rows = _GATES[mode] * hidden_size
        out_size = proj_size or hidden_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            in_size = input_size if layer == 0 else out_size * self._directions
            for suffix in (f"_l{layer}", f"_l{layer}_reverse")[: self._directions]:
                shapes = {"weight_ih": (rows, in_size), "weight_hh": (rows, out_size)}
                if bias:
                    shapes["bias_ih"] = shapes["bias_hh"] = (rows,)
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    setattr(self, name + suffix, Parameter(strata.empty(shape, device=device, dtype=dtype)))
                self._all_weights.append([name + suffix for name in shapes])
        self.reset_parameters()

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction, in the order of their names."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Tensor]:
        return [getattr(self, name) for name in self._flat_weights_names]

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Tensor]) -> None:
        for name, weight in zip(self._flat_weights_names, weights, strict=True):
            if not isinstance(weight, Parameter):
                self._parameters.pop(name, None)  # computed of others, as weights that are dropped out are
            if getattr(self, name, None) is not weight:
                setattr(self, name, weight)

    def reset_parameters(self) -> None:
        """Uniform in +-1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def __getstate__(self) -> dict[str, Any]:
        # The last two are for PyTorch, which reads whole modules that strata.save wrote.
        flat = {"_flat_weights_names": self._flat_weights_names, "_flat_weights": self._flat_weights}
        return super().__getstate__() | flat

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for name in ("_flat_weights_names", "_flat_weights"):
            self.__dict__.pop(name, None)
        self.__dict__.setdefault("proj_size", 0)

    def flatten_parameters(self) -> None:
        """Does nothing: the weights need no common storage here. PyTorch's programs call it."""

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        shown = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0}
        shown["bidirectional"] = False
        for name, default in shown.items():
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        return text

    def _checked_input(self, input: Tensor) -> tuple[Tensor, bool]:
        """The input as (length, N, size), and whether it came with N."""
        if not isinstance(input, Tensor):
            raise TypeError(
                f"{type(self).__name__}: input must be a Tensor or a PackedSequence, but got {type(input).__name__}"
            )
        if input.dim() not in (2, 3):
            raise ValueError(f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        self._check_dtype(input)
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )
        batched = input.dim() == 3
        if not batched:
            return input.unsqueeze(1), False
        return (input.transpose(0, 1) if self.batch_first else input), True

    def _check_dtype(self, input: Tensor) -> None:
        dtype = getattr(self, self._all_weights[0][0]).dtype
        if input.dtype != dtype and not strata.is_autocast_enabled(input.device.type):
            raise ValueError(f"{type(self).__name__}: RNN input dtype ({input.dtype}) does not match weight dtype ({dtype}); convert one of them")

    def _state(self, state: Tensor | None, x: Tensor, rows: int, batched: bool, size: int, name: str) -> Tensor:
        """A state as (layers * directions, N, size), zeros where None. RuntimeError names a shape that does not fit."""
        count = self.num_layers * self._directions
        if state is None:
            return x.new_zeros(count, rows, size)
        rank = 3 if batched else 2
        if state.dim() != rank:
            word = "batched 3-D" if batched else "unbatched 2-D"
            raise RuntimeError(f"For {word} input, {name} should also be {rank}-D but got {state.dim()}-D tensor")
        state = state if batched else state.unsqueeze(1)
        expected = (count, rows, size)
        if tuple(state.shape) != expected:
            raise RuntimeError(f"Expected {name} size {expected}, got {list(state.shape)}")
        return state

    def _walk(
        self, x: Tensor, weights: list[Parameter], states: list[Tensor], backwards: bool, sizes: list[int] | None
    ) -> list:
        """One layer in one direction: (outputs (length, N, size), final states...); sizes: of a packed batch's steps.

        In a packed batch the rows of a step are those of the sequences that still run: going forwards they become
        fewer, and what a row that ends leaves is its final state; going backwards they become more.
        """
        weights = list(weights)
        w_ih, w_hh = weights[:2]
        b_ih, b_hh = weights[2:4] if self.bias else (None, None)
        w_hr = weights[-1] if self.proj_size else None
        gates = F.linear(x, w_ih, b_ih)
        gates = gates.unbind(0) if sizes is None else gates.split(sizes)
        outputs = []
        ended: list[list[Tensor]] = []
        step = _STEPS.get(self.mode)
        initial = states
        if sizes is not None and backwards:
            states = [state[: sizes[-1]] for state in states]
        for x_gates in reversed(gates) if backwards else gates:
            rows, before = x_gates.size(0), states[0].size(0)
            if rows < before:
                ended.append([state[rows:] for state in states])
                states = [state[:rows] for state in states]
            elif rows > before:
                states = [strata.cat([state, new[before:rows]]) for state, new in zip(states, initial, strict=True)]
            if step is None:
                states = list(lstm_step(x_gates, *states, w_hh, b_hh, w_hr))
            else:
                states = [step(x_gates, states[0], w_hh, b_hh)]
            outputs.append(states[0])
        if backwards:
            outputs.reverse()
        if ended:
            states = [strata.cat(parts) for parts in zip(states, *reversed(ended), strict=True)]
        return [strata.stack(outputs) if sizes is None else strata.cat(outputs), *states]

    def _run(self, input: Tensor | PackedSequence, initial: tuple[Tensor | None, ...]) -> list[Any]:
        """All layers: [output, final states...] in the input's layout."""
        if isinstance(input, PackedSequence):
            return self._run_packed(input, initial)
        x, batched = self._checked_input(input)
        states = self._states(initial, x.size(1), x, batched)
        results = self._layers(x, self._lowered(states, x.device.type), None)
        if not batched:
            return [result.squeeze(1) for result in results]
        if self.batch_first:
            results[0] = results[0].transpose(0, 1)
        return results

    def _lowered(self, states: list[Tensor], device: str) -> list[Tensor]:
        """The states in autocast's dtype where the layer is one operator of PyTorch's that autocast casts for."""
        if self.mode != "LSTM" or self.proj_size or not strata.is_autocast_enabled(device):
            return states
        dtype = strata.get_autocast_dtype(device)
        return [state if state.dtype == strata.float64 else state.to(dtype) for state in states]

    def _run_packed(self, packed: PackedSequence, initial: tuple[Tensor | None, ...]) -> list[Any]:
        data, batch_sizes, order, back = packed
        self._check_dtype(data)
        if data.dim() != 2 or data.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {data.size(-1)}"
            )
        sizes = batch_sizes.tolist()
        if not sizes or sizes[-1] <= 0 or sizes != sorted(sizes, reverse=True) or sum(sizes) != data.size(0):
            raise RuntimeError(
                f"{type(self).__name__}: batch_sizes must be positive, descending and sum to data.size(0), but got "
                f"batch_sizes {sizes} and data.size(0) {data.size(0)}: make the input with pack_padded_sequence or "
                "pack_sequence"
            )
        states = self._states(initial, sizes[0], data, True)
        if order is not None:
            states = [state.index_select(1, order) for state in states]
        output, *finals = self._layers(data, states, sizes)
        if back is not None:
            finals = [state.index_select(1, back) for state in finals]
        return [PackedSequence(output, batch_sizes, order, back), *finals]

    def _states(self, initial: tuple[Tensor | None, ...], rows: int, x: Tensor, batched: bool) -> list[Tensor]:
        sizes = (self.proj_size or self.hidden_size, self.hidden_size)
        names = ("hidden[0]", "hidden[1]") if len(initial) == 2 else ("hidden",)
        return [
            self._state(state, x, rows, batched, size, name)
            for state, size, name in zip(initial, sizes, names, strict=False)
        ]

    def _layers(self, x: Tensor, states: list[Tensor], sizes: list[int] | None) -> list[Tensor]:
        """[output of the last layer, final states...]; x is (length, N, size), or packed with its steps' sizes."""
        finals: list[list[Tensor]] = [[] for _ in states]
        all_weights = self.all_weights
        for layer in range(self.num_layers):
            directions = []
            for direction in range(self._directions):
                i = layer * self._directions + direction
                output, *last = self._walk(x, all_weights[i], [state[i] for state in states], direction == 1, sizes)
                directions.append(output)
                for kept, state in zip(finals, last, strict=True):
                    kept.append(state)
            x = strata.cat(directions, -1) if self.bidirectional else directions[0]
            if self.dropout and layer < self.num_layers - 1:
                x = F.dropout(x, self.dropout, self.training)
        return [x, *map(strata.stack, finals)]


class RNN(RNNBase):
    """Layers of h' = tanh(or relu)(weight_ih x + bias_ih + weight_hh h + bias_hh)."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        modes = {"tanh": "RNN_TANH", "relu": "RNN_RELU"}
        if nonlinearity not in modes:
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(
            modes[nonlinearity],
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            device=device,
            dtype=dtype,
        )
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor | PackedSequence, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """(outputs of the last layer, final h of every layer)."""
        output, h = self._run(input, (hx,))
        return output, h


class GRU(RNNBase):
    """Layers of gated recurrent units. ValueError for a proj_size."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        proj_size: int = 0,
    ) -> None:
        if proj_size:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__(
            "GRU",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            device=device,
            dtype=dtype,
        )

    forward = RNN.forward


class LSTM(RNNBase):
    """Layers of long short-term memory; proj_size projects the hidden state to that size."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "LSTM",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            proj_size,
            device,
            dtype,
        )

    def forward(
        self, input: Tensor | PackedSequence, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """(outputs of the last layer, (final h, final c) of every layer)."""
        output, h, c = self._run(input, (None, None) if hx is None else tuple(hx))
        return output, (h, c)

# Names that PyTorch has in this file.
__getattr__, __dir__ = _lazy.of(globals(), {".rnn_cell": "GRUCell LSTMCell RNNCell RNNCellBase"})
