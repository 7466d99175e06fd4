"""Sets that parameters and samples belong to: `constraint.check(values)` gives a mask."""

from __future__ import annotations

from strata import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "Constraint",
    "boolean",
    "greater_than",
    "independent",
    "integer_interval",
    "interval",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "real",
    "real_vector",
    "simplex",
    "unit_interval",
]


class Constraint:
    """A set of values. is_discrete: of separate points; event_dim: dims of one value."""

    is_discrete = False
    event_dim = 0

    def __init__(
        self, shown: str, check: Callable[[Tensor], Tensor], discrete: bool = False, event_dim: int = 0
    ) -> None:
        self._shown = shown
        self._check = check
        self.is_discrete = discrete
        self.event_dim = event_dim

    def check(self, value: Tensor) -> Tensor:
        """Whether each value belongs to the set: bool, without the last event_dim dims."""
        return self._check(value)

    def __repr__(self) -> str:
        return self._shown


def greater_than(lower_bound: Any) -> Constraint:
    """Above the bound."""
    return Constraint(f"GreaterThan(lower_bound={lower_bound})", lambda v: v > lower_bound)


def interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """From one bound to the other."""
    shown = f"Interval(lower_bound={lower_bound}, upper_bound={upper_bound})"
    return Constraint(shown, lambda v: (v >= lower_bound) & (v <= upper_bound))


def integer_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Whole numbers from one bound to the other."""
    shown = f"IntegerInterval(lower_bound={lower_bound}, upper_bound={upper_bound})"
    return Constraint(shown, lambda v: (v % 1 == 0) & (v >= lower_bound) & (v <= upper_bound), True)


def independent(base: Constraint, dims: int) -> Constraint:
    """The base for every element of the last `dims` dims."""

    def check(value: Tensor) -> Tensor:
        found = base.check(value)
        return found.flatten(-dims).all(-1) if dims else found

    return Constraint(f"IndependentConstraint({base}, {dims})", check, base.is_discrete, base.event_dim + dims)


real = Constraint("Real()", lambda v: v == v)
positive = greater_than(0.0)
nonnegative = Constraint("GreaterThanEq(lower_bound=0.0)", lambda v: v >= 0)
nonnegative_integer = Constraint("IntegerGreaterThan(lower_bound=0)", lambda v: (v % 1 == 0) & (v >= 0), True)
unit_interval = interval(0.0, 1.0)
boolean = Constraint("Boolean()", lambda v: (v == 0) | (v == 1), True)
simplex = Constraint("Simplex()", lambda v: (v >= 0).all(-1) & ((v.sum(-1) - 1).abs() < 1e-6), False, 1)
one_hot = Constraint("OneHot()", lambda v: ((v == 0) | (v == 1)).all(-1) & (v.sum(-1) == 1), True, 1)
real_vector = independent(real, 1)
