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
from reference_ctc import ctc_gradient, ctc_losses  # noqa: F401 - entries name them

WIDE = {strata.float16: strata.float32, strata.bfloat16: strata.float32}
CTC = (strata.float32, strata.float64)  # the dtypes that there are of it


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


def bag_sum(rows, index, bag, factor, bags):
    if index.shape != bag.shape:
        return "RuntimeError"
    if index.size and index.max() >= len(rows):
        raise IndexError(f"index {index.max()} of {len(rows)} rows")
    found = np.zeros((bags, rows.shape[1]), rows.dtype)
    np.add.at(found, bag[bag >= 0], (rows[index] * factor[:, None])[bag >= 0])
    return found


def bag_sum_backward(grad, index, bag, factor, rows):
    if index.size and index.max() >= rows:
        raise IndexError(f"index {index.max()} of {rows} rows")
    found = np.zeros((rows, grad.shape[1]), grad.dtype)
    np.add.at(found, index[bag >= 0], (grad[bag] * factor[:, None])[bag >= 0])
    return found


def grid_moved(raw, size, padding, aligned):
    """Positions moved inside as the padding says, and the derivative of that."""
    low, high = (0, size - 1) if aligned else (-0.5, size - 0.5)
    at, slope = raw, np.ones_like(raw)
    if padding == 2:
        span = high - low
        turns = np.floor((raw - low) / span)
        left = raw - low - turns * span
        at = np.where(turns % 2 == 0, left, span - left) + low
        slope = np.where(turns % 2 == 0, 1, -1)
    if padding:
        slope = np.where((at > 0) & (at < size - 1), slope, 0)
        at = np.clip(at, 0, size - 1)
    return at, slope


def grid_raw(x, size, aligned):
    return (x + 1) / 2 * (size - 1) if aligned else ((x + 1) * size - 1) / 2


def grid_place(x, tap, outer, size, mode, padding, aligned):
    raw = grid_raw(x.astype(np.float64), size, aligned)
    if mode == 2:
        k = grid_moved(np.floor(raw) + tap - 1, size, padding, aligned)[0]
    else:
        at = grid_moved(raw, size, padding, aligned)[0]
        k = np.rint(at) + 0 * tap if mode == 1 else np.floor(at) + tap
    return np.where((k >= 0) & (k < size) & (outer >= 0), outer * size + k, -1)


def grid_weight(x, tap, size, mode, padding, aligned, order):
    """Cubic convolution with a = -0.75, as R. Keys has it: of the distance."""
    raw = grid_raw(x.astype(np.float64), size, aligned)
    at, slope = (raw, 1) if mode == 2 else grid_moved(raw, size, padding, aligned)
    step = slope * (size - 1 if aligned else size) / 2
    a, found = -0.75, []
    near, far = np.poly1d([a + 2, -a - 3, 0, 1]), np.poly1d([a, -5 * a, 8 * a, -4 * a])
    for k in tap.reshape(-1):
        p = np.poly1d([1, 0])
        if mode == 2:
            weight = near(p) if k == 1 else near(1 - p) if k == 2 else far(p + 1) if k == 0 else far(2 - p)
        else:
            weight = np.poly1d([1]) if mode == 1 else p if k else 1 - p
        weight = weight.deriv(order) if order else weight
        found.append(weight(at - np.floor(at)) * step**order)
    return np.concatenate(found, -2)


def grid_bilinear(image, x, y, border, aligned):
    if image.ndim != 4 or x.shape != y.shape:
        return "RuntimeError"
    found = np.zeros((*image.shape[:2], x.shape[1]), image.dtype)
    for n, q in np.ndindex(x.shape):
        lines = []
        for points, size in ((y, image.shape[2]), (x, image.shape[3])):
            at = grid_moved(grid_raw(np.float64(points[n, q]), size, aligned), size, int(border), aligned)[0]
            k = int(np.floor(at))
            lines.append([(i, w) for i, w in ((k, 1 - (at - k)), (k + 1, at - k)) if 0 <= i < size])
        for (i, v), (j, u) in itertools.product(*lines):
            found[n, :, q] += image[n, :, i, j] * (v * u)
    return found


def weighted_gather(image, place, weight):
    if image.ndim != 4 or weight.shape != place.shape:
        return "RuntimeError"
    found = np.zeros((*image.shape[:2], place.shape[2], 1), image.dtype)
    for n, t, p in np.ndindex(place.shape):
        if place[n, t, p] >= 0:
            found[n, :, p] += image[n, :, place[n, t, p]] * weight[n, t, p]
    return found


def weighted_scatter(grad, place, weight, size):
    if grad.shape[2] != place.shape[2]:
        return "RuntimeError"
    found = np.zeros((*grad.shape[:2], size, 1), grad.dtype)
    for n, p, t in np.ndindex(place.shape[0], place.shape[2], place.shape[1]):
        if place[n, t, p] >= 0:
            found[n, :, place[n, t, p]] += grad[n, :, p] * weight[n, t, p]
    return found


def weighted_bytes(image, place, weight, shift):
    found = weighted_gather(image, place, weight)
    return np.clip((found + (1 << int(shift) >> 1)) >> int(shift), 0, 255)


def upsample_bytes(image, size, aligned, by_h, by_w, cubic):
    """Line by line: the weights of what lies at each input, as integers of the most bits that fit 16."""
    for dim, scale in ((3, by_w), (2, by_h)):
        inputs, outputs = image.shape[dim], size[dim - 2]
        if inputs == outputs:
            continue
        ratio = (inputs - 1) / max(outputs - 1, 1) * (outputs > 1) if aligned else 1 / scale if scale else inputs / outputs
        weights = np.zeros((outputs, inputs))
        for x in range(outputs):
            at = x * ratio if aligned else (x + 0.5) * ratio - 0.5
            at = at if cubic else max(at, 0.0)
            first = min(int(np.floor(at)), inputs - 1)
            part = min(max(at - first, 0.0), 1.0)
            for tap in range(-1, 3) if cubic else range(2):
                d = abs(tap - part)
                far = (((d - 5) * d + 8) * d - 4) * -0.75 if d < 2 else 0.0
                weight = (((1.25 * d - 2.25) * d * d + 1) if d < 1 else far) if cubic else max(1 - d, 0.0)
                weights[x, min(max(first + tap, 0), inputs - 1)] += weight
        bits = next(b for b in range(23) if b == 22 or int(0.5 + weights.max() * 2 ** (b + 1)) >= 2**15)
        whole = np.trunc(weights * 2**bits + np.where(weights < 0, -0.5, 0.5)).astype(np.int64)
        total = np.moveaxis(image, dim, -1).astype(np.int64) @ whole.T + (1 << bits >> 1)
        image = np.moveaxis(np.clip(total >> bits, 0, 255).astype(np.uint8), -1, dim)
    return image


def gathered_products(image, place, grad):
    if grad.shape[:2] != image.shape[:2]:
        return "RuntimeError"
    found = np.zeros(place.shape, image.dtype)
    for n, t, p in np.ndindex(place.shape):
        if place[n, t, p] >= 0:
            found[n, t, p] = (image[n, :, place[n, t, p]] * grad[n, :, p]).sum()
    return found


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


def nll_log_softmax_backward(grad, output, target, weight, reduction, ignored, total):
    dim = min(output.ndim - 1, 1)
    if output.dtype.kind in "biuc":
        return "NotImplementedError"
    if reduction == 0 and grad.size != target.size:
        return "RuntimeError"
    found = np.zeros_like(output)
    for place in np.ndindex(*target.shape):
        c = int(target[place])
        if c != ignored:
            value = -(grad[place] if reduction == 0 else grad) * (1 if weight is None else weight[c])
            found[(*place[:dim], c, *place[dim:])] = value / total if reduction == 1 else value
    return found - np.exp(output) * np.sum(found, axis=dim, keepdims=True)


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


def slopes(params, grads, weight_decay, maximize):
    """(place, gradient with its decay) of each parameter."""
    for i, param in enumerate(params):
        yield i, (-grads[i] if maximize else grads[i]) + weight_decay * param


def adadelta(params, grads, squares, deltas, steps, lr, rho, eps, weight_decay, maximize):
    for i, grad in slopes(params, grads, weight_decay, maximize):
        squares[i][...] = rho * squares[i] + (1 - rho) * grad**2
        delta = np.sqrt(deltas[i] + eps) / np.sqrt(squares[i] + eps) * grad
        deltas[i][...] = rho * deltas[i] + (1 - rho) * delta**2
        params[i][...] -= lr * delta
    return [*params, *grads, *squares, *deltas, *steps]


def adamax(params, grads, averages, largest, steps, lr, beta1, beta2, weight_decay, eps, maximize):
    for i, grad in slopes(params, grads, weight_decay, maximize):
        averages[i][...] = beta1 * averages[i] + (1 - beta1) * grad
        largest[i][...] = np.maximum(beta2 * largest[i], np.abs(grad) + eps)
        params[i][...] -= lr / (1 - beta1 ** steps[i]) * averages[i] / largest[i]
    return [*params, *grads, *averages, *largest, *steps]


def moments(params, grads, averages, squares, lr, beta1, beta2, weight_decay, decoupled, maximize):
    """(place, gradient) of each parameter, whose moments are moved and which has decayed."""
    for i, grad in slopes(params, grads, 0 if decoupled else weight_decay, maximize):
        averages[i][...] = beta1 * averages[i] + (1 - beta1) * grad
        squares[i][...] = beta2 * squares[i] + (1 - beta2) * grad**2
        params[i][...] *= 1 - lr * weight_decay if decoupled else 1
        yield i, grad


def nadam(params, grads, products, averages, squares, steps, lr, beta1, beta2, weight_decay, eps, momentum_decay, decoupled, maximize):
    for i, grad in moments(params, grads, averages, squares, lr, beta1, beta2, weight_decay, decoupled, maximize):
        now, after = (beta1 * (1 - 0.5 * 0.96 ** (t * momentum_decay)) for t in (steps[i], steps[i] + 1))
        products[i][...] *= now
        ahead = (1 - now) / (1 - products[i]) * grad + after / (1 - products[i] * after) * averages[i]
        params[i][...] -= lr * ahead / (np.sqrt(squares[i] / (1 - beta2 ** steps[i])) + eps)
    return [*params, *grads, *products, *averages, *squares, *steps]


def radam(params, grads, averages, squares, steps, lr, beta1, beta2, weight_decay, eps, decoupled, maximize):
    for i, _ in moments(params, grads, averages, squares, lr, beta1, beta2, weight_decay, decoupled, maximize):
        step = lr * averages[i] / (1 - beta1 ** steps[i])
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * steps[i] * beta2 ** steps[i] / (1 - beta2 ** steps[i])
        if length > 5:
            step = step * np.sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length))
            step = step * np.sqrt(1 - beta2 ** steps[i]) / (np.sqrt(squares[i]) + eps)
        params[i][...] -= step
    return [*params, *grads, *averages, *squares, *steps]


def asgd(params, grads, means, etas, mus, steps, lr, lambd, alpha, t0, weight_decay, maximize):
    for i, grad in slopes(params, grads, weight_decay, maximize):
        params[i][...] = (1 - lambd * etas[i]) * params[i] - etas[i] * grad
        means[i][...] += mus[i] * (params[i] - means[i])
        etas[i][...] = lr / (1 + lambd * lr * steps[i]) ** alpha
        mus[i][...] = 1 / max(1, steps[i] - t0)
    return [*params, *grads, *means, *etas, *mus, *steps]


def rprop(params, grads, last, sizes, steps, shrink, grow, least, largest, maximize):
    for i, grad in slopes(params, grads, 0, maximize):
        agreement = grad * last[i]
        sizes[i][...] = np.clip(sizes[i] * np.select([agreement > 0, agreement < 0], [grow, shrink], 1), least, largest)
        last[i][...] = np.where(agreement < 0, 0, grad)
        params[i][...] -= np.sign(last[i]) * sizes[i]
    return [*params, *grads, *last, *sizes, *steps]


def adafactor(params, grads, rows, columns, steps, lr, beta2_decay, eps1, eps2, threshold, weight_decay, maximize):
    for i, grad in slopes(params, grads, 0, maximize):
        weight, root = steps[i] ** beta2_decay, np.sqrt(params[i].size)
        relative = max(eps2, np.linalg.norm(params[i]) / root) * min(lr, 1 / np.sqrt(steps[i]))
        params[i][...] *= 1 - lr * weight_decay
        square = grad**2
        rows[i][...] += weight * ((square.mean(-1, keepdims=True) if columns else square) - rows[i])
        moment = rows[i]
        if columns:
            columns[i][...] += weight * (square.mean(-2, keepdims=True) - columns[i])
            moment = rows[i] @ columns[i] / np.maximum(rows[i].mean(-2, keepdims=True), eps1)
        update = grad / np.sqrt(np.maximum(moment, eps1**2))
        params[i][...] -= relative / max(1, np.linalg.norm(update) / (root * threshold)) * update
    return [*params, *grads, *rows, *columns, *steps]


def muon(params, grads, buffers, lr, weight_decay, momentum, nesterov, coefficients, eps, ns_steps, match_rms):
    a, b, c = coefficients

    def half(x):
        return rounded(np.asarray(x, params[0].dtype), strata.bfloat16)

    for i, grad in slopes(params, grads, 0, False):
        buffers[i][...] = momentum * buffers[i] + (1 - momentum) * grad
        x = half((1 - momentum) * grad + momentum * buffers[i] if nesterov else buffers[i])
        x = half(x / max(half(np.linalg.norm(x)), eps))
        for _ in range(ns_steps):
            gram = half(x @ x.T)
            x = half(a * x + half(b * gram + c * gram @ gram) @ x)
        rows, columns = x.shape
        factor = 0.2 * np.sqrt(max(rows, columns)) if match_rms else np.sqrt(max(1, rows / columns))
        params[i][...] = (1 - lr * weight_decay) * params[i] - lr * factor * x
    return [*params, *grads, *buffers]


def choices(n, r, with_replacement):
    if r < 1:
        return "RuntimeError"
    take = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    return np.array(list(take(range(n), r)), np.int64).reshape(-1, r)
