"""The one doorway from strata.nn to the operator table.

`_ops.<name>` is the table's `aten::<name>`, looked up on first use and kept as a plain attribute afterwards: the
generated function where there is one, which is fastest to call, else the operator object. The
override protocol (`__torch_function__`) is that of `strata.overrides`, which is loaded where somebody overrides.
"""

from __future__ import annotations

import strata
from strata import _C, _lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

has_torch_function = _C._has_torch_function
has_torch_function_unary = _C._has_torch_function_unary
has_torch_function_variadic = _C._has_torch_function_variadic


def overridden(function: Callable, relevant: tuple, given: dict[str, Any]) -> Any:
    """A call of `function` as the active mode, or the classes of the relevant arguments, would have it.

    given: its locals(). Arguments without a default are handed on by position, the others by name, as PyTorch does.
    """
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    required = code.co_argcount - len(function.__defaults__ or ())
    return strata.overrides.handle_torch_function(
        function, relevant, *(given[n] for n in names[:required]), **{n: given[n] for n in names[required:]}
    )


def _operator(name: str) -> Callable:
    if name.startswith("__"):
        raise KeyError(name)
    try:
        return getattr(_C._functions, name, None) or getattr(strata.ops.aten, name)
    except AttributeError:
        raise NotImplementedError(
            f"strata.nn needs the operator aten::{name}, which this build's operator table does not hold: "
            "compose the result from other operators, or add an entry for it under ops/"
        ) from None


__getattr__ = _lazy.of(globals(), otherwise=_operator)[0]
