"""Compiled functions: how their entries are captured, and how a call goes from one to the next."""

from __future__ import annotations

import functools
import gc
import types
import weakref
from _thread import RLock  # threading's, without the module's import

from strata import _C, _capture

from . import training, values
from .backends import callable_of, direct, silent, single
from .config import config
from .data import Plan
from .decode import decode, forget, line_of, place, reads_its_frame, unknown
from .emit import Emitter, function_of, shared_roots
from .entries import Entry, Table, compiled, everything
from .forms import BOUND
from .frame import NATIVE, NULL, UNBOUND, Frame, Jump, bind
from .guards import guards_table
from .instances import Family, begins, roots
from .plainly import Plainly
from .reasons import (
    Asked,
    BackendCompilerFailed,
    Break,
    Failing,
    Fixed,
    Forbidden,
    Raised,
    RecompileError,
    Replan,
    Restart,
    SizeViolation,
    Unsupported,
    breaks_are_errors,
    counters,
    internal,
    logs,
    over_limit,
    tell,
    warn,
)
from .sources import arg, const
from .table import HANDLERS
from .thread_state import Interrupted, ThreadState, capture_lock, pass_on_signals
from .tracer import Tracer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from .callees import PlainWithCallees
    from .program import Program

MAX_RESTARTS = 200
MOST_OVERFLOWS = 8  # captures that the end of the stack, or of memory, ended
MOST_OF_DATA = 4  # entries of one place that differ in what they take values of tensors to be


class Compiled(Plainly):
    """A function and its tables. Options are those of strata.compile."""

    def __init__(self, function: types.FunctionType, options: Any):
        self.function, self.code, self.options = function, function.__code__, options
        self.breaks: list[Break] = []
        self.recompiles: list[str] = []
        self._plain: PlainWithCallees | None = None
        code = self.code
        count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
        self.start = Table(self, decode(code).instructions[0].offset, (True,) * count, ())
        self.tables: dict[tuple, Table] = {}
        self.lock = RLock()
        self.simple = not (code.co_flags & 12) and not code.co_kwonlyargcount
        self.refusal = self._refusal()
        self.faces: list[weakref.ref] = []
        everything[id(self)] = self

    def _refusal(self) -> str:
        """Why it can only run as it is."""
        if self.code.co_flags & (0x20 | 0x80 | 0x200):
            return "a generator or a coroutine runs as it is"
        name = reads_its_frame(self.code)
        if name:
            return f"it uses {name}, which reads the frame that it runs in"
        name = unknown(self.code, HANDLERS)
        return f"the opcode {name} cannot be captured" if name else ""

    @property
    def plain(self) -> PlainWithCallees:
        """The machine of what is not captured, made where there is some."""
        if self._plain is None:
            from .callees import PlainWithCallees

            self._plain = PlainWithCallees(self)
        return self._plain

    def reset(self) -> None:
        with capture_lock, self.lock:
            self.start.clear()
            self.tables.clear()
            self.breaks.clear()
            self.recompiles.clear()
            self._plain = None

    # ---- calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.simple and not kwargs and len(args) == self.code.co_argcount:
            bound = args
        else:
            if self.function.__code__ is not self.code:
                return self.function(*args, **kwargs)
            bound = tuple(bind(self.function, args, kwargs, getattr))
        return self.go(bound, args, kwargs)

    def go_on(self, jump: Jump) -> Any:
        """A call whose first stretch stopped there."""
        if jump.offset < 0:
            return self.elsewhere(jump)
        done, value = self.interrupt(frame := self.resumed(jump))
        return value if done else self.run(*self.table_at(frame), (), {})

    def elsewhere(self, jump: Jump) -> Any:
        from .stages import elsewhere

        return elsewhere(self, jump)

    def go(self, bound: tuple, args: tuple, kwargs: dict) -> Any:
        eager = self.options.stance() == "force_eager"
        if eager or self.refusal or _capture.current() is not None or self.function.__code__ is not self.code:
            if self.refusal and not eager:
                self.note_refusal()
            return self.function(*args, **kwargs)
        return self.run(self.start, bound, args, kwargs)

    def run(self, table: Table, bound: tuple, args: tuple, kwargs: dict) -> Any:
        while True:
            call = table.find(bound) or self.miss(table, bound)
            if call is None or call is NATIVE:
                if table is self.start:
                    return self.function(*args, **kwargs)
                return self.finish(table.frame(self.plain, list(bound)))
            result = call(*bound)
            if type(result) is not Jump:
                return result
            if result.offset < 0:
                return self.elsewhere(result)
            done, value = self.interrupt(frame := self.resumed(result))
            if done:
                return value
            table, bound = self.table_at(frame)

    def table_at(self, frame: Frame) -> tuple[Table, tuple]:
        bound = tuple(v is not UNBOUND for v in frame.locals)
        filled = tuple(v is not NULL for v in frame.stack)
        key = frame.offset, bound, filled
        table = self.tables.get(key)
        if table is None:
            table = self.tables.setdefault(key, Table(self, frame.offset, bound, filled))
        args = [v for v in frame.locals if v is not UNBOUND] + [v for v in frame.stack if v is not NULL]
        return table, tuple(args)

    # ---- captures

    def miss(self, table: Table, args: tuple, tried: Collection[Entry] = ()) -> Any:
        """What a new entry for these arguments calls, or one that another thread has made meanwhile, those tried apart. NATIVE, or
        None where none may be made: the function runs as it is."""
        stance = self.options.stance()
        if stance == "force_eager" or (stance == "eager_on_recompile" and table.entries) or _C._torch_function_modes():
            return None  # what a mode of __torch_function__ sees is up to it
        if _C._dispatch_modes() or _C._default_device().type == "meta":
            return None  # and what one of __torch_dispatch__ sees; shapes alone need no graph
        if stance.endswith("eager_then_compile") and not table.asked:
            table.asked = True
            return None
        with capture_lock, self.lock:  # in this order: what a capture calls may be compiled itself
            found = table.find(args, tried)
            if found is not None:
                return found
            if stance == "fail_on_recompile" and table.entries:
                why = table.entries[0].why_not(args)
                raise RecompileError(f"compile: a recompile is needed, and set_stance('fail_on_recompile') forbids it: {why}")
            if table.gave_up:
                return None
            of_data = [entry for entry in table.entries if entry.reads_data]
            if tried and len(of_data) >= MOST_OF_DATA:
                table.forget_data(of_data)
                return NATIVE
            if table.entries:
                self.note_recompile(table, args)
            if self.beyond(table, args):
                return None
            collects = gc.isenabled()
            gc.disable()  # captures make objects by the thousand, and keep nearly all of them
            try:
                entry = self.capture(table, args)
            except Interrupted as interrupted:
                raise interrupted.error from None
            finally:
                if collects:
                    gc.enable()
            if entry is None:
                return NATIVE
            table.add(entry)
            return (entry.select(args) if entry.reads_data else entry.run) or NATIVE

    def beyond(self, table: Table, args: tuple) -> bool:
        """Whether there are too many entries, which is told once."""
        alike = [c for c in compiled() if c.code is self.code]
        made = sum(len(t.entries) for c in alike for t in (c.start, *list(c.tables.values())))
        entries = sum(not entry.of_failing_sizes for entry in table.entries)
        few, accumulated = entries < config.recompile_limit, made >= config.accumulated_recompile_limit
        if few and not accumulated:
            return False
        name = self.function.__qualname__
        limit = f"accumulated recompile limit ({made})" if few else f"recompile limit ({entries})"
        reason = f"Last reason: {table.entries[0].why_not(args)}. " if table.entries else ""
        place = f"strata.compile hit the {limit} of {name} ({self.code.co_filename}:{self.code.co_firstlineno})"
        over_limit(place, f"{reason}STRATA_LOGS=recompiles shows all", self.options.fullgraph)
        table.gave_up = True
        return True

    def note_recompile(self, table: Table, args: tuple) -> None:
        lines = [f"Recompiling function {self.function.__qualname__} in {self.code.co_filename}:{self.code.co_firstlineno}"]
        lines += [f"    triggered by: {entry.why_not(args)}" for entry in table.entries]
        self.recompiles.append("\n".join(lines))
        tell("recompiles", "\n".join(lines))

    def capture(self, table: Table, args: tuple) -> Entry | None:
        """None where this call runs as it is, and others may not."""
        stop, why = None, None
        state = ThreadState()
        dynamic = self.options.dynamic
        symbols, recorded = True, bool(dynamic or (dynamic is None and table.entries))
        plan = self.plan(table)
        for _ in range(MAX_RESTARTS):
            table.seen.begin(symbols)
            tracer = None
            try:
                try:
                    tracer = Tracer(stop, table.seen, self.program() if recorded and symbols else None, plan, state.draw_apart())
                    tracer.asking = tracer.began_asking = _C._is_torch_function_enabled()
                    _C._set_torch_function_state(1)  # what a capture reads of tensors is nobody's to answer
                    return self.attempt(table, args, tracer, why)
                except Exception as error:
                    pass_on_signals(error)
                    raise
            except (RecursionError, MemoryError) as error:  # of where it is called from, as a rule
                table.overflows += 1
                if table.overflows == MOST_OVERFLOWS:
                    table.gave_up = True
                    warn(f"strata.compile: {type(error).__name__} in {MOST_OVERFLOWS} captures of {self.function.__qualname__}; it runs as it is from now on")
                return None
            except Fixed as fixed:
                symbols, recorded = fixed.again, fixed.again
                if not fixed.again:
                    plan.scalars = plan.shapes = False
                if not fixed.again:
                    tell("sizes", f"{self.function.__qualname__}: captured for these sizes alone: {fixed}")
            except Asked as asked:
                plan.learn(asked)
            except Replan:
                pass
            except Failing:
                return None
            except Restart as restart:
                again = stop is not None and restart.step >= stop  # it cannot get that far
                stop, why = restart.step, restart.why
                self.note_break(why)
                if again or stop == 0:
                    return self.give_in(tracer, args, why)
            except Break as unbuilt:  # the state at the end cannot be handed on
                if tracer.stopped and stop:
                    stop -= 1
                    continue
                unbuilt.place = unbuilt.place or place(self.code, tracer.offset())
                self.note_break(unbuilt)
                return self.give_in(tracer, args, unbuilt)
            except Raised as error:
                why = Break(f"it raises {type(error.error).__name__}: {error.error}")
                self.note_break(why)
                return self.give_in(tracer, args, why)
            except (BackendCompilerFailed, Forbidden, SizeViolation, Unsupported):
                raise
            except Exception as error:  # a fault of the capture's own: the function runs as it is, and says why
                why = internal(error, place(self.code, tracer.offset()))
                why.of_sizes = True
                self.note_break(why)
                return self.give_in(tracer, args, why)
            finally:
                try:
                    state.restore(tracer)
                except BaseException:  # it was interrupted itself, perhaps where it begins
                    state.restore(tracer)
                    raise
                if tracer is not None:
                    tracer.let_go()
        return self.give_in(tracer, args, why or Break("too many breaks"))

    @staticmethod
    def program() -> Program:
        """A new one. Loaded here: the first capture of a function has no symbols as a rule."""
        from .program import Program

        return Program(str)

    def plan(self, table: Table) -> Plan:
        """What is captured of values of tensors. A backend of one's own gets graphs without."""
        able = self.options.backend is None and not table.no_data
        asked = self.options.fullgraph
        return Plan(self.options, able and (asked or config.capture_scalar_outputs), able and (asked or config.capture_dynamic_output_shape_ops))

    def note_refusal(self) -> None:
        if self.options.fullgraph or not self.breaks:
            why = Break(self.refusal, "compile the functions that it calls")
            why.place = line_of(self.code, 0)
            self.note_break(why)

    def note_break(self, why: Break) -> None:
        why.__traceback__ = why.__context__ = None  # these hold the capture, and all that it read
        self.breaks.append(why)
        tell("graph_breaks", why.text())
        counters["graph_break"][why.reason] += 1
        if breaks_are_errors(self.options.fullgraph):
            raise Unsupported(f"compile(fullgraph=True): {self.function.__qualname__} is not one graph\n{why.text()}") from None

    def give_in(self, tracer: Tracer, args: tuple, why: Break) -> Entry:
        """An entry for what runs as it is: the guards say when that was found out."""
        entry = Entry("native", tracer.guards.compile(len(args)), None, tracer.guards)
        entry.stops = why
        if tracer.program is not None and tracer.program.symbols:
            entry.family = self.family_of(tracer, True)
            if why.of_sizes:
                entry.family.only = entry.check.key(args)
                entry.of_failing_sizes = True
        return entry

    def family_of(self, tracer: Tracer, native: bool = False) -> Family:
        return Family(tracer.program, tracer.guards, native, self.options, self.function.__qualname__, tracer.library)

    def attempt(self, table: Table, args: tuple, tracer: Tracer, why: Break | None) -> Entry:
        tracer.guards.add("is", const(self.function).attr("__code__"), self.code)
        given: list[Any] = [values.Lazy(value, arg(i)) for i, value in enumerate(args)]
        first = len(args) - sum(table.filled)
        given[first:] = [tracer.load(value, arg(i)) for i, value in enumerate(args) if i >= first]
        frame = table.frame(tracer, given)
        for i, cell in enumerate(frame.closure):
            if id(cell) not in tracer.known:
                tracer.hold(cell, const(self.function).attr("__closure__").item(i))
        if why is not None and why.while_ is not None:
            tracer.guards.add("call", None, why.while_)
        result = tracer.run(frame)
        tracer.end()
        emitter = Emitter(tracer)
        lines, outputs = emitter.body(frame, result, len(args))
        shared = shared_roots(tracer, outputs) if _C.is_grad_enabled() else {}
        if shared:
            emitter = Emitter(tracer, shared)
            emitter.beside = not tracer.trained and any(not t._is_view() or id(t._base) not in shared for t in outputs)
            lines, outputs = emitter.body(frame, result, len(args))
        training.watch_optimizers(tracer)
        program = tracer.program if tracer.program is not None and (tracer.program.symbols or tracer.parts) else None
        slots = [program.slot_of(t) for t in outputs] if program is not None else []
        bases = roots([*(t for t in tracer.region.inputs if tracer.made_before(t) is None), *outputs])
        region = graph = run = None
        constants = emitter.text.constants
        if tracer.region.count() or outputs:
            region = tracer.region.end(outputs)
            inputs = region.known_inputs
            region.check(tracer)
        # Before a backend is asked: the capture may begin again here.
        lines = emitter.repeatable(lines, region, functools.partial(self.again, table))
        if region is not None:
            graph = callable_of(region, self.options, inputs)
            run = direct(graph)
        tracer.check_parts(outputs, shared)
        tracer.finish_guards()
        gives = emitter.direct(lines) if run is not None and program is None else ""
        called = {"t[0]": single, "None": silent}[gives](graph) if gives else None
        check = tracer.guards.compile(len(args), emitter.inputs if called is not None else ())
        numbers = tracer.program.now if tracer.program is not None else {}
        body, text = function_of(lines, len(args), {**constants, **numbers}, run, self.function.__qualname__)
        code = body.__code__
        alone = run is not None and lines == [f"t = graph({', '.join(f'a{i}' for i in range(len(args)))})", "return t[0]"]
        if alone:
            body = single(graph) or body
        entry = Entry("graph", check, body, tracer.guards)
        entry.direct = called
        entry.text, entry.region, entry.graph = text, region, graph
        entry.regions = [made for made in (*(part.region for part in tracer.parts), region) if made is not None]
        counters["stats"]["unique_graphs"] += graph is not None
        entry.stops = why if tracer.stopped else None
        if program is not None:
            program.check()
            family = self.family_of(tracer)
            planned = [tracer.plan.outputs.get(i, []) for i in range(len(tracer.parts))]
            starts = [made and begins(made) for made in (*(part.region for part in tracer.parts), region)]
            family.finish([*planned, slots], bases, starts, code, constants, alone)
            if tracer.parts:
                return self.in_stages(table, entry, emitter, family)
            entry.family = family
            key = check.key(args)
            if why is not None and why.of_sizes:
                family.only, entry.of_failing_sizes = key, True
            if key is not None:
                check.put(key, body, BOUND)
        self.tell(table, entry)
        return entry

    def in_stages(self, table: Table, entry: Entry, emitter: Emitter, family: Family) -> Entry:
        """An entry whose graphs are made by its calls, for the values that they read."""
        from .stages import Lone

        family.named, entry.reads_data = emitter.tracer.program.named, True
        emitter.here += [table, entry]
        entry.run = Lone(family, emitter.here)
        entry.family = family if emitter.tracer.program.symbols else None
        self.tell(table, entry)
        return entry

    def tell(self, table: Table, entry: Entry) -> None:
        name = f"{self.function.__qualname__} from offset {table.offset}"
        if logs("bytecode"):
            tell("bytecode", f"{name}\n{entry.text}")
        if logs("guards"):
            tell("guards", f"{name}\n" + "\n".join(map(repr, entry.guards.guards)))


class CompiledFunction(_C._Dispatcher):
    """What strata.compile gives for a function: calls go from C to the guards and to what they guard."""

    def __init__(self, compiled: Compiled, owner: tuple):
        self._strata_compiled, self._owner = compiled, owner
        self.refresh()
        compiled.faces.append(weakref.ref(self))

    __copy__ = __deepcopy__ = lambda self, *memo: self  # as functions are

    def refresh(self) -> None:
        """Whether calls may go that way."""
        c = self._strata_compiled
        fast = not c.refusal and c.options.stance() == "default" and c.function.__code__ is c.code
        self._set(c.start.calls, c.function if fast else None, self._owner[0] if self._owner else None, Jump)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        return self._strata_compiled(*self._owner, *args, **kwargs)

    def _resume(self, jump: Jump) -> Any:
        return self._strata_compiled.go_on(jump)

    def guards(self) -> str:
        """A table of what each entry's guards read and expect, how often they held, and nanoseconds of a check."""
        return guards_table(self._strata_compiled)

    def reset(self) -> None:
        """Forgets what was compiled of it."""
        self._strata_compiled.reset()


def refresh() -> None:
    """After the stance has changed."""
    for found in compiled():
        for face in found.faces:
            if face() is not None:
                face().refresh()


def reset() -> None:
    """Forgets all that was compiled."""
    forget()
    for found in compiled():
        found.reset()
