"""Calls as source text: a good call of a subject, made from its samples, schema or signature; then one or two of its
arguments replaced by hostile ones, or one too few or too many."""

from __future__ import annotations

import keyword
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fuzz.subjects import SAMPLES, D, Maker, Param, Subject, T
from fuzz.values import FLOATS, LARGE, LITERAL, Draw

SAMPLED = ["float32", "float32", "float64", "bfloat16", "float16", "int64", "int32", "uint8", "bool", "complex64"]
# Neighbouring calls are of one subject, so that its samples are made once.
RUN = 8
LASTING_METHODS = (".register_", ".set_", ".__enter__", ".__exit__", ".start", ".impl(", ".define(", ".seed(", ".manual_seed(", ".step(", ".stop(", ".append(")
AFTER = ("for r in (result if isinstance(result, (tuple, list)) else [result]):\n"
         "    if isinstance(r, strata.Tensor) and r.requires_grad and r.device.type != 'meta': r.sum().abs().backward()")


@dataclass
class Call:
    """Source of a call: definitions, the statement under test, what follows when it succeeds; names of its operands."""

    subject: Subject
    lines: list[str]
    operands: list[str]
    statement: str
    after: str = ""

    @property
    def lasting(self) -> bool:
        """Whether it may change the process for the calls after it."""
        return self.subject.lasting or any(word in self.statement for word in LASTING_METHODS)


# Good values of Python's own callables, by the names that their parameters have.
MODULE = "strata.nn.Linear(3, 4)"
BY_NAME = {
    "module": [MODULE, "strata.nn.Sequential(strata.nn.Linear(3, 4), strata.nn.ReLU())"], "model": [MODULE], "modules": [f"[{MODULE}]"],
    "params": ["[strata.ones(2, 3, requires_grad=True)]"], "parameters": ["[strata.ones(2, 3, requires_grad=True)]"],
    "optimizer": ["strata.optim.SGD([strata.ones(2, requires_grad=True)], lr=0.1)"],
    "scheduler": ["strata.optim.lr_scheduler.StepLR(strata.optim.SGD([strata.ones(2, requires_grad=True)], lr=0.1), 2)"],
    "dataset": ["list(range(7))", "strata.utils.data.TensorDataset(strata.arange(6))"], "datasets": ["[[1, 2], [3]]"], "data_source": ["list(range(7))"],
    "sampler": ["strata.utils.data.SequentialSampler(range(7))"], "batch": ["[strata.ones(2), strata.ones(2)]", "[{'a': 1}, {'a': 2}]"],
    "func": ["lambda *a: a[0]", "lambda *a: sum(t.sum() for t in a)"], "fn": ["lambda *a: a[0]"], "f": ["lambda *a: a[0]"], "function": ["lambda *a: a[0]"],
    "lr_lambda": ["lambda n: 0.9"], "hook": ["lambda *a: None"], "closure": ["lambda: strata.ones(())"],
    "reduction": ["'mean'", "'sum'", "'none'"], "mode": ["'reflect'", "'nearest'", "'sum'", "'fan_in'", "'constant'"], "nonlinearity": ["'relu'", "'tanh'"],
    "equation": ["'ij,jk->ik'", "'ii'", "'...i->...'"], "name": ["'weight'"], "dtype": ["strata.float32", "strata.float64", "strata.int64", "None"],
    "device": ["'cpu'", "None"], "generator": ["None", "strata.Generator()"], "lr": ["0.1"], "eps": ["1e-5"], "p": ["0.5", "2"], "dim": ["0", "1", "-1"],
    "dims": ["[0, 1]", "[0]"], "size": ["[2, 3]", "2"], "shape": ["[2, 3]"], "sizes": ["[2, 3]"], "normalized_shape": ["3", "[2, 3]"], "output_size": ["2", "(2, 2)"],
    "kernel_size": ["1", "2", "3"], "stride": ["1", "2"], "padding": ["0", "1"], "dilation": ["1", "2"], "groups": ["1"], "padding_idx": ["0", "None"],
    "num_layers": ["1", "2"], "nhead": ["1", "2"], "num_heads": ["1", "2"], "d_model": ["4"], "embed_dim": ["4"], "num_embeddings": ["5"], "n": ["3", "5"], "M": ["5"],
    "num_groups": ["1", "2"], "upscale_factor": ["2"], "downscale_factor": ["2"], "scale_factor": ["2", "1.5"], "batch_first": ["True", "False"],
    "lengths": ["[2, 1]"], "milestones": ["[1, 2]"], "total_iters": ["4"], "step_size": ["2"], "gamma": ["0.9"], "T_max": ["4"], "T_0": ["3"], "max_lr": ["0.2"],
    "base_lr": ["0.01"], "total_steps": ["9"], "cutoffs": ["[2, 4]"], "n_classes": ["6"], "amount": ["0.5", "1"], "max_norm": ["1.0"], "clip_value": ["0.5"],
    "bias": ["True", "False"], "inplace": ["True", "False"], "affine": ["True", "False"], "state_dict": ["{}"], "obj": ["strata.ones(2)"], "tree": ["[1, {'a': 2}]"],
    "args": ["(strata.ones(2, 3),)"], "kwargs": ["{}"], "inputs": ["(strata.ones(2, 3, requires_grad=True),)"], "primals": ["strata.ones(2, 3)"],
    "tangents": ["strata.ones(2, 3)"], "argnums": ["0", "(0,)"], "batch_size": ["2"], "drop_last": ["False", "True"], "num_samples": ["3"], "weights": ["[0.5, 1, 2]"],
    "loc": ["0.5", "strata.zeros(3)"], "scale": ["1.5", "strata.ones(3)"], "rate": ["2.0"], "probs": ["0.3", "strata.tensor([0.2, 0.8])"], "concentration": ["1.0"],
    "logits": ["strata.zeros(3)"], "low": ["0.0"], "high": ["2.0"], "base_distribution": ["strata.distributions.Normal(strata.zeros(3), 1.0)"],
    "reinterpreted_batch_ndims": ["1", "0"], "sample_shape": ["(2,)", "()"], "value": ["strata.ones(3)", "0.5"], "op": ["'aten::add.Tensor'"], "schema": ["'(Tensor x) -> Tensor'"],
}
TENSOR_NAMES = ("input", "self", "tensor", "x", "other", "target", "weight", "query", "key", "src", "tgt", "a", "b", "mat", "vec", "grad", "hx", "mask", "indices",
                "running_mean", "running_var", "t", "arr", "vector", "anchor", "positive", "negative", "log_probs", "data", "outputs", "actual", "expected")


@lru_cache(maxsize=64)
def samples(name: str, operator: str, dtype: str) -> list:
    return list(SAMPLES[name](Maker(operator, dtype)))


def array_text(t: T, draw: Draw) -> str:
    """A sample's tensor as source, under strides that the draw chooses."""
    shape = list(t.data.shape)
    if t.data.size == 0 or t.data.size > LITERAL:
        return draw.laid(shape, t.dtype, draw.pick(["plain", "transposed", "stepped"]))
    plain = f"strata.tensor({t.data.tolist()!r}, dtype=strata.{t.dtype})"
    how = draw.pick(["plain", "plain", "transposed", "stepped", "offset"])
    if how == "plain" or not shape:
        return plain
    if how == "transposed":
        return f"{plain}.permute({list(range(len(shape)))[::-1]}).contiguous().permute({list(range(len(shape)))[::-1]})"
    if how == "stepped":
        return f"strata.stack([{plain}] * 2, -1)[..., 0]"
    return f"strata.stack([{plain}] * 2)[1]"


def source(value, draw: Draw) -> str:
    if isinstance(value, T):
        text = array_text(value, draw)
        if (value.dtype in FLOATS or value.dtype.startswith("complex")) and draw.chance(0.25):
            text += ".requires_grad_()"
        return draw.named(text)
    if isinstance(value, D):
        return f"strata.{value.name}"
    if isinstance(value, list):
        return "[" + ", ".join(source(v, draw) for v in value) + "]"
    if isinstance(value, tuple):
        return "(" + "".join(source(v, draw) + ", " for v in value) + ")"
    if isinstance(value, np.generic):
        value = value.item()
    return repr(value)


def plain(p: Param, draw: Draw) -> str:
    """A value of a parameter's kind."""
    kind = p.kind.replace("SymInt", "int")
    if kind.startswith("Tensor") and "[" not in kind:
        return draw.tensor()
    if kind.startswith(("Tensor[", "Tensor?[")):
        return "[" + ", ".join(draw.tensor() for _ in range(draw.pick([1, 2, 3]))) + "]"
    if kind.startswith("int[") or kind.startswith("float["):
        return "[" + ", ".join(draw.pick(["0", "1", "2", "-1", "3"]) for _ in range(draw.pick([1, 2, 2, 3]))) + "]"
    if p.default is not None and draw.chance(0.5):
        return p.default
    by_name = BY_NAME.get(p.name)
    if by_name:
        return draw.helped(draw.pick(by_name))
    if p.name in TENSOR_NAMES or "Tensor" in kind or p.name.startswith(("input", "tensor")):
        return draw.tensor()
    if kind.startswith("int") or p.name.startswith(("in_", "out_", "num_", "input_size", "hidden_size", "dim", "n_")):
        return draw.pick(["0", "1", "2", "3", "4", "-1"])
    if kind.startswith(("float", "Scalar")):
        return draw.pick(["0.5", "1", "2.0", "-1.5", "0"])
    if kind.startswith("bool"):
        return draw.pick(["True", "False"])
    if kind.startswith("str"):
        return draw.pick(["'mean'", "'none'", "'sum'", "'floor'", "'right'"])
    if kind.startswith("ScalarType"):
        return "strata." + draw.pick(["float32", "float64", "int64", "bool", "bfloat16", "complex64"])
    return draw.pick(["0", "1", "2", "0.5", "None", "True"]) if draw.chance(0.5) else draw.tensor()


# Python's own loops run as often as they are told.
COUNTS = ("niter", "n_power_iterations", "max_iter", "num_layers", "num_encoder_layers", "num_decoder_layers", "epochs", "T_max", "steps_per_epoch", "max_eval")


def hostile(p: Param, draw: Draw) -> str:
    """A value that does not fit, or only just."""
    if p.name in COUNTS:
        return draw.helped(draw.pick(["0", "-1", "None", "'x'", "0.5", "nan", "Named()", "Raises()", "[]"]))
    kind = p.kind.replace("SymInt", "int")
    if draw.chance(0.3):
        return draw.anything()
    if "[" in kind and kind.startswith("Tensor"):
        return draw.helped(draw.pick(["Gone", "Cycle", "Long()", "Halfway()", "Shorter(())"])) if draw.chance(0.3) else \
            "[" + ", ".join(draw.odd_tensor() for _ in range(draw.pick([0, 1, 2, 3]))) + "]"
    if kind.startswith("Tensor") or (not kind and p.name in TENSOR_NAMES):
        return draw.odd_tensor()
    if "[" in kind or p.name in ("size", "shape", "dims", "kernel_size", "normalized_shape", "output_size"):
        return draw.sizes()
    if kind.startswith("int"):
        return draw.size()
    if kind.startswith(("float", "Scalar")):
        return draw.number()
    if kind.startswith("str"):
        return draw.word()
    return draw.anything()


def arguments(subject_params: list[Param] | None, draw: Draw, wicked: float) -> tuple[list[str], dict[str, str]]:
    """Positional and named arguments from a signature."""
    if subject_params is None:
        return [draw.anything() if draw.chance(0.5) else draw.tensor() for _ in range(draw.pick([0, 1, 1, 2, 2, 3]))], {}
    args: list[str] = []
    kwargs: dict[str, str] = {}
    named = False
    for p in subject_params:
        if p.many:
            args += [draw.anything() if draw.chance(wicked) else draw.tensor() for _ in range(draw.pick([0, 1, 2]))]
            continue
        if p.default is not None and draw.chance(0.6):
            named = True
            continue
        value = hostile(p, draw) if draw.chance(wicked) else plain(p, draw)
        if p.kwonly or named:
            kwargs[p.name] = value
        else:
            args.append(value)
    return args, kwargs


def spoiled(params: list[Param], args: list[str], kwargs: dict[str, str], draw: Draw) -> None:
    """One argument replaced."""
    places = [(i, p) for i, p in enumerate(p for p in params if not p.kwonly) if i < len(args)] + [(p.name, p) for p in params]
    if not places:
        return
    at, p = draw.pick(places)
    if isinstance(at, int):
        args[at] = hostile(p, draw)
    elif at in kwargs or p.kwonly or [q.name for q in params if not q.kwonly].index(at) >= len(args):
        kwargs[at] = hostile(p, draw)


def operator_arguments(subject: Subject, draw: Draw, group: Draw) -> tuple[list[str], dict[str, str]]:
    """Arguments of a form of an operator: a sample's in two thirds of the calls."""
    name = subject.entry.row.samples
    made = samples(name, subject.entry.schema.full, group.pick(SAMPLED)) if name in SAMPLES and draw.chance(0.7) else []
    params = [Param(a.name, a.type, a.default, a.kwonly) for a in subject.schema.args]
    if made:
        sample = draw.pick(made)
        args, kwargs = [source(a, draw) for a in sample.args], {k: source(v, draw) for k, v in sample.kwargs.items()}
        if subject.how != "op":  # whose sample may have arguments that Python's form takes by name only
            for p, value in list(zip(params, args)):
                if p.kwonly:
                    args.remove(value)
                    kwargs[p.name] = value
        for p in params:
            if p.name not in kwargs and p.kwonly and (p.default is None):
                kwargs[p.name] = draw.tensor(grad=draw.chance(0.1)) if "[" not in p.kind else "[" + draw.tensor() + "]"
    else:
        args, kwargs = arguments(params, draw, 0.15)
    bad = draw.pick([0, 1, 1, 1, 2])
    for _ in range(bad):
        spoiled(params, args, kwargs, draw)
    return args, kwargs


def joined(args: list[str], kwargs: dict[str, str]) -> str:
    named = [f"**{{{k!r}: {v}}}" if keyword.iskeyword(k) else f"{k}={v}" for k, v in kwargs.items()]
    return ", ".join([*args, *named])


def more_or_less(args: list[str], kwargs: dict[str, str], draw: Draw) -> None:
    """Now and then one argument too few, too many, or of an unknown name."""
    if draw.chance(0.04) and args:
        args.pop()
    if draw.chance(0.04):
        args.append(draw.anything())
    if draw.chance(0.03):
        kwargs[draw.pick(["out", "no_such", "dtype", "dim", "self", "input"])] = draw.anything()
    if draw.chance(0.01):
        args.append(draw.pick(["**{'\\ud800': 1}", "**{'a\\0b': 1}", "*[1] * 300", "**{str(i): i for i in range(99)}"]))


def made(subjects: list[Subject], seed: int, index: int) -> Call:
    """Call number `index` of a seed."""
    group = Draw(f"{seed}/{index // RUN}")
    subject = group.pick(subjects)
    draw = Draw(f"{seed}:{index}")
    if subject.entry is not None and draw.chance(0.03):
        draw.large = draw.pick(LARGE)
    owner = ""
    if subject.how == "class":
        return of_class(subject, draw)
    if subject.how == "attribute":
        target = draw.tensor() if draw.chance(0.6) else draw.odd_tensor()
        name = subject.path.rpartition(".")[2]
        statement = f"{target}.{name} = {draw.anything()}" if draw.chance(0.7) else f"result = {target}.{name}"
        return Call(subject, draw.lines, draw.operands, statement)
    if subject.entry is not None:
        args, kwargs = operator_arguments(subject, draw, group)
    else:
        args, kwargs = arguments(subject.params, draw, draw.pick([0.0, 0.2, 0.5]))
    if subject.how == "method":
        if subject.entry is None:
            args.insert(0, draw.tensor())
        if args and not draw.chance(0.05):
            owner = args.pop(0)
            if not owner.isidentifier():
                owner = f"({owner})"
    more_or_less(args, kwargs, draw)
    path = f"{owner}.{subject.path.rpartition('.')[2]}" if owner else subject.path
    return Call(subject, draw.lines, draw.operands, f"result = {path}({joined(args, kwargs)})", AFTER)


def of_class(subject: Subject, draw: Draw) -> Call:
    """An object is made with good arguments and one of its methods is called, or it is made with hostile ones."""
    if not subject.methods or draw.chance(0.3):
        args, kwargs = arguments(subject.params, draw, draw.pick([0.0, 0.2, 0.5]))
        more_or_less(args, kwargs, draw)
        return Call(subject, draw.lines, draw.operands, f"result = {subject.path}({joined(args, kwargs)})")
    args, kwargs = arguments(subject.params, draw, 0.03)
    names = [n for n, _ in subject.methods]
    method, params = subject.methods[names.index("__call__")] if "__call__" in names and draw.chance(0.5) else draw.pick(subject.methods)
    if method in ("__call__", "forward"):
        params = next((p for n, p in subject.methods if n == "forward" and p), params)
    given, named = arguments(params, draw, draw.pick([0.0, 0.2, 0.5]))
    more_or_less(given, named, draw)
    lines = [*draw.lines, f"made = {subject.path}({joined(args, kwargs)})"]
    call = f"made({joined(given, named)})" if method == "__call__" else f"made.{method}({joined(given, named)})"
    return Call(subject, lines, draw.operands, f"result = {call}", AFTER)
