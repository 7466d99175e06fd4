"""strata.linalg: the operators of the table whose names begin with linalg_, and the error that they raise."""

from __future__ import annotations

from strata import _namespace
from strata._C import _LinAlgError as LinAlgError

__getattr__, _operators = _namespace.of("linalg", {})


def __dir__() -> list[str]:
    return sorted([*_operators(), LinAlgError.__name__])
