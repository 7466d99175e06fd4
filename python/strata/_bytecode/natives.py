"""Functions that are not executed instruction by instruction: builtins, operators, and what of strata is called as it is."""

from __future__ import annotations

import builtins
import collections
import functools
import itertools
import math
import operator
import sys
import types

import strata
from strata import _C

from . import arguments, factories, instances, kinds, polyfills, sizes, values
from .reasons import Break, Forbidden, Raised
from .sizes import Sym, best, has_sym
from .values import Generator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

# What of strata works on its arguments alone, and is recorded as it runs.
_OPERATOR_HOMES = (
    "strata.functional", "strata.nn.functional", "strata._composed", "strata.special", "strata.linalg", "strata.fft",
    "strata._foreach", "strata._numeric", "strata._lowrank", "strata._tensor", "strata.nn._ops", "strata.nn._reduction",
)  # fmt: skip
# What of strata is executed as the program's own functions are.
_INLINE_HOMES = (
    "strata._checks", "strata.nn.modules", "strata.nn.hooks", "strata.nn.utils", "strata.nn.attention", "strata.autograd.grad_mode", "strata._bytecode.polyfills",
    "strata._scans", "strata.utils._pytree", "strata.fx._pytree", "strata.nn.init", "strata.export.exported_program", "strata.amp.autocast_mode", "strata._custom_op", "strata.jit._script", "strata.distributions", "strata.func", "strata._vmap", "strata.autograd.functional",
)  # fmt: skip
_BUT = {("strata.func", "_reaches_beyond"): "operator", ("strata._vmap", "vmap_over_many_elements"): "break"}  # of such homes, are not
_DENIED = frozenset(
    "item tolist numpy data_ptr untyped_storage storage __array__ __dlpack__ __dlpack_device__ register_hook retain_grad "
    "share_memory_ set_ resize_ resize_as_ manual_seed seed initial_seed set_default_dtype set_num_threads set_rng_state get_rng_state "
    "set_printoptions is_shared pin_memory apply_ map_ register_post_accumulate_grad_hook __reduce_ex__ __deepcopy__ __copy__ "
    "as_subclass _make_subclass equal allclose is_nonzero __bool__ __int__ __float__ __index__ __complex__ new backward "
    "set_cpu_capability nonzero_numpy data __hash__ _version _base _is_view _is_function_view grad_fn from_numpy from_dlpack frombuffer storage_offset".split()
)
_OF_FRESH_ONLY = frozenset("requires_grad_ detach_ t_ transpose_ squeeze_ unsqueeze_ swapaxes_ swapdims_ as_strided_".split())
_READS = {"item", "tolist", "numpy", "__bool__", "__int__", "__float__", "__index__", "is_nonzero", "equal", "allclose"}
KEEPS = frozenset(
    "append extend insert pop clear reverse copy keys values items popitem appendleft popleft extendleft rotate __len__ __iter__ "
    "__getitem__ __reversed__ move_to_end".split()
)
BY_KEY = frozenset("get setdefault pop add discard remove __contains__ __getitem__ __setitem__ fromkeys".split())

_PURE = {
    getattr(builtins, name)
    for name in "abs ascii bin bool bytes chr complex divmod float format hex int len max min oct ord pow range repr round slice "
    "str sum".split()
}
_PURE |= {f for f in vars(math).values() if callable(f)}
_PURE |= {f for name, f in vars(operator).items() if callable(f) and not name.startswith("_")}
_OF_NUMBERS = {int, float, max, min, round, abs, pow, divmod, *(f for f in vars(math).values() if callable(f))}
OF_OPERATORS = {f for f in vars(operator).values() if callable(f)}
_STRUCTURE = {list, tuple, dict, set, frozenset, zip, enumerate, reversed, collections.OrderedDict, collections.deque}
_STRUCTURE |= {f for name, f in vars(itertools).items() if isinstance(f, type) and name not in ("count", "cycle", "_grouper", "_tee")}
_STRUCTURE |= {itertools.count}
_LAZY = {
    zip: polyfills.zip_, enumerate: polyfills.enumerate_, itertools.islice: polyfills.islice, itertools.chain: polyfills.chain,
    itertools.zip_longest: polyfills.zip_longest, itertools.accumulate: polyfills.accumulate, itertools.pairwise: polyfills.pairwise,
    reversed: polyfills.reversed_, itertools.starmap: polyfills.starmap, itertools.takewhile: polyfills.takewhile,
    itertools.dropwhile: polyfills.dropwhile, itertools.filterfalse: polyfills.filterfalse,
}  # fmt: skip
# What takes all of an iterable before it gives anything.
_DRAINS = {list, tuple, dict, set, frozenset, collections.OrderedDict, collections.deque, itertools.product, itertools.permutations}
_DRAINS |= {itertools.combinations, itertools.combinations_with_replacement}
# Of what is pure, what takes all values of its first argument; max and min where it is the only one.
_ITERATES = {sum, max, min, math.fsum, math.prod, operator.countOf, operator.indexOf}
_STATE_READS = {
    _C.is_grad_enabled, _C.get_default_dtype, _C.is_inference_mode_enabled, _C.is_autocast_enabled, _C.get_autocast_dtype,
    _C.promote_types, _C.can_cast, _C.is_anomaly_enabled,
}  # fmt: skip


def name_of(function: Any) -> str:
    return getattr(function, "__qualname__", None) or type(function).__name__


def is_packet(value: Any) -> bool:
    """Whether it is the overloads of one operator, such as strata.ops.aten.add."""
    return type(value).__module__ == "strata.ops" and type(value).__name__ == "OpOverloadPacket"


def is_inlined(home: str) -> bool:
    """Whether what that module of strata holds is executed as the program's own functions are."""
    return any(home == h or home.startswith(h + ".") for h in _INLINE_HOMES)


def of_strata(home: str, function: Any) -> str:
    """How a function written in strata is captured: "operator", "inline" or "break"."""
    if any(home == h or home.startswith(h + ".") for h in _OPERATOR_HOMES):
        return "operator" if function.__name__ not in _DENIED else "break"
    if is_inlined(home):
        return _BUT.get((home, function.__name__), "inline")
    if home == "strata.jit" and function.__name__ == "is_scripting":
        return "inline"
    if home == "strata" and function.__name__ in ("is_tensor", "is_floating_point", "is_complex", "numel", "is_same_size", "_assert", "_as_tensor"):
        return "inline"
    return "break"


def is_operator(function: Any) -> bool:
    name = function.__name__
    if name in _DENIED and isinstance(function, types.BuiltinFunctionType) and not values.is_tensor(getattr(function, "__self__", None)):
        return False
    if getattr(function, "__module__", None) == "strata" or vars(_C._functions).get(name) is function:
        return True
    owner = getattr(function, "__objclass__", None)
    return owner is _C.TensorBase or values.is_tensor(getattr(function, "__self__", None))


def check_effect(tracer: Any, name: str, args: tuple, kwargs: dict) -> None:
    """Refuses what reads values of tensors, or changes more than operators may."""
    if name in _DENIED:
        hint = "keep values in tensors (strata.where), or read them outside" if name in _READS else ""
        raise Break(f"{name}() reads a tensor's value" if name in _READS else f"{name}() cannot be captured", hint)
    if name in _OF_FRESH_ONLY and args and values.is_tensor(args[0]) and tracer.is_outside(args[0]):
        raise Break(f"{name}() of a tensor from outside")
    if name.startswith("as_strided") and args and values.is_tensor(args[0]):
        if tracer.is_outside(args[0]) or (args[0]._is_view() and tracer.is_outside(args[0]._base)):
            raise Break(f"{name}() of a tensor from outside, whose place in its memory is not guarded", "slices and view() know their tensor's")


def by_values(error: Exception) -> bool:
    """Whether an operator can't be recorded since values decide what it gives."""
    return "while operators are recorded" in str(error) or "cannot be recorded" in str(error)


def reason_of(name: str, error: Exception) -> tuple[str, str]:
    text = str(error)
    if "while operators are recorded" in text:
        return f"{text.partition(':')[0]} reads a tensor's value", "keep values in tensors (strata.where), or read them outside"
    if "cannot be recorded" in text:
        return f"the size of what {name} gives depends on values", "a form of fixed size (strata.where, a mask) stays in the graph"
    return f"{name} raised {type(error).__name__}: {text}", ""


def is_builtin_class(kind: type) -> bool:
    return kind in _STRUCTURE or kind in _PURE or kind is object or kind in (map, filter, type, functools.partial, property, collections.defaultdict, types.SimpleNamespace)


def call(tracer: Any, function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """A builtin without effects, on what it may read."""
    arguments.check(tracer, function, args, kwargs)
    if function in _STRUCTURE:
        whole = function in (itertools.repeat, itertools.count)  # which take no elements
        return tracer.native(function, *args, **kwargs) if whole else _structure(tracer, function, args, kwargs)
    if function is functools.partial:
        return arguments.partial(tracer, args, kwargs)
    if function is object:
        made = object()
        tracer.keep.append(made)
        return made
    if function is collections.defaultdict and (not args or callable(args[0]) or args[0] is None):
        made = collections.defaultdict(*args[:1])
        dict.update(made, _structure(tracer, dict, args[1:], kwargs))
        return made
    if function == itertools.chain.from_iterable:  # a new object at each look
        return tracer.call(polyfills.from_iterable, tuple(map(tracer.iter, args)), kwargs)
    if getattr(function, "__name__", "") == "__subclasses__" and isinstance(function.__self__, type):
        found = function()
        tracer.guards.add("call", None, lambda: function() == found)
        return found
    if function == dict.fromkeys:
        return tracer.call(polyfills.fromkeys, args, kwargs)
    if function in _STATE_READS:
        return tracer.native(function, *args, **kwargs)
    if has_sym(args) and function in _OF_NUMBERS:
        found = best(function, args) if function in (max, min) and not kwargs else None
        if found is not None:
            return found
        if function not in (max, min) and not kwargs and all(type(a) in (Sym, int, float, bool) for a in args):
            return tracer.native(next(sizes.syms(args)).program.lift, function, args)
    if function not in _PURE:
        home = getattr(function, "__module__", None) or getattr(getattr(function, "__objclass__", None), "__name__", "")
        raise Break(f"the builtin {home + '.' if home else ''}{name_of(function)} may have effects, or reads what is not guarded")
    if function in _ITERATES and (len(args) == 1 or (args and function not in (max, min))):
        args = (tracer.listed(args[0]) if isinstance(args[0], (Generator, collections.deque)) or _iterable(tracer, args[0]) else args[0], *args[1:])
    if any(isinstance(a, Generator) for a in args):
        return _of_generators(function, args)
    if function is len and args and tracer.python_method(type(args[0]), ("__len__",)):
        return arguments.given(tracer, len, tracer.call(type(args[0]).__len__, args, {}))
    if tracer.has_tensor(args):
        if function in (sum, abs, pow, round, divmod) or getattr(function, "__module__", "") == "_operator":
            return tracer.call_operator(function, args, kwargs)
        if function is len and not values.is_tensor(args[0]):
            if type(args[0]) not in values.COPIED and isinstance(args[0], values.COPIED) and tracer.held_base(args[0]) is None:
                raise Break(f"len() of a {type(args[0]).__name__}")
            return len(args[0])
        if function is len:
            tracer.pin_operator("len", args)
            return tracer.size_of(args[0], 0) if args[0].dim() else tracer.native(len, args[0])
        if function in (int, float) and len(args) == 1 and values.is_tensor(args[0]):
            return tracer.read_number(name_of(function), args[0], function)
        raise Break(f"{name_of(function)}() reads a tensor's value", "keep values in tensors, or read them outside of what is compiled")
    if function in (str, repr, format, int, float, bool) and args and not values.is_constant(args[0]):
        found = _converted(tracer, function, args)
        if found is not None:
            return found[0]
        if function is bool:
            return tracer.truth(args[0])
        if function in (str, repr, format):
            check_text(args[0])
    elif function in (max, min) and kwargs.get("key") is not None and kwargs.keys() <= {"key", "default"} and (len(args) == 1 or len(kwargs) == 1):
        default = (kwargs["default"],) if "default" in kwargs else ()
        return tracer.call(polyfills.best, (function is max, list(args[0]) if len(args) == 1 else list(args), kwargs["key"], *default), {})
    if function in (len,) and (type(args[0]) in (*values.COPIED, tuple) or tracer.held_base(args[0]) is not None):
        return len(args[0])
    tracer.check_simple((args, kwargs), name_of(function))
    return tracer.native(function, *args, **kwargs)


def _of_generators(function: Any, args: tuple) -> bool:
    """What asks a generator for no values."""
    if function in (bool, operator.truth, operator.not_) and len(args) == 1:
        return function is not operator.not_
    if function in (operator.is_, operator.is_not) and len(args) == 2:
        return function(*args)
    raise Break(f"{name_of(function)}() of a generator")


def check_text(value: Any) -> None:
    """That its text tells no address."""
    if isinstance(value, (list, tuple, set, frozenset, collections.deque, dict)):
        for part in (*value.keys(), *value.values()) if isinstance(value, dict) else value:
            check_text(part)
    elif type(value).__repr__ in (object.__repr__, types.FunctionType.__repr__, types.MethodType.__repr__):
        raise Break(f"the text of a {type(value).__name__}, which tells its address")


def _converted(tracer: Any, function: Any, args: tuple) -> tuple | None:
    """By a method that the program's class has for it."""
    names = {str: ("__str__", "__repr__"), repr: ("__repr__",), format: ("__format__",), int: ("__int__",), float: ("__float__",), bool: ("__bool__",)}
    for name in names[function]:
        if tracer.python_method(type(args[0]), (name,)):
            return (arguments.given(tracer, function, tracer.call(getattr(type(args[0]), name), args, {})),)
    return None


def _iterable(tracer: Any, value: Any) -> bool:
    """Whether its elements come from code of the program."""
    return not values.is_tensor(value) and not tracer.is_native(value) and bool(tracer.python_method(type(value), ("__iter__",)))


def _structure(tracer: Any, function: Any, args: tuple, kwargs: dict) -> Any:
    """What keeps its arguments' elements as they are."""
    if function in (dict, collections.OrderedDict) and args and not isinstance(args[0], dict) and tracer.python_method(type(args[0]), ("keys",)):
        args = (tracer.as_dict(args[0]), *args[1:])
    if any(isinstance(a, Generator) or _iterable(tracer, a) for a in args):
        if function is itertools.islice:
            tracer.native(function, (), *args[1:], **kwargs)  # refuses bounds
        if function in _LAZY:
            return tracer.call(_LAZY[function], args, kwargs)
        if function not in _DRAINS:
            raise Break(f"{name_of(function)}() of what the program's own code gives")
    if function in _LAZY and any(isinstance(a, (types.FunctionType, types.MethodType)) for a in (*args, *kwargs.values())):
        return tracer.call(_LAZY[function], args, kwargs)
    given = []
    for a in args:
        if isinstance(a, Generator) or values.is_tensor(a) or _iterable(tracer, a):
            a = tracer.listed(a)
        elif tracer.is_outside(a) and hasattr(type(a), "__next__"):
            raise Break(f"a {type(a).__name__} from outside is asked for values", "make the iterator inside of what is compiled")
        elif isinstance(a, dict) and function in (dict, collections.OrderedDict) and tracer.python_method(type(a), ("__getitem__",)):
            a = dict(tracer.as_dict(a))
        elif not tracer.is_native(a) and tracer.held_base(a) is None and not isinstance(a, (tuple, type)):
            raise Break(f"{name_of(function)}() of a {type(a).__name__}")
        given.append(a)
    if function in (set, frozenset) and given:
        elements = list(given[0])
        if not all(tracer.hash_is_native(e) for e in elements):
            raise Break("a set of objects with a hash of their own")
        given[0] = elements
    if any(isinstance(a, types.FunctionType) for a in (*given, *kwargs.values())):
        raise Break(f"{name_of(function)}() gets a function")
    if function in (itertools.accumulate, itertools.starmap):  # whose operator may be a method of the elements
        for element in _elements(given):
            if not values.is_tensor(element):
                tracer.check_simple(element, name_of(function))
    return tracer.native(function, *given, **kwargs)


def _elements(given: list) -> Any:
    for value in given:
        if isinstance(value, (list, tuple, set, frozenset)):
            yield from _elements(list(value))
        elif not isinstance(value, values.BUILTIN_FUNCTIONS):
            yield value


def construct(tracer: Any, kind: type, args: tuple, kwargs: dict) -> Any:
    """An instance of one of strata's classes."""
    if kind in (strata.Size, strata.device, strata.finfo, strata.iinfo, _C.DisableTorchFunctionSubclass) or is_mode(kind):
        tracer.check_simple((args, kwargs), kind.__name__)
        if kind is strata.Size and has_sym(args):
            return sizes.Sizes(args[0])
        return tracer.native(kind, *args, **kwargs)
    raise Break(f"a {kind.__name__} is made", "make it outside of what is compiled")


def is_mode(kind: type) -> bool:
    """Context managers of strata that change how operators are recorded, for the thread alone."""
    if kind in (strata.no_grad, strata.enable_grad):
        return True
    amp = sys.modules.get("strata.amp.autocast_mode")
    return amp is not None and issubclass(kind, amp.autocast)


def leave(manager: Any, *error: Any) -> None:
    if manager is not None:
        manager.__exit__(*error)


# ---- functions that need more than their arguments' values


def _print(tracer: Any, args: tuple, kwargs: dict, f: Any) -> None:
    if kwargs.get("file") is not None or any(not values.is_constant(v) for v in kwargs.values()):
        raise Break("print to a file")
    tracer.native(arguments.print_, **kwargs)
    texts = []
    for a in args:
        if tracer.has_tensor(a) or values.is_tensor(a):
            raise Break("print of a tensor")
        texts.append(a if isinstance(a, str) else tracer.call(str, (a,), {}))
    tracer.prints.append((tuple(texts), kwargs))


def _getattr(tracer: Any, args: tuple, kwargs: dict, f: Any) -> Any:
    try:
        return tracer.settled(tracer.getattr(args[0], args[1]))
    except Raised as error:
        if len(args) > 2 and isinstance(error.error, AttributeError):
            return args[2]
        raise


def _hasattr(tracer: Any, args: tuple, kwargs: dict, f: Any) -> bool:
    absent = object()
    return _getattr(tracer, (*args, absent), kwargs, f) is not absent


def _setattr(tracer: Any, args: tuple, kwargs: dict, f: Any) -> None:
    tracer.setattr(*args)


def _next(tracer: Any, args: tuple, kwargs: dict, f: Any) -> Any:
    found, value = tracer.next(args[0])
    if found:
        return value
    if len(args) > 1:
        return args[1]
    raise tracer.wrap_error(StopIteration(value) if value is not None else StopIteration())


def _lazy(kind: type, polyfill: Callable) -> Callable:
    def make(tracer: Any, args: tuple, kwargs: dict, f: Any) -> Generator:
        made = tracer.call(polyfill, (args[0], *(tracer.iter(a) for a in args[1:])), {})
        made.kind = kind
        return made

    return make


def _by(polyfill: Callable) -> Callable:
    return lambda tracer, args, kwargs, f: tracer.call(polyfill, args, kwargs)


def _sorted(tracer: Any, args: tuple, kwargs: dict, f: Any) -> list:
    items = tracer.listed(args[0])
    key = kwargs.get("key")
    keys = items if key is None else [tracer.call(key, (item,), {}) for item in items]
    if tracer.has_tensor(keys):
        raise Break("sorted() compares values of tensors")
    tracer.check_simple(keys, "sorted")
    reverse = bool(kwargs.get("reverse", False))
    order = tracer.native(sorted, range(len(items)), key=keys.__getitem__, reverse=reverse)
    return [items[i] for i in order]


def _any(tracer: Any, args: tuple, kwargs: dict, f: Any) -> bool:
    return _search(tracer, args[0], True)


def _all(tracer: Any, args: tuple, kwargs: dict, f: Any) -> bool:
    return not _search(tracer, args[0], False)


def _search(tracer: Any, values_: Any, wanted: bool) -> bool:
    if values.is_tensor(values_):
        raise Break("any() or all() of a tensor's values", "strata.any and strata.all keep them in the graph")
    it = tracer.iter(values_)
    while True:
        more, value = tracer.next(it)
        if not more:
            return False
        if tracer.truth(value) == wanted:
            return True


def _leave(tracer: Any, args: tuple, kwargs: dict, f: Any) -> None:
    if args[0] is not None:
        tracer.entered.remove(args[0])
        tracer.do(instances.leave, args[0])
    tracer.native(leave, *args)


def _always(value: Any) -> Callable:
    return lambda tracer, args, kwargs, f: value


def _refused(text: str) -> Callable:
    def refuse(tracer: Any, args: tuple, kwargs: dict, f: Any) -> Any:
        raise Break(text)

    return refuse


def forbid(tracer: Any, name: str) -> NoReturn:
    raise Forbidden(f"compile: Attempt to trace forbidden callable {name}: call it outside of what is compiled.\n{tracer.line()}")


def _is_asked(tracer: Any, args: tuple, kwargs: dict, f: Any) -> bool:
    if len(args) != 1 or kwargs or not (values.is_constant(args[0]) or values.is_plain_tensor(args[0])):
        raise Break("whether a class has a __torch_function__ is asked")
    return False  # with a mode, functions run as they are


def _hash(tracer: Any, args: tuple, kwargs: dict, f: Any) -> int:
    if len(args) != 1 or not values.is_constant(args[0]):
        raise Break("hash() of an object")
    return tracer.native(hash, *args)


def _iter(tracer: Any, args: tuple, kwargs: dict, f: Any) -> Any:
    if len(args) == 2 and not kwargs:
        return tracer.call(polyfills.until, args, {})
    return tracer.iter(*args)


def deepcopy(tracer: Any, args: tuple, kwargs: dict) -> Any:
    """copy.deepcopy, where nothing but constants lies in what is copied."""
    if len(args) != 1 or kwargs or not _of_constants(args[0]):
        raise Break("a deep copy of more than numbers and strings")
    return tracer.native(sys.modules["copy"].deepcopy, *args)


def _of_constants(value: Any) -> bool:
    if type(value) is dict:
        return all(_of_constants(v) for pair in value.items() for v in pair)
    return values.is_constant(value) or (type(value) in (list, tuple, set) and all(map(_of_constants, value)))


def _callable(tracer: Any, args: tuple, kwargs: dict, f: Any) -> bool:
    tracer.special(type(args[0]), "__call__")
    return callable(args[0])


def _special() -> dict[int, Callable]:
    table: dict[Any, Callable] = {
        print: _print, isinstance: kinds.is_instance, getattr: _getattr, hasattr: _hasattr, setattr: _setattr, next: _next, sorted: _sorted,
        any: _any, all: _all, callable: _callable, leave: _leave, map: _lazy(map, polyfills.map_), filter: _lazy(filter, polyfills.filter_),
        functools.reduce: _by(polyfills.reduce), iter: _iter,
        operator.delitem: lambda tracer, args, kwargs, f: tracer.delitem(*args), issubclass: kinds.is_subclass, _C._has_torch_function_unary: _is_asked,
        **factories.SPECIAL,
        collections._count_elements: _by(polyfills.count_elements),
        id: _refused("id() of an object"), input: _refused("input()"), open: _refused("open()"),
        hash: _hash,
    }  # fmt: skip
    from strata import compiler

    table[compiler.is_compiling] = table[compiler.is_dynamo_compiling] = _always(True)
    table[compiler.is_exporting] = _always(False)
    table[compiler.graph_break] = _refused("a call of graph_break()")
    table[compiler.set_stance] = lambda tracer, args, kwargs, f: forbid(tracer, "strata.compiler.set_stance")
    from . import training

    table.update(training.SPECIAL)
    table[strata.Tensor.__torch_function__.__func__] = lambda tracer, args, kwargs, f: tracer.default_function(args, kwargs)
    table[strata.is_grad_enabled] = lambda tracer, args, kwargs, f: _C.is_grad_enabled()
    SPECIAL_KEPT.extend(table)
    return {id(function): handler for function, handler in table.items()}


SPECIAL_KEPT: list[Any] = []
SPECIAL: dict[int, Callable] = {}
SPECIAL.update(_special())
