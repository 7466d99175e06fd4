"""CustomOpDef: an operator made of one Python function by strata.library.custom_op."""

from __future__ import annotations

import functools

from strata import _C, library
from strata._infer_schema import infer_schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

__all__ = ["CustomOpDef", "make"]


def make(
    name: str, fn: Callable, mutates_args: str | Iterable[str], device_types: Any, schema: str | None
) -> CustomOpDef:
    namespace, _, short = name.partition("::")
    if not short:
        raise ValueError(f"custom_op: expected a name such as 'mylib::op', got '{name}'")
    text = infer_schema(fn, mutates_args=mutates_args) if schema is None else schema
    return CustomOpDef(namespace, short, text, fn, device_types)


def _storages(values: Any) -> set[int]:
    from strata.utils._pytree import tree_leaves

    tensors = [v for v in tree_leaves(values) if isinstance(v, _C.TensorBase) and not v.is_meta]
    return {t.untyped_storage()._cdata for t in tensors if t.numel()}  # memory of a device has no address


class CustomOpDef:
    """A callable operator; its register_... methods add what it lacks. Made by strata.library.custom_op."""

    def __init__(self, namespace: str, name: str, schema: str, fn: Callable, device_types: Any) -> None:
        self._namespace, self._name, self._init_fn = namespace, name, fn
        self._qualname = f"{namespace}::{name}"
        # Defining a name anew replaces it, as it does in a notebook.
        known = _defs.pop(self._qualname, None)
        if known is not None:
            known._lib._destroy()
        self._lib = library.Library(namespace, "FRAGMENT")
        self._lib.define(name + schema)
        self._opoverload = _C._op_get(self._qualname)
        functools.update_wrapper(self, fn)
        _defs[self._qualname] = self
        self.register_kernel(device_types)(fn)
        self._trivial = None
        if not self._opoverload._schema.returns:
            self.register_fake(lambda *args, **kwargs: None)
            self._trivial = self._lib._tokens[-1]

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def register_kernel(self, device_types: Any, fn: Callable | None = None, /) -> Callable:
        """Registers a function for device types (a name, several, or None for all). A decorator without `fn`."""

        def register(function: Callable) -> Callable:
            @functools.wraps(function)
            def kernel(*args: Any, **kwargs: Any) -> Any:
                result = function(*args, **kwargs)
                # A recording has no storages to compare; its kernels write their results anew.
                if _C._recording() is None and _storages(result) & _storages((args, kwargs)):
                    raise RuntimeError(
                        f"{self._qualname} (with implementation in {function.__module__}): The output of this custom "
                        "operator (1) must not also be an input to this custom operator and (2) may not alias any inputs "
                        "to this custom operator or other returns: return a clone()."
                    )
                return result

            library.impl(self._qualname, "default" if device_types is None else device_types, kernel, lib=self._lib)
            return function

        return register if fn is None else register(fn)

    def register_fake(self, fn: Callable, /) -> Callable:
        """Registers what the operator does with tensors that have a shape and no data."""
        if self._trivial is not None:  # of an operator that returns nothing
            _C._dispatch_restore(self._trivial)
            self._trivial = None
        library.register_fake(self._qualname, fn, lib=self._lib)
        return fn

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """Gives the operator a derivative; see strata.library.register_autograd."""
        library.register_autograd(self._qualname, backward, setup_context=setup_context, lib=self._lib)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """Casts floating-point arguments where autocast is on; see strata.library.register_autocast."""
        library.register_autocast(self._qualname, device_type, cast_inputs, lib=self._lib)

    def register_vmap(self, func: Callable | None = None) -> Any:
        """Accepted, as a decorator, too: vmap calls the operator for one element after the other, which needs no rule."""
        return func if func is not None else lambda function: function


_defs: dict[str, CustomOpDef] = {}
