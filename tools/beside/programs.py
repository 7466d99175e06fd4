"""The random programs of fuzz-beside: run by an interpreter with PyTorch and by ours, which print one JSON line each, [number, steps]."""

from __future__ import annotations

import importlib
import json
import math
import random
import re
import sys

from calls import call, schemas
from modules import steps

T = importlib.import_module(sys.argv[1])
F = T.nn.functional
DTYPES = "float32 float64 int64 int32 bool float16 bfloat16 uint8 int8 complex64".split()
NUMBERS = [0, 1, -1, 2, 0.5, -2.5, 3, 7, 4, 5]

# Of x, and a dim d that it may have; by the names of methods, or as expressions.
METHODS = """abs neg exp log sqrt sin tanh sigmoid relu floor ceil round sign reciprocal square rsqrt erf isnan isfinite logical_not sgn
    angle conj real imag sum mean prod amax amin argmax norm all any std var tril triu diag diagonal t flatten squeeze contiguous clone
    detach half float double long int bool nonzero count_nonzero nansum diff trace det nan_to_num logit digamma lgamma frac trunc expm1
    log1p signbit item tolist unique""".split()
UNARY = [f"x.{m}()" for m in METHODS] + """x.cumsum(d); x.cumprod(d); x.cummax(d)[0]; x.sum(d); x.mean(d); x.sum(d, keepdim=True)
    x.max(d)[0]; x.min(d)[0]; x.var(d); x.any(d); x.logsumexp(d); x.softmax(d); x.softmax(-1); x.log_softmax(d); F.softmin(x, d)
    x.sort(d, descending=True)[0]; x.sort(d)[0]; x.argsort(d, stable=True); x.topk(1, d)[0]; x.flip(d); x.roll(1, d); x.rot90(); x.mT
    x.unsqueeze(d); x.reshape(-1); x.view(-1); x.chunk(2, d)[0]; x.split(2, d)[-1]; x.unbind(d)[-1]; x.tile(2); x.expand(2, *x.shape)
    F.pad(x, (1, 2)); F.pad(x, (1, 1), mode="reflect"); F.pad(x, (1, 1), mode="circular"); F.layer_norm(x, x.shape[-1:])
    F.rms_norm(x, x.shape[-1:]); F.group_norm(x, 1); F.batch_norm(x, None, None, training=True); F.instance_norm(x); F.normalize(x, dim=d)
    F.gelu(x); F.silu(x); F.softplus(x); F.hardtanh(x); F.elu(x); F.celu(x); F.selu(x); F.mish(x); F.logsigmoid(x); F.glu(x, d)
    F.dropout(x, 0.0); x.median(d)[0]; x.mode(d)[0]; x.kthvalue(1, d)[0]; x.quantile(0.3, dim=d); T.linalg.inv(x); T.linalg.svdvals(x)
    T.fft.fft(x, dim=d); T.fft.rfft(x, dim=d); x.clamp(min=0); x.clamp(-1, 1.5); x[x > 0]; T.cumulative_trapezoid(x); T.histc(x, 4, 0, 4)
    F.one_hot(x); F.embedding(x, T.ones(8, 2)); F.max_pool2d(x, 2); F.avg_pool2d(x, 2); F.adaptive_avg_pool2d(x, 2); x.unfold(d, 2, 1)
    F.interpolate(x, scale_factor=2); F.interpolate(x, size=(3, 3), mode="bilinear"); F.pixel_shuffle(x, 2); x.renorm(2, d, 1.0)
    T.heaviside(x, x); x.copysign(-1.0); T.cov(x); T.tensor(x.tolist()); x.movedim(0, -1); x.repeat_interleave(2); 2**x; x**2; x % 3; -x
    x.to(T.float64); x.masked_fill(x > 1, 2); x.index_select(d, T.tensor([0])); x.cumsum(d).flip(d)""".replace("\n", ";").split(";")
BINARY = """add sub mul div pow fmod remainder maximum minimum fmax fmin atan2 eq lt ge ne logical_and bitwise_and bitwise_or floor_divide
    matmul mm bmm outer dot hypot xlogy cdist kron isclose allclose equal bucketize searchsorted logaddexp ldexp copysign nextafter""".split()
BINARY = [f"T.{b}(x, y)" for b in BINARY] + """T.where(x > 0, x, y); T.cat([x, y]); T.cat([x, y], -1); T.stack([x, y], -1)
    T.lerp(x, y, 0.3); T.addcmul(x, x, y, value=2); T.addcdiv(x, x, y); T.addmm(x, x, y); T.baddbmm(x, x, y); F.mse_loss(x, y)
    F.l1_loss(x, y, reduction="none"); F.cross_entropy(x, y); F.binary_cross_entropy_with_logits(x, y); F.cosine_similarity(x, y)
    F.pairwise_distance(x, y); T.tensordot(x, y, 1); T.einsum("...i,...i->...", x, y); x.gather(0, y); x.take(y); x[y]
    x.index_select(0, y); x.masked_fill(y > 0, 2); x.scatter(0, y, 1); x.index_add(0, y, x); T.cross(x, y, dim=-1)""".replace("\n", ";").split(";")
VIEWS = """x[0]; x[-1]; x[..., 0]; x[1:]; x[::2]; x[:, 0]; x.t(); x.mT; x.view(-1); x.reshape(-1); x.unsqueeze(0); x.squeeze(); x.narrow(0, 0, 1)
    x.diagonal(); x.expand(2, *x.shape); x.detach(); x.unbind(0)[0]; x.split(1, 0)[-1]; x.chunk(2, -1)[0]; x.select(-1, 0); x.flatten()
    x.unfold(0, 1, 1); x.as_strided((2,), (1,)); x.movedim(0, -1); x.clone(); x * 2; x.sum(); x.data; x.view_as(x); x.swapaxes(0, -1); x.T
    x.contiguous(); x.tensor_split(2)[0]; x.expand_as(x); x[None]; x.real; x.imag; T.view_as_real(x); x.conj(); x.mH; T.view_as_complex(x)""".replace("\n", ";").split(";")
WRITES = """x.add_(1); x.mul_(2); x.mul_(x); x.zero_(); x.fill_(3); x.copy_(y); x.add_(y); x.mul_(y); x.sub_(y, alpha=2); x.div_(2); x.clamp_(0, 1)
    x.relu_(); x.sigmoid_(); x.exp_(); x.abs_(); x.neg_(); x.pow_(2); x.__setitem__(0, 1.0); x.__setitem__(slice(None, None, 2), y)
    x.__setitem__((Ellipsis, 0), 2.0); x.__setitem__(x > 0, 1.0); x.masked_fill_(x > 1, 0.0); x.index_fill_(0, T.tensor([0]), 5.0)
    x.index_add_(0, T.tensor([0]), y); x.scatter_(0, T.zeros((1,) * x.dim(), dtype=T.long), 4.0); x.transpose_(0, -1); x.t_(); x.unsqueeze_(0)
    x.squeeze_(); x.resize_(2); x.set_(y); x.requires_grad_(); x.detach_(); x.index_put_((T.tensor([0]),), y); x.lerp_(y, 0.5)
    x.addcmul_(y, y); x.cumsum_(0); x.tril_(); x.fill_diagonal_(7.0); x.renorm_(2, 0, 1.0); x.round_(); x.sqrt_(); x.reciprocal_(); x.tanh_()
    x.swapaxes_(0, -1); T.add(x, y, out=x); T.mul(x, 2, out=y); x.put_(T.tensor([0]), T.tensor([9.0], dtype=T.float64))
    x.masked_scatter_(x > 0, y); x.apply_(lambda v: v + 1); x.bernoulli_(0.0); x.data.add_(1); x.eq_(y)""".replace("\n", ";").split(";")


def filled(r: random.Random, sizes: list[int], name: str):
    v = [r.choice([float("inf"), float("nan")]) if r.random() < 0.04 else r.choice(NUMBERS) for _ in range(math.prod(sizes))]
    if "int" in name:
        v = [abs(int(n)) if math.isfinite(n) else 0 for n in v]
    if name == "bool":
        v = [n > 0 for n in v]
    return T.tensor(v, dtype=getattr(T, name)).reshape(sizes)


def operand(r: random.Random):
    """Of any dtype, in any layout; half of the floating ones require a gradient."""
    rank = r.choice([0, 1, 2, 2, 3, 3, 4])
    sizes = [r.choice([0, 1, 2, 3, 4, 5] if r.random() < 0.15 else [1, 2, 3, 4, 5]) for _ in range(rank)]
    name = r.choice(DTYPES if r.random() < 0.5 else DTYPES[:2])
    t = filled(r, sizes, name)
    layout = r.random()
    if rank > 1 and layout < 0.3:
        t = t.permute(r.sample(range(rank), rank))
    elif rank > 1 and layout < 0.4:
        t = t.mT.contiguous().mT
    elif rank and layout < 0.5:
        t = t[..., ::2]
    elif rank and layout < 0.55:
        t = t.unsqueeze(0).expand(2, *t.shape)
    elif rank == 4 and layout < 0.65:
        t = t.contiguous(memory_format=T.channels_last)
    return t.detach().requires_grad_() if name in ("float32", "float64", "complex64") and r.random() < 0.5 else t


def leaf(r: random.Random, parts: float = 0.0):
    """Over memory of its own: PyTorch loses gradients of views of a leaf that is itself a view, once they were written unrecorded.
    It is complex with a probability of `parts`."""
    sizes = [r.choice([1, 2, 3, 4]) for _ in range(r.choice([1, 2, 2, 3]))]
    made = T.tensor([r.choice([0, 1, -1, 2, 0.5, -2.5, 3]) for _ in range(math.prod(sizes))], dtype=T.float64).reshape(sizes).clone()
    if r.random() < parts:
        made = T.complex(made, made.flip(0)).clone()
    return made.requires_grad_(r.random() < 0.7)


def rounded(v: float):
    return str(v) if not math.isfinite(v) else float(f"{v:.2g}") + 0.0 if abs(v) > 1e-3 else 0.0


def shown(t) -> str:
    if not isinstance(t, T.Tensor):
        return repr(t)[:40].lower() if not isinstance(t, (float, list)) else type(t).__name__
    values = t.detach()
    values = T.view_as_real(values.resolve_conj()) if values.is_complex() else values
    listed = [rounded(v) for v in values.double().flatten().tolist()[:24]]
    name = str(t.dtype).split(".")[-1]
    return f"{name}{list(t.shape)} contiguous={int(t.is_contiguous())} grad={int(t.requires_grad)} {listed}"


def attempt(step) -> str:
    try:
        return step()
    except Exception as e:  # noqa: BLE001 - which error it is, is what is compared
        return type(e).__name__.lstrip("_")


def gradients(loss, leaves: list) -> list[str]:
    wanted = [t for t in leaves if t.requires_grad and t.is_leaf]
    return [f"gradient: {shown(g)}" for g in T.autograd.grad(loss, wanted, allow_unused=True)]


def told_gradients(results: list, leaves: list) -> list[str]:
    """Of the sum of all elements of those that require one, or which error it is; nothing where none does."""
    wanted = [t for t in results if isinstance(t, T.Tensor) and t.requires_grad and t.numel()]
    found: list[str] = []

    def step():
        found.extend(gradients(sum((t.abs() if t.is_complex() else t).sum() for t in wanted), leaves))
        return ""

    error = attempt(step) if wanted else ""
    return found or ([f"gradient: {error}"] if error else [])


def values(r: random.Random) -> list[str]:
    made = [operand(r), operand(r)]
    leaves, told = list(made), [f"operand: {shown(t)}" for t in made]
    for _ in range(r.choice([1, 2, 3, 4])):
        binary = r.random() < 0.35
        source, x, y = r.choice(BINARY if binary else UNARY).strip(), r.choice(made), r.choice(made)
        d = r.choice([0, -1, 1]) if x.dim() > 1 else 0
        places = [next(i for i, t in enumerate(made) if t is v) for v in (x, y)]

        def step(source=source, x=x, y=y, d=d):
            result = eval(source, {"T": T, "F": F, "x": x, "y": y, "d": d})
            if isinstance(result, T.Tensor):
                made.append(result)
            return shown(result)

        told.append(f"{source} of {places[: 1 + binary]} d={d}: {attempt(step)}")
    return told + (told_gradients([made[-1]], leaves) if not made[-1].is_leaf else [])


def writes(r: random.Random) -> list[str]:
    made = [leaf(r, 0.15), leaf(r)]
    leaves, told = list(made), [f"leaf: {shown(t)}" for t in made]
    for _ in range(r.choice([2, 3, 4, 5, 6])):
        source, x, y = r.choice(VIEWS if r.random() < 0.5 else WRITES).strip(), r.choice(made), r.choice(made)
        recorded = r.random() < 0.75
        places = [next(i for i, t in enumerate(made) if t is v) for v in (x, y)]

        def step(source=source, x=x, y=y, recorded=recorded):
            with T.set_grad_enabled(recorded):
                result = eval(source, {"T": T, "x": x, "y": y})
            if not isinstance(result, T.Tensor):
                return type(result).__name__
            if not any(result is t for t in made):
                made.append(result)
            return f"{shown(result)} version={result._version} leaf={int(result.is_leaf)} view={int(result._is_view())}"

        told.append(f"{source} of {places}{'' if recorded else ' without gradients'}: {attempt(step)}")
    told += [f"at the end, {i}: " + attempt(lambda t=t: f"{shown(t)} version={t._version} leaf={int(t.is_leaf)}") for i, t in enumerate(made)]
    found: list[str] = []
    error = attempt(lambda: found.extend(gradients(sum((t * (t.conj() if t.is_complex() else t)).sum().real for t in made if t.requires_grad), leaves)) or "")
    return told + (found or [f"gradient: {error}"])


def index_of(r: random.Random, size: int) -> str:
    """One part of an index, for a dim of about this size."""
    n = max(size, 1)
    return r.choice([
        str(r.randrange(-n, n + (r.random() < 0.05))),
        f"slice({r.choice([None, r.randrange(-n - 1, n + 2)])}, {r.choice([None, r.randrange(-n - 1, n + 2)])}, {r.choice([None, 1, 2, 3])})",
        "slice(None)", "None", "Ellipsis", "True", "False",
        f"T.tensor({[r.randrange(-n, n) for _ in range(r.choice([0, 1, 2, 3]))]}, dtype=T.{r.choice(['int64', 'int32', 'uint8', 'int64'])})",
        f"T.tensor({[[r.randrange(n)] for _ in range(2)]})", f"{[r.randrange(-n, n) for _ in range(2)]}",
        f"T.tensor({[r.random() < 0.5 for _ in range(size)]}, dtype=T.bool)", f"T.tensor({r.randrange(n)})", f"range({n})",
    ])  # fmt: skip


def indices(r: random.Random) -> list[str]:
    """Reads and writes by random indices, and gradients through them."""
    x = leaf(r)
    told = [f"leaf: {shown(x)}"]
    for _ in range(3):
        parts = [index_of(r, s) for s in x.shape]
        parts = parts[: r.randrange(len(parts) + 1) + 1]
        source = f"x[{', '.join(parts)}]" if r.random() < 0.9 else f"x[x > {r.choice([0, 1])}]"
        told.append(f"{source} of []: {attempt(lambda: shown(eval(source, {'T': T, 'x': x})))}")  # noqa: B023
        y = r.choice(["1.5", "T.tensor(2.5)", "T.arange(3.0)", "T.ones(1, dtype=T.float64)", "x.detach().flatten()[0]", "T.tensor([7], dtype=T.int32)"])
        write = f"{source} = {y}" if r.random() < 0.7 else f"{source} {r.choice(['+=', '*='])} {y}"

        def step(write=write):
            made = x * 1
            exec(write, {"T": T, "x": made})
            found = gradients((made * made).sum(), [x]) if x.requires_grad else []
            return " ".join([shown(made), *found])

        told.append(f"{write} of []: {attempt(step)}")
        put = f"x.index_put(({', '.join(p for p in parts if 'tensor' in p)},), T.tensor(1.0, dtype=T.float64), accumulate={r.random() < 0.5})"
        if "tensor" in put.split("),")[0]:
            told.append(f"{put} of []: {attempt(lambda: shown(eval(put, {'T': T, 'x': x})))}")  # noqa: B023
    return told


def modules(r: random.Random) -> list[str]:
    """One module of nn, or a loss: what it tells, until it raises."""
    told: list[str] = []
    try:
        for line in steps(T, r, shown):
            told.append(line)  # noqa: PERF402 - what came before an error stays
    except Exception as e:  # noqa: BLE001
        told.append(type(e).__name__)
    return told


def related(r: random.Random, name: str, before: list):
    """An operand that may fit those before it."""
    if name.startswith(("indices", "index", "mask", "condition", "where", "target", "boundaries", "offsets")) and r.random() < 0.8:
        sizes = list(before[0].shape) if before and r.random() < 0.5 else [r.choice([1, 2, 3])]
        return filled(r, sizes, "bool" if name[0] in "mcw" else "int64").clamp(max=3)
    if not before or r.random() < 0.2:
        return operand(r)
    like = before[0]
    sizes = list(like.shape)
    choice = r.random()
    if choice < 0.15 and sizes:
        sizes[r.randrange(len(sizes))] = 1
    elif choice < 0.25:
        sizes = sizes[1:]
    elif choice < 0.4:
        sizes = sizes[::-1]
    elif choice < 0.5:
        sizes = sizes[-1:]
    made = filled(r, sizes, str(like.dtype).split(".")[-1] if r.random() < 0.85 else r.choice(DTYPES))
    return made.requires_grad_(made.is_floating_point() and r.random() < 0.5)


TABLE = schemas()


def calls(r: random.Random) -> list[str]:
    """One operator of the table, with arguments of its schema's types."""
    words, run, tensors = call(T, r, related, TABLE)
    told = [f"operand: {shown(t)}" for t in tensors]
    results: list = []

    def step():
        made = run()
        results.extend(made if isinstance(made, (list, tuple)) else [made])
        return " ".join(map(shown, results))

    told.append(f"{words.replace('(', ' of (', 1)}: {attempt(step)}")
    return told + told_gradients(results, tensors)


SMOOTH = """x.sin(); x.exp(); x.tanh(); x.sigmoid(); x * y; x / (y * y + 1); x @ y; x.sum(); x.sum(d); x.mean(d); x.softmax(d); x.log_softmax(d)
    x.t(); x[0]; x[:, 0]; x.pow(3); x.abs(); T.cat([x, y]); T.stack([x, y]).sum(0); x.logsumexp(d); F.gelu(x); F.silu(x); F.softplus(x); x.prod(d)
    x.cumsum(d); x.cumprod(d); x.flip(0); x.norm(); x.norm(dim=d); x.var(d); x.std(d); F.layer_norm(x, x.shape[-1:]); T.where(x > y, x, y)
    F.linear(x, y); T.einsum("ij,ij->i", x, y); x.clamp(-1, 1); x.max(d)[0]; x.sort(d)[0]; F.mse_loss(x, y); F.cross_entropy(x, y.softmax(-1))
    x.expand(2, *x.shape); x.reshape(-1); x.diagonal(); x.tril(); F.normalize(x); T.linalg.inv(x @ x.mT + T.eye(x.shape[0], dtype=x.dtype) * 9)
    T.linalg.det(x @ x.mT + 1); T.atan2(x, y * y + 1); x.gather(0, T.zeros_like(x, dtype=T.long)); x.index_select(0, T.tensor([0, 0]))
    T.linalg.vector_norm(x, 3); T.logaddexp(x, y); T.hypot(x, y); F.smooth_l1_loss(x, y); F.elu(x); x.rsqrt(); T.erf(x); T.lgamma(x * x + 1)
    T.cdist(x, y); T.kron(x, y); T.view_as_complex(T.stack([x, y], -1)).abs(); T.complex(x, y).prod().real; T.fft.rfft(x).abs(); x.unfold(0, 1, 1)
    F.group_norm(x[None], 1)[0]; F.conv1d(x[None, None].flatten(1, 2), y[None, :, :1].mT)[0]; F.avg_pool1d(x, 2, 1); F.max_pool1d(x, 2, 1)
    F.scaled_dot_product_attention(x, y, x); F.interpolate(x[None], scale_factor=2)[0]; T.cumulative_trapezoid(x, y)""".replace("\n", ";").split(";")


def derivatives(r: random.Random) -> list[str]:
    """Second and third derivatives, by backward, forward and transforms, of compositions of smooth operators."""
    rows, columns = r.choice([(2, 2), (2, 3), (3, 3), (1, 2), (3, 2)])
    first, second = (
        T.tensor([r.choice([0.5, -1.25, 2.0, 1.5, -0.75, 0.25, -2.0, 3.0]) + 0.01 * i for i in range(rows * columns)], dtype=T.float64).reshape(rows, columns)
        for _ in range(2)
    )
    sources = [r.choice(SMOOTH).strip() for _ in range(r.choice([1, 2, 2, 3]))]
    d = r.choice([0, -1])

    def f(x, y):
        for source in sources:
            x = eval(source, {"T": T, "F": F, "x": x, "y": y, "d": d})
        return x.sin().sum() if x.dtype == T.float64 else (x.abs() * 1.5).sum()

    told = [f"{'; '.join(sources)} of [0, 1] d={d}: {attempt(lambda: shown(f(first, second)))}"]
    what = r.choice(["twice", "thrice", "hessian", "jvp", "double", "jacrev", "vmap", "hvp"])

    def step():
        x, y = first.clone().requires_grad_(), second.clone().requires_grad_()
        if what in ("twice", "thrice", "double"):
            found = list(T.autograd.grad(f(x, y), [x, y], create_graph=True, allow_unused=True))
            for _ in range(what == "thrice"):
                again = T.autograd.grad(sum((g * g).sum() for g in found if g is not None), [x, y], create_graph=True, allow_unused=True)
                found = [g for g in again if g is not None]
            last = T.autograd.grad(sum((g.cos()).sum() for g in found if g is not None), [x, y], allow_unused=True)
            return " ".join("None" if g is None else shown(g) for g in last)
        if what == "hessian":
            return shown(T.func.hessian(lambda v: f(v, second))(first))
        if what == "jvp":
            return " ".join(map(shown, T.func.jvp(f, (first, second), (second, first))))
        if what == "jacrev":
            return shown(T.func.jacrev(T.func.grad(f), argnums=1)(first, second))
        if what == "hvp":
            return shown(T.func.jvp(T.func.grad(lambda v: f(v, second)), (first,), (second,))[1])
        return shown(T.func.vmap(T.func.grad(f), in_dims=(0, None))(T.stack([first, second * 2]), second))

    return [*told, f"{what} of []: {attempt(step)}"]


OPTIMISERS = {
    "SGD": {"momentum": [0, 0.9], "nesterov": [False, True], "weight_decay": [0, 0.1], "dampening": [0, 0.5], "maximize": [False, True]},
    "Adam": {"betas": [(0.9, 0.99), (0.5, 0.9)], "eps": [1e-8, 1e-3], "weight_decay": [0, 0.1], "amsgrad": [False, True], "maximize": [False, True]},
    "AdamW": {"betas": [(0.9, 0.99), (0.5, 0.9)], "weight_decay": [0, 0.1], "amsgrad": [False, True], "maximize": [False, True]},
    "Adagrad": {"lr_decay": [0, 0.1], "weight_decay": [0, 0.1], "initial_accumulator_value": [0, 0.5], "maximize": [False, True]},
    "Adadelta": {"rho": [0.9, 0.5], "weight_decay": [0, 0.1], "maximize": [False, True]},
    "Adamax": {"betas": [(0.9, 0.99)], "weight_decay": [0, 0.1], "maximize": [False, True]}, "Adafactor": {"weight_decay": [0, 0.1]},
    "NAdam": {"momentum_decay": [4e-3, 0.1], "weight_decay": [0, 0.1], "decoupled_weight_decay": [False, True]},
    "RAdam": {"weight_decay": [0, 0.1], "decoupled_weight_decay": [False, True]}, "ASGD": {"lambd": [1e-4, 0.1], "weight_decay": [0, 0.1]},
    "RMSprop": {"alpha": [0.99, 0.5], "momentum": [0, 0.9], "centered": [False, True], "weight_decay": [0, 0.1]},
    "Rprop": {"etas": [(0.5, 1.2)], "step_sizes": [(1e-6, 50), (0.01, 1)], "maximize": [False, True]}, "Muon": {"momentum": [0.9], "nesterov": [False, True]},
    "LBFGS": {"max_iter": [3, 5], "history_size": [2, 10]},
}  # fmt: skip
SCHEDULERS = """StepLR(o, 2, 0.5); MultiStepLR(o, [1, 3], 0.1); ConstantLR(o, 0.5, 2); LinearLR(o, 0.3, 1.0, 3); ExponentialLR(o, 0.9); CosineAnnealingLR(o, 4)
    PolynomialLR(o, 4, 2.0); CosineAnnealingWarmRestarts(o, 2, 2); OneCycleLR(o, 0.1, total_steps=9); LambdaLR(o, lambda e: 0.9**e)
    MultiplicativeLR(o, lambda e: 0.95); CyclicLR(o, 0.01, 0.1, 2, cycle_momentum=False); ReduceLROnPlateau(o, patience=0)
    SequentialLR(o, [ConstantLR(o, 0.1, 2), ExponentialLR(o, 0.9)], [2]); ChainedScheduler([ConstantLR(o, 0.5, 2), ExponentialLR(o, 0.9)])""".replace("\n", ";").split(";")


def optimisers(r: random.Random) -> list[str]:
    """Steps of an optimiser with a scheduler, groups of parameters, missing gradients, and its state put into another one."""
    name = r.choice(list(OPTIMISERS))
    options = {k: r.choice(v) for k, v in OPTIMISERS[name].items() if r.random() < 0.5}
    options |= {k: v for k, v in (("lr", r.choice([0.1, 0.01])), ("foreach", r.choice([True, False]))) if r.random() < 0.6 and name not in ("LBFGS", "Muon")}
    dtype = r.choice([T.float32, T.float64, T.float64])
    shapes = [[2, 3], [3, 2] if name == "Muon" else [3], [2, 2]]
    params = [T.nn.Parameter(filled(r, s, str(dtype).split(".")[-1]).nan_to_num(1, 1, 1)) for s in shapes]
    groups: list = [{"params": params[:1]}, {"params": params[1:], "lr": 0.05}] if r.random() < 0.4 and name != "LBFGS" else params
    scheduler, chosen = r.choice(SCHEDULERS).strip(), r.random() < 0.6
    missing, reload, closure = r.random() < 0.3, r.random() < 0.4, name == "LBFGS" or r.random() < 0.2
    told = [f"{name} of ({options}, groups={len(groups)}, missing={int(missing)}, {scheduler if chosen else ''})"]

    def start():
        made = getattr(T.optim, name)(groups, **options)
        return made, eval(scheduler, {**{n: getattr(T.optim.lr_scheduler, n) for n in re.findall("[A-Z][A-Za-z]+(?=\\()", scheduler)}, "o": made}) if chosen else None

    def loss():
        o.zero_grad()
        total = sum(((p * p).sum() + (p * 0.3).sin().sum() for p in (params[1:] if missing else params)), T.zeros((), dtype=dtype))
        total.backward()
        return total

    try:
        o, schedule = start()
        for n in range(4):
            if closure:
                o.step(loss)
            else:
                loss()
                o.step()
            if schedule is not None:
                schedule.step(*([float(n % 2)] if "Plateau" in scheduler else []))
            told.append(f"step {n}: " + " ".join(map(shown, params)) + f" lr={[rounded(float(g['lr'])) for g in o.param_groups]}")
            if reload and n == 1:
                state = o.state_dict(), schedule.state_dict() if schedule is not None else None
                o, schedule = start()
                o.load_state_dict(state[0])
                if schedule is not None:
                    schedule.load_state_dict(state[1])
        told.append(f"state: {sorted(map(str, o.state_dict()['state'].get(0, {})))} {sorted(o.state_dict()['param_groups'][0])}")
    except Exception as e:  # noqa: BLE001
        told.append(type(e).__name__)
    return told


def autocast(r: random.Random) -> list[str]:
    """Operators under autocast, whose results' dtypes say what it did, and gradients through its casts."""
    rank = r.choice([1, 2, 2, 3])
    names = [r.choice(["float32", "float32", "float32", "float64", "bfloat16", "float16", "int64"]) for _ in range(2)]
    made = [filled(r, [3] * rank, name).requires_grad_(name.startswith("float") and r.random() < 0.5) for name in names]
    leaves, told = list(made), [f"operand: {shown(t)}" for t in made]
    dtype = r.choice([T.bfloat16, T.float16])
    for _ in range(3):
        binary = r.random() < 0.5
        source, x, y = r.choice(BINARY if binary else UNARY).strip(), r.choice(made), r.choice(made)
        if r.random() < 0.3:
            source = r.choice(["F.linear(x, y)", "x @ y", "F.conv1d(x, y)", "F.conv2d(x, y)", "F.scaled_dot_product_attention(x, x, y)", "T.mm(x, y)", "F.mse_loss(x, y)",
                               "T.bmm(x, y)", "F.cosine_similarity(x, y)", "T.linalg.matrix_norm(x)", "F.bilinear(x, y, y)", "T.cdist(x, y)"])  # fmt: skip
        def step(source=source, x=x, y=y):
            with T.autocast("cpu", dtype):
                result = eval(source, {"T": T, "F": F, "x": x, "y": y, "d": 0})
            if isinstance(result, T.Tensor):
                made.append(result)
            return shown(result)

        told.append(f"{source} of [] {dtype}: {attempt(step)}".replace("torch.", "").replace("strata.", ""))
    return told + (told_gradients([made[-1]], leaves) if not made[-1].is_leaf else [])


KINDS = {
    "values": values, "writes": writes, "indices": indices, "modules": modules, "calls": calls, "derivatives": derivatives, "optimisers": optimisers,
    "autocast": autocast,
}  # fmt: skip


def main() -> None:
    kind, first, count = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    for n in range(first, first + count):
        told = KINDS[kind](random.Random(f"{kind} {n}"))
        print(json.dumps([n, told]), flush=True)


if __name__ == "__main__":
    main()
