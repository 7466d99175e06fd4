"""Attributes of captured values, looked up as Python does: each object's own, its class's, descriptors, __getattr__."""

from __future__ import annotations

import _thread
import operator
import types
import weakref

import strata
from strata import _C

from . import instances, training, values
from .guards import ABSENT as _ABSENT
from .guards import ClassAttribute, ClassAttributes, class_lookup
from .reasons import Break, Raised
from .sizes import Sym
from .sources import const
from .values import Generator
from .whole_modules import HOOKS, is_optimized

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What a tensor says of itself that its guard knows, or that an operator gives.
_TENSOR_FACTS = frozenset(
    "shape dtype device ndim requires_grad is_leaf layout itemsize nbytes is_cpu is_meta is_sparse is_quantized names "
    "is_mkldnn is_nested is_sparse_csr".split()
)
_TENSOR_VIEWS = frozenset("T mT H mH real imag".split())
_ELSEWHERE = (_thread._local, weakref.ProxyType, weakref.CallableProxyType)  # whose attributes lie elsewhere
_C_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType)


def _is_data(descriptor: Any) -> bool:
    return hasattr(type(descriptor), "__set__") or hasattr(type(descriptor), "__delete__")


class Attributes:
    def getattr(self, obj: Any, name: str) -> Any:
        obj = self.settled(obj)
        if type(obj) is Sym:
            return self.native(getattr, obj.settle(), name)
        if values.is_tensor(obj):
            return self.tensor_attribute(obj, name)
        if isinstance(obj, types.ModuleType):
            return self.module_attribute(obj, name)
        if isinstance(obj, super):
            return self.super_attribute(obj, name)
        if isinstance(obj, type):
            return self.class_attribute(obj, name)
        if isinstance(obj, Generator):
            return self.generator_attribute(obj, name)
        if isinstance(obj, types.MethodType):
            return self.native(getattr, obj, name) if name in ("__self__", "__func__", "__name__", "__doc__") else self.getattr(obj.__func__, name)
        if isinstance(obj, types.FunctionType) or values.is_partial(obj):
            return self.function_attribute(obj, name)
        if isinstance(obj, BaseException) and not self.is_outside(obj):
            return self.exception_attribute(obj, name)
        if isinstance(obj, values.BUILTIN_FUNCTIONS) or values.is_constant(obj):
            return self.native(getattr, obj, name)
        return self.instance_attribute(obj, name)

    def exception_attribute(self, error: BaseException, name: str) -> Any:
        kind = type(error)
        found = class_lookup(kind, name, _ABSENT)
        written = name in getattr(error, "__dict__", {})
        if isinstance(self.special(kind, "__getattribute__"), types.FunctionType):
            raise Break(f"an attribute of a {kind.__name__}, whose class has its own __getattribute__")
        if isinstance(found, property):
            return self.or_fallback(self.described, error, name, found, None)
        if not written and found is _ABSENT and self.method_of(kind, "__getattr__") is not None:
            return self.missing(error, name)
        return self.native(getattr, error, name)

    def function_attribute(self, function: Any, name: str) -> Any:
        """One that no source gave was found in a class, and stands for itself."""
        source = self.known.get(id(function))
        if source is None and isinstance(function, types.FunctionType) and id(function) not in self.fresh_functions:
            source = const(function)
        if source is not None and name not in function.__dict__ and not hasattr(function, name):
            self.guards.add("has_no_dict_key", source, name)
        value = self.native(getattr, function, name)
        return value if source is None else self.load(value, source.attr(name))

    def instance_attribute(self, obj: Any, name: str) -> Any:
        kind = type(obj)
        if kind.__module__ == "strata.ops":
            getattr(obj, name, None)  # namespaces and packets note an operator when it is first named
        if is_optimized(obj) and name not in ("_orig_mod", "__class__", "__dict__"):
            return self.getattr(self.original(obj), name)
        if isinstance(self.special(kind, "__getattribute__"), types.FunctionType) or issubclass(kind, _ELSEWHERE):
            raise Break(f"an attribute of a {kind.__name__}, whose class has its own __getattribute__")
        source = self.known.get(id(obj)) or (const(obj) if values.is_enum(obj) else None)
        found = class_lookup(kind, name, _ABSENT)
        if found is not _ABSENT and _is_data(found):
            return self.or_fallback(self.described, obj, name, found, source)
        written = self.attributes.get((id(obj), name))
        if written is not None:
            if written[1] is _ABSENT:
                return self.missing(obj, name)
            return written[1]
        own = getattr(obj, "__dict__", None) if kind.__dictoffset__ else None
        if name == "__dict__" and own is not None:
            return self.dict_of(obj)
        if source is not None and own is not None and not self.lies_apart(own, obj):
            raise Break(f"an attribute of a {kind.__name__}, whose __dict__ is another object's or read as a dict, too")
        if own is not None and name in own:
            if source is None:
                return own[name]
            if name in _REGISTRIES and values.is_module(obj) and any((id(obj), held) in self.attributes for held in own[name]):
                raise Break(f"{name} of a {kind.__name__} is read where one of them was assigned", "read it as an attribute")
            self.guard_class(kind, name, found)
            return self.count(own[name], source.state(name))
        if source is not None and own is not None:
            self.guards.add("has_no_dict_key", source, name)
        if found is not _ABSENT:
            self.guard_class(kind, name, found)
            return self.or_fallback(self.bound, obj, kind, name, found)
        return self.missing(obj, name)

    def dict_of(self, obj: Any) -> dict:
        """The __dict__ of an object that the capture made, whose attributes lie there in truth."""
        if id(obj) not in self.fresh_objects:
            raise Break("an object's __dict__")
        self.made_dicts[id(obj.__dict__)] = obj
        return obj.__dict__

    def or_fallback(self, way: Any, obj: Any, *more: Any) -> Any:
        """What a descriptor gives; where it raises AttributeError, what the class's __getattr__ does."""
        try:
            return way(obj, *more)
        except Raised as error:
            if not isinstance(error.error, AttributeError) or self.special(type(obj), "__getattr__") is None:
                raise
        return self.missing(obj, more[0] if isinstance(more[0], str) else more[1])

    def guard_class(self, kind: type, name: str, found: Any) -> None:
        """The class still has that attribute, or none. Classes that no program changes need no guard."""
        if kind.__flags__ & values.HEAP_TYPE:
            self.guards.add("class", None, self.pinned(kind, name, found))

    def pinned(self, kind: type, name: str, found: Any) -> ClassAttribute:
        key = (kind, name)
        table = self.__dict__.setdefault("_pinned", {})
        if key not in table:
            table[key] = ClassAttribute(kind, name, found)
        return table[key]

    def described(self, obj: Any, name: str, found: Any, source: Any) -> Any:
        """By a data descriptor: a property, a slot, a field of a C type."""
        kind = type(obj)
        if isinstance(found, property):
            self.guard_class(kind, name, found)
            if found.fget is None:
                return self.native(getattr, obj, name)
            return self.call(found.fget, (obj,), {})
        if name == "__class__":
            return kind
        if isinstance(found, _C_DESCRIPTORS):
            if name == "__dict__":
                return self.dict_of(obj)
            written = self.attributes.get((id(obj), name))
            if written is not None:
                return written[1]
            try:
                value = found.__get__(obj, kind)
            except AttributeError as error:
                if source is not None:
                    self.guards.add("unset", source, name)
                raise Raised(error) from None
            return value if source is None else self.load(value, source.attr(name))
        if values.is_enum(obj) or type(found).__name__ == "_tuplegetter":
            self.guard_class(kind, name, found)
            return self.native(getattr, obj, name)
        get = self.special(type(found), "__get__")
        if isinstance(get, types.FunctionType):
            return self.call(get, (self.of_class(kind, name, found), obj, kind), {})
        raise Break(f"an attribute by a {type(found).__name__}")

    def bound(self, obj: Any, kind: type, name: str, found: Any, owner: type | None = None) -> Any:
        """A class's attribute as its instance, or the class itself (obj None), gives it. owner: where it lies, else the first that has it."""
        if isinstance(found, types.FunctionType):
            return found if obj is None else types.MethodType(found, obj)
        if isinstance(found, staticmethod):
            return found.__func__
        if isinstance(found, classmethod):
            return types.MethodType(found.__func__, kind)
        if obj is not None and isinstance(found, values.BUILTIN_FUNCTIONS):
            return self.native(getattr, obj, name)
        if type(found).__name__ == "cached_property" and type(found).__module__ == "functools":
            if obj is None:
                return found
            value = self.call(found.func, (obj,), {})
            if values.is_module(obj):
                self.setattr(obj, name, value)
            else:  # it writes the object's __dict__
                self.set_plain_attribute(obj, name, value)
            return value
        if obj is not None and values.is_enum(obj):
            return self.native(getattr, obj, name)
        get = self.special(type(found), "__get__")
        if isinstance(get, types.FunctionType):
            return self.call(get, (self.of_class(owner or kind, name, found), obj, kind), {})
        if get is not None:
            if obj is None and isinstance(found, (property, *_C_DESCRIPTORS, *values.BUILTIN_FUNCTIONS)):
                return found
            raise Break(f"an attribute by a {type(found).__name__}")
        return self.of_class(owner or kind, name, found)

    def of_class(self, kind: type, name: str, found: Any) -> Any:
        """What lies in a class, or in one that it derives from."""
        self.guard_class(kind, name, found)
        owner = next(base for base in kind.__mro__ if name in base.__dict__)
        return self.load(found, const(owner).attr("__dict__").item(name))

    def missing(self, obj: Any, name: str) -> Any:
        kind = type(obj)
        fallback = self.special(kind, "__getattr__")
        if fallback is None:
            self.guard_class(kind, name, _ABSENT)
            return self.native(object.__getattribute__, obj, name) if (id(obj), name) not in self.attributes else self.no_attribute(obj, name)
        if values.is_module(obj) and strata_getattr(fallback):
            return self.member(obj, name)
        if values.is_module(obj):
            from . import natives

            natives.SPECIAL.setdefault(id(strata.nn.Module.__getattr__), _member)  # which the class's own falls back to
        return self.call(fallback, (obj, name), {})

    def no_attribute(self, obj: Any, name: str) -> Any:
        raise Raised(AttributeError(f"'{type(obj).__name__}' object has no attribute '{name}'"))

    def member(self, module: Any, name: str) -> Any:
        """A parameter, buffer or module of a module."""
        source = self.source_of(module)
        for registry in ("_parameters", "_buffers", "_modules"):
            members = module.__dict__.get(registry)
            place = source.state(registry)
            if members is not None and name in members:
                return self.load(members[name], place.item(name))
            self.guards.add("lacks", place, name)
        return self.no_attribute(module, name)

    def original(self, optimized: Any) -> Any:
        """The module of a compiled one, which stands for it."""
        return self.load(optimized.__dict__["_modules"]["_orig_mod"], self.source_of(optimized).state("_modules").item("_orig_mod"))

    def original_called(self, optimized: Any) -> Any:
        """The same where it is called: hooks of the compiled one would run beside."""
        if optimized._own_hooks():
            raise Break("a compiled module with hooks of its own")
        for name in HOOKS:
            self.guards.add("len", self.source_of(optimized).state(name), 0)
        return self.original(optimized)

    def module_attribute(self, module: types.ModuleType, name: str) -> Any:
        value = self.native(getattr, module, name)
        source = self.source_of(module)
        if name in module.__dict__:
            return self.load(value, source.state(name))
        return self.load(value, source.attr(name))

    def class_attribute(self, kind: type, name: str) -> Any:
        if values.is_enum(next(iter(kind.__dict__.get("_member_map_", {}).values()), None)) or name in ("__name__", "__qualname__", "__module__", "__mro__", "__doc__", "__class__"):
            value = self.native(getattr, kind, name)
            return value if values.is_enum(value) or values.is_immutable(kind) else self.load(value, const(kind).attr(name))
        meta = class_lookup(type(kind), name, _ABSENT)
        if meta is not _ABSENT and _is_data(meta):
            raise Break(f"{kind.__name__}.{name}")
        found = class_lookup(kind, name, _ABSENT)
        self.guard_class(type(kind), name, meta)
        self.guard_class(kind, name, found)
        if found is _ABSENT:
            fallback = self.method_of(type(kind), "__getattr__") if meta is _ABSENT else None
            if fallback is not None:
                return self.call(fallback, (kind, name), {})
            return self.native(getattr, kind, name) if meta is _ABSENT else self.bound(kind, type(kind), name, meta)
        if isinstance(found, types.ClassMethodDescriptorType):
            return self.native(getattr, kind, name)
        return self.bound(None, kind, name, found)

    def super_attribute(self, proxy: super, name: str) -> Any:
        obj, kind = proxy.__self__, proxy.__self_class__
        order = kind.__mro__
        for base in order[order.index(proxy.__thisclass__) + 1 :]:
            if name in base.__dict__:
                found = base.__dict__[name]
                if base.__flags__ & (1 << 9):
                    self.guards.add("class", None, self.pinned(base, name, found))
                if isinstance(found, property):
                    return self.call(found.fget, (obj,), {})
                if isinstance(found, values.BUILTIN_FUNCTIONS):
                    return self.native(getattr, proxy, name)
                return self.bound(None if obj is kind else obj, kind, name, found, base)
        return self.native(getattr, proxy, name)

    # ---- tensors

    def tensor_attribute(self, t: Any, name: str) -> Any:
        if not values.is_plain_tensor(t):
            found = self.subclass_attribute(t, name)
            if found is not NotImplemented:
                return found
        if name == "is_leaf" and self.is_outside(t):
            return self.was_leaf[id(t)]
        if name == "shape" and self.program is not None:
            return self.program.shape(t)
        if name == "nbytes" and self.program is not None:
            return self.native(operator.mul, self.numel_of(t), t.itemsize)
        if name in _TENSOR_FACTS or (name.startswith("is_") and isinstance(class_lookup(type(t), name), property)):
            return self.native(getattr, t, name)
        if name in _TENSOR_VIEWS:
            return self.call_operator(getattr, (t, name))
        if name == "grad":
            value = self.native(getattr, t, name)
            if value is None and self.is_outside(t) and not self.grad_was_written(t):
                self.guards.add("is", self.known[id(t)].attr("grad"), None)
                return None
            if value is None or self.region.made(value) or self.is_outside(value):
                if value is not None and self.program is not None and not self.is_outside(value):
                    self.program.derive(value, getattr, (t, "grad"), "grad")
                return value
            return training.load_gradient(self, t, self.source_of(t))
        if name == "data":
            return self.call_operator(type(t).detach, (t,)) if not t.requires_grad else self.refuse(t, name)
        if name == "__class__":
            return type(t)
        own = getattr(t, "__dict__", None)
        if own and name in own:
            if self.is_outside(t):
                return self.load(own[name], self.known[id(t)].state(name))
            return own[name]
        found = class_lookup(type(t), name, _ABSENT)
        self.pin_method(type(t), name, found)
        if self.is_outside(t):
            self.of_tensors.setdefault(id(t), (self.known[id(t)], set()))[1].add(name)
        if found is _ABSENT:
            return self.native(getattr, t, name)
        if isinstance(found, types.FunctionType):
            return types.MethodType(found, t)
        if isinstance(found, values.BUILTIN_FUNCTIONS):
            return self.native(getattr, t, name)
        return self.refuse(t, name)

    def special(self, kind: type, name: str) -> Any:
        """A method as Python's operators look it up, None where there is none. The class still has that one, or none."""
        found = class_lookup(kind, name, _ABSENT)
        if kind.__flags__ & (1 << 9):
            self.pin_method(kind, name, found)
        return None if found is _ABSENT else found

    def pin_method(self, kind: type, name: str, found: Any) -> None:
        """A class of tensors still has that method: one guard for all of them."""
        pinned = self.__dict__.setdefault("_methods", {}).setdefault(kind, ClassAttributes(kind))
        pinned.found[name] = found
        self.guards.add("class", None, pinned)

    def pin_operator(self, name: str, args: tuple) -> None:
        """Classes of tensors among the operands still have the operator's own methods."""
        for kind in {type(a) for a in args if values.is_tensor(a)}:
            for method in (f"__{name.strip('_')}__", f"__r{name.strip('_')}__"):
                found = class_lookup(kind, method, _ABSENT)
                if found is not _ABSENT:
                    if isinstance(found, types.FunctionType) and not values.strata_module_name(found):
                        raise Break(f"{kind.__name__}.{method}, which was replaced")
                    self.pin_method(kind, method, found)

    def refuse(self, t: Any, name: str) -> Any:
        raise Break(f"a tensor's attribute {name} cannot be captured")

    def grad_was_written(self, t: Any) -> bool:
        return id(t) in self.grads_written

    # ---- writes

    def setattr(self, obj: Any, name: str, value: Any) -> None:
        if values.is_tensor(obj):
            return self.set_tensor_attribute(obj, name, value)
        if id(obj) in self.fresh_functions and (name in OF_FUNCTIONS or not (name.startswith("__") and name.endswith("__"))):
            return self.native(setattr, obj, name, self.settled(value))
        if isinstance(obj, (type, types.ModuleType, types.FunctionType, Generator)):
            raise Break(f"an attribute of a {type(obj).__name__} is set")
        if is_optimized(obj):
            return self.setattr(self.original(obj), name, value)
        kind = type(obj)
        setter = self.special(kind, "__setattr__")
        if setter is BaseException.__setattr__ and not self.is_outside(obj):
            return self.native(setter, obj, name, self.settled(value))
        if setter is not object.__setattr__:
            if values.is_module(obj) and setter.__module__.startswith("strata.nn"):
                return self.set_module_attribute(obj, name, value)
            if isinstance(setter, (types.FunctionType, types.WrapperDescriptorType)):
                self.guard_class(kind, "__setattr__", setter)
                self.call(setter, (obj, name, value), {})
                return None
            raise Break(f"an attribute of a {kind.__name__} is set")
        return self.set_plain_attribute(obj, name, value)

    def set_plain_attribute(self, obj: Any, name: str, value: Any) -> None:
        """As object.__setattr__ does it."""
        kind = type(obj)
        found = class_lookup(kind, name, _ABSENT)
        if found is not _ABSENT and _is_data(found):
            if isinstance(found, property) and found.fset is not None:
                self.call(found.fset, (obj, value), {})
                return
            if not isinstance(found, _C_DESCRIPTORS):
                method = self.special(type(found), "__set__")
                if not isinstance(method, types.FunctionType):
                    raise Break(f"the attribute {name} of a {kind.__name__} is set by a {type(found).__name__}")
                self.call(method, (self.of_class(kind, name, found), obj, value), {})
                return
        if self.is_outside(obj):
            if not kind.__flags__ & (1 << 9) or (values.is_immutable(kind) and not kind.__dictoffset__):
                raise Break(f"an attribute of a {kind.__name__} is set")
            if kind.__dictoffset__ and not self.lies_apart(obj.__dict__, obj):
                raise Break(f"an attribute of a {kind.__name__}, whose __dict__ is another object's or read as a dict, too, is set")
            self.attributes[id(obj), name] = (obj, value)
            self.keep.append(obj)
        else:
            self.native(object.__setattr__, obj, name, self.settled(value))

    def set_module_attribute(self, module: Any, name: str, value: Any) -> Any:
        if not self.is_outside(module):
            if values.is_tensor(value) or values.is_module(value) or any(name in module.__dict__.get(r, ()) for r in (*_REGISTRIES, "_modules")):
                raise Break("a tensor or module is assigned to a module that is made here", "make it outside of what is compiled")
            return self.native(setattr, module, name, self.settled(value))
        registries = [module.__dict__.get(r, {}) for r in ("_parameters", "_modules")]
        if values.is_module(value) or type(value).__name__ in ("Parameter", "Buffer") or any(name in r for r in registries):
            raise Break(f"the parameter or module {name} is assigned")
        source = self.known[id(module)]
        for registry in ("_parameters", "_modules"):
            self.guards.add("lacks", source.state(registry), name)
        if name in module.__dict__.get("_buffers", {}):
            if value is not None and not values.is_tensor(value):
                raise Break(f"the buffer {name} is assigned a {type(value).__name__}")
            if id(module._buffers) in self.by_real:
                raise Break("a buffer is assigned, where the module's dict of them was read before", "read it as an attribute")
            self.attributes[id(module), name] = (module, value)
            return
        self.guards.add("lacks", source.state("_buffers"), name)
        self.set_plain_attribute(module, name, value)

    def set_tensor_attribute(self, t: Any, name: str, value: Any) -> None:
        if name == "grad" and (value is None or values.is_plain_tensor(value)):
            if value is not None:
                raise Break("a tensor's grad is set to another tensor")
            training.note_reset(self, t)
            self.grads_written[id(t)] = t
            self.native(setattr, t, name, value)
            self.do(instances.clear_grad, t)
            return
        found = class_lookup(type(t), name, _ABSENT)
        if self.is_outside(t) or not self.region.made(t) or self.special(type(t), "__setattr__") is not _set_of_tensors or _is_data(found):
            raise Break(f"a tensor's attribute {name} is set", "return the value instead")
        self.native(setattr, t, name, self.settled(value))

    def delattr(self, obj: Any, name: str) -> None:
        if self.is_outside(obj) or isinstance(obj, (type, types.ModuleType)) or values.is_tensor(obj) or values.is_module(obj):
            raise Break(f"an attribute of a {type(obj).__name__} is deleted")
        method = self.method_of(type(obj), "__delattr__")
        if method is not None:
            self.call(method, (obj, name), {})
        else:
            self.native(delattr, obj, name)


_REGISTRIES = ("_parameters", "_buffers")
# What decorators write to the functions that they make.
OF_FUNCTIONS = frozenset("__name__ __qualname__ __doc__ __module__ __annotations__ __wrapped__ __type_params__".split())
_set_of_tensors = class_lookup(_C.TensorBase, "__setattr__")


def _member(tracer: Any, args: tuple, kwargs: dict, f: Any) -> Any:
    """strata.nn.Module.__getattr__(module, name)"""
    module, name = args
    written = tracer.attributes.get((id(module), name))
    return tracer.member(module, name) if written is None or written[1] is _ABSENT else written[1]


def strata_getattr(function: Any) -> bool:
    return getattr(function, "__module__", "").startswith("strata.nn")
