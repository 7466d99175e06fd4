"""Classes with a __torch_function__ of their own, inside of what is captured: who is asked is executed as the program's own code.

While a capture runs, native code asks nobody, since what it reads of tensors is not the program's doing. An operator that is called
with such an argument runs under a mode of the capture's, which is asked first: by the function and the arguments with which the class
would be. So composites of the library ask where they do in eager. What a handler calls is captured in its turn.
"""

from __future__ import annotations

import types

import strata
from strata import _C

from . import values
from .guards import class_lookup
from .reasons import Break, Control, Fixed, Raised

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ABSENT = object()
_C_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType)
_DEPTH = 3  # of nests in which native code looks for who wants to be asked


def _nobody_is_asked() -> bool:
    return not _C._is_torch_function_enabled()


class _Handler:
    """The mode. Native code takes it off while it handles a call."""

    def __init__(self, tracer: Any):
        self.tracer = tracer

    def __torch_function__(self, func: Any, kinds: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        before = _C._set_torch_function_state(1)
        try:
            return self.tracer.ask(func, kinds, args, kwargs or {})
        finally:
            _C._set_torch_function_state(before)


class Unasked:
    """A context of the capture in which classes are not asked, as in DisableTorchFunctionSubclass."""

    def __init__(self, tracer: Any):
        self.tracer = tracer

    def __enter__(self) -> None:
        self.before, self.tracer.asking = self.tracer.asking, False

    def __exit__(self, *_: object) -> None:
        self.tracer.asking = self.before


class Overrides:
    """Of the machine of captures. asking: whether the program's classes are asked here; began_asking: where the call began."""

    asking = began_asking = True

    def wants_asking(self, value: Any) -> bool:
        kind = type(value)
        if values.is_constant(value) or kind is strata.Tensor or kind in values.COPIED:
            return False
        hook = class_lookup(kind, "__torch_function__", _ABSENT)
        if kind.__flags__ & (1 << 9) and (hook is not _ABSENT or values.is_tensor(value)):
            self.pin_method(kind, "__torch_function__", hook)
        return hook is not _ABSENT and hook is not None and hook is not _C._disabled_torch_function_impl

    def asked_of(self, found: list, value: Any, depth: int = 0) -> list:
        """The arguments that want to be asked, in nests, too."""
        if isinstance(value, (list, tuple)) and depth < _DEPTH:
            for v in value:
                self.asked_of(found, v, depth + 1)
        elif self.wants_asking(value):
            found.append(value)
        return found

    def who_is_asked(self, args: tuple, kwargs: dict[str, Any]) -> list:
        found = self.asked_of([], (*args, *kwargs.values()), -1)
        if found:
            self.guards.add("call", None, _C._is_torch_function_enabled if self.began_asking else _nobody_is_asked)
        return found if self.asking else []

    def call_asking(self, function: Any, args: tuple, kwargs: dict[str, Any], name: str, who: Any) -> Any:
        """What native code gives, which asks on its way."""
        if self.program is not None:
            raise Fixed(f"{name} of a {type(who).__name__}, whose class has __torch_function__")
        _C._set_torch_function_state(0)
        _C._push_torch_function_mode(_Handler(self))
        try:
            found = self.library.call(function, args, kwargs)
        except (Control, Raised):
            raise
        except Exception as error:
            raise Break(f"{name} raised {type(error).__name__}: {error}") from None
        finally:
            _C._pop_torch_function_mode()
            _C._set_torch_function_state(1)
        self.keep.append(found)
        return found

    def ask(self, func: Any, kinds: tuple, args: tuple, kwargs: dict[str, Any]) -> Any:
        """As native code asks: subclasses before their bases, else from left to right."""
        self.keep += [args, kwargs]
        for who in _C._overloaded_args(tuple(self.asked_of([], (*args, *kwargs.values()), -1))):
            method = self.class_attribute(type(who), "__torch_function__")
            found = self.settled(self.call(method, (func, kinds, args, kwargs), {}))
            if found is not NotImplemented:
                return found
        raise Break(f"no class takes {getattr(func, '__name__', func)}")

    def default_function(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """strata.Tensor.__torch_function__: the call with nobody asked, its results of the class."""
        names = ("cls", "func", "types", "args", "kwargs")
        given = dict(zip(names, args, strict=False)) | kwargs
        if not {"cls", "func", "types"} <= given.keys() <= set(names):
            raise Break("a call of Tensor.__torch_function__ with these arguments")
        kind, func = given["cls"], given["func"]
        if not all(issubclass(kind, k) for k in given["types"]):
            return NotImplemented
        with Unasked(self):
            found = self.settled(self.call(func, tuple(given.get("args") or ()), dict(given.get("kwargs") or {})))
        return found if getattr(func, "__name__", "") == "as_subclass" else self.as_class(found, kind)

    def as_class(self, found: Any, kind: type) -> Any:
        """Results as tensors of a class."""
        if values.is_tensor(found):
            return found if isinstance(found, kind) else self.as_subclass(found, kind)
        if isinstance(found, (list, tuple)):
            items = [self.as_class(v, kind) for v in found]
            return type(found)(*items) if hasattr(found, "_fields") else type(found)(items)
        return found

    def as_subclass(self, t: Any, kind: Any) -> Any:
        if not isinstance(kind, type) or not issubclass(kind, strata.Tensor) or values.has_dispatch(kind):
            raise Break(f"as_subclass() for {getattr(kind, '__name__', kind)}")
        if self.program is not None:
            raise Fixed(f"a tensor of the class {kind.__name__}")
        self.check_operand(t, "as_subclass")
        made = self.native(strata.Tensor.as_subclass, t, kind)
        self.keep.append(made)
        return made

    def new_tensor(self, kind: type, args: tuple, kwargs: dict[str, Any]) -> Any:
        """An instance of a class of tensors of the program's, by the __new__ that it wrote."""
        new = class_lookup(kind, "__new__", _ABSENT)
        self.guard_class(kind, "__new__", new)
        new = getattr(new, "__func__", new)
        if not isinstance(new, types.FunctionType) or values.strata_module_name(new):
            raise Break(f"a {kind.__name__} is made", "make it outside of what is compiled")
        made = self.call(new, (kind, *args), kwargs)
        init = self.special(kind, "__init__")
        if isinstance(made, kind) and isinstance(init, types.FunctionType):
            self.call(init, (made, *args), kwargs)
        return made

    # ---- attributes of tensors of such classes

    def subclass_attribute(self, t: Any, name: str) -> Any:
        """NotImplemented where it is looked up as that of a plain tensor."""
        kind = type(t)
        if isinstance(self.special(kind, "__getattribute__"), types.FunctionType):
            raise Break(f"an attribute of a {kind.__name__}, whose class has its own __getattribute__")
        found = class_lookup(kind, name, _ABSENT)
        if isinstance(found, _C_DESCRIPTORS) and name != "__class__":
            return self.call_asking(getattr, (t, name), {}, name, t) if self.who_is_asked((t,), {}) else NotImplemented
        if isinstance(found, property):
            self.guard_class(kind, name, found)
            return NotImplemented if found.fget is None else self.call(found.fget, (t,), {})
        if name in t.__dict__ or isinstance(found, (types.FunctionType, *values.BUILTIN_FUNCTIONS)):
            return NotImplemented
        if found is _ABSENT:
            return NotImplemented if self.special(kind, "__getattr__") is None else self.missing(t, name)
        return self.bound(t, kind, name, found)
