"""strata.linalg: the operators of the table whose names begin with linalg_, and the error that they raise."""

from __future__ import annotations

from strata import _lazy
from strata._C import _LinAlgError as LinAlgError

__getattr__, _operators = _lazy.operators(globals(), {})


def __dir__() -> list[str]:
    return sorted([*_operators(), LinAlgError.__name__])
