"""References in NumPy: what an entry gives for its samples, where PyTorch has no operator to record.

`reference:` of an entry is an expression over its arguments by name, `np`, and the functions of this file; tensors are
arrays in the dtype that the operator computes in (float32 for halves), `result_dtype` is that of its result. Of several results it is a list; an operator that
writes its arguments has all of its tensors as they are afterwards."""

from __future__ import annotations

import itertools
import math

import numpy as np
import strata
from kit import flattened

WIDE = {strata.float16: strata.float32, strata.bfloat16: strata.float32}


def compared(dtype) -> np.dtype:
    """What results of a dtype are compared as."""
    return strata.empty(0, dtype=strata.float32 if dtype == strata.bfloat16 else dtype).numpy().dtype


def result_dtype(entry, tensors: list) -> strata.dtype:
    """The promoted dtype where the entry promotes; others give that of their first tensor."""
    if entry.kind != "pointwise" and "promote" not in entry.row.said:
        return tensors[0].dtype if tensors else strata.int64
    found = strata.result_type(tensors[0], tensors[1]) if len(tensors) > 1 else tensors[0].dtype
    for t in tensors[2:]:
        found = strata.promote_types(found, t.dtype)
    return strata.float32 if entry.promote == "float" and not (found.is_floating_point or found.is_complex) else found


def reference(entry, args: tuple, kwargs: dict) -> list[np.ndarray] | str:
    """What a call must give: arrays, or the type of an error."""
    tensors = [t for t in flattened([args, list(kwargs.values())]) if isinstance(t, strata.Tensor)]
    made = result_dtype(entry, tensors)
    limited = entry.kind == "pointwise" or bool(entry.row.said & {"dtypes", "promote"})
    limited = limited and not entry.row.moves
    places = {o.name for o in entry.row.inputs if o.dtype == "int64"}
    if limited and str(made).removeprefix("strata.") not in entry.dtypes:
        return "NotImplementedError"
    given: dict[int, strata.dtype] = {}  # an argument that is written keeps its dtype

    def array(value, name=""):
        if isinstance(value, (list, tuple)):
            return [array(v) for v in value]
        if not isinstance(value, strata.Tensor):
            return value
        found = (value if name in places else value.to(WIDE.get(made, made))).numpy().copy()
        given[id(found)] = value.dtype
        return found

    names = {a.name: array(v, a.name) for a, v in zip(entry.schema.args, args)} | {k: array(v) for k, v in kwargs.items()}
    with np.errstate(all="ignore"):
        try:
            found = eval(entry.row.reference, {**globals(), "result_dtype": made, **names})
        except ZeroDivisionError:
            return "RuntimeError"
        except IndexError as error:
            if not str(error).startswith("index "):  # a reference's own mistake
                raise
            return "IndexError"
        if isinstance(found, str):
            return found
        results = found if isinstance(found, list) else [found]
        words = [(o.marks or ("",))[-1] for o in entry.row.outputs] + [""] * len(results)
        own = [getattr(strata, w) if isinstance(getattr(strata, w or "-", None), strata.dtype) else made for w in words]
        return [np.asarray(a).astype(compared(given.get(id(a), d))) for a, d in zip(results, own)]


def rounded(x: np.ndarray, dtype) -> np.ndarray:
    """As numbers of a dtype, for what rounds before its end."""
    return strata.from_numpy(x).to(dtype).to(WIDE.get(dtype, dtype)).numpy()


def divisible(x: np.ndarray, divisor: np.ndarray) -> np.ndarray:
    if x.dtype.kind in "iu" and not divisor.all():
        raise ZeroDivisionError
    return x


BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def derivative_of_lgamma(x, order: int):
    """The derivative of lgamma of an order >= 1: Euler and Maclaurin's sum after 20 terms."""
    x = np.asarray(x, np.float64)
    n = order - 1  # of digamma
    far = x + 20
    if n == 0:
        tail = np.log(far) - 0.5 / far - sum(b / (2 * j * far ** (2 * j)) for j, b in enumerate(BERNOULLI, 1))
        return np.where(np.isposinf(x), np.inf, tail - sum(1 / (x + k) for k in range(20)))
    tail = far**-n / n + 0.5 * far ** -(n + 1.0)
    for j, b in enumerate(BERNOULLI, 1):
        tail = tail + b / math.factorial(2 * j) * math.factorial(n + 2 * j - 1) / math.factorial(n) * far ** -(n + 2.0 * j)
    terms = sum((x + k) ** -(n + 1.0) for k in range(20))
    return (-1) ** (n + 1) * math.factorial(n) * np.where(np.isposinf(x), 0, terms + tail)


def scatter_with(combine, self, dim, index, src):
    out, dim = np.atleast_1d(self.copy()), dim % max(self.ndim, 1)
    for at in np.ndindex(np.atleast_1d(index).shape):
        place = list(at)
        place[dim] = np.atleast_1d(index)[at]
        if not 0 <= place[dim] < out.shape[dim]:
            return "RuntimeError"
        out[tuple(place)] = combine(out[tuple(place)], np.atleast_1d(src)[at])
    return out.reshape(self.shape)


def scatter_rows(self, index, source):
    found = self.copy()
    for i, row in zip(index, source):
        found[i] = found[i] | row if found.dtype == bool else found[i] + row
    return found


def convolve(x, weight, bias, stride, padding, dilation, groups):
    n = weight.ndim - 2
    stride, padding, dilation = (list(a) * n if len(a) == 1 else list(a) for a in (stride, padding, dilation))
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    sizes = [(x.shape[d + 2] - dilation[d] * (weight.shape[d + 2] - 1) - 1) // stride[d] + 1 for d in range(n)]
    found = np.zeros((x.shape[0], weight.shape[0], *sizes), x.dtype)
    per, channels = weight.shape[0] // groups, weight.shape[1]
    for o in range(weight.shape[0]):
        part = x[:, o // per * channels:][:, :channels]
        for at in np.ndindex(*sizes):
            where = tuple(slice(a * s, a * s + d * (k - 1) + 1, d) for a, s, d, k in zip(at, stride, dilation, weight.shape[2:]))
            found[(slice(None), o, *at)] = (part[(slice(None), slice(None), *where)] * weight[o]).sum(tuple(range(1, n + 2))) + bias[o]
    return found


def convolve_back(x, weight, bias, stride, padding, dilation, extra, groups):
    n = weight.ndim - 2
    stride, padding, dilation, extra = (list(a) * n if len(a) == 1 else list(a) for a in (stride, padding, dilation, extra))
    sizes = [(x.shape[d + 2] - 1) * stride[d] + dilation[d] * (weight.shape[d + 2] - 1) + 1 + extra[d] for d in range(n)]
    found = np.zeros((x.shape[0], weight.shape[1] * groups, *sizes), x.dtype)
    per = weight.shape[0] // groups
    for c in range(weight.shape[0]):
        for z in range(weight.shape[1]):
            for at in np.ndindex(*x.shape[2:]):
                where = tuple(slice(a * s, a * s + d * (k - 1) + 1, d) for a, s, d, k in zip(at, stride, dilation, weight.shape[2:]))
                found[(slice(None), c // per * weight.shape[1] + z, *where)] += np.multiply.outer(x[(slice(None), c, *at)], weight[c, z])
    found = found[(slice(None), slice(None), *(slice(p, s - p) for p, s in zip(padding, sizes)))]
    return found + bias.reshape(-1, *[1] * n)


def put_with(combine, self, index, source):
    out = self.copy().ravel()
    for at, v in zip(index.ravel(), source.ravel(), strict=True):
        if not -out.size <= at < out.size:
            raise IndexError(f"index {at} of {out.size}")
        out[at] = v if combine is None else combine(out[at], v)
    return out.reshape(self.shape)


def embedding_sum(grad, indices, rows, padding):
    if indices.size and (indices.min() < 0 or indices.max() >= rows):
        raise IndexError(f"index {indices.max()} of {rows} rows")
    out = np.zeros((rows, *grad.shape[indices.ndim:]), grad.dtype)
    for at in np.ndindex(indices.shape):
        if indices[at] != padding:
            out[indices[at]] += grad[at]
    return out


def linear_scan(factor, term, dim):
    found = np.moveaxis(term.copy(), dim, 0)
    factor = np.moveaxis(factor, dim, 0)
    for i in range(1, len(found)):
        found[i] = factor[i] * found[i - 1] + found[i]
    return np.moveaxis(found, 0, dim)


def search(sequence, values, right):
    found = np.zeros(values.shape, np.int64)
    for at in np.ndindex(values.shape):
        line = sequence if sequence.ndim == 1 else sequence[at[:-1]]
        found[at] = np.searchsorted(line, values[at], "right" if right else "left")
    return found


def as_strided_backward(grad, base_size, base_stride, base_offset, size, stride, offset):
    """Every element of the base gathers, by its place in memory, the elements of the view that lie there."""
    places = {}
    for index in np.ndindex(*size):
        places.setdefault(offset + int(np.dot(index, stride)), []).append(grad[index])
    found = np.zeros(base_size, grad.dtype)
    for index in np.ndindex(*base_size):
        found[index] = sum(places.get(base_offset + int(np.dot(index, base_stride)), []))
    return found


def pad_circular_backward(grad, size, pad):
    """Negative padding crops first; what is left repeats."""
    found = np.zeros(size, grad.dtype)
    sides = [(0, 0)] * (len(size) - len(pad) // 2) + list(zip(pad[::2], pad[1::2], strict=True))[::-1]
    starts = [max(-before, 0) for before, _ in sides]
    lengths = [n + min(before, 0) + min(after, 0) for n, (before, after) in zip(size, sides, strict=True)]
    for index in np.ndindex(*grad.shape):
        place = tuple(start + (i - max(before, 0)) % n for i, start, n, (before, _) in zip(index, starts, lengths, sides, strict=True))
        found[place] += grad[index]
    return found


def rms_norm_backward(grad, x, dims, rstd, weight, mask):
    inner, outer = tuple(range(x.ndim - dims, x.ndim)), tuple(range(x.ndim - dims))
    scaled = grad if weight is None else grad * weight
    by_input = rstd * scaled - rstd**3 * x * np.mean(scaled * x, axis=inner, keepdims=True)
    by_weight = np.sum(grad * x * rstd, axis=outer)
    return [r for r, wanted in zip((by_input, by_weight), mask, strict=True) if wanted]


def rmsprop(params, grads, squares, averages, buffers, steps, lr, alpha, eps, weight_decay, momentum, centered, maximize):
    for i, param in enumerate(params):
        grad = (-grads[i] if maximize else grads[i]) + weight_decay * param
        squares[i][...] = alpha * squares[i] + (1 - alpha) * grad**2
        variance = squares[i]
        if centered:
            averages[i][...] = alpha * averages[i] + (1 - alpha) * grad
            variance = variance - averages[i] ** 2
        step = grad / (np.sqrt(variance) + eps)
        if momentum:
            buffers[i][...] = step = momentum * buffers[i] + step
        param[...] = param - lr * step
    return [*params, *grads, *squares, *averages, *buffers, *steps]


def choices(n, r, with_replacement):
    if r < 1:
        return "RuntimeError"
    take = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    return np.array(list(take(range(n), r)), np.int64).reshape(-1, r)
