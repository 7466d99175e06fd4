"""Distribution: what all distributions share."""

from __future__ import annotations

import warnings

import strata
from strata import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Self

    from .constraints import Constraint

__all__ = ["Distribution", "broadcast_all"]


def broadcast_all(*values: Any) -> list[Tensor]:
    """Numbers and tensors as tensors of one shape. ValueError for others."""
    if not all(isinstance(v, (Tensor, int, float)) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, Tensor or objects implementing __torch_function__."
        )
    like = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = strata.get_default_dtype() if like is None or not like.is_floating_point() else like.dtype
    device = None if like is None else like.device
    tensors = [v if isinstance(v, Tensor) else strata.tensor(v, dtype=dtype, device=device) for v in values]
    return list(strata.broadcast_tensors(*tensors))


class Distribution:
    """Base of all distributions. batch_shape: how many; event_shape: of one sample of one of them.

    validate_args: whether parameters and values are checked (ValueError); by default as set_default_validate_args says. The checks read
    values, which a compiled function cannot: there they are made where validate_args=True alone, as in PyTorch.
    """

    arg_constraints: dict[str, Constraint] = {}
    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    _asked_to_validate = False

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check what they are given, unless they are told."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args expects a bool, but got {value!r}")
        Distribution._validate_args = value

    def __init__(
        self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape = strata.Size(batch_shape)
        self._event_shape = strata.Size(event_shape)
        if validate_args is not None:
            self._validate_args = self._asked_to_validate = bool(validate_args)
        if self._validates():
            for name, constraint in self.arg_constraints.items():
                if name not in self.__dict__ and isinstance(getattr(type(self), name, None), Lazily):
                    continue  # computed from another parameter, which is checked
                value = getattr(self, name)
                if not bool(constraint.check(value).all()):
                    raise ValueError(
                        f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of "
                        f"distribution {self!r} to satisfy the constraint {constraint!r}, but found invalid "
                        f"values:\n{value}"
                    )

    @property
    def batch_shape(self) -> strata.Size:
        return self._batch_shape

    @property
    def event_shape(self) -> strata.Size:
        return self._event_shape

    @property
    def support(self) -> Constraint:
        """The set of possible samples."""
        raise NotImplementedError(f"{type(self).__name__} defines no support")

    @property
    def mean(self) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} defines no mean")

    @property
    def mode(self) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not implement mode")

    @property
    def variance(self) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} defines no variance")

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Samples of shape sample_shape + batch_shape + event_shape, without gradients."""
        with strata.no_grad():
            return self.rsample(sample_shape)

    def sample_n(self, n: int) -> Tensor:
        """sample((n,)), which it is to be replaced by."""
        warnings.warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning, stacklevel=2)
        return self.sample((n,))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Samples whose gradients reach the parameters."""
        raise NotImplementedError(f"{type(self).__name__} has no rsample: use sample, and log_prob as a score")

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability, at value."""
        raise NotImplementedError(f"{type(self).__name__} defines no log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a sample up to value."""
        raise NotImplementedError(f"{type(self).__name__} defines no cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of cdf."""
        raise NotImplementedError(f"{type(self).__name__} defines no icdf")

    def entropy(self) -> Tensor:
        """The entropy, in nats, of batch_shape."""
        raise NotImplementedError(f"{type(self).__name__} defines no entropy")

    def perplexity(self) -> Tensor:
        """exp(entropy())."""
        return self.entropy().exp()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values that a sample can have, along a new first dim."""
        raise NotImplementedError(f"{type(self).__name__} cannot list its support")

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        """The same distributions with their parameters expanded to batch_shape."""
        shape = strata.Size(batch_shape)
        new = type(self).__new__(type(self))
        for name in self.arg_constraints:
            if name in self.__dict__:
                value = self.__dict__[name]
                # A parameter such as logits has a dim of its own behind the batch.
                setattr(new, name, value.expand((*shape, *value.shape[len(self._batch_shape) :])))
        Distribution.__init__(new, shape, self._event_shape, validate_args=False)
        return self._alike(new)

    def _alike(self, new: Self) -> Self:
        """A distribution that checks its samples where this one does."""
        new._validate_args, new._asked_to_validate = self._validate_args, self._asked_to_validate
        return new

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """For an `expand` of a class `cls`: an object without attributes, or the one that is given. NotImplementedError where a
        subclass has a constructor of its own and no expand."""
        if _instance is not None:
            return _instance
        if type(self).__init__ != cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also define a custom "
                ".expand() method."
            )
        return object.__new__(type(self))

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> strata.Size:
        return strata.Size([*sample_shape, *self._batch_shape, *self._event_shape])

    def _validates(self) -> bool:
        return self._validate_args and (self._asked_to_validate or not strata.compiler.is_compiling())

    def _checked(self, value: Any) -> None:
        if self._validates():
            self._validate_sample(value)

    def _validate_sample(self, value: Any) -> None:
        """ValueError for a value that is no tensor, or of a wrong shape, or outside of the support."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        events = len(self._event_shape)
        if value.shape[value.dim() - events :] != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}."
            )
        for i, j in zip(reversed(value.shape), reversed([*self._batch_shape, *self._event_shape]), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs "
                    f"{strata.Size([*self._batch_shape, *self._event_shape])}."
                )
        if not bool(self.support.check(value).all()):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({self.support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def _shown(self) -> dict[str, Tensor]:
        return {name: self.__dict__[name] for name in self.arg_constraints if name in self.__dict__}

    def __repr__(self) -> str:
        parts = ", ".join(f"{k}: {v if v.numel() == 1 else v.size()}" for k, v in self._shown().items())
        return f"{type(self).__name__}({parts})"


class Lazily(property):
    """What `lazily` makes."""


def lazily(compute: Callable[[Any], Tensor]) -> Lazily:
    """A parameter computed from another one at its first use, and kept."""
    name = compute.__name__

    def get(self: Any) -> Tensor:
        if name not in self.__dict__:
            with strata.enable_grad():
                self.__dict__[name] = compute(self)
        return self.__dict__[name]

    def put(self: Any, value: Tensor) -> None:
        self.__dict__[name] = value

    return Lazily(get, put, doc=compute.__doc__)
