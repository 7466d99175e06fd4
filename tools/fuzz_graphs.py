"""Random programs over tensors, captured as graphs and compiled: results, written inputs and the generator's state have eager's
bits, and a graph's text reads back as it was. `./run fuzz-graphs --graphs N --seed S [--replay NUMBER]`; half of the programs are
taken with their gradients. `--without-library`: without calls of libraries, eager and compiled. With `--device PLUGIN` the graphs
run on the device of that plugin, and eager on the CPU."""

from __future__ import annotations

import argparse
import faulthandler
import os
import random
import sys
import time
import warnings

if "--sanitize" in sys.argv[:-1] and "clang_rt" not in os.environ.get("LD_PRELOAD", ""):
    # The sanitizer's runtime must be there before strata is.
    import sanitizer

    settings = sanitizer.for_python(sys.argv[sys.argv.index("--sanitize") + 1])
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], settings)

import strata  # noqa: E402
from tqdm import tqdm  # noqa: E402

UNARY = ("sin", "cos", "exp", "tanh", "sigmoid", "relu", "neg", "abs", "square", "rsqrt", "log1p", "erf", "floor", "sign", "reciprocal")
FUNCTIONS = ("gelu", "silu", "softplus", "elu", "hardtanh", "leaky_relu", "logsigmoid", "relu6", "mish", "hardswish")
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum", "atan2", "fmod", "eq", "lt", "ge", "hypot", "logaddexp")
REDUCTIONS = ("sum", "mean", "amax", "amin", "prod", "logsumexp", "var", "std", "argmax", "any", "norm")
ALONG = ("softmax", "log_softmax", "cumsum", "cumprod", "flip", "sort_values", "roll")
NUMBERS = ("2", "0.5", "-1.25", "3", "1e-5", "True")
PATIENCE = 300  # seconds that a program may take; most take 0.04
DTYPES = ("float32", "float64", "bfloat16", "float16", "int64", "bool", "complex64")


class Maker:
    """Grows one program; a line that eager refuses is left out."""

    def __init__(self, seed: int, number: int):
        self.r = random.Random(f"{seed}:{number}")
        self.base = [self.r.choice((1, 2, 3, 5, 8, 16, 17, 33, 70)) for _ in range(self.r.randint(1, 3))]
        if self.r.random() < 0.1:
            self.base[-1] = self.r.choice((1025, 3000, 70000 if len(self.base) == 1 else 900))
        self.main = self.r.choice(("float32",) * 6 + ("float64", "bfloat16", "bfloat16", "float16"))
        self.inputs = [self.tensor() for _ in range(self.r.randint(1, 4))]
        self.names = [f"x{i}" for i in range(len(self.inputs))]
        self.lines: list[str] = []
        self.with_gradients = self.r.random() < 0.5

    def tensor(self):
        r = self.r
        shape = list(self.base)
        for d in range(len(shape)):
            if r.random() < 0.12:
                shape[d] = 1
        if r.random() < 0.2:
            shape = shape[r.randint(0, len(shape)) :]
        name = self.main if r.random() < 0.8 else r.choice(DTYPES)
        kind = r.random()
        strata.manual_seed(r.randint(0, 1 << 30))
        made = strata.randn([s * 2 for s in shape] if kind < 0.15 else shape, dtype=strata.float32) * r.choice((1, 1, 3))
        if kind < 0.15 and shape:
            made = made[tuple(slice(None, None, 2) for _ in shape)]
        elif kind < 0.3 and len(shape) > 1:
            made = made.transpose(0, -1).contiguous().transpose(0, -1)
        made = made.to(getattr(strata, name)) if name != "bool" else made > 0
        if kind > 0.93 and 1 in shape:
            made = made.expand([b if s == 1 else s for s, b in zip(shape, self.base[len(self.base) - len(shape) :])])
        return made

    def pick(self) -> str:
        recent = self.names[-3:] if self.r.random() < 0.6 else self.names
        return self.r.choice(recent)

    def dims(self, x: str, env: dict) -> str:
        n = env[x].dim()
        return str(self.r.randint(-n, n - 1)) if n else "0"

    def line(self, env: dict) -> str:
        r, x, y = self.r, self.pick(), self.pick()
        new = f"v{len(self.lines)}"
        kind = r.random()
        d = self.dims(x, env)
        if kind < 0.22:
            return f"{new} = {x}.{r.choice(UNARY)}()"
        if kind < 0.27:
            return f"{new} = F.{r.choice(FUNCTIONS)}({x})"
        if kind < 0.47:
            return f"{new} = strata.{r.choice(BINARY)}({x}, {y})"
        if kind < 0.55:
            return f"{new} = {x} {r.choice(('+', '-', '*', '/', '**'))} {r.choice(NUMBERS)}"
        if kind < 0.66:
            keep = r.choice(("True", "True", "False"))
            name = r.choice(REDUCTIONS)
            return f"{new} = {x}.{name}(dim={d}, keepdim={keep})" if r.random() < 0.85 else f"{new} = {x}.sum()"
        if kind < 0.71:
            name = r.choice(ALONG)
            form = {"flip": f"{x}.flip({d})", "roll": f"{x}.roll(1, {d})", "sort_values": f"{x}.sort({d})[0]"}
            return f"{new} = " + form.get(name, f"{x}.{name}({d})")
        if kind < 0.80:
            view = r.choice(("t", "slice", "unsqueeze", "reshape", "permute", "expand", "select", "squeeze", "unfold"))
            forms = {
                "t": f"{x}.transpose(0, -1)",
                "slice": f"{x}.narrow({d}, 0, max({x}.size({d}) // 2, 1))",
                "unsqueeze": f"{x}.unsqueeze({d})",
                "reshape": f"{x}.reshape(-1)",
                "permute": f"{x}.permute(*reversed(range({x}.dim())))",
                "expand": f"{x}.unsqueeze(0).expand(2, *{x}.shape)",
                "select": f"{x}.select({d}, 0)",
                "squeeze": f"{x}.squeeze()",
                "unfold": f"{x}.diagonal(0, 0, -1)",
            }
            return f"{new} = {forms[view]}"
        if kind < 0.86:
            return f"{new} = {x}.to(strata.{r.choice(DTYPES)})" if r.random() < 0.7 else f"{new} = {x}.to(strata.{self.main})"
        if kind < 0.91:
            written = r.choice((f"{x}.add_({y}, alpha=2)", f"{x}.mul_({y})", f"{x}.relu_()", f"{x}.copy_({y})", f"{x}.fill_(0.5)",
                                f"{x}.narrow({d}, 0, 1).mul_(3)", f"{x}.clamp_(-1, 1)", f"{x}.transpose(0, -1).sub_(0.25)"))  # fmt: skip
            return written
        if kind < 0.96:
            return r.choice((
                f"{new} = strata.where({x} > 0, {x}, {y})", f"{new} = strata.cat([{x}, {y}], {d})", f"{new} = strata.stack([{x}, {x}], {d})",
                f"{new} = F.layer_norm({x}, ({x}.size(-1),))", f"{new} = {x}.index_select({d}, strata.tensor([0, 0], device={x}.device))",
                f"{new} = {x}.clamp(-0.5, 0.75)", f"{new} = {x}.masked_fill({y} > 0, 0.0)", f"{new} = {x} @ {y}.transpose(-1, -2)",
                f"{new} = strata.addcmul({x}, {y}, {x}, value=0.5)", f"{new} = strata.lerp({x}, {y}, 0.25)", f"{new} = {x}.contiguous() + 1",
                f"{new} = F.pad({x}, (1, 1))", f"{new} = {x}.tril() if {x}.dim() > 1 else {x}.clone()"))  # fmt: skip
        draws = (f"F.dropout({x}, 0.3)", f"strata.rand_like({x})", f"strata.bernoulli({x}.sigmoid().nan_to_num(0.5))", f"{x} + strata.randn_like({x})",
                 f"{x} * strata.empty_like({x}).uniform_(-1, 2)", f"F.dropout({x}.relu(), 0.6).to(strata.{self.main})")
        draw = r.choice(draws)
        # It draws on the CPU, with the CPU's generator.
        return f"{new} = {draws[0] if 'bernoulli' in draw and DEVICE != CPU else draw}"

    def grow(self) -> None:
        wanted, tries = self.r.randint(5, 30), 0
        env = dict(zip(self.names, (copy(t) for t in self.inputs)))
        scope = {"strata": strata, "F": strata.nn.functional}
        while len(self.lines) < wanted and tries < 200:
            tries += 1
            line = self.line(env)
            before = {n: copy(t) for n, t in env.items()} if "_(" in line else None
            try:
                exec(line, scope, env)  # noqa: S102
            except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError):
                if before is not None:
                    # What it may have written is anybody's guess: the program ends here.
                    break
                continue
            new = line.split(" = ")[0]
            if "_(" not in line.split("(")[0] + "(" and new in env:
                if env[new].numel() > 300000 or not isinstance(env[new], strata.Tensor):
                    del env[new]
                    continue
                self.names.append(new)
            self.lines.append(line)
        last = self.names[len(self.inputs) :] or self.names
        self.results = self.r.sample(last, min(len(last), self.r.randint(1, 3)))

    def function(self):
        text = f"def f({', '.join(self.names[: len(self.inputs)])}):\n" + "".join(f"    {line}\n" for line in self.lines)
        text += f"    return [{', '.join(self.results)}]\n"
        scope = {"strata": strata, "F": strata.nn.functional}
        exec(text, scope)  # noqa: S102
        plain = self.plain = scope["f"]
        if not self.with_gradients:
            return plain, text

        def both(*xs):
            wanted = [x for x in xs if x.is_floating_point()]
            for x in wanted:
                x.requires_grad_()
            try:
                made = plain(*[x * 1 for x in xs])
                ends = [y.sum() for y in made if y.requires_grad and y.is_floating_point()]
                grads = strata.autograd.grad(ends, wanted, allow_unused=True) if ends else []
            finally:
                for x in wanted:
                    x.requires_grad_(False)
            return [y.detach() for y in made] + [g.detach() for g in grads if g is not None]

        return both, text + "with gradients\n"


CPU = strata.device("cpu")
DEVICE = CPU  # where graphs run


def placed(t, device):
    """A copy of it on the device, which lies as it does."""
    if device == CPU:
        return copy(t)
    if 0 in t.stride():
        return placed(t[tuple(slice(1) if n == 0 else slice(None) for n in t.stride())], device).expand(t.shape)
    return strata.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=device).copy_(t)


def state(device) -> list:
    """Of the device's generator."""
    return strata._C._device_generator(device).get_state().tolist()


def copy(t):
    return strata.empty_strided(t.shape, t.stride(), dtype=t.dtype).copy_(t) if 0 not in t.stride() else t.clone().expand(t.shape)


def raw(t) -> bytes:
    t = t.detach().cpu()
    t = t + 0 if t.is_conj() else t
    t = t.resolve_conj() if hasattr(t, "resolve_conj") else t
    t = t.contiguous()
    if t.is_complex():
        t = strata.view_as_real(t)
    if t.is_floating_point():
        nan = t != t
        t = t.masked_fill(nan, 1.5)
        return nan.numpy().tobytes() + (t.float() if t.dtype == strata.bfloat16 else t).numpy().tobytes()
    return t.numpy().tobytes()


def look(results, inputs) -> list:
    return [(str(t.dtype), tuple(t.shape), t.stride(), raw(t)) for t in [*results, *inputs]]


def differentiated(f, xs, ends=None, twice=True, some=None):
    """f's results, first and second derivatives on leaves; of those results and first derivatives that `ends` names (None: of all
    that have one; with `some`, a generator, of some of these results). And the names, or why there are no second ones. First
    derivatives that are to be differentiated may have formulas of their own."""
    xs = [x.requires_grad_() if x.is_floating_point() else x for x in xs]
    wanted = [x for x in xs if x.requires_grad]
    ys = f(*xs)
    roots = [i for i, y in enumerate(ys) if y.requires_grad and y.is_floating_point()] if ends is None else ends[0]
    if some and roots:
        roots = sorted(some.sample(roots, some.randint(1, len(roots))))
    if not roots or not wanted:
        return ys, (roots, []), ""
    tangents = [strata.ones_like(ys[i]) for i in roots]
    state = strata.default_generator.get_state()
    try:
        if not twice:
            raise NotImplementedError("not implemented: once")
        first = strata.autograd.grad([ys[i] for i in roots], wanted, tangents, create_graph=True, retain_graph=True, allow_unused=True)
        of = [i for i, g in enumerate(first) if g is not None and g.requires_grad] if ends is None else ends[1]
        second = strata.autograd.grad([first[i] for i in of], wanted, [first[i].detach() for i in of], allow_unused=True) if of else ()
        return [*ys, *first, *second], (roots, of), ""
    except RuntimeError as e:
        if "not implemented" not in str(e) and "take it of the function itself" not in str(e):
            raise
        strata.default_generator.set_state(state)
        return [*ys, *strata.autograd.grad([ys[i] for i in roots], wanted, tangents, allow_unused=True)], (roots, []), str(e)


def examine_from_outside(maker, number: int, text: str) -> tuple[str, str]:
    """The function as strata.graph compiles it, differentiated twice from outside."""

    def f(*xs):
        return maker.plain(*[x * 1 for x in xs])

    def given(device=CPU):
        return [placed(t, device) for t in maker.inputs]

    strata.manual_seed(number)
    try:
        differentiated(f, given())
        cf = strata.graph(f, *[x.requires_grad_() if x.is_floating_point() else x for x in given(DEVICE)]).compile()
    except ERRORS as e:
        return "refused", f"{text}{e}"
    once = number % 2 == 0  # then a loss hangs on some of the results, and what the others' gradients would be is not computed

    def run(g, ends, twice=True):
        strata.manual_seed(number + 1)
        some = random.Random(number) if once and ends is None else None
        results, ends, why = differentiated(g, given(DEVICE if g is cf else CPU), ends, twice and not once, some)
        return [None if t is None else look([t], [])[0] for t in results], ends, why

    wanted, ends, _ = run(f, None)
    got, _, why = run(cf, ends)
    if why and not once:
        wanted, _, _ = run(f, ends, twice=False)
    for i, (a, b) in enumerate(zip(wanted, got, strict=True)):
        if a != b:
            return "differs", f"{text}differentiated from outside: result {i} differs: {a and a[:3]} {b and b[:3]}\n{cf.ir()}"
    return "same", text + "differentiated from outside\n"


ERRORS = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError)


def examine(seed: int, number: int, fused: bool, say=None) -> tuple[str, str]:
    """("same" | "refused" | "differs", words)."""
    maker = Maker(seed, number)
    maker.grow()
    f, text = maker.function()

    if fused and number % 3 == 0:
        return examine_from_outside(maker, number, text)

    def given(device=CPU):
        return [placed(t, device) for t in maker.inputs]

    strata.manual_seed(number)
    try:
        graph, _ = strata._C._record(f, given(DEVICE))
    except ERRORS as e:
        return "refused", f"{text}{e}"
    form = strata._C._graph_text(graph)
    again = strata._C._graph_text(strata._C._graph_parse(form, strata._C._graph_captured(graph)))
    if again != form:
        return "differs", f"{text}the graph's text does not read back as it was:\n{form}\n{again}"
    try:
        plan = strata._C._graph_compile(graph, fused)
    except NotImplementedError as e:
        return "refused", f"{text}{e}"
    strata.manual_seed(number + 1)
    xs = given()
    wanted = look(f(*xs), xs)
    drawn = state(CPU)
    shown = f"{text}inputs: {[(str(t.dtype), tuple(t.shape), t.stride()) for t in maker.inputs]}\n"
    shown += form + strata._C._plan_text(plan, "launches") + strata._C._plan_text(plan, "explain")
    for turn in range(2):
        strata.manual_seed(number + 1)
        xs = given(DEVICE)
        captured = strata._C._graph_captured(graph)
        got = look(strata._C._plan_run(plan, xs), xs)
        if state(DEVICE) != drawn:
            return "differs", f"{shown}the generator is elsewhere afterwards"
        for i, (a, b) in enumerate(zip(wanted, got)):
            if a != b:
                what = "geometry" if a[:3] != b[:3] else "bits"
                return "differs", f"{shown}turn {turn}: {what} of result or input {i} of {len(wanted)} differ: {a[:3]} {b[:3]}; {len(captured)} captured"
    return "same", text if say is None else shown


def place_graphs(plugin: str) -> None:
    global DEVICE
    file = plugin if "/" in plugin else f"{os.path.dirname(os.path.realpath(strata._C.__file__))}/plugins/{plugin}/libstrata_{plugin}.so"
    DEVICE = strata.device(strata.accelerator.load(file))
    warnings.filterwarnings("ignore", message=".*on the CPU")


def main() -> int:
    parse = argparse.ArgumentParser(description=__doc__)
    parse.add_argument("--graphs", type=int, default=200)
    parse.add_argument("--seed", type=int, default=1)
    parse.add_argument("--replay", type=int, help="one program, with all that is known of it")
    parse.add_argument("--sanitize", help="the sanitizer that the library was built with")
    parse.add_argument("--unfused", action="store_true", help="launches one by one")
    parse.add_argument("--without-library", action="store_true", help="no calls of libraries: the generated kernels' bits")
    parse.add_argument("--device", help="a plugin: its name in this build, or its file")
    a = parse.parse_args()
    # A kernel that no compiler makes would be eager's own, which differs from nothing.
    warnings.filterwarnings("error", message="compile: kernels are not fused|.* is taken$")
    if a.device:
        place_graphs(a.device)
    with strata.backends.library(not a.without_library):
        return examine_all(a)


def examine_all(a: argparse.Namespace) -> int:
    if a.replay is not None:
        verdict, words = examine(a.seed, a.replay, not a.unfused, say=True)
        print(words, verdict, sep="\n")
        return verdict == "differs"
    counts = {"same": 0, "refused": 0, "differs": 0}
    start = time.time()
    for number in tqdm(range(a.graphs), disable=not sys.stderr.isatty()):
        if os.environ.get("STRATA_FUZZ_SAY"):
            print(number, flush=True)
        faulthandler.dump_traceback_later(PATIENCE, exit=True)  # which one it is STRATA_FUZZ_SAY=1 says
        verdict, words = examine(a.seed, number, not a.unfused)
        counts[verdict] += 1
        if verdict == "differs":
            print(f"--- program {number} (--seed {a.seed} --replay {number})\n{words}\n", flush=True)
    print(f"{counts['refused']} refused, {time.time() - start:.0f} s")
    print(f"{counts['same']} passed, {counts['differs']} failed")
    return counts["differs"] > 0


if __name__ == "__main__":
    sys.exit(main())
