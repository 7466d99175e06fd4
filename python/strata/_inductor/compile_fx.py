"""The default backend of strata.compile as a function of an fx graph module, as custom backends call it."""

from __future__ import annotations

import strata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = ["compile_fx", "compile_fx_inner"]


def compile_fx(model_: Any, example_inputs_: Sequence[Any], **_: Any) -> Callable:
    """A compiled function of the graph's inputs, for one or a tuple of results, as the graph gives them."""
    return strata.compile(model_)


compile_fx_inner = compile_fx
