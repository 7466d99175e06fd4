"""The Python text of a captured stretch: it takes its inputs from the arguments, calls the graph, makes the changes that the
stretch made, and gives its result, or the state in which it stopped."""

from __future__ import annotations

import collections
import functools
import sys
import types

import strata
from strata import _C

from . import values
from .derived import base_of
from .forms import geometry_in, lies_in
from .frame import NULL, UNBOUND, Jump
from .guards import ABSENT as _ABSENT
from .guards import class_lookup
from .reasons import Break, Replan
from .region import root_of
from .sizes import Sizes, Sym, has_sym
from .sources import Source, Text
from .training import spent
from .values import Generator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .frame import Frame
    from .tracer import Tracer

_ITERATORS = tuple(
    type(it)
    for it in (iter([]), iter(()), iter(range(0)), iter(range(1 << 70)), iter(""), zip(), enumerate([]), reversed([]))
)


_STRETCH = sys.intern("<stretch>")


class Emitter:
    def __init__(self, tracer: Tracer, shared: dict[int, Any] | None = None):
        self.tracer, self.text, self.shared = tracer, Text(), shared or {}
        self.head: list[str] = []  # sources
        self.lines: list[str] = []
        self.outputs: list[Any] = []
        self.beside = False  # whether the graph gives more than views of what there was before
        self.made: dict[int, str] = {}
        self.numbers: dict[int, str] = {}  # by slot: those that are read late
        self.between = False  # whether what is built is read before the last graph
        self.here: list[Any] = []  # the entry, for where it does not fit
        self.inputs: list[Source] | None = None  # the graph's, where the text does nothing but call it with what it reads
        self.open: set[int] = set()
        self.count = 0
        # The statements where the graph may raise by values and the stretch does more: then the call runs as it is, and what it
        # does before it raises is done. For graphs that write nothing from outside.
        self.repeated: list[str] = []

    # ---- values

    def name(self, right: str) -> str:
        made = f"v{self.count}"
        self.count += 1
        self.lines.append(f"{made} = {right}")
        return made

    def build(self, value: Any) -> str:
        """An expression for a value of the capture."""
        if type(value) is Sym:
            return self.late(value) if value.slot in self.tracer.program.late else self.tracer.program.name(value)
        if type(value) is Sizes:
            return self.name(f"{self.text.constant(strata.Size)}([{self.items(value)}])")
        if type(value) is slice and has_sym(value):
            return f"slice({self.build(value.start)}, {self.build(value.stop)}, {self.build(value.step)})"
        if values.is_constant(value):
            return self.text.literal(value)
        if value is NULL or value is UNBOUND:
            return self.text.constant(value)
        if type(value) is values.Number:
            return self.number(value)
        if type(value) is values.Lazy:
            return self.text.of(value.source, self.head)
        at = id(value)
        if at in self.made:
            return self.made[at]
        source = self.tracer.known.get(at)
        if source is not None:
            return self.text.of(source, self.head)
        if values.is_tensor(value):
            return self.tensor(value)
        if at in self.open:
            raise Break(f"a {type(value).__name__} that holds itself")
        self.open.add(at)
        made = self.made[at] = self.new(value)
        self.open.discard(at)
        return made

    def number(self, n: Any) -> str:
        if not isinstance(n, values.Number):
            return self.build(n)
        if not isinstance(n.parts, tuple):
            return self.text.of(n.parts, self.head)
        sign, a, b = n.parts
        return f"({self.number(a)} {sign} {self.number(b)})"

    def tensor(self, t: Any) -> str:
        made = self.plain_tensor(t)
        kind, own = type(t), getattr(t, "__dict__", None)
        if kind is strata.Tensor and not own:
            return made
        right = made if kind is strata.Tensor else f"{self.text.constant(strata.Tensor.as_subclass)}({made}, {self.text.constant(kind)})"
        made = self.made[id(t)] = self.name(right)
        for name, value in own.items():
            self.lines.append(f"{made}.__dict__[{name!r}] = {self.build(value)}")
        return made

    def plain_tensor(self, t: Any) -> str:
        """What gives its values."""
        if not self.tracer.region.made(t):
            return self.earlier(t)
        for i, known in enumerate(self.outputs):
            if known is t:
                return f"t[{i}]"
        if t._is_function_view() and any(root_of(known) is t._base for known in self.tracer.region.inputs):
            raise Break("what an autograd.Function gave of an argument's memory is a result")
        if t._is_view() and id(t._base) in self.shared:
            made = self.made[id(t)] = self.view(t)
            return made
        self.outputs.append(t)
        return f"t[{len(self.outputs) - 1}]"

    def earlier(self, t: Any) -> str:
        """A tensor of a graph before the last one, or of what runs between them."""
        tracer = self.tracer
        slot = tracer.program.slots.get(id(t)) if tracer.parts else None
        if slot in tracer.program.found if slot is not None else False:
            return tracer.program.found[slot]
        part = tracer.made_before(t)
        if part is None:
            raise Break("a tensor that was made by no operator is a result")
        if slot in tracer.parts[part].shared and not self.between:
            tracer.refuse_reads("views of tensors that were made before it are results")
        return f"t{part}[{tracer.output(part, t)}]"

    def late(self, number: Any) -> str:
        """A number that is read, or computed of one that is, when the graphs have run."""
        made = self.numbers.get(number.slot)
        if made is None:
            late = self.tracer.program.late[number.slot]
            if late.function == "item":
                t, way = late.args
                right = f"{self.build(t)}.item()" if way is None else f"{self.text.constant(way)}({self.build(t)}.item())"
            else:
                right = f"{self.text.constant(late.function)}({self.items(late.args)})"
            made = self.numbers[number.slot] = self.name(right)
        return made

    def view(self, t: Any) -> str:
        """A view beside others of one tensor, or of an argument: made of that anew, so that they know of each other's writes."""
        root = t._base
        sharing = [known for known in self.tracer.region.inputs if root_of(known) is root]
        if len(sharing) > 1:  # whose view it is, their places tell
            sharing = [known for known in sharing if lies_in(t, known)]
            if len(sharing) != 1:
                raise Break("a view of one of several arguments that share memory is a result")
        of = sharing[0] if sharing else root
        if t.is_leaf and t.requires_grad and not of.requires_grad:
            raise Break("a result that requires a gradient of its own is made here", "make it outside of what is compiled")
        known = self.tracer.region.made(of) or self.tracer.is_outside(of) or self.tracer.was_found(of)
        if of.dtype is not t.dtype or (of is root and not known):
            raise Break("a view of another dtype, or of a tensor that was made by no operator, is a result")
        program = self.tracer.program
        geometry = ", ".join(map(str, geometry_in(t, of)))
        if program is not None:
            if of is root and self.tracer.region.made(of):
                program.derive(of, getattr, (t, "_base"), "base")
            geometry = "*" + program.geometry(t, of)
        if t.requires_grad and not t.is_leaf and self.beside and not self.tracer.region.made(of):
            # Its gradient goes through the graph, which adds it in the place that the view has among the argument's readers. A view
            # of a result hangs on that, whose hooks see what comes through it.
            self.outputs.append(t)
            geometry = f"t[{len(self.outputs) - 1}], {geometry}"
            return self.name(f"{self.text.constant(_view_of_graph)}({self.build(of)}, {geometry})")
        make = _view_without_gradient if of.requires_grad and t.is_leaf else _view_of_class if type(of) is not strata.Tensor else _view
        return self.name(f"{self.text.constant(make)}({self.build(of)}, {geometry})")

    def items(self, found: Any) -> str:
        return ", ".join(self.build(v) for v in found)

    def new(self, v: Any) -> str:
        kind = type(v)
        constant = self.text.constant
        if kind is list:
            return self.name(f"[{self.items(v)}]")
        if kind is tuple:
            return self.name(f"({self.items(v)}{',' if len(v) == 1 else ''})")
        if id(v) in self.tracer.made_dicts:
            return self.name(f"{self.build(self.tracer.made_dicts[id(v)])}.__dict__")
        if kind is dict:
            return self.name("{" + ", ".join(f"{self.build(k)}: {self.build(x)}" for k, x in v.items()) + "}")
        if kind in (set, frozenset):
            return self.name(f"{constant(kind)}(({self.items(v)}{',' if v else ''}))")
        if values.is_named_tuple(v):
            return self.attributes(v, self.name(f"{constant(kind)}._make(({self.items(v)},))"))
        if values.is_result_tuple(v):
            return self.name(f"{constant(kind)}(({self.items(v)},))")
        if isinstance(v, tuple) and values.is_bare_tuple_class(kind):
            return self.attributes(v, self.name(f"{constant(tuple.__new__)}({constant(kind)}, ({self.items(v)}{',' if len(v) else ''}))"))
        if kind is collections.OrderedDict or kind is collections.deque:
            pairs = ", ".join(f"({self.build(k)}, {self.build(x)})" for k, x in v.items()) if kind is collections.OrderedDict else self.items(v)
            bound = f", {v.maxlen}" if kind is collections.deque and v.maxlen is not None else ""
            return self.name(f"{constant(kind)}([{pairs}]{bound})")
        if kind is collections.defaultdict:
            inner = ", ".join(f"{self.build(k)}: {self.build(x)}" for k, x in v.items())
            return self.name(f"{constant(kind)}({self.build(v.default_factory)}, {{{inner}}})")
        if isinstance(v, (type, types.ModuleType)) or values.is_enum(v):
            return constant(v)
        if kind is types.FunctionType:
            return self.function(v) if id(v) in self.tracer.fresh_functions else constant(v)
        if kind is types.CellType:
            return self.cell(v)
        if kind is types.MethodType:
            return self.name(f"{constant(types.MethodType)}({self.build(v.__func__)}, {self.build(v.__self__)})")
        if kind is functools.partial:
            keywords = "".join(f", {k}={self.build(x)}" for k, x in v.keywords.items())
            return self.name(f"{constant(functools.partial)}({self.build(v.func)}{''.join(', ' + self.build(a) for a in v.args)}{keywords})")
        if isinstance(v, values.BUILTIN_FUNCTIONS):
            owner = getattr(v, "__self__", None)
            if owner is None or isinstance(owner, (types.ModuleType, type)):
                return constant(v)
            return self.name(f"{self.build(owner)}.{v.__name__}")
        if isinstance(v, _ITERATORS) or kind.__module__ == "itertools":
            return self.iterator(v)
        if kind in (strata.no_grad, strata.enable_grad):
            return self.name(f"{constant(kind)}()")
        if isinstance(v, BaseException) and not v.__dict__ and v.__cause__ is None and v.__context__ is None:
            return self.name(f"{constant(kind)}({self.items(v.args)})")
        if id(v) in self.tracer.fresh_objects:
            return self.object(v, base_of(kind) or object)
        if kind is object:
            return self.name(f"{constant(object)}()")
        what = "a generator" if isinstance(v, Generator) else f"a {kind.__name__}"
        raise Break(f"{what} is alive where the graph ends")

    def function(self, v: types.FunctionType) -> str:
        closure = "None" if v.__closure__ is None else f"({self.items(v.__closure__)},)"
        defaults = "None" if v.__defaults__ is None else self.build(v.__defaults__)
        constant = self.text.constant
        made = self.name(
            f"{constant(types.FunctionType)}({constant(v.__code__)}, {constant(v.__globals__)}, {v.__name__!r}, {defaults}, {closure})"
        )
        if v.__kwdefaults__:
            self.lines.append(f"{made}.__kwdefaults__ = {self.build(v.__kwdefaults__)}")
        if v.__annotations__:
            self.lines.append(f"{made}.__annotations__ = {self.build(v.__annotations__)}")
        plain = types.FunctionType(v.__code__, v.__globals__, closure=v.__closure__)
        for name in ("__qualname__", "__module__", "__doc__"):
            if getattr(v, name) != getattr(plain, name):
                self.lines.append(f"{made}.{name} = {self.build(getattr(v, name))}")
        for name, value in v.__dict__.items():
            self.lines.append(f"{made}.__dict__[{name!r}] = {self.build(value)}")
        return made

    def cell(self, cell: types.CellType) -> str:
        made = self.made[id(cell)] = self.name(f"{self.text.constant(types.CellType)}()")
        try:
            value = cell.cell_contents
        except ValueError:
            return made
        self.lines.append(f"{made}.cell_contents = {self.build(value)}")
        return made

    def iterator(self, v: Any) -> str:
        parts = v.__reduce__()
        made = self.name(f"{self.text.constant(parts[0])}({self.items(parts[1])})")
        if len(parts) > 2 and parts[2] is not None:
            self.lines.append(f"{made}.__setstate__({self.build(parts[2])})")
        return made

    def attributes(self, v: Any, made: str) -> str:
        """What lies in its __dict__."""
        for name, value in getattr(v, "__dict__", {}).items():
            self.lines.append(f"{made}.__dict__[{name!r}] = {self.build(value)}")
        return made

    def object(self, v: Any, base: type) -> str:
        kind, constant = type(v), self.text.constant
        made = self.made[id(v)] = self.name(f"{constant(base)}.__new__({constant(kind)})")
        if isinstance(v, dict):
            for key, value in v.items():
                self.lines.append(f"{constant(base.__setitem__)}({made}, {self.build(key)}, {self.build(value)})")
        elif isinstance(v, list) and v:
            self.lines.append(f"{constant(list.extend)}({made}, ({self.items(v)},))")
        self.attributes(v, made)
        for base in kind.__mro__:
            for name, member in base.__dict__.items():
                if isinstance(member, types.MemberDescriptorType):
                    try:
                        value = member.__get__(v, kind)
                    except AttributeError:
                        continue
                    self.lines.append(f"{self.text.constant(object)}.__setattr__({made}, {name!r}, {self.build(value)})")
        return made

    # ---- effects

    def effects(self) -> None:
        t = self.tracer
        for shadow in t.shadows:
            if shadow.changed():
                self.write_back(shadow)
        for (_, name), (obj, value) in t.attributes.items():
            target = self.build(obj)
            setter = class_lookup(type(obj), "__setattr__")
            if value is _ABSENT:
                self.lines.append(f"del {target}.{name}")
            elif setter is object.__setattr__ or values.is_module(obj):
                self.lines.append(f"{target}.{name} = {self.build(value)}")
            else:
                self.lines.append(f"{self.text.constant(object)}.__setattr__({target}, {name!r}, {self.build(value)})")
        for at, tensor in t.grads_written.items():
            if tensor.grad is None and not t.region.made(tensor):  # else the graph leaves one
                source = t.known.get(at)
                target = self.text.constant(tensor) if source is None else self.text.of(source, self.head)
                self.lines.append(f"{target}.grad = None")
        for (_, name), (variables, value) in t.global_writes.items():
            self.lines.append(f"{self.text.constant(variables)}[{name!r}] = {self.build(value)}")
        for cell, value in t.cell_writes.values():
            self.lines.append(f"{self.build(cell)}.cell_contents = {self.build(value)}")

    def write_back(self, shadow: values.Shadow) -> None:
        target = self.text.of(shadow.source, self.head)
        now, before = shadow.copy, shadow.before
        found = values.contents(now)
        kind = type(now)
        if kind not in values.COPIED:  # past what its class overrides
            base = self.text.constant(base_of(kind))
            self.lines.append(f"{base}.clear({target})")
            if isinstance(now, list):
                self.lines.append(f"{base}.extend({target}, ({self.items(found)}{',' if found else ''}))")
            else:
                self.lines += [f"{base}.__setitem__({target}, {self.build(k)}, {self.build(v)})" for k, v in now.items()]
            return
        grown = len(found) >= len(before) and all(a is b for a, b in zip(found, before, strict=False))
        if isinstance(now, (list, collections.deque)):
            if grown:
                self.lines.append(f"{target}.extend(({self.items(found[len(before) :])},))")
            elif isinstance(now, list):
                self.lines.append(f"{target}[:] = ({self.items(found)}{',' if found else ''})")
            else:
                self.lines += [f"{target}.clear()", f"{target}.extend(({self.items(found)}{',' if found else ''}))"]
        elif isinstance(now, set):
            self.lines += [f"{target}.clear()", f"{target}.update(({self.items(found)}{',' if found else ''}))"]
        else:
            keys = before[::2]
            if list(now)[: len(keys)] != keys:
                self.lines.append(f"{target}.clear()")
                keys, before = [], []
            old = dict(zip(map(id, before[::2]), before[1::2], strict=True))
            for key, value in now.items():
                if id(key) not in old or old[id(key)] is not value:
                    self.lines.append(f"{target}[{self.build(key)}] = {self.build(value)}")

    # ---- the whole

    def body(self, frame: Frame, result: Any, count: int) -> tuple[list[str], list[Any]]:
        """The statements, and the tensors that the graph gives."""
        t = self.tracer
        for i, (made, *_) in enumerate(t.fresh_inputs):
            self.made[id(made)] = f"f{i}"
        self.effects()
        changes = bool(self.lines)
        if t.stopped:
            variables = f"[{self.items(frame.locals)}]"
            last = f"return {self.text.constant(Jump)}({frame.offset}, {variables}, [{self.items(frame.stack)}])"
        else:
            last = f"return {self.build(result)}"
        if t.grad_mode != t.began[0]:
            if self.shared:
                raise Break("views that share memory are results where gradients were turned on or off for good")
            self.lines.append(f"{self.text.constant(_C._set_grad_enabled)}({t.grad_mode})")
            changes = True
        inputs = {id(tensor): self.text.of(source, self.head) for tensor, source in t.tensor_inputs}
        before: list[str] = []
        after, self.lines = self.lines, before
        for made, function, args, kwargs in t.fresh_inputs:
            keywords = "".join(f", {k}={self.build(v)}" for k, v in kwargs.items())
            inputs[id(made)] = self.made[id(made)]
            before.append(f"{self.made[id(made)]} = {self.text.constant(function)}({self.items(args)}{keywords})")
        self.lines = prints = []
        for texts, kwargs in t.prints:
            prints.append(f"print({', '.join([*map(repr, texts), *(f'{k}={self.build(v)}' for k, v in kwargs.items())])})")
        self.lines = after
        given = ", ".join(inputs[id(tensor)] if id(tensor) in inputs else self.build(tensor) for tensor in t.region.inputs)
        graph = f"graph{len(t.parts) or ''}({given})"
        ends = tuple(i for i, output in enumerate(self.outputs) if output.requires_grad) if t.trained else ()
        if ends:
            graph = f"{self.text.constant(spent)}({graph}, {ends})"
        held = [f"({self.build(flag)}, {wanted})" for flag, wanted in t.asserted]
        call = [f"t = {graph}"] if t.region.count() or self.outputs else []
        if t.parts:
            from .emit_parts import parts_of

            before += parts_of(self, count)  # which may end in another entry: nothing is printed yet
        raises, draws = _C._recording_may_raise(0)[1:] if held or (call and (changes or prints)) else (False, False)
        if (held or raises) and not t.parts and not draws:
            again = [*self.head, *before, "try:", f"    {call[0] if call else 't = ()'}", "except Exception:", "    t = None"]
            fails = f" or not {self.text.constant(_hold)}({', '.join(held)})" if held else ""
            again += [f"if t is None{fails}:"]
            again += [f"    return again({', '.join(f'a{i}' for i in range(count))})", *prints, *self.lines, last]
            self.repeated = again
        sources = {id(tensor): source for tensor, source in t.tensor_inputs}
        if not (ends or held or before or prints or changes or self.lines) and all(id(tensor) in sources for tensor in t.region.inputs):
            self.inputs = [sources[id(tensor)] for tensor in t.region.inputs]
        return [*self.head, *before, *prints, *call, *self.lines, last], self.outputs

    def direct(self, lines: list[str]) -> str:
        """The result of a call that needs no text: "t[0]" or "None"; empty where there is need of it."""
        result = lines[-1].removeprefix("return ")
        return result if self.inputs is not None and not self.repeated and result in ("t[0]", "None") else ""

    def repeatable(self, lines: list[str], region: Any, again: Callable) -> list[str]:
        """The statements with a way back to the call's beginning, where there is need of one and the graph has written nothing."""
        if self.repeated and (region is None or not (region.step or _C._graph_written(region._graph))):
            self.text.constants["again"] = again
            return self.repeated
        if self.tracer.asserted:
            self.tracer.plan.asserts = False
            raise Replan
        return lines


def _hold(*asserted: tuple) -> bool:
    return all(bool(flag) is wanted for flag, wanted in asserted)


def _view(t: Any, size: tuple, stride: tuple, ahead: int) -> Any:
    return strata.as_strided(t, size, stride, t.storage_offset() + ahead)


def _view_without_gradient(t: Any, *geometry: Any) -> Any:
    """A view that was made under no_grad()."""
    with strata.no_grad(), _C.DisableTorchFunctionSubclass():
        return _view(t, *geometry)


def _view_of_class(t: Any, *geometry: Any) -> Any:
    """A view of a tensor whose class is not asked."""
    with _C.DisableTorchFunctionSubclass():
        return _view(t, *geometry)


def _view_of_graph(t: Any, shown: Any, *geometry: Any) -> Any:
    """A view whose history is that of the graph's result that shows the same."""
    with _C.DisableTorchFunctionSubclass():
        return _view(t, *geometry)._take_history(shown)


def shared_roots(tracer: Tracer, outputs: list[Any]) -> dict[int, Any]:
    """Of which tensors several views, or one and the tensor itself, are results or arguments. A write to one changes the history of
    all, which results of a graph would not know."""
    roots = {id(root): root for root in map(root_of, tracer.region.inputs)}
    shared = {}
    for root in map(root_of, outputs):
        if id(root) in roots:
            shared[id(root)] = root
        roots[id(root)] = root
    return shared


def function_of(lines: list[str], count: int, constants: dict[str, Any], graph: Callable | None, name: str) -> tuple[Callable, str]:
    """The text as a function."""
    parameters = ", ".join(f"a{i}" for i in range(count))
    text = f"def stretch({parameters}):\n" + "\n".join("    " + line for line in lines) + "\n"
    namespace = {**constants, "graph": graph}
    exec(text, namespace)  # compile() would make the classes of syntax trees, which takes a millisecond
    made = namespace["stretch"]
    # Marks of lines know it by its name (bind/process/source.cpp).
    made.__code__ = made.__code__.replace(co_filename=f"<compiled {name}>", co_name=_STRETCH)
    return made, text
