"""Random sizes, strides and dtypes for timing: a Fuzzer draws parameters, and makes tensors of them."""

from __future__ import annotations

import math
import random

import strata
from strata import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

__all__ = ["FuzzedParameter", "FuzzedTensor", "Fuzzer", "ParameterAlias"]

_MOST_TRIES = 1000  # draws for one result, before it is given up


class ParameterAlias:
    """In a distribution of a FuzzedParameter: the value of another parameter."""

    def __init__(self, alias_to: str) -> None:
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedParameter:
    """A number by name. distribution: "uniform" or "loguniform" from minval to maxval, both included, or values (or
    ParameterAliases) with their probabilities. AssertionError for other distributions, or probabilities whose sum is not 1.
    """

    def __init__(self, name: str, minval: Any = None, maxval: Any = None, distribution: Any = None, strict: bool = False) -> None:
        self._name, self._minval, self._maxval, self._distribution, self.strict = name, minval, maxval, distribution, strict
        if isinstance(distribution, dict):
            if any(p < 0 for p in distribution.values()) or abs(sum(distribution.values()) - 1) > 1e-5:
                raise AssertionError("Distribution is not normalized")
            if minval is not None or maxval is not None:
                raise AssertionError("When passing a custom distribution, 'minval' and 'maxval' must be None")
        elif distribution not in ("uniform", "loguniform"):
            raise AssertionError(f"Unknown distribution: {distribution}")

    @property
    def name(self) -> str:
        return self._name

    def sample(self, state: random.Random) -> Any:
        """A draw."""
        if isinstance(self._distribution, dict):
            return state.choices(list(self._distribution), list(self._distribution.values()))[0]
        low, high = self._minval, self._maxval
        if self._distribution == "uniform":
            return state.randint(low, high) if isinstance(low, int) else state.uniform(low, high)
        value = math.exp(state.uniform(math.log(low), math.log(high)))
        return round(value) if isinstance(low, int) else value


class FuzzedTensor:
    """A tensor by name. size, steps: numbers, or names of parameters, one for each dim; a step of n takes every n-th element of
    a larger tensor. Of dims as many as dim_parameter says, if given. With probability_contiguous the dims lie in order,
    else in a random one. Draws with fewer than min_elements, more than max_elements or max_allocation_bytes are refused.
    tensor_constructor: makes a tensor of (size, dtype, **parameters); random numbers otherwise.
    """

    def __init__(
        self, name: str, size: Sequence[int | str], steps: Sequence[int | str] | None = None, probability_contiguous: float = 0.5,
        min_elements: int | None = None, max_elements: int | None = None, max_allocation_bytes: int | None = None,
        dim_parameter: str | None = None, roll_parameter: str | None = None, dtype: strata.dtype = strata.float32,
        tensor_constructor: Callable | None = None,
    ) -> None:  # fmt: skip
        self._name, self._size, self._steps, self._contiguous = name, tuple(size), steps, probability_contiguous
        self._min, self._max, self._bytes = min_elements, max_elements, max_allocation_bytes
        self._dim, self._roll, self._dtype, self._make = dim_parameter, roll_parameter, dtype, tensor_constructor or self.default_tensor_constructor
        if steps is not None and len(steps) != len(self._size):
            raise ValueError(f"FuzzedTensor: expected a step for each of {len(self._size)} sizes, got {len(steps)}")

    @property
    def name(self) -> str:
        return self._name

    @staticmethod
    def default_tensor_constructor(size: Sequence[int], dtype: strata.dtype, **kwargs: Any) -> Tensor:
        """Random numbers."""
        if dtype.is_floating_point or dtype.is_complex:
            return strata.rand(size=tuple(size), dtype=dtype)
        return strata.randint(1, 127, size=tuple(size), dtype=dtype)

    def _shape(self, params: dict) -> tuple[list[int], list[int], list[int]]:
        """The size, the steps, and the size of what is allocated."""
        dims = params[self._dim] if self._dim else len(self._size)
        known = lambda values: [params[v] if isinstance(v, str) else v for v in values[:dims]]  # noqa: E731
        size, steps = known(self._size), known(self._steps or [1] * len(self._size))
        if self._roll and (roll := params[self._roll] % max(dims, 1)):
            size, steps = size[roll:] + size[:roll], steps[roll:] + steps[:roll]
        return size, steps, [n * s for n, s in zip(size, steps, strict=True)]

    def satisfies_constraints(self, params: dict) -> bool:
        """Whether the parameters give a tensor within the bounds."""
        size, _, allocated = self._shape(params)
        n = math.prod(size)
        too_large = self._bytes is not None and math.prod(allocated) * self._dtype.itemsize > self._bytes
        return not too_large and (self._min is None or n >= self._min) and (self._max is None or n <= self._max)

    def _made(self, params: dict, state: random.Random) -> tuple[Tensor, dict[str, Any]]:
        size, steps, allocated = self._shape(params)
        order = list(range(len(size)))
        if len(size) > 1 and state.random() > self._contiguous:
            state.shuffle(order)
        tensor = self._make([allocated[d] for d in order], dtype=self._dtype, **params)
        tensor = tensor.permute(sorted(order, key=order.__getitem__))[tuple(slice(0, n * s, s) for n, s in zip(size, steps, strict=True))]
        about = {"numel": tensor.numel(), "order": order, "steps": steps, "is_contiguous": tensor.is_contiguous(), "dtype": str(self._dtype)}
        return tensor, about


def _flat(values: Sequence[Any], kind: type) -> list:
    """Those of a kind, from lists in lists; others raise ValueError."""
    found = []
    for v in values:
        if isinstance(v, (list, tuple)):
            found += _flat(v, kind)
        elif isinstance(v, kind):
            found.append(v)
        else:
            raise ValueError(f"Fuzzer: expected a {kind.__name__}, got {type(v).__name__}")
    return found


class Fuzzer:
    """Draws of all parameters, with their tensors. constraints: functions of the parameters, each of which must hold. The same
    seed gives the same draws; other ones than PyTorch's. ValueError for names that are given twice."""

    def __init__(
        self, parameters: Sequence[Any], tensors: Sequence[Any], constraints: Sequence[Callable] | None = None, seed: int | None = None
    ) -> None:
        self._parameters, self._tensors = _flat(parameters, FuzzedParameter), _flat(tensors, FuzzedTensor)
        self._constraints = list(constraints or ())
        self._state = random.Random(seed)
        names = [v.name for v in (*self._parameters, *self._tensors)]
        if twice := sorted({n for n in names if names.count(n) > 1}):
            raise ValueError(f"Duplicate names in parameters and tensors: {twice}")
        self._drawn = self._refused = 0

    @property
    def rejection_rate(self) -> float:
        """The share of draws that did not fit."""
        return self._refused / self._drawn if self._drawn else 0.0

    def take(self, n: int) -> Iterator[tuple[dict[str, Tensor], dict[str, dict], dict[str, Any]]]:
        """n draws: tensors by name, what is known of them, and the parameters. ValueError where none fits in 1000 tries."""
        for _ in range(n):
            params = self._params()
            made = {t.name: t._made(params, self._state) for t in self._tensors}
            yield {k: v[0] for k, v in made.items()}, {k: v[1] for k, v in made.items()}, params

    def _params(self) -> dict[str, Any]:
        for _ in range(_MOST_TRIES):
            self._drawn += 1
            params = {p.name: p.sample(self._state) for p in self._parameters}
            params = {k: params[v.alias_to] if isinstance(v, ParameterAlias) else v for k, v in params.items()}
            if all(c(params) for c in self._constraints) and all(t.satisfies_constraints(params) for t in self._tensors):
                return params
            self._refused += 1
        raise ValueError(f"Fuzzer: no draw of {_MOST_TRIES} fits the constraints; widen the parameters' ranges")
