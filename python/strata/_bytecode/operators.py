"""What operators of Python do with captured values: natively where only tensors and builtin types take part, else by the
methods of the program's classes, which are executed."""

from __future__ import annotations

import collections
import operator
import types
from collections.abc import Mapping, Sequence

import strata
from strata import _C

from . import arguments, polyfills, values
from .guards import class_lookup
from .reasons import Break, Raised
from .sizes import Sizes, Sym, settled, stand_in
from .values import Generator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_REFLECTED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
_KNOWN_WHOLE = (tuple, frozenset, type, types.FunctionType, types.ModuleType, types.MethodType, *values.BUILTIN_FUNCTIONS)
_JOINS = ("add", "iadd", "mul", "imul")  # what does not look at the elements of lists and tuples
_DATA_DEPENDENT = "strata.where, or a mask, keeps the choice in the graph"


def _goes_first(plain: str, a: Any, b: Any) -> bool:
    """Whether a builtin's own method, or a tensor's, takes the other operand, so that no reflected one is asked."""
    if plain == "mod" and isinstance(a, (str, bytes)):
        return True
    return isinstance(b, (int, float, complex)) and (values.is_tensor(a) or isinstance(a, (int, float, complex)))

# Operators that have no meaning for a number or a string beside an object of the program but by the object's methods.
_SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "pow": "** or pow()", "matmul": "@", "and": "&", "or": "|", "xor": "^",
    "lshift": "<<", "rshift": ">>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip


class Operators:
    def method_of(self, kind: type, name: str) -> Any:
        """A special method that the program wrote; None for others."""
        found = self.special(kind, name) if kind not in (Sym, Sizes) else None
        return found if isinstance(found, types.FunctionType) else None

    def python_method(self, kind: type, names: tuple[str, ...]) -> str | None:
        """One of those special methods that the class, or one that it derives from, wrote in Python."""
        for name in names:
            self.special(kind, name)
        return values.has_python_method(kind, names)

    def same(self, a: Any, b: Any) -> bool:
        if (type(a) is Sym and type(stand_in(b)) in (int, float)) or (type(b) is Sym and type(a) in (int, float)):
            return settled(a) is settled(b)
        self.compare(a, b)
        return a is b

    def compare(self, a: Any, b: Any, within: bool = False) -> None:
        """Objects from outside are compared by identity: those that differ now must differ in each call. within: what nests hold."""
        for value in (a, b):
            if values.is_constant(value) or values.is_tensor(value):
                continue
            if within and isinstance(value, (list, tuple, dict)):
                for item in list(value.values()) if isinstance(value, dict) else list(value):
                    self.compare(item, None, True)
            elif id(value) in self.known:
                self.compared[id(value)] = (value, self.known[id(value)])

    def compared_apart(self) -> None:
        """The guards of that, by type."""
        by_type: dict[type, list] = {}
        for value, source in self.compared.values():
            by_type.setdefault(type(value), []).append(source)
        for sources in by_type.values():
            if len(sources) > 1:
                self.guards.add("distinct", None, sources)

    def truth(self, value: Any) -> bool:
        if values.is_tensor(value):
            raise Break("a branch on a tensor's value", _DATA_DEPENDENT)
        kind = type(value)
        if kind in (bool, int, float, str, type(None), list, dict, tuple, set) or self.is_native(value):
            return bool(value)
        if isinstance(value, (Generator, type, types.FunctionType, types.ModuleType, types.MethodType)):
            return True
        if self.held_base(value) is not None and self.method_of(kind, "__bool__") is None:
            return len(value) > 0
        for name, function in (("__bool__", bool), ("__len__", len)):
            method = self.method_of(kind, name)
            if method is not None:
                return bool(arguments.given(self, function, self.call(method, (value,), {})))
        if self.special(kind, "__bool__") is None and self.special(kind, "__len__") is None:
            return True
        raise Break(f"whether a {kind.__name__} is true")

    def holds(self, value: Any, wanted: bool) -> bool:
        """Whether what is asserted of it is so. Of a flag that a graph gives it is taken to be: the call looks when the graph has run,
        and runs as it is where it is not."""
        if self.plan.asserts and type(value) is strata.Tensor and value.dtype is strata.bool and value.dim() == 0:
            self.asserted.append((value, wanted))
            return True
        return self.truth(value) == wanted

    def is_native(self, value: Any) -> bool:
        """Whether operators on it run no code of the program."""
        kind = type(value)
        if values.is_constant(value) or kind in values.COPIED or values.is_tensor(value):
            return True
        if self.acts_natively(value):
            return True
        of_python = kind.__module__ in ("builtins", "collections", "_collections", "itertools", "enum") and values.is_immutable(kind)
        return of_python and not self.unguarded(value)

    def unguarded(self, value: Any) -> bool:
        """Whether it is an object from outside of which C holds more than is guarded: a view of a dict, an iterator, an exception."""
        if id(value) not in self.known or values.is_constant(value) or values.is_tensor(value) or isinstance(value, _KNOWN_WHOLE) or values.is_enum(value):
            return False
        if type(value) in values.COPIED or self.held_base(value) is not None:
            return False
        return any(values.is_immutable(base) for base in type(value).__mro__[:-1])

    def unary(self, name: str, a: Any) -> Any:
        if values.is_tensor(a):
            return self.call_operator(getattr(operator, name), (a,))
        if not self.is_native(a):
            method = self.method_of(type(a), f"__{name}__")
            if method is None:
                raise Break(f"the operator {name} on a {type(a).__name__}")
            return self.call(method, (a,), {})
        return self.native(getattr(operator, name), a)

    def binary(self, name: str, a: Any, b: Any) -> Any:
        if type(a) is values.Number or type(b) is values.Number:
            return self.count_with(name, a, b)
        function = getattr(operator, name)
        if self.method_of(type(a), f"__{name.rstrip('_')}__") is None and self.method_of(type(b), f"__r{name.rstrip('_')}__") is None:
            a, b = values.as_int(a), values.as_int(b)
        for value in (a, b):
            if not self.is_native(value) and not isinstance(value, (tuple, type, types.FunctionType, types.ModuleType)):
                return self.binary_by_methods(name, a, b)
        if self.has_tensor(a) or self.has_tensor(b):
            if name in _JOINS and not values.is_tensor(a) and not values.is_tensor(b):
                return self.native(function, a, b)
            return self.call_operator(function, (a, b))
        if name in ("eq", "ne") and type(a) is type(b) and type(a) in (list, tuple) and any(self.python_method(type(v), values.DUNDERS) for v in (*a, *b)):
            return self.truth(self.call(polyfills.equal_items, (a, b), {})) == (name == "eq")
        self.check_simple((a, b), name)
        if name in ("eq", "ne") and not values.is_constant(a) and not values.is_constant(b):
            self.compare(a, b, True)
        return self.native(function, a, b)

    def binary_by_methods(self, name: str, a: Any, b: Any) -> Any:
        plain = name.rstrip("_")
        if name[0] == "i" and hasattr(operator, "i" + plain[1:]) and name not in ("invert", "is_"):
            found = self.by_method(a, f"__{plain}__", b)
            if found is not NotImplemented:
                return found
            plain = plain[1:]
        first, second = (a, f"__{plain}__", b), (b, f"__{_REFLECTED.get(plain, 'r' + plain)}__", a)
        if type(b) is not type(a) and issubclass(type(b), type(a)) and class_lookup(type(b), second[1]) is not class_lookup(type(a), second[1]):
            first, second = second, first
        for one, method, other in (first, second):
            if one is a and _goes_first(plain, a, b) and self.method_of(type(a), method) is None:
                raise Break(f"the operator {plain} of {type(a).__name__} and {type(b).__name__}")
            found = self.by_method(one, method, other)
            if found is not NotImplemented:
                return found
        if plain == "ne" and not values.is_tensor(a) and not values.is_tensor(b):  # object.__ne__ asks __eq__
            for one, other in ((a, b), (b, a)):
                found = self.by_method(one, "__eq__", other) if self.special(type(one), "__ne__") is object.__ne__ else NotImplemented
                if found is not NotImplemented:
                    return not self.truth(found)
        if plain in ("eq", "ne") and not values.is_tensor(a) and not values.is_tensor(b):
            for value in (a, b):
                if self.special(type(value), "__eq__") is not object.__eq__ and not self.is_native(value):
                    raise Break(f"a comparison of a {type(value).__name__}")
            self.compare(a, b)
            return (a is b) == (plain == "eq")
        sign = _SIGNS.get(plain)
        if sign and all(self.lacks(value, method) for value, method, _ in (first, second)):
            of = f"'{type(a).__name__}' and '{type(b).__name__}'"
            text = f"'{sign}' not supported between instances of {of}" if plain in ("lt", "le", "gt", "ge") else f"unsupported operand type(s) for {sign}: {of}"
            raise self.wrap_error(TypeError(text))
        raise Break(f"the operator {plain} of {type(a).__name__} and {type(b).__name__}")

    def by_method(self, value: Any, name: str, other: Any) -> Any:
        method = self.method_of(type(value), name)
        return NotImplemented if method is None else self.call(method, (value, other), {})

    def lacks(self, value: Any, method: str) -> bool:
        """Whether it has no such method, or none but one of Python's, which has been asked; numbers have none for objects."""
        found = self.special(type(value), method)
        return found is None or isinstance(found, types.FunctionType) or values.is_constant(value)

    def contains(self, container: Any, value: Any) -> bool:
        method = self.method_of(type(container), "__contains__")
        if values.is_tensor(container):
            raise Break("whether a tensor has a value", _DATA_DEPENDENT)
        if method is not None:
            return bool(self.call(method, (container, value), {}))
        if values.is_constant(container) and not hasattr(container, "__contains__"):
            return self.native(operator.contains, container, None)  # which says that it is none
        if values.is_enum(value) or isinstance(container, type):
            return self.native(operator.contains, container, value)
        if not self.is_native(container) and not isinstance(container, tuple) and self.held_base(container) is None:
            raise Break(f"`in` of a {type(container).__name__}")
        if isinstance(container, (dict, set, frozenset)):
            if self.hash_is_native(value):
                return self.native(operator.contains, container, value)
            raise Break(f"a {type(value).__name__} as a key")
        if values.is_tensor(value) or self.has_tensor(container):
            if any(value is item for item in container):  # the first that is equal may come before it
                if container[0] is value:
                    return True
            raise Break("`in` compares values of tensors", "compare by identity: any(t is u for u in items)")
        self.check_simple((container, value), "in")
        self.compare(container, value, True)
        return self.native(operator.contains, container, value)

    def hash_is_native(self, value: Any) -> bool:
        if isinstance(value, tuple):
            return all(self.hash_is_native(v) for v in value)
        kind = type(value)
        if id(value) in self.known and isinstance(value, (types.FunctionType, types.MethodType)):
            self.guards.add("is", self.known[id(value)], value)
        self.compare(value, None)
        return values.is_constant(value) or self.special(kind, "__hash__") in (object.__hash__, type.__hash__) or values.is_enum(value) or (
            self.is_native(value) and not isinstance(value, values.COPIED)
        )

    # ---- items and iteration

    def getitem(self, obj: Any, key: Any) -> Any:
        if values.is_tensor(obj) or values.is_tensor(key):
            return self.call_operator(operator.getitem, (obj, self.as_index(obj, key)))
        method = self.method_of(type(obj), "__getitem__")
        if method is not None:
            return self.call(method, (obj, key), {})
        if isinstance(obj, dict) and not self.hash_is_native(key):
            raise Break(f"a {type(key).__name__} as a key")
        if isinstance(obj, dict) and type(obj) not in (dict, collections.OrderedDict) and (self.is_native(obj) or self.held_base(obj) is not None):
            found = self.missing_item(obj, key)
            if found is not NotImplemented:
                return found
        if isinstance(obj, type):
            of_class = class_lookup(obj, "__class_getitem__")
            if isinstance(of_class, (classmethod, types.FunctionType)):
                self.guard_class(obj, "__class_getitem__", of_class)
                function = of_class.__func__ if isinstance(of_class, classmethod) else of_class
                if isinstance(function, types.FunctionType) and function.__module__ != "typing":
                    return self.call(function, (obj, key), {})
            return self.native(operator.getitem, obj, key)
        if type(obj) is types.MappingProxyType and values.is_constant(key) and id(obj) in self.known and key in obj:
            return self.load(obj[key], self.known[id(obj)].item(key))
        if not self.is_native(obj) and not isinstance(obj, tuple) and self.held_base(obj) is None:
            raise Break(f"an item of a {type(obj).__name__}")
        if not values.is_constant(key) and not isinstance(obj, dict):
            index = self.method_of(type(key), "__index__")
            if index is None:
                raise Break(f"a {type(key).__name__} as an index")
            key = self.call(index, (key,), {})
        return self.native(operator.getitem, obj, settled(key))

    def slice(self, bounds: list) -> slice:
        """Of what are no numbers: what their classes' __index__ gives."""
        for i, value in enumerate(bounds):
            method = None if values.is_constant(value) or values.is_tensor(value) else self.method_of(type(value), "__index__")
            if method is not None:
                bounds[i] = self.call(method, (value,), {})
            elif self.unguarded(value):
                raise Break(f"a {type(value).__name__} as an index")
        return slice(*bounds)

    def as_index(self, obj: Any, key: Any) -> Any:
        """Lists of ints that index a tensor are tensors of Python data: a graph that held one would be for that object alone."""
        if type(key) is tuple and any(type(k) is list for k in key):
            return tuple(self.as_index(obj, k) for k in key)
        if type(key) is list and key and all(type(k) is int for k in key) and values.is_tensor(obj):
            return self.call(_C.tensor, (key,), {"dtype": strata.int64, "device": obj.device})
        return key

    def setitem(self, obj: Any, key: Any, value: Any) -> None:
        if values.is_tensor(obj):
            self.call_operator(operator.setitem, (obj, self.as_index(obj, key), value))
            return
        method = self.method_of(type(obj), "__setitem__")
        if method is not None:
            self.call(method, (obj, key, value), {})
        elif (type(obj) in values.COPIED or self.held_base(obj) is not None) and self.hash_is_native(key):
            self.native(operator.setitem, obj, key, value)
        else:
            raise Break(f"an item of a {type(obj).__name__} is set")

    def delitem(self, obj: Any, key: Any) -> None:
        method = self.method_of(type(obj), "__delitem__")
        if method is not None:
            self.call(method, (obj, key), {})
        elif (type(obj) in values.COPIED or self.held_base(obj) is not None) and self.hash_is_native(key):
            self.native(operator.delitem, obj, key)
        else:
            raise Break(f"an item of a {type(obj).__name__} is deleted")

    def iter(self, value: Any) -> Any:
        if isinstance(value, Generator):
            return value
        if values.is_tensor(value):
            return iter(list(self.call_operator(list, (value,))))
        kind = type(value)
        method = self.method_of(kind, "__iter__")
        if method is not None:
            return self.call(method, (value,), {})
        if self.is_outside(value) and hasattr(kind, "__next__"):
            raise Break(f"a {kind.__name__} from outside is asked for values", "make the iterator inside of what is compiled")
        if self.is_native(value) or self.held_base(value) is not None or isinstance(value, tuple) or (isinstance(value, type) and values.is_enum(next(iter(value), None))):
            return self.native(iter, value)
        if self.method_of(kind, "__getitem__") is not None:
            return self.call(polyfills.by_items, (value,), {})
        raise Break(f"a loop over a {kind.__name__}")

    def next(self, it: Any, sent: Any = None) -> tuple[bool, Any]:
        if isinstance(it, Generator):
            return self.resume(it, sent)
        if self.is_outside(it):
            raise Break(f"a {type(it).__name__} from outside is asked for a value", "make the iterator inside of what is compiled")
        method = self.method_of(type(it), "__next__")
        try:
            if method is not None:
                return True, self.call(method, (it,), {})
            return True, self.native(next, it)
        except Raised as stop:
            if isinstance(stop.error, StopIteration):
                return False, stop.error.value
            raise

    def listed(self, value: Any) -> list:
        """All values of an iterable."""
        if type(value) in (list, tuple):
            return list(value)
        it = self.iter(value)
        found = []
        while True:
            more, item = self.next(it)
            if not more:
                return found
            found.append(item)

    def as_dict(self, value: Any) -> dict:
        if isinstance(value, dict) and not (type(value) not in values.COPIED and self.python_method(type(value), ("__iter__",))):
            return value  # as it is, whatever its items are said to be
        if values.is_constant(value) or (self.is_native(value) and not hasattr(value, "keys")):
            raise self.wrap_error(TypeError(f"'{type(value).__name__}' object is not a mapping"))
        return dict(self.items_by_keys(value))

    def items_by_keys(self, value: Any) -> list[tuple]:
        """Of a mapping, as its own methods give them."""
        return [(key, self.getitem(value, key)) for key in self.listed(self.call(self.getattr(value, "keys"), (), {}))]

    def matches(self, value: Any, kind: str) -> bool:
        if kind == "mapping":
            return isinstance(value, Mapping)
        return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))

    def matches_error(self, error: BaseException, kinds: Any) -> bool:
        return isinstance(error, kinds)
