"""Classes that are called: which instances a capture makes, for real, and how."""

from __future__ import annotations

import collections
import types

import strata

from . import natives, values
from .derived import base_of
from .guards import class_lookup
from .reasons import Break
from .sizes import settled, stand_in
from .sources import const
from .values import Generator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .frame import Frame


class Classes:
    """Of the machine of captures."""

    def construct(self, kind: type, args: tuple, kwargs: dict[str, Any], f: Frame | None) -> Any:
        if kind is super:
            if not args and f is not None:
                for place in (f.names.index("__class__"), 0):
                    value = f.locals[place]
                    if type(value) is values.Lazy:
                        f.locals[place] = self.load(value.value, value.source)
                cell, first = f.locals[f.names.index("__class__")], f.locals[0]
                if isinstance(first, types.CellType) and f.names[0] in f.code.co_cellvars:
                    first = self.cell_get(first, f.names[0])
                args = (self.cell_get(cell, "__class__"), first)
            return self.native(super, *args)
        if kind is type and len(args) == 1:
            return args[0].kind if isinstance(args[0], Generator) else type(stand_in(args[0]))
        if natives.is_builtin_class(kind):
            return natives.call(self, kind, args, kwargs)
        if issubclass(kind, strata.nn.Module) and kind.__module__.startswith("strata.nn."):
            return self.new_module(kind, args, kwargs)
        if kind is strata.set_grad_enabled and f is not None and f.instructions[f.index].name == "BEFORE_WITH" and [type(a) for a in args] == [bool]:
            kind, args = strata.enable_grad if args[0] else strata.no_grad, ()  # what it has set when it is entered
        if kind is strata.Tensor and len(args) == 1 and type(args[0]) in (list, tuple) and not kwargs:
            return self.call(strata.tensor, args, {"dtype": strata.get_default_dtype()})
        if natives.is_mode(kind) or kind.__module__.startswith("strata") and not natives.is_inlined(kind.__module__):
            return natives.construct(self, kind, args, kwargs)
        if values.is_enum(next(iter(kind.__dict__.get("_member_map_", {}).values()), None)):
            self.check_simple(args, kind.__name__)
            missing = class_lookup(kind, "_missing_")
            if isinstance(getattr(missing, "__func__", None), types.FunctionType) and missing.__func__.__module__ != "enum":
                raise Break(f"{kind.__name__}(...), whose class has a _missing_ of its own")
            return self.native(kind, *args, **kwargs)
        if issubclass(kind, strata.Tensor) and not values.strata_module_name_of(kind) and not issubclass(kind, strata.nn.Parameter):
            return self.new_tensor(kind, args, kwargs)
        if issubclass(kind, tuple):
            new = getattr(self.special(kind, "__new__"), "__func__", None)
            if isinstance(new, types.FunctionType):
                self.load(new.__defaults__, const(new).attr("__defaults__"))
            of_fields = not isinstance(new, types.FunctionType) or new.__module__.startswith("namedtuple_")
            if hasattr(kind, "_make") and of_fields and not isinstance(class_lookup(kind, "__init__"), types.FunctionType):
                return self.native(kind, *args, **kwargs)
            if values.is_bare_tuple_class(kind) and not kwargs and len(args) < 2:
                self.special(kind, "__init__")
                made = self.native(tuple.__new__, kind, *(self.listed(items) for items in args))
                self.fresh_objects.add(id(made))
                self.keep.append(made)
                return made
            raise Break(f"a {kind.__name__}, which derives from tuple, is made")
        if type(kind).__dict__.get("__call__") is dict:  # typing's TypedDict
            return self.call(dict, args, kwargs)
        if type(kind) is not type and type(kind).__module__ not in ("abc", "typing"):
            raise Break(f"a {kind.__name__} is made, whose class has a metaclass")
        if issubclass(kind, strata.nn.Module) or (isinstance(kind, type) and any(b.__module__.startswith("strata") and not natives.is_inlined(b.__module__) for b in kind.__mro__)):
            raise Break(f"a {kind.__name__} is made", "make modules, optimisers and functions outside of what is compiled")
        new, init = self.special(kind, "__new__"), self.special(kind, "__init__")
        if issubclass(kind, BaseException):
            made = self.native(kind.__new__, kind, *args)
            if not isinstance(init, types.FunctionType):
                return made
        elif base_of(kind) is not None:
            made = self.new_derived(kind)
            self.guard_class(kind, "__init__", init)
            if isinstance(init, types.FunctionType):
                self.call(init, (made, *args), kwargs)
            elif args or kwargs:
                self.call_container_method(init, made, "__init__", (made, *args), kwargs)
            return made
        elif new is object.__new__ or getattr(new, "__module__", "") == "typing":
            if any(values.is_immutable(b) and b is not object for b in kind.__mro__):
                raise Break(f"a {kind.__name__}, which derives from a builtin type, is made")
            made = self.fresh_instance(kind)
        else:
            raise Break(f"a {kind.__name__} is made, whose class has its own __new__")
        self.fresh_objects.add(id(made))
        self.keep.append(made)
        self.guard_class(kind, "__init__", init)
        if isinstance(init, types.FunctionType):
            self.call(init, (made, *args), kwargs)
        elif args or kwargs:
            self.native(kind, *args, **kwargs)
        return made

    def new_module(self, kind: type, args: tuple, kwargs: dict[str, Any]) -> Any:
        """One of strata's modules that holds no tensors: activations, losses, dropout, and lists of such."""
        for value in _elements((args, kwargs)):
            if values.is_module(value) and kind in (strata.nn.Sequential, strata.nn.ModuleList, strata.nn.ModuleDict) and (id(value) in self.fresh_objects or self.is_outside(value)):
                continue
            if self.python_method(type(value), values.DUNDERS) or values.is_tensor(value) or values.is_module(value):
                raise Break(f"a {kind.__name__} is made of a {type(value).__name__}", "make it outside of what is compiled")
        args, kwargs = settled((args, kwargs))
        try:
            made = self.library.call(kind, args, kwargs)
        except Exception as error:
            raise self.wrap_error(error) from None
        given = {id(value) for value in _elements((args, kwargs))}
        held = (made._parameters, made._buffers, made._modules)
        if any(value is not None and id(value) not in given for registry in held for value in registry.values()):
            raise Break(f"a {kind.__name__} is made", "make modules with parameters outside of what is compiled")
        self.library.kinds((kind,))
        self.fresh_objects.add(id(made))
        self.keep.append(made)
        return made

    def fresh_instance(self, kind: type) -> Any:
        if not isinstance(kind, type):
            return self.native(object.__new__, kind)
        if issubclass(kind, strata.nn.Module) or kind.__module__.startswith("strata."):
            if not natives.is_inlined(kind.__module__) or issubclass(kind, strata.nn.Module):
                raise Break(f"a {kind.__name__} is made", "make it outside of what is compiled")
        if type(kind) is not type and type(kind).__module__ not in ("abc", "typing"):
            raise Break(f"a {kind.__name__} is made, whose class has a metaclass")
        made = self.native(object.__new__, kind)
        self.fresh_objects.add(id(made))
        self.keep.append(made)
        return made


def _elements(nest: Any) -> Any:
    """What lies in nests of tuples, lists and dicts."""
    if type(nest) in (tuple, list, dict, collections.OrderedDict):
        for value in nest.values() if isinstance(nest, dict) else nest:
            yield from _elements(value)
    else:
        yield nest
