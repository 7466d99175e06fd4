"""A compiler for strata.compile made of compilers for graphs of forward and backward."""

from __future__ import annotations

from strata._functorch.aot_autograd import aot_module_simplified

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["aot_autograd"]


def aot_autograd(**kwargs: Any) -> Callable:
    """A backend of strata.compile; the arguments are those of aot_module_simplified: fw_compiler, bw_compiler and so on."""

    def backend(gm: Any, example_inputs: list, **_: Any) -> Callable:
        return aot_module_simplified(gm, example_inputs, **kwargs)

    return backend
