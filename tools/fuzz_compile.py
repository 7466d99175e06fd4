"""Random Python functions, compiled against as they are: values, gradients, written arguments, effects and printed text.

    python tools/fuzz_compile.py --programs 500 --seed 1 [--mutate-state] [--dynamic] [--values] [--backend B] [--show]

A program is a module's text with a function `f`, its globals, a closure's cell, an object and a module that it uses. It is
executed twice, into two namespaces; one's function is compiled. Both are called with equal arguments, several times;
with --mutate-state what the function read is changed between calls, in both alike. With --dynamic each call has other sizes;
with --values the program reads values of tensors, which are captured. Arguments may be parts of other tensors, or turned.
A difference prints the program.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import io
import os
import random
import sys
import time
import traceback
import warnings

if "--sanitize" in sys.argv[:-1] and "clang_rt" not in os.environ.get("LD_PRELOAD", ""):
    # The sanitizer's runtime must be there before strata is.
    import sanitizer

    settings = sanitizer.for_python(sys.argv[sys.argv.index("--sanitize") + 1])
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], settings)

import fuzz_compile_sizes as sizes  # noqa: E402
import fuzz_compile_state as state  # noqa: E402
import fuzz_compile_values as values  # noqa: E402
import strata  # noqa: E402
from strata._bytecode import reasons  # noqa: E402
from strata._dynamo import config  # noqa: E402

HEAD = '''
import strata
from strata import nn
import strata.nn.functional as F

G_INT, G_FLOAT, G_FLAG = {g_int}, {g_float}, {g_flag}
G_LIST = [1, 2, 3]
G_DICT = {{"a": 1, "b": 2.0}}

class Base:
    def __getitem__(self, k):
        return k + 1
    def __bool__(self):
        return True
    def __call__(self, v):
        return v * 0.5

class Other:
    def __getitem__(self, k):
        return k - 1

class Obj(Base):
    kind = 2
    def __init__(self):
        self.n, self.items, self.scale, self.t = 1, [1], 0.5, strata.ones(4)
    def act(self, v):
        return v * self.scale + self.n
    @property
    def double(self):
        return self.n * 2

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.drop, self.count = nn.Linear(4, 4), nn.Dropout(0.5), 0
        self.blocks = nn.ModuleList([nn.Linear(4, 4), nn.Tanh()])
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("seen", strata.zeros(4))
    def forward(self, v):
        self.count += 1
        v = self.lin(v)
        for b in self.blocks:
            v = b(v)
        with strata.no_grad():
            self.seen.add_(v.detach())
        if self.training:
            v = v + 1
        return self.drop(v)

def helper(a, b=2, *rest, k=1, **more):
    return a * b + k + len(rest) + len(more)

def chooser(v, n):
    if n > 2:
        return v + n
    for _ in range(n):
        v = v * 2
    return v

def gen(v, n):
    for i in range(n):
        yield v + i

strata.manual_seed(5)
OBJ, NET = Obj(), Net()

def make():
    cell = 3
    def set_cell(value):
        nonlocal cell
        cell = value
    def f(x, y, n, items, d, obj):
        global G_INT
        nonlocal cell
        v0, v1, v2 = x + 0, y * 1, x * y
        k = n
{body}
    return f, set_cell
'''


class Writer:
    """Writes the body of one function."""

    def __init__(self, seed: int):
        self.r = random.Random(seed)
        self.lines: list[str] = []
        self.names = 0

    def vec(self) -> str:
        return self.r.choice(["v0", "v1", "v2"])

    def number(self) -> str:
        r = self.r
        return r.choice(["n", "k", "2", "1.5", "G_INT", "G_FLOAT", "obj.n", "obj.scale", "cell", "len(items)", "obj.double", "Obj.kind", "x.shape[0]"])

    def small(self) -> str:
        return self.r.choice(["n % 3", "2", "k % 2 + 1", "len(G_LIST) % 3", "x.shape[0] // 2", "obj.n % 3"])

    def expr(self) -> str:
        r, a, b = self.r, self.vec(), self.vec()
        return r.choice([
            f"{a} + {b}", f"{a} * {b}", f"{a} - {self.number()}", f"{a} * {self.number()}", f"strata.sin({a})", f"{a}.tanh() + {b}",
            f"strata.relu({a})", f"strata.cat([{a}[:2], {b}[2:]])", f"{a}.view(2, 2).t().reshape(4)", f"{a} * {b}.sum()",
            f"F.softmax({a}, dim=0)", f"{a}.flip(0)", f"strata.where({a} > {b}, {a}, {b} * 2)", f"helper({a}, {self.number()}, 1, k={self.number()})",
            f"chooser({a}, {self.small()})", f"obj.act({a})", f"sum([{a} * i for i in range({self.small()} + 1)])", f"NET({a})",
            f"NET.lin({a})", f"(lambda q, w=2: q * w + cell)({a})", f"{a}.to(strata.float64).to(x.dtype)", f"strata.stack([{a}, {b}]).mean(0)",
            f"F.dropout({a}, 0.5)", f"{a} + strata.rand(4)", f"{a} + strata.tensor([1.0, 2.0, 3.0, 4.0])", f"{a}.clone()", f"{a}.detach() + {b}",
            f"F.linear({a}, NET.lin.weight)", f"{a} * obj[1]", f"{a} * (2 if obj else 3)", f"obj({a}) if callable(obj) else {a}",
            f"{a} * (2 if obj is OBJ else 3)", f"{a} + (obj in [OBJ, 1]) + (obj == OBJ)", f"{a} + len({{obj, OBJ}})", f"{a} + len(type(obj).__name__)",
            f"{a} * (1 + isinstance(obj, Base))", f"obj.t * {a}", f"sum(gen({a}, {self.small()} + 1))", f"{a} @ NET.lin.weight", f"{a}.clamp(-1, 1)",
        ])  # fmt: skip

    def condition(self) -> str:
        r = self.r
        return r.choice([
            "n > 2", "G_FLAG", "len(items) > 2", "NET.training", "x.requires_grad", "strata.is_grad_enabled()", "isinstance(n, int) and n < 4",
            "'a' in d", "obj.n > 1", "x.shape[0] == 4", "cell > 3", "k is not None and k % 2", "x.dtype == strata.float32", "G_INT in (1, 2, 3)",
            "hasattr(obj, 'extra')", "obj", "obj is not OBJ", "isinstance(obj, (Other, list))", "not items", "len(G_LIST) == 3", "x is y", "getattr(obj, 'extra', 0) > 1", "d.get('b', 1) == 2.0",
        ])  # fmt: skip

    def fresh(self) -> str:
        self.names += 1
        return f"t{self.names}"

    def statement(self, depth: int, pad: str) -> None:
        r, put = self.r, lambda text: self.lines.append(pad + text)
        v = self.vec()
        kind = r.choice(["assign"] * 9 + "part part if loop list dict obj global cell print inplace try grad while call comp brk with unpack part assert mode".split())
        if depth > 1 and kind in ("if", "loop", "try", "while", "with", "grad"):
            kind = "assign"
        if kind == "assign":
            put(f"{v} = {self.expr()}")
        elif kind == "if":
            put(f"if {self.condition()}:")
            self.block(depth + 1, pad + "    ")
            if r.random() < 0.5:
                put("else:")
                self.block(depth + 1, pad + "    ")
        elif kind == "loop":
            i = self.fresh()
            put(r.choice([
                f"for {i} in range({self.small()}):", f"for {i} in G_LIST[:3]:", f"for {i}, _ in enumerate(list(items)):",
                f"for {i}, _ in zip([1, 2], d):", f"for {i} in [1, 3][:{self.small()}]:",
            ]))  # fmt: skip
            put(f"    {v} = {v} + {i}")
            self.block(depth + 1, pad + "    ")
            if r.random() < 0.3:
                put(f"    if {i} == 2:")
                put("        " + r.choice(["break", "continue"]))
        elif kind == "while":
            i = self.fresh()
            put(f"{i} = 0")
            put(f"while {i} < {self.small()}:")
            put(f"    {i} += 1")
            self.block(depth + 1, pad + "    ")
        elif kind == "list":
            put(r.choice([f"items.append({v})", f"items.insert(0, {self.number()})", f"items[0:1] = [{v}, 2]", "items.reverse()", f"obj.items.append({self.number()})",
                          f"G_LIST.append({self.number()})", "G_LIST.pop() if len(G_LIST) > 2 else None", f"items += [{v}]", "items = list(items)"]))  # fmt: skip
        elif kind == "dict":
            put(r.choice([f"d['k'] = {v}", "d.pop('a', None)", f"d.setdefault('z', {self.number()})", f"d.update(q={v})", f"G_DICT['n'] = {self.number()}",
                          f"d[f'{{n}}-{{k}}'] = {v}", "d = dict(sorted(d.items(), key=lambda p: p[0]))"]))  # fmt: skip
        elif kind == "obj":
            put(r.choice(["obj.n += 1", f"obj.extra = {self.number()}", f"obj.t = {v} * 1", f"OBJ.n = {self.number()}", "NET.count += 1", f"obj.scale = {self.number()}"]))
        elif kind == "global":
            put(r.choice(["G_INT = G_INT + 1", f"G_INT = {self.number()}", "G_DICT['a'] += 1"]))
        elif kind == "cell":
            put(r.choice(["cell = cell + 1", f"cell = {self.number()}"]))
        elif kind == "print":
            put(r.choice([f"print('n is', n, {self.number()})", "print(f'{n} {len(items)} {G_FLOAT:.2f}')", f"print({v}.shape, {v}.dtype)", f"print({v}.detach())"]))
        elif kind == "inplace":
            put(f"{v} = {v}.clone()")
            put(r.choice([f"{v}.add_({self.number()})", f"{v}[1:3] *= 2", f"{v}[0] = {self.number()}", f"{v}.view(2, 2)[0].mul_({self.vec()}[:2])", f"{v}.relu_()"]))
        elif kind == "try":
            put("try:")
            self.block(depth + 1, pad + "    ")
            put("    " + r.choice(["G_DICT['none']", "raise ValueError('x')", "int('q')", "pass", f"if {self.condition()}: raise KeyError(n)"]))
            put("except " + r.choice(["(KeyError, ValueError) as e", "Exception as e", "ValueError as e", "KeyError as e"]) + ":")
            put(f"    {v} = {v} + len(str(e))")
            if r.random() < 0.4:
                put("finally:")
                put(f"    {v} = {v} * 2")
        elif kind == "grad":
            put("with " + r.choice(["strata.no_grad()", "strata.enable_grad()"]) + ":")
            self.block(depth + 1, pad + "    ")
        elif kind == "with":
            put("with strata.autocast('cpu', dtype=strata.bfloat16):")
            put(f"    {v} = ({v} @ NET.lin.weight).to(x.dtype)")
        elif kind == "call":
            put(f"{v} = helper(*[{v}, {self.number()}], **{{'k': {self.number()}, 'zz': 1}})")
        elif kind == "comp":
            put(f"{v} = sum([q * {v} for q in range({self.small()})], {v}) + len({{q: 1 for q in d}})")
        elif kind == "brk":
            put(r.choice([f"if {v}.sum() > 0:", f"if float({v}.detach().sum()) > 1:"]))
            put(f"    {v} = {v} * 0.5")
        elif kind == "assert":
            put(r.choice([f"assert ({v} > -2.5).all(), 'low'", f"assert not {v}.isnan().any()", f"assert {v}.max() < 4, n"]))
        elif kind == "mode":
            put(f"strata.set_grad_enabled({r.choice(['True', 'False', 'n > 2', 'G_FLAG', 'strata.is_grad_enabled()'])})")
        elif kind == "part":
            put(f"items.append({r.choice(['x[1:]', 'x.view(-1)', 'y.reshape(-1)', 'x.t()', 'y[:2]', 'x.unsqueeze(0)', f'{v}.reshape(-1)', f'{v}.t()'])})")
        elif kind == "unpack":
            put(f"a, *b = [{v}, {self.vec()}, n]")
            put(f"{v} = a + len(b)")

    def block(self, depth: int, pad: str) -> None:
        for _ in range(self.r.randint(1, 3)):
            self.statement(depth, pad)

    def program(self) -> str:
        for _ in range(self.r.randint(3, 9)):
            self.statement(0, " " * 8)
        r = self.r
        self.lines.append(" " * 8 + "return " + r.choice(["v0, v1, v2", "{'a': v0, 'b': [v1, k]}", "v0 + v1", "v2", "(v0, (v1, n), items)", "[v0, obj.n, cell]"]))
        body = "\n".join(self.lines)
        return HEAD.format(body=body, g_int=r.randint(0, 4), g_float=r.choice([0.5, 2.25]), g_flag=r.choice([True, False]))


def flat(value, seen=None):
    """A value as something that compares bit for bit."""
    seen = set() if seen is None else seen
    if isinstance(value, strata.Tensor):
        t = value.detach()
        bits = t.contiguous().view(strata.uint8 if t.element_size() == 1 else strata.int64 if t.element_size() == 8 else strata.int32 if t.element_size() == 4 else strata.int16)
        data = ["nan" if bool(n) else b for n, b in zip(t.isnan().flatten().tolist(), bits.flatten().tolist(), strict=False)] if t.is_floating_point() else t.tolist()
        return "tensor", str(t.dtype), tuple(t.shape), t.stride(), value.requires_grad, data
    if id(value) in seen:
        return "again"
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [flat(v, seen) for v in value]
    if isinstance(value, dict):
        return "dict", [(k, flat(v, seen)) for k, v in value.items()]
    if isinstance(value, strata.nn.Module):
        state = [(k, flat(v)) for k, v in value.state_dict().items()]
        return "module", state, getattr(value, "count", None), value.training
    if type(value).__name__ in ("Obj", "Longer"):
        seen.add(id(value))
        return "obj", [(k, flat(v, seen)) for k, v in vars(value).items()]
    return type(value).__name__, repr(value)


class Side:
    """One of both: the program in its namespace."""

    def __init__(self, text: str, compiled: bool, dynamic: bool | None = None, rows: bool = False, backend: str = "inductor"):
        self.rows, self.views = rows, False
        self.space: dict = {"__name__": "fuzzed"}
        exec(compile(text, "<fuzzed>", "exec"), self.space)
        f, self.set_cell = self.space["make"]()
        self.original = f
        self.f = strata.compile(f, dynamic=dynamic, backend=backend) if compiled else f

    def call(self, seed: int) -> tuple:
        """Everything that a call gives, leaves and prints."""
        r = random.Random(seed)
        strata.manual_seed(seed)
        grad = r.random() < 0.6
        if self.rows:
            x, y, n = sizes.arguments(strata, r, grad)
        else:
            x = strata.randn(4, requires_grad=grad)
            y = x if r.random() < 0.05 else strata.randn(4, requires_grad=r.random() < 0.3)
        x, whole = placed(r, x)
        items, d = [1, 2][: r.randint(0, 2)], {"a": 1, "b": 2.0}
        obj = self.space["OBJ"] if r.random() < 0.5 else self.space["Obj"]()
        n = n if self.rows else r.choice([1, 1, 2, 3, 5])
        out, before = io.StringIO(), strata.is_grad_enabled()
        with contextlib.redirect_stdout(out):
            try:
                try:
                    result = self.f(x, y, n, items, d, obj)
                finally:
                    mode = strata.is_grad_enabled()
                    strata.set_grad_enabled(before)
                # What is added to one gradient by views that were made anew, behind the graph, is added for itself.
                self.views |= any(t.requires_grad and t._is_view() for t in _tensors((result, items, d, *vars(obj).values())))
                roots = [t for t in _tensors(result) if t.requires_grad and t.is_floating_point()]
                if roots:
                    sum(t.double().sum() for t in roots).backward()
                found = flat(result)
            except Exception as error:
                found = ("raised", type(error).__name__, str(error))
        space = self.space
        left = [flat(v) for v in (x, y, items, d, obj, space["OBJ"], space["NET"])]
        grads = [None if g is None else g.clone() for g in (whole.grad, y.grad, *(p.grad for p in space["NET"].parameters()))]
        state = [flat(space[k]) for k in ("G_INT", "G_FLOAT", "G_FLAG", "G_LIST", "G_DICT")]
        drawn = strata.rand(1).item()
        for p in space["NET"].parameters():
            p.grad = None
        # Results of one graph are freed by one backward: what a call leaves must not lead back into it.
        space["OBJ"].t = space["OBJ"].t.detach()
        return found, left, state, grads, out.getvalue(), drawn, mode, str(strata.get_default_dtype())


def placed(r: random.Random, x):
    """x, or the same values as a part of another tensor or with other strides; and the tensor that gets the gradient."""
    kind, at = r.choice(["plain", "part", "part", "turned"]), r.choice([0, 1, 3])
    if kind == "plain" or (kind == "turned" and x.dim() < 2):
        return x, x
    values = x.detach()
    values = strata.cat([values[:1]] * at + [values]) if kind == "part" else values.t().contiguous()
    whole = values.requires_grad_(x.requires_grad)
    return (whole[len(whole) - len(x) :] if kind == "part" else whole.t()), whole


def _tensors(value):
    if isinstance(value, strata.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _tensors(v)
    elif isinstance(value, dict):
        for v in value.values():
            yield from _tensors(v)


@contextlib.contextmanager
def surroundings(r: random.Random, mutate: bool):
    """Modes of the thread that a call may meet."""
    mode = r.random() if mutate else 1
    if mode < 0.1:
        with strata.no_grad():
            yield
    elif mode < 0.15:
        with strata.autocast("cpu", dtype=strata.bfloat16):
            yield
    elif mode < 0.2:
        strata.set_default_dtype(strata.float64)
        try:
            yield
        finally:
            strata.set_default_dtype(strata.float32)
    else:
        yield


def graded(grads: list, like: list, exact: bool) -> list:
    """Gradients to be compared with those: bit for bit, or as those where they are close."""
    if exact:
        # A zero's sign may differ: a backward that draws or writes again cannot be narrowed to the results that have a
        # gradient, and takes zeros for the others' (jit/joint/captured.h).
        return [flat(None if g is None else g + 0.0) for g in grads]
    near = [
        a is not None and b is not None and a.shape == b.shape and strata.allclose(a.double(), b.double(), rtol=2e-2, atol=1e-2, equal_nan=True)
        for a, b in zip(grads, like, strict=True)
    ]
    return [flat(b if same else a) for a, b, same in zip(grads, like, near, strict=True)]


def compiled_parts(c):
    """A compiled function and those that it called between its stretches."""
    yield c
    for _, callee in c.plain.callees.values():
        yield from compiled_parts(callee)


def run(seed: int, mutate: bool, show: bool, rows: bool = False, reads: bool = False, backend: str = "inductor") -> tuple[str, int, int]:
    """What differs in the program of that seed (nothing, as a rule), its entries and how many of them run as they are."""
    writer = sizes.of_sizes(Writer) if rows else Writer
    text = (values.of_values(writer) if reads else writer)(seed).program()
    config.capture_scalar_outputs = config.capture_dynamic_output_shape_ops = reads
    if show:
        print(text)
    dynamic = True if rows and seed % 3 == 0 else None
    plain, compiled = Side(text, False, rows=rows), Side(text, True, dynamic, rows, backend)
    r = random.Random(seed + 1)
    said = []
    for call in range(8 if rows else 7 if mutate else 3):
        if mutate and call:
            at = r.random()
            said.append(state.mutate(plain, random.Random(at)))
            state.mutate(compiled, random.Random(at))
        given = seed * 31 + (call if r.random() < 0.5 else 0)
        around = r.random()
        with surroundings(random.Random(around), mutate):
            want = plain.call(given)
        with surroundings(random.Random(around), mutate):
            got = compiled.call(given)
        # Where a function stopped, what its stretches add to one gradient is added stretch by stretch.
        exact = not plain.views and not any(c.breaks or any(e.reads_data for e in c.start.entries) for c in compiled_parts(compiled.f._strata_compiled))
        want, got = [list(w[:3]) + [graded(w[3], v[3], exact)] + list(w[4:]) for w, v in ((want, want), (got, want))]
        if want != got:
            names = "result left globals gradients printed drawn grad-mode dtype".split()
            places = [(n, i) for n, a, b in zip(names, want, got, strict=True) if isinstance(a, list) for i, (p, q) in enumerate(zip(a, b, strict=True)) if p != q]
            said.append(f"differs at {places}")
            parts = [f"{n}:\n  eager    {a}\n  compiled {b}" for n, a, b in zip(names, want, got, strict=True) if a != b]
            return f"seed {seed}, call {call}, {said}\n{text}\n" + "\n".join(parts), 0, 0
    c = compiled.f._strata_compiled
    entries = [e for table in (c.start, *c.tables.values()) for e in table.entries]
    return "", len(entries), sum(e.run is None for e in entries)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mutate-state", action="store_true")
    parser.add_argument("--dynamic", action="store_true", help="other sizes at each call")
    parser.add_argument("--values", action="store_true", help="values of tensors are read, and captured")
    parser.add_argument("--backend", default="inductor", help="strata.compile's")
    parser.add_argument("--show", action="store_true", help="print each program")
    parser.add_argument("--most", type=int, default=3, help="stop after so many differences")
    parser.add_argument("--sanitize", help="the sanitizer that the library was built with")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    warnings.filterwarnings("error", message="compile: kernels are not fused|.* is taken$")  # that would be eager's own kernels
    reasons.internal_errors = "raise"
    begin, bad, entries, native = time.perf_counter(), 0, 0, 0
    for k in range(options.programs):
        faulthandler.dump_traceback_later(300, exit=True)  # most programs take below a second
        try:
            difference, e, n = run(options.seed * 1_000_003 + k, options.mutate_state, options.show, options.dynamic, options.values, options.backend)
        except Exception:
            difference, e, n = f"seed {options.seed * 1_000_003 + k}\n{traceback.format_exc()}", 0, 0
        for at in range(len(state.LIBRARY)):
            state.replace_in_library(at, 0)
        entries, native = entries + e, native + n
        if difference:
            bad += 1
            print(difference, flush=True)
            if bad >= options.most:
                break
    seconds = time.perf_counter() - begin
    print(f"{k + 1} programs, {bad} differ; {entries} entries, {native} of them run as they are; {seconds:.1f} s")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
