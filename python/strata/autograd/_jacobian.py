"""Jacobians for gradcheck: by differences, by backward and by forward mode.

A Jacobian is a `Matrix` of Python numbers with one row per input element and one column per output element, so that
nothing but the function under test is computed by tensors. Tensors are small here, and robustness counts for more.
"""

import itertools
import random

import strata


class GradcheckError(RuntimeError):
    """A derivative disagrees with the difference quotient, or a backward breaks one of its rules."""


def as_tuple(x):
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def is_active(x):
    return isinstance(x, strata.Tensor) and x.requires_grad


def differentiable(results):
    return tuple(o for o in as_tuple(results) if is_active(o))


def flat_list(t):
    return t.detach().reshape(-1).tolist()


def close(a, n, rtol, atol):
    return a == n or abs(a - n) <= atol + rtol * abs(n)


class Scalar:
    """A number with the face of a Matrix, for messages."""

    def __init__(self, value):
        self.value = value

    def tensor(self):
        return self.value


class Matrix:
    """Rows of Python numbers. With `turned` rows (for complex inputs) row k also has its derivative along i.

    `part` joins the two as PyTorch's gradient does: d part(out) / dx + i d part(out) / dy.
    """

    def __init__(self, rows, dtype, columns, turned=None):
        self.rows, self.dtype, self.columns, self.turned = rows, dtype, columns, turned

    def part(self, part):
        pick = _PARTS[part]
        if self.turned is None:
            return Matrix([[pick(v) for v in row] for row in self.rows], self.dtype, self.columns)
        joined = [
            [complex(pick(x), pick(y)) for x, y in zip(*pair, strict=True)]
            for pair in zip(self.rows, self.turned, strict=True)
        ]
        return Matrix(joined, self.dtype, self.columns)

    def values(self):
        return itertools.chain(*self.rows, *(self.turned or ()))

    def pairs(self, other):
        return zip(self.values(), other.values(), strict=True)

    def close_to(self, analytical, rtol, atol):
        return all(close(a, n, rtol, atol) for n, a in self.pairs(analytical))

    def distance(self, other):
        return max((abs(a - b) for a, b in self.pairs(other)), default=0.0)

    def dot(self, v):
        """Its single row times v."""
        return sum(x * y for x, y in zip(self.rows[0], v, strict=True))

    def tensor(self):
        rows = self.rows if self.turned is None else [*self.rows, *self.turned]
        dtype = self.dtype
        if not dtype.is_complex and any(isinstance(v, complex) for v in self.values()):
            dtype = strata.complex128
        return strata.tensor(rows, dtype=dtype).reshape(len(rows), self.columns)


def _identity(value):
    return value


_PARTS = {"": _identity, "real": lambda v: v.real, "imaginary": lambda v: v.imag}


class Problem:
    """The function under test at its inputs: `active` are the inputs to differentiate, `outputs` the positions among
    `results` that have a gradient. `results` are computed once and keep their graph."""

    def __init__(self, func, inputs, eps):
        self.func, self.inputs, self.eps = func, inputs, eps
        self.active = [x for x in inputs if is_active(x)]
        self._numerical = None
        self.results = self._call(inputs)
        self.outputs = [i for i, o in enumerate(self.results) if o.requires_grad]

    def _call(self, inputs):
        results = as_tuple(self.func(*inputs))
        for i, o in enumerate(results):
            if not isinstance(o, strata.Tensor):
                raise TypeError(f"gradcheck: func must return tensors, output {i} is a {type(o).__name__}")
        return results

    def position(self, out):
        """Number of an output among the differentiable ones, as PyTorch counts."""
        return self.outputs.index(out)

    def parts(self, out):
        return ("imaginary", "real") if self.results[out].dtype.is_complex else ("",)

    # Differences

    def _evaluate(self, delta):
        """Every output's values, as lists."""
        results = self._call(self.inputs)
        for i, (new, old) in enumerate(zip(results, self.results, strict=True)):
            if new.shape != old.shape or new.dtype != old.dtype:
                raise AssertionError(
                    f"gradcheck: func must return the same shapes and dtypes when an input moves by {delta}, but "
                    f"output {i} went from {tuple(old.shape)} {old.dtype} to {tuple(new.shape)} {new.dtype}"
                )
        return [flat_list(o) for o in results]

    def _slopes(self, move, delta):
        """Per output, the central difference along what `move(sign)` does."""
        try:
            move(-1)
            low = self._evaluate(delta)
            move(1)
            high = self._evaluate(delta)
        finally:
            move(0)
        return [[_quotient(a, b, self.eps) for a, b in zip(x, y, strict=True)] for x, y in zip(low, high, strict=True)]

    def numerical(self):
        """[input][output] -> Matrix."""
        if self._numerical is None:
            self._numerical = [self._numerical_of(x) for x in self.active]
        return self._numerical

    def _numerical_of(self, x):
        rows, turned = [], []
        for index in itertools.product(*map(range, x.shape)):
            element = x.data
            for i in index:
                element = element.select(0, i)
            start = element.item()

            def move(sign, unit, element=element, start=start):
                element.fill_(start + sign * self.eps * unit)

            rows.append(self._slopes(lambda sign, move=move: move(sign, 1), self.eps))
            if x.dtype.is_complex:
                turned.append(self._slopes(lambda sign, move=move: move(sign, 1j), self.eps))
        return [self._matrix(x, out, rows, turned) for out in range(len(self.results))]

    def _matrix(self, x, out, rows, turned):
        o = self.results[out]
        return Matrix(
            [row[out] for row in rows],
            x.dtype if x.dtype.is_complex else o.dtype if o.dtype.is_complex else strata.float64,
            o.numel(),
            [row[out] for row in turned] if x.dtype.is_complex else None,
        )

    # Backward

    def _vjp(self, out, grad):
        o = self.results[out]
        return strata.autograd.grad(o, self.active, grad, retain_graph=True, allow_unused=True)

    def _grad_lists(self, grads, check_dtypes):
        """Values of each gradient, zeros for a missing one."""
        lists = []
        for g, x in zip(grads, self.active, strict=True):
            if g is None:
                lists.append([0.0] * x.numel())
                continue
            if check_dtypes and g.dtype != x.dtype:
                raise GradcheckError(f"Gradient has dtype mismatch: {g.dtype} for an input of {x.dtype}")
            if g.shape != x.shape:
                raise GradcheckError(
                    f"Analytical gradient has incorrect size: {tuple(g.shape)} for an input of {tuple(x.shape)}"
                )
            lists.append(flat_list(g))
        return lists

    def backward(self, out, part, nondet_tol, check_dtypes):
        """[input] -> Matrix of one part of one output, computed twice to see whether it repeats."""
        o = self.results[out]
        unit = 1j if part == "imaginary" else 1.0
        runs = []
        for _ in range(2):
            columns = []
            for k in range(o.numel()):
                seed = strata.zeros(o.numel(), dtype=o.dtype, device=o.device)
                seed[k] = unit
                columns.append(self._grad_lists(self._vjp(out, seed.reshape(o.shape)), check_dtypes))
            runs.append([self._from_columns(columns, i) for i in range(len(self.active))])
        self._check_repeats(*runs, nondet_tol)
        return runs[0]

    def _from_columns(self, columns, i):
        x = self.active[i]
        rows = [[column[i][k] for column in columns] for k in range(x.numel())]
        return Matrix(rows, x.dtype if x.dtype.is_complex else strata.float64, len(columns))

    @staticmethod
    def _check_repeats(first, second, nondet_tol):
        worst = max((a.distance(b) for a, b in zip(first, second, strict=True)), default=0.0)
        if worst > nondet_tol:
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                f"gives different values: they differ by {worst}, the tolerance for nondeterminism was {nondet_tol}; "
                "nondet_tol=... allows for a backward that is known not to be deterministic"
            )

    # Forward mode

    def forward(self, inp, check_dtypes):
        """{output: Matrix} of one input, by dual numbers."""
        from strata.autograd import forward_ad

        x = self.active[inp]
        units = (1.0, 1j) if x.dtype.is_complex else (1.0,)
        by_unit = []
        for unit in units:
            rows = []
            for k in range(x.numel()):
                tangent = strata.zeros(x.numel(), dtype=x.dtype, device=x.device)
                tangent[k] = unit
                with forward_ad.dual_level():
                    duals = [
                        forward_ad.make_dual(y.detach(), tangent.reshape(x.shape)) if y is x else _detached(y)
                        for y in self.inputs
                    ]
                    results = self._call(duals)
                    rows.append([self._tangent(forward_ad, results[out], check_dtypes) for out in self.outputs])
            by_unit.append(rows)
        found = {}
        for at, out in enumerate(self.outputs):
            rows, *turned = ([row[at] for row in rows] for rows in by_unit)
            found[out] = Matrix(rows, self._matrix(x, out, [], []).dtype, self.results[out].numel(), *turned)
        return found

    @staticmethod
    def _tangent(forward_ad, result, check_dtypes):
        tangent = forward_ad.unpack_dual(result).tangent
        if tangent is None:
            return [0.0] * result.numel()
        if check_dtypes and tangent.dtype != result.dtype:
            raise GradcheckError("Forward AD gradient has dtype mismatch.")
        return flat_list(tangent)

    # One direction (fast mode)

    def directions(self):
        """Random positive unit vectors: per input a list of one (two if complex), per output one. Own generator."""
        rng = random.Random(0)
        us = [[_unit_vector(rng, x.numel()) for _ in range(1 + x.dtype.is_complex)] for x in self.active]
        return us, [_unit_vector(rng, o.numel()) for o in self.results]

    def numerical_along(self, us):
        """[input][output] -> Matrix with the one row J u."""
        return [self._numerical_of_along(x, u) for x, u in zip(self.active, us, strict=True)]

    def _numerical_of_along(self, x, u):
        data, start = x.data, x.detach().clone()
        slopes = []
        for unit, direction in zip((1, 1j), u, strict=False):
            step = strata.tensor([self.eps * unit * v for v in direction], dtype=x.dtype, device=x.device)
            step = step.reshape(x.shape)
            slopes.append([self._slopes(lambda sign, step=step: data.copy_(start + sign * step), self.eps)])
        turned = slopes[1] if len(slopes) > 1 else []
        return [self._matrix(x, out, slopes[0], turned) for out in range(len(self.results))]

    def backward_along(self, out, part, v, us, nondet_tol, check_dtypes):
        """[input] -> v^T J u of one part of one output."""
        o = self.results[out]
        unit = 1j if part == "imaginary" else 1.0
        seed = strata.tensor([unit * y for y in v], dtype=o.dtype, device=o.device).reshape(o.shape)
        runs = [self._grad_lists(self._vjp(out, seed), check_dtypes) for _ in range(2)]
        self._check_repeats(*([Matrix([g], strata.float64, len(g)) for g in run] for run in runs), nondet_tol)
        return [_along(g, u) for g, u in zip(runs[0], us, strict=True)]


def _detached(y):
    return y.detach() if isinstance(y, strata.Tensor) else y


def _quotient(a, b, eps):
    # Integer and bool outputs have a difference too: it must be zero for a function without differentiable outputs.
    return (b - a) / (2 * eps)


def _unit_vector(rng, n):
    values = [rng.random() for _ in range(n)]
    norm = sum(v * v for v in values) ** 0.5
    return [v / norm for v in values]


def _along(gradient, u):
    if len(u) == 1:
        return sum(g * y for g, y in zip(gradient, u[0], strict=True))
    real = sum(g.real * y for g, y in zip(gradient, u[0], strict=True))
    return complex(real, sum(g.imag * y for g, y in zip(gradient, u[1], strict=True)))
