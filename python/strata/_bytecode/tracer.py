"""The machine of a capture: reads of what lies outside become guards, operators a graph, and nothing outside changes."""

from __future__ import annotations

import collections
import functools
import types

import strata
from strata import _C
from strata._graph_form import same_constant

from . import values
from .attributes import Attributes
from .callables import Callables
from .calls import Calls
from .classes import Classes
from .data import Data
from .derived import Derived, base_of, raw
from .forms import modes
from .frame import UNBOUND, Frame
from .generators import Generators
from .guards import GuardList, global_state, tensor_spec
from .imports import Imports
from .library import Library
from .operators import Operators
from .overrides import Overrides
from .reasons import Break, Fixed, Raised, Restart
from .region import Region
from .seen import Seen, marks_of
from .sizes import Sizes, Sym, has_sym
from .sources import Source, const
from .whole_modules import Modules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from .data import Part, Plan
    from .program import Program

MAX_STEPS = 2_000_000


def _gets(parts: tuple, getter: Any) -> bool:
    return same_constant(_parts(getter), parts)


def _parts(getter: Any) -> tuple:
    """What an itemgetter, attrgetter or methodcaller was made of."""
    made, given = getter.__reduce__()[:2]
    return (*made.args, *given, *made.keywords.items()) if isinstance(made, functools.partial) else given


class Tracer(Attributes, Callables, Calls, Classes, Data, Operators, Overrides, Derived, Generators, Imports, Modules):
    """stop_at: the number of the outermost frame's step before which the capture ends, if it must. seen: which sizes and ints become
    symbols; program: what is done with them, where it is recorded."""

    errors = (Raised,)

    def __init__(self, stop_at: int | None, seen: Seen, program: Program | None, plan: Plan, generator: Any):
        self.seen, self.program, self.plan = seen, program, plan
        self.generator, self.random = generator, generator.get_state()  # this thread's, and where the program stands
        if program is not None:
            program.where, program.outside = self.line, lambda t: not self.region.made(t)
        self.region = Region()
        self.guards = GuardList()
        self.guards.add("state", None, global_state())
        self.stop_at = stop_at
        self.known: dict[int, Source] = {}  # values from outside
        self.by_real: dict[int, Any] = {}  # of a container from outside: its copy
        self.shadows: list[values.Shadow] = []
        self.keep: list[Any] = []  # an id stays one object's
        self.attributes: dict[tuple[int, str], tuple[Any, Any]] = {}  # set on objects from outside
        self.grads_written: dict[int, Any] = {}  # tensors whose .grad was set to None
        self.global_writes: dict[tuple[int, str], tuple[dict, Any]] = {}
        self.cell_writes: dict[int, tuple[types.CellType, Any]] = {}
        self.prints: list[tuple[tuple, dict]] = []
        self.asserted: list[tuple[Any, bool]] = []  # flags, and what the call takes them to be
        self.fresh_inputs: list[tuple[Any, Any, tuple, dict]] = []  # tensors that each call makes anew of Python data
        self.fresh_functions: set[int] = set()
        self.fresh_objects: set[int] = set()
        self.made_dicts: dict[int, Any] = {}  # of such objects, where the capture reads them as dicts
        self.own_dicts: dict[int, Any] = {}  # objects from outside, by their __dict__
        self.copies: set[int] = set()  # containers that stand for ones from outside, of classes that derive from builtin ones
        self.tensor_inputs: list[tuple[Any, Source]] = []
        self.generators: list[values.Generator] = []
        self.top: Frame | None = None
        self.step, self.steps, self.clean = 0, 0, 0
        self.depth = 0
        self.frames: list[Frame] = []  # the outermost first
        self.entered: list[Any] = []  # modes of strata that are on
        self.counted = False  # whether there are numbers that are not settled
        self.acts = False
        self.grads_read: set[tuple[int, int]] = set()  # a tensor, and its .grad, which each call reads anew
        self.was_leaf: dict[int, bool] = {}
        self.optimizers: list[Any] = []
        self.library = Library()
        self.stepped: list[Any] = []  # those of them whose step was captured
        self.of_tensors: dict[int, tuple[Source, set[str]]] = {}  # tensors from outside: names that their classes gave
        self.compared: dict[int, tuple[Any, Source]] = {}  # objects from outside, by identity
        self.trained = False
        self.began = modes()
        self.grad_mode = self.began[0]
        self.parts: list[Part] = []  # what was recorded before the last cut
        self.reads = 0  # of values of tensors, so far
        self.real: dict[int, Any] = {}  # of tensors of earlier parts: what they are in this call
        self.draws = False  # whether these draw random numbers
        self.incomplete = False  # whether a part must give more than was planned
        self.stopped = False

    # ---- steps

    def run(self, frame: Frame) -> Any:
        """Executes the outermost frame to its end, or to the step where it must stop; then `stopped`."""
        self.top = frame
        self.frames.append(frame)
        while True:
            if frame.index < len(frame.instructions) and not frame.covered() and not frame.kw_names:
                self.clean = self.step
                if self.step == self.stop_at:
                    self.stopped = True
                    return None
            self.count_step()
            try:
                result = frame.step()
            except Break as why:
                if not why.place:
                    self.locate(why, frame)
                raise Restart(self.clean, why) from None
            self.step += 1
            if result is not NotImplemented:
                return result[0]

    def end(self) -> None:
        """Behind the last instruction. Break where a generator was left inside of a `try` or `with`: its end, which Python runs then,
        may do anything. A mode that lasts is an effect; the recording ends in that of its beginning."""
        self.grad_mode = _C.is_grad_enabled()
        _C._set_grad_enabled(self.began[0])
        for made in self.generators:
            if made.started and not made.frame.done and made.frame.covered():
                raise Break(f"a generator, {made.frame.code.co_name}, is left inside of a try or with")

    def count_step(self) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise Break(f"more than {MAX_STEPS} instructions", "compile what is inside of the loop")

    def before(self, f: Frame) -> None:
        self.count_step()

    def locate(self, why: Break, frame: Frame) -> None:
        from .decode import place

        instruction = frame.instructions[max(0, frame.index - 1)]
        why.place = place(frame.code, instruction.offset)

    def stop(self) -> None:
        """Ends the capture, wherever it is: nothing of it is left on the thread."""
        while self.entered:
            self.entered.pop().__exit__(None, None, None)
        self.region.stop()
        _C._executed_frames(())

    def let_go(self) -> None:
        """After the last use: what was read is not kept alive by the machine and its frames, which know each other."""
        self.__dict__ = {"guards": self.guards, "region": self.region, "program": self.program, "library": self.library}

    def offset(self) -> int:
        """Of the outermost frame's instruction that it is at, or was last."""
        if self.top is None:
            return 0
        instructions = self.top.instructions
        return instructions[min(self.top.index, len(instructions) - 1)].offset

    def unknown(self, name: str) -> NoReturn:
        raise Break(f"the opcode {name} cannot be captured")

    @staticmethod
    def wrap_error(error: BaseException) -> BaseException:
        return Raised(error)

    def finish_guards(self) -> None:
        """What holds for the entry as a whole: its tensors are different ones, and not those that native code holds."""
        sources = list({id(t): source for t, source in self.tensor_inputs}.values())
        if len(sources) > 1:
            self.guards.add("distinct", None, sources)
        self.guard_aliases()
        self.compared_apart()
        for source, names in self.of_tensors.values():
            self.guards.add("bare", source, tuple(sorted(names)))
        if self.library.dicts:
            self.guards.add("watch", None, self.library)
        held: dict[int, tuple] = {}
        for guard in self.guards.guards:
            if guard.kind == "watch":  # each tensor is looked at once
                others = ((t, spec, held.setdefault(id(t), spec)) for t, spec in guard.expected.tensors)
                guard.expected.tensors = [(t, spec) for t, spec, first in others if first is spec or first != spec]
        for t, source in self.tensor_inputs:
            if id(t) in held:
                self.guards.add("is", source, t)

    def guard_aliases(self) -> None:
        """What is written is not what another source gives: reads of that would have seen the writes."""
        written = {id(s.copy) for s in self.shadows if s.changed()} | {at for at, _ in self.attributes} | set(self.cell_writes)
        if not written:
            return
        by_type: dict[type, dict[int, Source]] = {}
        for value in self.keep:
            source = self.known.get(id(value))
            if source is not None:
                by_type.setdefault(type(value), {})[id(value)] = source
        for alike in by_type.values():
            hit = [at for at in alike if at in written]
            if not hit or len(alike) == 1:
                continue
            if len(hit) == len(alike):
                self.guards.add("distinct", None, list(alike.values()))
                continue
            for i, at in enumerate(hit):
                for other in [o for o in alike if o not in hit[: i + 1]]:
                    self.guards.add("distinct", None, [alike[at], alike[other]])

    @staticmethod
    def unwrap_error(error: Any) -> BaseException:
        return error.error

    # ---- values from outside

    def hold(self, value: Any, source: Source) -> Any:
        self.known[id(value)] = source
        self.keep.append(value)
        return value

    def source_of(self, value: Any) -> Source:
        """Of an object that is no constant; one whose identity is guarded already may go without."""
        return self.known.get(id(value)) or const(value)

    def is_outside(self, value: Any) -> bool:
        return id(value) in self.known

    def load(self, value: Any, source: Source) -> Any:
        """A value that is read from a source: guarded by what it is. Containers become copies, which stand for them."""
        kind = type(value)
        if kind in (int, float) and self.seen.open_number(value, source, self.program is not None):
            self.guards.add(kind.__name__, source, None)
            return self.program.open_number(value, source)
        if kind is strata.Size:
            return self.load_size(value, source)
        if values.is_constant(value):
            self.guards.add("equal", source, value)
            return value
        if id(value) in self.by_real:
            self.same_as(source, self.known[id(self.by_real[id(value)])])
            return self.by_real[id(value)]
        if id(value) in self.known:
            self.same_as(source, self.known[id(value)])
            return value
        if values.is_tensor(value):
            return self.load_tensor(value, source)
        if kind in values.COPIED or base_of(kind) is not None:
            return self.load_container(value, source)
        if isinstance(value, tuple):
            return self.load_tuple(value, source)
        if kind is types.FunctionType:
            return self.load_function(value, source)
        if kind is types.MethodType:
            self.guards.add("type", source, kind)
            function = self.load(value.__func__, source.attr("__func__"))
            made = types.MethodType(function, self.load(value.__self__, source.attr("__self__")))
            return self.hold(made, source)
        if isinstance(value, (type, types.ModuleType, frozenset, _C.OpOverload)) or kind in values.BUILTIN_FUNCTIONS or values.is_enum(value):
            owner = getattr(value, "__self__", None) if kind in values.BUILTIN_FUNCTIONS else None
            if owner is not None and not isinstance(owner, (types.ModuleType, type)):
                return self.load_bound_method(value, source)
            self.guards.add("is", source, value)
            return self.hold(value, source)
        self.guards.add("type", source, kind)
        if kind in values.GETTERS:
            self.guards.add("ask", source, functools.partial(_gets, _parts(value)))
        return self.hold(value, source)

    def load_bound_method(self, value: Any, source: Source) -> Any:
        """Of a container or tensor: the same method of what stands for that."""
        self.guards.add("type", source, type(value))
        self.guards.add("equal", source.attr("__name__"), value.__name__)
        owner = self.load(value.__self__, source.attr("__self__"))
        return self.hold(getattr(owner, value.__name__), source)

    def same_as(self, source: Source, known: Source) -> None:
        if source.identity() != known.identity():
            self.guards.add("same", source, known)

    def load_tensor(self, t: Any, source: Source) -> Any:
        if not values.is_plain_tensor(t):
            if values.has_dispatch(type(t)):
                raise Break(f"a tensor of the class {type(t).__name__}", "classes of your own with __torch_dispatch__ run as they are")
            if self.program is not None:
                raise Fixed(f"a tensor of the class {type(t).__name__}")
        if values.is_lazy(t):
            raise Break("a parameter that is made at the first call", "call the module once, outside of what is compiled")
        name = repr(source)
        known = _C._recording_known(self.region.recording, t) or self.natively_known(t)  # native code used it before
        dims = [] if known else self.seen.open_dims(t, source, self.program is not None)
        self.guards.add("tensor", source, tensor_spec(t, dims))
        if t._backward_hooks:
            raise Break("a tensor with backward hooks", "register hooks on what is outside of what is compiled")
        self.was_leaf[id(t)] = t.is_leaf
        self.region.input(t, name)  # from here on it has no history
        if known:
            self.guards.add("is", source, t)
        elif self.program is not None:
            self.program.input(t, source, name, dims, marks_of(t))
        self.tensor_inputs.append((t, source))
        return self.hold(t, source)

    def load_size(self, value: Any, source: Source) -> Any:
        self.guards.add("type", source, strata.Size)
        self.guards.add("len", source, len(value))
        items = [self.load(n, source.item(i)) for i, n in enumerate(value)]
        return Sizes(items) if has_sym(items) else value

    def load_tuple(self, value: tuple, source: Source) -> Any:
        kind = type(value)
        known = kind is tuple or values.is_named_tuple(value) or values.is_result_tuple(value)
        if not known and not values.is_bare_tuple_class(kind):
            raise Break(f"an instance of {kind.__name__}, which derives from tuple")
        self.guards.add("type", source, kind)
        self.guards.add("len", source, len(value))
        if kind.__dictoffset__:
            if value.__dict__:
                raise Break(f"a {kind.__name__} with attributes of its own")
            self.guards.add("len", source.attr("__dict__"), 0)
        items = [self.load(item, source.item(i)) for i, item in enumerate(value)]
        if all(a is b for a, b in zip(items, value, strict=True)):
            return self.hold(value, source)
        made = kind._make(items) if hasattr(kind, "_make") else kind(items) if known else tuple.__new__(kind, items)
        self.by_real[id(value)] = made
        self.keep.append(value)
        return self.hold(made, source)

    def load_container(self, value: Any, source: Source) -> Any:
        kind = type(value)
        if len(value) > values.LARGE:
            raise Break(f"a {kind.__name__} of {len(value)} elements is read", f"more than {values.LARGE} are not guarded one by one")
        self.guards.add("type", source, kind)
        base = None if kind in values.COPIED else base_of(kind)
        if base is not None:
            made = self.empty_copy(value, base)
        else:
            made = collections.defaultdict(value.default_factory) if kind is collections.defaultdict else kind()
        if kind is collections.deque:
            made = kind(maxlen=value.maxlen)
            self.guards.add("equal", source.attr("maxlen"), value.maxlen)
        if kind is collections.defaultdict:
            self.guards.add("is", source.attr("default_factory"), value.default_factory)
        if id(value) in self.own_dicts:
            raise Break("a dict in which attributes of an object lie")
        self.by_real[id(value)] = made
        self.keep.append(value)
        self.hold(made, source)
        if isinstance(value, dict):
            keys = tuple(value)
            if not all(self.is_plain(k) or values.is_itself(k) for k in keys):
                raise Break("a dict with keys that are objects", "use strings, numbers or tuples of them")
            self.guards.add("keys", source, keys)
            for key in keys:
                if values.is_itself(key):
                    self.load(key, const(key))
            for key in keys:
                if base is None:
                    made[key] = self.load(value[key], source.item(key))
                else:
                    base.__setitem__(made, key, self.load(dict.__getitem__(value, key), raw(source, base, key)))
        elif kind is set:
            if not all(values.is_constant(k) or (isinstance(k, tuple) and self.is_plain(k)) for k in value):
                raise Break("a set of objects", "use strings, numbers or tuples of them")
            self.guards.add("keys", source, tuple(value))
            made |= value
            if list(made) != list(value):
                raise Break("a set whose copy has another order")
        else:
            self.guards.add("len", source, len(value))
            for i, item in enumerate(value):
                place = source.item(i) if base is None else raw(source, base, i)
                (list if base is list else kind).append(made, self.load(item, place))
        self.shadows.append(values.Shadow(value, made, source))
        return made

    def is_plain(self, value: Any) -> bool:
        """A constant, a class or function, or a tuple of such."""
        return values.is_constant(value) or values.is_known_object(value) or (isinstance(value, tuple) and all(map(self.is_plain, value)))

    def load_function(self, function: types.FunctionType, source: Source) -> Any:
        self.guards.add("is", source.attr("__code__"), function.__code__)
        self.guards.add("is", source.attr("__globals__"), function.__globals__)
        return self.hold(function, source)

    def count(self, value: Any, source: Source) -> Any:
        """A value that may be a counter: an int is not guarded until more is asked of it than a sum."""
        if type(value) is not int:
            return self.load(value, source)
        self.guards.add("type", source, int)
        self.counted = True
        return values.Number(value, source)

    def returned(self, f: Frame, value: Any) -> Any:
        """A function's result; the outermost one may be a number that each call computes."""
        return value if f is self.top else self.settled(value)

    def settled(self, value: Any) -> Any:
        """Of a number its value, which is guarded now."""
        if type(value) is not values.Number:
            return value
        if isinstance(value.parts, tuple):
            sign, a, b = value.parts
            return self.native(values.SIGNS[sign], self.settled(a), self.settled(b))
        return self.load(value.value, value.parts)

    def settle(self, f: Frame) -> None:
        for i, value in enumerate(f.stack):
            if type(value) is values.Number:
                f.stack[i] = self.settled(value)

    def count_with(self, name: str, a: Any, b: Any) -> Any:
        """An operator of which a number takes part."""
        x, y = (v.value if type(v) in (values.Number, Sym) else v for v in (a, b))
        deep = 1 + max(getattr(a, "depth", 0), getattr(b, "depth", 0))
        if type(x) is int and type(y) is int and name in values.COUNTS and deep < 20:
            sign = values.COUNTS[name]
            return values.Number(x + y if sign == "+" else x - y if sign == "-" else x * y, (sign, a, b), deep)
        return self.binary(name, self.settled(a), self.settled(b))

    # ---- variables

    def made_cell(self, cell: types.CellType) -> None:
        self.keep.append(cell)

    def made_function(self, function: types.FunctionType) -> None:
        self.fresh_functions.add(id(function))
        self.keep.append(function)

    def cell_get(self, cell: Any, name: str) -> Any:
        if id(cell) in self.cell_writes:
            return self.cell_writes[id(cell)][1]
        try:
            value = cell.cell_contents
        except ValueError:
            raise Raised(
                NameError(f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope")
            ) from None
        source = self.known.get(id(cell))
        return value if source is None else self.count(value, source.attr("cell_contents"))

    def cell_set(self, cell: Any, value: Any) -> None:
        if id(cell) in self.known:
            self.cell_writes[id(cell)] = (cell, value)
        else:
            cell.cell_contents = value

    def global_get(self, f: Frame, name: str) -> Any:
        written = self.global_writes.get((id(f.globals), name))
        if written is not None:
            return written[1]
        variables = const(f.globals)
        if name in f.globals:
            return self.count(f.globals[name], variables.item(name))
        self.guards.add("lacks", variables, name)
        if name not in f.builtins:
            raise Raised(NameError(f"name '{name}' is not defined"))
        return self.load(f.builtins[name], const(f.builtins).item(name))

    def global_set(self, f: Frame, name: str, value: Any) -> None:
        self.global_writes[id(f.globals), name] = (f.globals, value)

    def global_delete(self, f: Frame, name: str) -> None:
        raise Break(f"the global {name} is deleted")

    def cell_delete(self, cell: Any) -> None:
        if id(cell) in self.known:
            raise Break("a variable of an enclosing function is deleted")
        del cell.cell_contents

    def unbound(self, value: Any) -> bool:
        return value is UNBOUND
