"""Random programs: chains of operators that grow while they run, so that each one fits what is there. A program's values,
errors and gradients must be the same from contiguous copies of its inputs, and on another number of threads."""

from __future__ import annotations

import math
import signal
from dataclasses import dataclass, field

import numpy as np
import strata

from fuzz.calls import SAMPLED, samples
from fuzz.child import Board, Finding, judged, scope
from fuzz.subjects import ROOT, SAMPLES, D, T, model
from fuzz.values import FLOATS, LARGE, Draw

# A write through a view, which a leaf that is a view itself allows and another refuses; operators that write running statistics, which an input under odd strides cannot hold; results that memory or its layout decides, by PyTorch's own definition; what takes no part in values; other processes.
BY_MEMORY = ("batch_norm", "instance_norm", "native_batch_norm", "empty", "as_strided", "view", "resize", "set", "new_empty", "is_", "share_memory", "pin_memory", "data_ptr", "record_stream", "_", "stride",
             "lift", "unsafe", "result_type", "can_cast", "requires_grad", "retain_grad", "contiguous", "to", "clone", "rename", "unsqueeze_copy",
             "fill_diagonal")
# Products and factorisations take a library's order of additions above some size.
LIBRARY = ("matmul", "conv", "linalg", "factor", "decompose", "attention", "compose")
BIG = 1 << 22  # elements whose values are not compared
MANY = 1000  # results of one call; those after are not compared
# Results that are as large as the square of an operand.
GROWING = ("diag", "meshgrid", "cartesian", "combinations", "block_diag", "kron", "outer", "ger", "vander", "cdist", "pdist", "one_hot")
COPY = "lambda t: t.detach().clone(memory_format=strata.contiguous_format).requires_grad_(t.requires_grad)"
# How the values of the variables enter the gradient: real and imaginary part, each by its own weight.
BACKWARD = "sum((strata.view_as_real(v) if v.is_complex() else v).double().sum() * k for k, v in enumerate(used, 1)).backward()"


@dataclass
class Outcome:
    """What a statement gave: its values' bits, or the type of its error."""

    bits: tuple

    @staticmethod
    def of(value) -> Outcome:
        if isinstance(value, (tuple, list)) and len(value) > MANY:
            return Outcome((len(value), *(seen(v) for v in value[:MANY])))
        return Outcome(tuple(seen(v) for v in value) if isinstance(value, (tuple, list)) else (seen(value),))


def seen(value) -> tuple:
    """Dtype, shape and bits, every NaN alike."""
    if not isinstance(value, strata.Tensor):
        return (repr(value),)
    t = value.detach()
    if t.numel() > BIG:
        return str(value.dtype), tuple(value.shape)
    if t.dtype in (strata.bfloat16, strata.float16):
        t = t.float()
    a = np.ascontiguousarray(t.reshape(-1).cpu().numpy())
    if a.dtype.kind == "c":
        a = a.view(a.real.dtype)
    if a.dtype.kind == "f":
        a = np.where(np.isnan(a), np.array(np.nan, a.dtype), a)
    return str(value.dtype), tuple(value.shape), value.requires_grad, a.tobytes()


@dataclass
class Program:
    """Statements over inputs x0, x1... and results v0, v1...; `settled` says which may be written in place."""

    inputs: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    tainted: set[int] = field(default_factory=set)  # storages that may be shared in one layout and not in another

    def text(self) -> str:
        return "\n".join([*self.inputs, *self.body])

    def run(self, copied: bool, threads: int, only: set[int] | None = None) -> list[Outcome]:
        """The outcomes of the statements, then of the variables and the gradients at the end."""
        strata.set_num_threads(threads)
        strata.manual_seed(0)
        names = scope()
        names["lay"] = eval(COPY, names) if copied else lambda t: t
        for line in self.inputs:
            name, _, expression = line.partition(" = ")
            names[name] = names["lay"](eval(expression, names))
        out = []
        for i, line in enumerate(self.body):
            if only is None or i in only:
                out.append(step(line, names))
        tensors = {n: v for n, v in names.items() if isinstance(v, strata.Tensor) and n[0] in "xv"}
        out += [Outcome.of(v) for v in tensors.values()]
        names["used"] = [v for n, v in tensors.items() if v.requires_grad and n[0] == "v"]
        if names["used"]:
            out.append(step(BACKWARD, names))
            out += [Outcome.of(v.grad) for n, v in tensors.items() if n[0] == "x" and v.is_leaf]
        return out


def settle() -> None:
    """Waits for the device where there is one, so that a statement raises its own errors."""
    device = strata.get_default_device()
    if device.type != "cpu":
        strata.accelerator.synchronize(device)


def step(line: str, names: dict) -> Outcome:
    try:
        exec(compile(line, "<statement>", "exec"), names)
        settle()
    except Exception as error:
        if text := judged(error):
            return Outcome(("error", text))
        return Outcome(("raised", type(error).__name__))
    name = line.partition(" = ")[0]
    return Outcome.of(names[name]) if name.isidentifier() else Outcome(())


class Grower:
    """Chooses statements that fit the variables there are."""

    def __init__(self, draw: Draw, large: bool):
        self.draw, self.large = draw, large
        self.program = Program()
        self.names = scope()
        self.writable: set[str] = set()
        self.shape = list(draw.pick(LARGE)) if large else [draw.pick([1, 2, 3, 4, 5]) for _ in range(draw.pick([0, 1, 2, 2, 3, 4]))]

    def variables(self, test=lambda t: True) -> list[str]:
        return [n for n, v in self.names.items() if n[0] in "xv" and n[1:].isdigit() and isinstance(v, strata.Tensor) and test(v)]

    def input(self, expression: str, writable: bool) -> str:
        name = f"x{len(self.program.inputs)}"
        self.names[name] = eval(expression, self.names)
        self.program.inputs.append(f"{name} = {expression}")
        if writable:
            self.writable.add(name)
        return name

    def fresh(self, dtype: str, shape: list[int], fill=None) -> str:
        layout = self.draw.pick(["plain", "transposed", "stepped", "offset", "expanded", "overlapping", "channels_last"])
        if self.large and layout == "overlapping":
            layout = "transposed"
        text = self.draw.laid(shape, dtype, layout, fill or (lambda s: self.draw.filled(s, dtype, tame=self.draw.chance(0.5))))
        if (dtype in FLOATS or dtype.startswith("complex")) and self.draw.chance(0.4):
            text += ".requires_grad_()"
        return self.input(text, layout not in ("expanded", "overlapping"))

    def dtype(self) -> str:
        return self.draw.pick(["float32", "float32", "float64", "bfloat16", "float16", "int64", "int32", "uint8", "bool", "complex64"])

    def sampled(self, entry) -> tuple[list[str], dict[str, str]] | None:
        """A sample's arguments; a variable of the same shape and dtype takes the place of a tensor."""
        made = samples(entry.row.samples, entry.schema.full, self.draw.pick(SAMPLED))
        if not made:
            return None
        call = self.draw.pick(made)

        def text(value):
            if isinstance(value, T):
                shape = list(value.data.shape)
                like = self.variables(lambda t: list(t.shape) == shape and str(t.dtype) == f"strata.{value.dtype}")
                if like and self.draw.chance(0.8):
                    return self.draw.pick(like)
                if value.data.size > 48:
                    return self.fresh(value.dtype, shape)
                data = np.asarray(value.data)

                def fill(s):
                    count = int(np.prod(s, dtype=int))
                    flat = data.reshape(-1).tolist() or [0]
                    if sorted(s) == sorted(data.shape) and s != list(data.shape) and self.draw.chance(0.5):
                        pass
                    return f"strata.tensor({(flat * count)[:count]!r}, dtype=strata.{value.dtype}).reshape({s})"
                return self.fresh(value.dtype, shape, fill)
            if isinstance(value, D):
                return f"strata.{value.name}"
            if isinstance(value, (list, tuple)):
                return "[" + ", ".join(text(v) for v in value) + "]"
            return repr(value.item() if isinstance(value, np.generic) else value)

        return [text(a) for a in call.args], {k: text(v) for k, v in call.kwargs.items()}

    def generic(self, entry) -> tuple[list[str], dict[str, str]] | None:
        """Arguments by kind and name, around one variable."""
        if not entry.schema.args or not entry.schema.args[0].type.startswith("Tensor"):
            return None
        have = self.variables(lambda t: not self.large or t.numel() > 1000)
        first = self.draw.pick(have) if have else self.fresh(self.dtype(), self.shape)
        t = self.names[first]
        args, kwargs = [], {}
        for i, a in enumerate(entry.schema.args):
            if i and a.default is not None and self.draw.chance(0.7):
                continue
            value = first if i == 0 else self.fitting(a, t)
            if value is None:
                return None
            if a.type == "Tensor[]" and i == 0:
                value = f"[{first}, {first}]"
            if len(args) == i and not a.kwonly:
                args.append(value)
            else:
                kwargs[a.name] = value
        return args, kwargs

    def fitting(self, a, t) -> str | None:
        rank = max(t.dim(), 1)
        if a.type == "Tensor":
            if "ind" in a.name or a.name == "index":
                return self.fresh("int64", list(t.shape), lambda s: f"(strata.arange({math.prod(s)}) % {max(min(t.shape, default=1), 1)}).reshape({s})")
            if a.name in ("mask", "condition"):
                return self.fresh("bool", list(t.shape))
            same = self.variables(lambda o: o.shape == t.shape)
            return self.draw.pick(same) if same and self.draw.chance(0.6) else self.fresh(self.dtype(), list(t.shape)[self.draw.pick([0, 0, 1]):])
        if a.key in ("int", "int?"):
            return str(self.draw.random.randrange(-rank, rank)) if "dim" in a.name else str(self.draw.pick([0, 1, 2]))
        if a.key in ("int[]", "int[]?"):
            return str(sorted(self.draw.random.sample(range(rank), self.draw.pick([0, 1, 1, rank])))) if "dim" in a.name else None
        if a.key in ("float", "float?", "Scalar", "Scalar?"):
            return self.draw.pick(["0.5", "2", "1.5", "-1"])
        if a.key in ("bool", "bool?"):
            return self.draw.pick(["True", "False"])
        return "None" if a.key.endswith("?") else None

    def statement(self, entry) -> str | None:
        use_sample = not self.large and entry.row.samples in SAMPLES and self.draw.chance(0.6)
        made = self.sampled(entry) if use_sample else self.generic(entry)
        if made is None:
            return None
        args, kwargs = made
        schema = entry.schema
        path = f"strata.ops.{schema.ns}.{schema.name}.{schema.overload or 'default'}"
        writes = [a for a in schema.args if a.written]
        if writes and (len(writes) > 1 or not args or args[0] not in self.writable):
            return None
        form = self.draw.random.random()
        if form < 0.2 and entry.inplace and args and args[0] in self.writable:
            path = path.replace(f".{schema.name}.", f".{schema.name}_.")
        joined = ", ".join([*args, *(f"{k}={v}" for k, v in kwargs.items())])
        return f"v{len(self.program.body)} = {path}({joined})"

    def grow(self, entries: list, length: int, begun) -> Program:
        for _ in range(length * 4):
            if len(self.program.body) >= length:
                break
            entry = self.draw.pick(entries)
            if self.large and (entry.family in LIBRARY or entry.schema.name.startswith(GROWING)):
                continue
            line = self.statement(entry)
            if line is None:
                continue
            begun(self.program, line)
            outcome = step(line, self.names)
            name = line.partition(" = ")[0]
            if outcome.bits and outcome.bits[0] == "raised" and self.draw.chance(0.85):
                continue  # most errors leave the program; some stay, to be compared
            self.program.body.append(line)
            self.account(entry, name, line)
        return self.program

    def account(self, entry, name: str, line: str) -> None:
        """Which variables may still be written in place: those that alias alike whatever the layout is."""
        value = self.names.get(name)
        used = [n for n in self.writable if f"{n}," in line or f"{n})" in line or f"{n}]" in line]
        strict = entry.kind in ("pointwise", "rows", "cpu") or (entry.kind == "view" and not entry.schema.name.startswith(("reshape", "flatten")))
        if not strict:
            self.writable -= set(used)
        elif isinstance(value, strata.Tensor) and (entry.kind != "view" or used) and 0 not in value.stride():
            self.writable.add(name)


def candidates() -> list:
    found = []
    for e in model.load(ROOT / "ops")[0]:
        if not e.derived and not e.schema.name.startswith(BY_MEMORY) and e.family not in ("optim",) and "factory" not in e.row.tags:
            found.append(e)
    return found


ENTRIES: list = []


def differs(program: Program, copied: bool, threads: int, only: set[int] | None = None) -> str | None:
    """Where the program run another way gives something else."""
    a, b = program.run(False, 1, only), program.run(copied, threads, only)
    lines = [line for i, line in enumerate(program.body) if only is None or i in only]
    for i, (p, q) in enumerate(zip(a, b)):
        if p.bits != q.bits:
            where = lines[i] if i < len(lines) else "the variables or gradients at the end"
            return f"{where}: {brief(p)} and {brief(q)}"
    return None if len(a) == len(b) else "another number of gradients"


def brief(outcome: Outcome) -> str:
    if outcome.bits[:1] in (("raised",), ("error",)):
        return " ".join(map(str, outcome.bits))[:300]
    parts = []
    for b in outcome.bits[:3]:
        if len(b) == 4 and isinstance(b[0], str):
            dtype = {"strata.bfloat16": "float32", "strata.float16": "float32", "strata.complex64": "float32", "strata.complex128": "float64"}.get(b[0], b[0][7:])
            parts.append(f"{b[0]}{list(b[1])} {np.frombuffer(b[3], dtype)[:12].tolist()}")
        else:
            parts.append(str(b)[:100])
    return "; ".join(parts)


def minimal(program: Program, copied: bool, threads: int) -> tuple[list[str], str]:
    """The fewest statements that still differ, as a program that shows it."""
    keep = set(range(len(program.body)))
    for i in sorted(keep, reverse=True):
        try:
            if differs(program, copied, threads, keep - {i}):
                keep -= {i}
        except Exception:  # noqa: BLE001 - a name is missing without it
            continue
    text = differs(program, copied, threads, keep) or ""
    body = [line for i, line in enumerate(program.body) if i in keep]
    uses = "\n".join(body)
    inputs = [line for line in program.inputs if any(f"{line.split(' ')[0]}{c}" in uses for c in ",)].")]
    inputs = [f"{n} = lay({e})" for n, _, e in (line.partition(" = ") for line in inputs)]
    last = body[-1].partition(" = ")[0] if body else "None"
    shown = last
    if "at the end" in text or "gradients" in text:
        names = [line.partition(" = ")[0] for line in [*inputs, *body]]
        grads = ", ".join(f"{n}.grad" for n in names if n[0] == "x")
        shown = ", ".join(names) + (f", {grads}" if grads else "")
        if grads:
            made = "".join(f"{n}, " for n in names if n[0] == "v")
            body.append(f"used = [v for v in ({made}) if isinstance(v, strata.Tensor) and v.requires_grad]; used and {BACKWARD}")
    if len(body) > 3:
        body = ["; ".join(body)]
    other = f"program({COPY})" if copied else "program(lambda t: t)"
    return ["def program(lay):", "    " + "; ".join(inputs or ["pass"]), *["    " + line for line in body], f"    return {shown}",
            "strata.set_num_threads(1); print(program(lambda t: t))", f"strata.set_num_threads({threads}); print({other})"], text


def examined(seed: int, number: int, device: str, board: Board, tell, seconds: float) -> None:
    """Grows the program of a number, then runs it in the other ways."""
    if not ENTRIES:
        ENTRIES.extend(candidates())
    draw = Draw(f"program {seed}:{number}")
    large = draw.chance(0.15)

    def begun(program: Program, line: str) -> None:
        board.begin(number, program.text() + "\n" + line)
        signal.setitimer(signal.ITIMER_REAL, seconds)

    strata.set_default_device(device)
    strata.set_num_threads(1)
    strata.manual_seed(0)
    grower = Grower(draw, large)
    program = grower.grow(ENTRIES, draw.pick([2, 4, 6, 8]), begun)
    signal.setitimer(signal.ITIMER_REAL, 6 * seconds)
    board.begin(number, program.text() + "\n# run again")
    for i, outcome in enumerate(program.run(False, 1)):
        if outcome.bits[:1] == ("error",):
            tell(Finding("error", subject_of(program.body[i] if i < len(program.body) else "backward"), number, outcome.bits[1], [*program.inputs, *program.body[:i + 1]]))
    for kind, copied, threads in (("layout", True, 1), ("threads", False, 2)):
        if kind == "threads" and not (large or number % 8 == 0):
            continue
        if differs(program, copied, threads):
            lines, text = minimal(program, copied, threads)
            culprit = next((line for line in reversed(lines) if "strata.ops." in line), "")
            tell(Finding(kind, subject_of(culprit), number, text, lines))
    board.count("returned")
    signal.setitimer(signal.ITIMER_REAL, 0)


def subject_of(line: str) -> str:
    return line.partition(" = ")[2].partition("(")[0] or line[:60]
