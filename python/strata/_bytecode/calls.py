"""Calls: functions of the program are executed in their turn, operators recorded, what has no effect is done as it is."""

from __future__ import annotations

import collections
import contextlib
import functools
import math
import types

from strata import _C

from . import arguments, custom, instances, natives, training, values
from .data import READS
from .decode import line_of, place, reads_its_frame
from .derived import base_of
from .frame import bind, frame_of
from .generators import GeneratorMethod
from .overrides import Unasked
from .reasons import Break, Control, Failing, Fixed, Raised
from .sizes import Sizes, Sym, concrete, has_sym, settled, stand_in
from .sources import const
from .thread_state import pass_on_signals
from .values import Generator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .frame import Frame

_COROUTINE = 0x80 | 0x200  # inspect.CO_COROUTINE, CO_ASYNC_GENERATOR
_GENERATOR = 0x20
MAX_DEPTH = 60


class Calls:
    def native(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """As it is; what it raises is the program's."""
        try:
            return function(*args, **kwargs)
        except Control:
            raise
        except Exception as error:
            pass_on_signals(error)
            if isinstance(error, TypeError) and function in natives.OF_OPERATORS and has_sym(args):
                return self.native(function, *settled(args))  # which says it of the number's type
            raise Raised(error) from None

    def call(self, function: Any, args: tuple, kwargs: dict[str, Any], f: Frame | None = None) -> Any:
        special = natives.SPECIAL.get(id(function)) if not isinstance(function, types.MethodType) else None
        if special is not None:
            arguments.check(self, function, args, kwargs)
            return special(self, args, kwargs, f)
        if isinstance(function, types.FunctionType):
            return self.call_function(function, args, kwargs)
        if isinstance(function, types.MethodType):
            if type(function.__self__) is Sizes:
                return self.native(function, *args, **kwargs)
            return self.call(function.__func__, (function.__self__, *args), kwargs, f)
        if isinstance(function, type):
            return self.construct(function, args, kwargs, f)
        if isinstance(function, values.BUILTIN_FUNCTIONS):
            return self.call_builtin(function, args, kwargs)
        if type(function) is GeneratorMethod:
            return self.call_generator(function, args, kwargs)
        if type(function) in values.GETTERS:
            return self.call_getter(function, args, kwargs)
        if values.is_partial(function):
            given = self.getattr(function, "keywords")
            return self.call(self.getattr(function, "func"), (*self.getattr(function, "args"), *args), {**given, **kwargs}, f)
        if isinstance(function, _C.OpOverload) or natives.is_packet(function):
            return self.call_operator(function, args, kwargs)
        if values.is_module(function):
            return self.call_module(function, args, kwargs)
        if isinstance(function, _C._Dispatcher):
            return self.call_compiled(function, args, kwargs)
        if isinstance(function, functools._lru_cache_wrapper):
            return self.call_cached(function, args, kwargs)
        if type(function).__name__ == "ufunc" and type(function).__module__ == "numpy" and not kwargs and all(map(values.is_constant, settled(args))):
            return self.native(function, *settled(args))
        method = self.special(type(function), "__call__")
        if isinstance(method, types.FunctionType):
            self.guard_class(type(function), "__call__", method)
            return self.call(method, (function, *args), kwargs, f)
        raise Break(f"a call of a {type(stand_in(function)).__name__}")

    # ---- functions of Python

    def call_function(self, function: types.FunctionType, args: tuple, kwargs: dict[str, Any]) -> Any:
        mark = getattr(function, "_strata_compile_mark", None)
        if mark == "disable":
            raise Break(f"{function.__qualname__} is marked by strata.compiler.disable")
        if mark == "forbidden":
            natives.forbid(self, function.__qualname__)
        if mark == "constant":
            return self.constant_result(function, args, kwargs)
        if mark == "in graph":
            return self.call_operator(function, args, kwargs)
        if function.__module__ == "copy" and function.__name__ == "deepcopy":
            return natives.deepcopy(self, args, kwargs)
        home = values.strata_module_name(function)
        if home:
            if getattr(function, "_wrapped_by_lr_sched", False) and not args:
                self.guards.add("is", self.source_of(function), function)
                return training.call_noted(self, function, kwargs)
            if home.startswith("strata.optim.") and args and training.is_optimizer(args[0]):
                return training.call_optimizer(self, function, args, kwargs)
            if home == "strata" and function.__name__ == "compile" and len(args) == 1 and not kwargs.get("disable"):
                return args[0]  # what is compiled inside is captured as what it was made of
            if home == "strata.jit" and function.__name__ == "is_tracing":
                found = function()
                self.guards.add("call", None, lambda: function() is found)
                return found
            if home == "strata._control_flow":
                from .control import SPECIAL

                return SPECIAL[function](self, args, kwargs, None)
            if home == "strata.nn.utils.stateless" and function.__name__ == "functional_call":
                from .functional import functional_call

                return functional_call(self, args, kwargs)
            if home == "strata._checks" and self.reads:
                if function.__name__ == "_raise":
                    raise Failing
                self.note_checks()
            how = natives.of_strata(home, function)
            if how == "operator":
                return self.call_operator(function, args, kwargs)
            if how == "break":
                raise Break(f"{home}.{function.__qualname__} cannot be captured")
        return self.inline(function, args, kwargs)

    def constant_result(self, function: Any, args: tuple, kwargs: dict) -> Any:
        if args or kwargs:
            self.check_simple((args, kwargs), function.__qualname__)
        found = self.native(_C._unrecorded, function, settled(args), settled(kwargs))
        if not values.is_constant(found):
            raise Break(f"{function.__qualname__} is marked as constant and gave a {type(found).__name__}")
        return found

    def inline(self, function: types.FunctionType, args: tuple, kwargs: dict[str, Any]) -> Any:
        code = function.__code__
        if code.co_flags & _COROUTINE:
            raise Break(f"{function.__qualname__} is a coroutine")
        name = reads_its_frame(code)
        if name is not None and not values.strata_module_name(function):
            raise Break(f"{function.__qualname__} uses {name}, which reads the frame that it runs in")
        if self.depth > MAX_DEPTH:
            raise Break(f"calls nest more than {MAX_DEPTH} deep")
        source = self.known.get(id(function))
        if source is None and id(function) not in self.fresh_functions:
            source = self.known[id(function)] = const(function)
            self.keep.append(function)
            self.guards.add("is", source.attr("__code__"), code)
        try:
            bound = bind(function, args, kwargs, self.default_of)
        except TypeError as error:
            raise self.wrap_error(error) from None
        cells = function.__closure__ or ()
        if source is not None:
            for i, cell in enumerate(cells):
                if id(cell) not in self.known:
                    self.hold(cell, source.attr("__closure__").item(i))
        frame = frame_of(self, function, bound, cells)
        if code.co_flags & _GENERATOR:
            made = Generator(frame)
            self.generators.append(made)
            self.keep.append(made)
            return made
        return self.run_frame(frame)[0]

    def default_of(self, function: types.FunctionType, name: str) -> Any:
        value = getattr(function, name)
        source = self.known.get(id(function))
        return value if source is None else self.load(value, source.attr(name))

    def run_frame(self, frame: Frame) -> Any:
        self.depth += 1
        self.frames.append(frame)
        try:
            return frame.run()
        except Break as why:
            if not why.place:
                why.place = place(frame.code, frame.instructions[max(0, frame.index - 1)].offset)
            raise
        finally:
            self.depth -= 1
            self.frames.pop()

    # ---- operators

    def has_tensor(self, value: Any) -> bool:
        if values.is_tensor(value):
            return True
        if isinstance(value, (list, tuple, collections.deque)):
            return any(self.has_tensor(v) for v in value)
        return isinstance(value, dict) and any(self.has_tensor(v) for v in value.values())

    def call_operator(self, function: Any, args: tuple, kwargs: dict[str, Any] | None = None) -> Any:
        """Recorded: what it does hangs on its arguments alone, which are tensors, numbers and nests of them."""
        kwargs = kwargs or {}
        args = tuple(list_of(self, values.as_int(a)) for a in args)
        kwargs = {key: values.as_int(a) for key, a in kwargs.items()}
        name = getattr(function, "__name__", type(function).__name__)
        owner = getattr(function, "__self__", None)
        asked = self.who_is_asked((owner, *args) if values.is_tensor(owner) else args, kwargs)
        if asked:
            if getattr(function, "__module__", "") == "_operator":
                self.pin_operator(name, args)
            return self.call_asking(function, args, kwargs, name, asked[0])
        if name == "as_subclass":
            return self.as_subclass(*((owner, *args) if values.is_tensor(owner) else args))
        for value in (*args, *kwargs.values()):
            self.check_operand(value, name)
        of = owner if values.is_tensor(owner) else args[0] if args and values.is_tensor(args[0]) else None
        if of is not None and name in READS and len(args) + len(kwargs) == (of is not owner):
            return self.read_number(name, of)
        if self.parts and of is owner and of is not None:
            self.check_operand(of, name)
        if getattr(function, "__module__", "") == "_operator":
            self.pin_operator(name, args)
        natives.check_effect(self, name, (owner, *args) if values.is_tensor(owner) else args, kwargs)
        outs = values.out_tensors(kwargs)
        sizes = [tuple(t.shape) for t in outs]
        if any(self.is_outside(t) and not t.numel() for t in outs):
            raise Break(f"{name} resizes its out=")
        frames = self.say_where()
        program = self.program
        if program is not None and name in ("size", "numel", "nelement"):
            found = self.asked_size(function, name, args, kwargs)
            if found is not None:
                return found
        tried = not self.plan.options.fullgraph and any(frame.would_handle() for frame in self.frames)
        before = _C._recording_may_raise(0)[0] if tried else 0
        try:
            given = (args, kwargs) if program is None else (concrete(args), concrete(kwargs))
            found = self.library.call(function, *given)
        except Control:
            raise
        except Exception as error:
            if natives.by_values(error):
                return self.run_between(name, function, args, kwargs, natives.reason_of(name, error))
            reason, hint = natives.reason_of(name, error)
            raise Break(reason, hint, of_sizes=program is not None and " raised " in reason) from None
        if outs and sizes != [tuple(t.shape) for t in outs]:
            raise Break(f"{name} resizes its out=")
        if tried and _C._recording_may_raise(before)[1]:
            raise Break(f"{name} may raise by values of tensors inside of a try", "call it outside of the try")
        self.keep.append(found)
        return found if program is None else program.operator(function, args, kwargs, found, frames, name)

    def asked_size(self, function: Any, name: str, args: tuple, kwargs: dict) -> Any:
        """What t.size() and t.numel() give, of symbols; None for other functions."""
        t = getattr(function, "__self__", None)
        t, rest = (t, args) if values.is_tensor(t) else (args[0], args[1:]) if args else (None, ())
        if not values.is_tensor(t) or kwargs or len(rest) > 1 or any(type(r) is not int for r in rest):
            return None
        if name != "size":
            return self.numel_of(t)
        if rest and -t.dim() <= rest[0] < t.dim():
            return self.size_of(t, rest[0] % t.dim())
        return None if rest else self.program.shape(t)

    def size_of(self, t: Any, dim: int) -> Any:
        return self.program.size(t, dim) if self.program is not None else t.shape[dim]

    def numel_of(self, t: Any) -> Any:
        return self.native(math.prod, [self.size_of(t, i) for i in range(t.dim())])

    def do(self, function: Any, *args: Any) -> None:
        """Something that a run of the capture's program does, too."""
        if self.program is not None:
            self.program.do(function, *args)

    def line(self) -> str:
        """The line of the program that is executed."""
        for frame in reversed(self.frames):
            if not frame.globals.get("__name__", "").startswith("strata."):
                return line_of(frame.code, frame.instructions[max(0, frame.index - 1)].offset)
        return ""

    def say_where(self) -> tuple:
        """The lines that operators stand for from now on: of the innermost frames of the program's."""
        found = []
        for frame in reversed(self.frames):
            if not frame.globals.get("__name__", "").startswith("strata.") and len(found) < 3:
                found.append((frame.code, frame.instructions[frame.index - 1].offset))
        _C._executed_frames(tuple(found))
        return tuple(found)

    def check_operand(self, value: Any, name: str) -> None:
        if values.is_tensor(value):
            if values.has_dispatch(type(value)):
                raise Break(f"{name} of a {type(value).__name__}")
            if not self.is_outside(value) and not self.region.made(value):
                self.unknown_tensor(value)
            self.bring(value)
        elif isinstance(value, (list, tuple, set)):
            for v in value:
                self.check_operand(v, name)
        elif isinstance(value, dict):
            for v in value.values():
                self.check_operand(v, name)
        elif not (values.is_constant(value) or value is int or value is float or value is bool):
            if isinstance(value, types.BuiltinFunctionType) or type(value).__module__ in ("strata._C", "strata._legacy_types"):
                return
            raise Break(f"{name} gets a {type(value).__name__}", "pass tensors and numbers")

    def unknown_tensor(self, t: Any) -> None:
        """A tensor that neither an operator made nor a source gave."""
        if not any(t is made for made, *_ in self.fresh_inputs) and not (self.parts and id(t) in self.program.slots):
            raise Break("a tensor that is not made by an operator")

    # ---- builtins

    def call_builtin(self, function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        owner = getattr(function, "__self__", None)
        if owner is not None and not isinstance(owner, (type, types.ModuleType)):
            if values.is_tensor(owner):
                return self.call_operator(function, args, kwargs) if natives.is_operator(function) else self.refuse_native(function)
            if isinstance(function, types.MethodWrapperType):
                return self.call_method_wrapper(function, owner, args, kwargs)
            args, function_name = args, function.__name__
            if base_of(type(owner)) is not None:
                return self.call_container_method(function, owner, function_name, args, kwargs)
            if type(owner) in values.COPIED or values.is_constant(owner) or isinstance(owner, (tuple, frozenset)):
                return self.call_container_method(function, owner, function_name, args, kwargs)
            raise Break(f"the method {function_name} of a {type(owner).__name__}")
        if function == tuple.__new__ and values.is_named_tuple_class(args[0]):
            made = self.native(tuple.__new__, args[0], self.listed(args[1]) if len(args) > 1 else ())
            self.keep.append(made)
            return made
        if function == object.__new__ and len(args) == 1:
            return self.fresh_instance(args[0])
        if custom.is_apply(function):
            return custom.apply(self, function, args, kwargs)
        if natives.is_operator(function):
            return self.call_operator(function, args, kwargs)
        if isinstance(function, (types.MethodDescriptorType, types.WrapperDescriptorType)) and args:
            if function is object.__setattr__:
                return self.set_plain_attribute(*args)
            if values.is_tensor(args[0]):
                return self.call_operator(function, args, kwargs)
            if function is object.__init__:
                return None
            if function is object.__new__ or function is object.__getattribute__:
                raise Break(f"object.{function.__name__} is called")
            if function.__objclass__ in (list, dict, set, str, tuple, int, float, collections.OrderedDict):
                return self.call_container_method(function, args[0], function.__name__, args, kwargs)
        return natives.call(self, function, args, kwargs)

    def refuse_native(self, function: Any) -> Any:
        raise Break(f"{natives.name_of(function)} cannot be captured")

    def call_method_wrapper(self, function: Any, owner: Any, args: tuple, kwargs: dict) -> Any:
        name = function.__name__
        if name == "__get__" and isinstance(owner, types.GetSetDescriptorType) and args and values.is_tensor(args[0]):
            return self.tensor_attribute(args[0], owner.__name__)
        if isinstance(owner, super):
            owner = owner.__self__
        if name == "__init__" and not args and not kwargs:
            return None
        if name == "__setattr__":
            return self.set_plain_attribute(owner, *args)
        if base_of(type(owner)) is not None and function.__objclass__ is not object:
            return self.call_container_method(function, owner, name, args, kwargs)
        if self.is_native(owner) or isinstance(owner, tuple):
            self.check_simple((owner, args), name)
            return self.native(function, *args, **kwargs)
        raise Break(f"the method {name} of a {type(owner).__name__}")

    def call_container_method(self, function: Any, owner: Any, name: str, args: tuple, kwargs: dict) -> Any:
        if name in ("sort",) and (kwargs.get("key") is not None):
            found = self.call(sorted, (list(owner),), kwargs)
            owner[:] = found
            return None
        if type(owner) not in values.COPIED and isinstance(owner, values.COPIED):
            found = self.call_derived(function, owner, name, args, kwargs)
            if found is not NotImplemented:
                return found
        args = tuple(list_of(self, a) if isinstance(a, Generator) else a for a in args)
        if isinstance(owner, str) and name in ("format", "format_map") and not all(values.is_constant(a) for a in (*args, *kwargs.values())):
            raise Break(f"str.{name} of what is no number or text", "an f-string is captured")
        if type(owner) is Sym or isinstance(owner, (str, bytes)):
            owner, args, kwargs = settled((owner, args, kwargs))
            if type(getattr(function, "__self__", None)) is Sym:
                function = getattr(owner, name)
        if name == "__getitem__" and isinstance(owner, dict) and self.hash_is_native(args[-1]):
            found = self.missing_item(owner, args[-1])
            if found is not NotImplemented:
                return found
        if name in natives.BY_KEY and args and isinstance(owner, (dict, set)):
            keys = args[1:2] if args[0] is owner else args[0:1]
            if not all(self.hash_is_native(k) for k in keys):
                raise Break(f"a {type(keys[0]).__name__} as a key")
        elif name == "__init__" and isinstance(owner, (dict, list)) and base_of(type(owner)) is not None:
            args = self.initial_items(owner, args)
        elif name == "update" and isinstance(owner, dict):
            for given in args[1:] if args and args[0] is owner else args:
                if not isinstance(given, dict):
                    self.check_simple(given, name)
        elif name not in natives.KEEPS:
            if self.has_tensor(args) or self.has_tensor(owner) and name in ("remove", "index", "count", "sort"):
                if name in ("extend", "update", "union", "__add__", "__iadd__"):
                    return self.native(function, *args, **kwargs)
                raise Break(f"{type(owner).__name__}.{name} compares values of tensors")
            self.check_simple((args, kwargs), name)
            if name in ("index", "count", "remove"):
                self.compare(owner, args, True)
        return self.native(function, *args, **kwargs)

    def check_simple(self, value: Any, name: str) -> None:
        """That native code which gets it calls no code of the program."""
        if values.is_constant(value) or values.is_enum(value):
            return
        if isinstance(value, (list, tuple, set, frozenset)) or type(value).__name__ == "deque":
            for v in value:
                self.check_simple(v, name)
            return
        if isinstance(value, dict):
            for k, v in value.items():
                self.check_simple(k, name)
                self.check_simple(v, name)
            return
        if values.is_tensor(value):
            raise Break(f"{name} gets a tensor's value")
        if isinstance(value, (Generator, types.FunctionType, types.MethodType)):
            if isinstance(value, types.FunctionType):
                return
            raise Break(f"{name} gets a {type(value).__name__}")
        if type(value) is not object and self.unguarded(value):
            raise Break(f"{name} reads a {type(value).__name__} from outside", "what it holds is not guarded; read it outside of what is compiled")
        found = self.python_method(type(value), values.DUNDERS)
        if found:
            raise Break(f"{name} would call {type(value).__name__}.{found}")
        if self.is_outside(value) and hasattr(type(value), "__next__"):
            raise Break(f"{name} asks a {type(value).__name__} from outside for values")

    # ---- modules and contexts

    def enter(self, manager: Any) -> tuple[Any, Any]:
        kind = type(manager)
        if natives.is_mode(kind):
            entered = self.native(manager.__enter__)
            self.entered.append(manager)
            self.do(instances.enter, manager)
            return entered, functools.partial(natives.leave, manager)
        if kind is _C.DisableTorchFunctionSubclass:
            if self.program is not None:
                raise Fixed("a context in which classes of tensors are not asked")
            manager = Unasked(self)
            manager.__enter__()
            self.entered.append(manager)
            return manager, functools.partial(natives.leave, manager)
        if kind is contextlib.nullcontext:
            return self.getattr(manager, "enter_result"), functools.partial(natives.leave, None)
        enter, leave = self.special(kind, "__enter__"), self.special(kind, "__exit__")
        own = kind.__module__.startswith("strata") and not natives.is_inlined(kind.__module__)
        if own or not isinstance(enter, types.FunctionType) or not isinstance(leave, types.FunctionType):
            raise Break(f"the context manager {kind.__name__}")
        self.guard_class(kind, "__enter__", enter)
        self.guard_class(kind, "__exit__", leave)
        bound_leave = types.MethodType(leave, manager)
        return self.call(enter, (manager,), {}), bound_leave


def list_of(tracer: Any, value: Any) -> Any:
    return tracer.listed(value) if isinstance(value, Generator) else value
