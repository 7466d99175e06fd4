"""gradcheck and gradgradcheck: derivatives of the tape against central differences.

Complex numbers follow PyTorch's convention: the gradient of a real L with respect to z = x + iy is dL/dx + i dL/dy,
and a function with complex outputs is checked as its real and its imaginary part.
"""

import warnings

import strata
from strata.autograd import _jacobian as jac
from strata.autograd._jacobian import GradcheckError

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


def gradcheck(
    func,
    inputs,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_batched_forward_grad=False,
    check_forward_ad=False,
    check_backward_ad=True,
    fast_mode=False,
    masked=None,
):
    """Compares the gradients of `func` at `inputs` with (func(x + eps) - func(x - eps)) / (2 eps).

    Args:
        func: function of tensors that returns a tensor or a tuple of tensors; outputs without gradient are allowed.
        inputs: a tensor or a tuple; those with `requires_grad` are checked and should be float64 or complex128.
        eps: size of the step.
        atol, rtol: |analytical - numerical| <= atol + rtol * |numerical| must hold.
        raise_exception: False returns False instead of raising GradcheckError.
        nondet_tol: two runs of the same backward may differ by this much.
        check_undefined_grad: also run backward with missing output gradients, which must count as zeros.
        check_grad_dtypes: each gradient must have its input's dtype.
        check_forward_ad, check_backward_ad: which modes to check.
        fast_mode: compare v^T J u for one random u and v instead of every element of J.
        check_batched_grad, check_batched_forward_grad, masked: only False (None) is accepted.

    Returns:
        True where everything agrees.

    Raises:
        GradcheckError: a derivative is wrong; the text shows both Jacobians (one row per input element).
        ValueError: no input requires a gradient.
        TypeError: func returns something else than tensors.
        RuntimeError: an input overlaps itself in memory (stride 0).
    """
    if check_batched_grad or check_batched_forward_grad:
        raise NotImplementedError(
            "gradcheck: check_batched_grad and check_batched_forward_grad are not supported; leave them False"
        )
    if masked:
        raise NotImplementedError("gradcheck: masked=True concerns sparse tensors, which are not supported")
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("gradcheck: at least one of check_forward_ad and check_backward_ad must be True")
    inputs = jac.as_tuple(inputs)
    _check_inputs(inputs)
    try:
        problem = jac.Problem(func, inputs, eps)
        if check_backward_ad:
            compare = _compare_fast if fast_mode else _compare_backward
            compare(problem, rtol, atol, nondet_tol, check_grad_dtypes)
        if check_forward_ad:
            _compare_forward(problem, rtol, atol, check_grad_dtypes)
        if check_backward_ad and problem.outputs:
            _check_zero_in_zero_out(problem)
            if check_undefined_grad:
                _check_undefined_grads(problem)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func,
    inputs,
    grad_outputs=None,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    gen_non_contig_grad_outputs=False,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_fwd_over_rev=False,
    check_rev_over_rev=True,
    fast_mode=False,
    masked=False,
):
    """`gradcheck` of the gradients themselves, as functions of `inputs` and `grad_outputs`.

    Args:
        grad_outputs: one tensor per differentiable output, by default random in [-1, 1).
        gen_non_contig_grad_outputs: make those random ones non-contiguous.
        check_fwd_over_rev, check_rev_over_rev: mode used on top of the backward pass.
        The others as in `gradcheck`.

    Returns, raises: as `gradcheck`.
    """
    inputs = jac.as_tuple(inputs)
    if grad_outputs is None:
        outputs = jac.differentiable(func(*inputs))
        grad_outputs = tuple(_random_like(o, gen_non_contig_grad_outputs) for o in outputs)
    else:
        grad_outputs = jac.as_tuple(grad_outputs)
    if not grad_outputs:
        raise ValueError("gradgradcheck: no output of func requires a gradient, so there is none to differentiate")
    split = len(inputs)
    wanted = [jac.is_active(x) for x in inputs]
    wanted_grads = [jac.is_active(x) for x in grad_outputs]

    def restore(args, flags):
        # Forward mode hands over detached inputs, yet the inner backward needs its history.
        return [x.requires_grad_() if flag else x for x, flag in zip(args, flags, strict=True)]

    def gradients(*args):
        points = restore(args[:split], wanted)
        outs = jac.differentiable(func(*points))
        grads = strata.autograd.grad(
            outs,
            [x for x, flag in zip(points, wanted, strict=True) if flag],
            restore(args[split:], wanted_grads),
            create_graph=True,
            allow_unused=True,
        )
        return tuple(g for g in grads if g is not None)

    return gradcheck(
        gradients,
        inputs + grad_outputs,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


def _random_like(t, noncontiguous):
    from strata.testing import make_tensor

    return make_tensor(
        t.shape, dtype=t.dtype, device=t.device, low=-1, high=1, requires_grad=True, noncontiguous=noncontiguous
    )


def _check_inputs(inputs):
    active = [(i, x) for i, x in enumerate(inputs) if jac.is_active(x)]
    if not active:
        raise ValueError("gradcheck: at least one input tensor must have requires_grad=True, none has")
    for i, x in active:
        if x.dtype not in (strata.float64, strata.complex128):
            warnings.warn(
                f"gradcheck: input {i} has dtype {x.dtype}; differences are exact enough only in float64 or "
                "complex128, so this check will likely fail",
                stacklevel=3,
            )
        if x.numel() and any(stride == 0 and size > 1 for stride, size in zip(x.stride(), x.shape, strict=True)):
            raise RuntimeError(
                f"gradcheck: input {i} overlaps itself in memory (stride 0), so single elements cannot be moved; "
                "call .contiguous() on it first"
            )


def _mismatch(numerical, analytical, at, part="", mode=""):
    out, inp = at
    where = f"While considering the {part} part of complex outputs only, " if part else ""
    return (
        f"{where}Jacobian {mode}mismatch for output {out} with respect to input {inp},\n"
        f"numerical:{numerical.tensor()}\nanalytical:{analytical.tensor()}\n"
    )


def _expect_zero(numerical, tolerance=0.0):
    """Without a differentiable output, no output may change."""
    if any(abs(v) > tolerance for per_output in numerical for raw in per_output for v in raw.values()):
        raise GradcheckError("Numerical gradient for function expected to be zero")


def _compare_backward(problem, rtol, atol, nondet_tol, check_dtypes):
    numerical = problem.numerical()
    if not problem.outputs:
        return _expect_zero(numerical)
    for out in problem.outputs:
        for part in problem.parts(out):
            analytical = problem.backward(out, part, nondet_tol, check_dtypes)
            for inp, (raw, a) in enumerate(zip(numerical, analytical, strict=True)):
                n = raw[out].part(part)
                if not n.close_to(a, rtol, atol):
                    raise GradcheckError(_mismatch(n, a, (problem.position(out), inp), part))


def _compare_forward(problem, rtol, atol, check_dtypes):
    numerical = problem.numerical()
    if not problem.outputs:
        return _expect_zero(numerical)
    for inp, raws in enumerate(numerical):
        for out, a in problem.forward(inp, check_dtypes).items():
            n = raws[out]
            if not n.close_to(a, rtol, atol):
                text = _mismatch(n, a, (problem.position(out), inp), mode="computed with forward mode ")
                raise GradcheckError(text)


def _compare_fast(problem, rtol, atol, nondet_tol, check_dtypes):
    """v^T J u both ways. The element-wise bound atol becomes atol * sum(u) * sum(v), as u and v are positive."""
    us, vs = problem.directions()
    numerical = problem.numerical_along(us)
    if not problem.outputs:
        return _expect_zero(numerical, nondet_tol)
    for out in problem.outputs:
        v = vs[out]
        for part in problem.parts(out):
            analytical = problem.backward_along(out, part, v, us, nondet_tol, check_dtypes)
            for inp, (slopes, a) in enumerate(zip(numerical, analytical, strict=True)):
                n = slopes[out].part(part).dot(v)
                bound = atol * sum(map(sum, us[inp])) * sum(v)
                if not jac.close(a, n, rtol, bound):
                    slow_n, slow_a = _slow_pair(problem, out, part, inp)
                    text = _mismatch(jac.Scalar(n), jac.Scalar(a), (problem.position(out), inp), part)
                    raise GradcheckError(text + _slow_text(slow_n, slow_a, rtol, atol))


def _slow_pair(problem, out, part, inp):
    return problem.numerical()[inp][out].part(part), problem.backward(out, part, float("inf"), False)[inp]


def _slow_text(numerical, analytical, rtol, atol):
    text = (
        "\nThe numbers above are v^T J u of fast mode. Element by element the Jacobians are:\n\n"
        f"Numerical:\n {numerical.tensor()}\nAnalytical:\n{analytical.tensor()}\n\n"
        f"The max per-element difference (slow mode) is: {numerical.distance(analytical)}.\n"
    )
    if numerical.close_to(analytical, rtol, atol):
        text += "These pass: call gradcheck or gradgradcheck with fast_mode=False.\n"
    return text


def _check_zero_in_zero_out(problem):
    """Backward is linear: zero output gradients give zero input gradients, of the input's kind."""
    outputs = [problem.results[out] for out in problem.outputs]
    zeros = [strata.zeros_like(o) for o in outputs]
    grads = strata.autograd.grad(outputs, problem.active, zeros, retain_graph=True, allow_unused=True)
    for g, x in zip(grads, problem.active, strict=True):
        if g is None:
            continue
        if any(v != 0 for v in jac.flat_list(g)):
            raise GradcheckError("backward not multiplied by grad_output")
        if g.dtype != x.dtype:
            raise GradcheckError("grad is incorrect type")
        if g.device != x.device:
            raise GradcheckError("grad is incorrect device")
        if g.shape != x.shape:
            raise GradcheckError("grad is incorrect size")


def _undefined_grad():
    class UndefinedGrad(strata.autograd.Function):
        """Identity whose backward hands on no gradient at all."""

        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad):
            return None

    return UndefinedGrad.apply


def _check_undefined_grads(problem):
    """Backward must take a missing gradient, of all outputs and of each alone, as zeros."""
    cut = _undefined_grad()
    count = len(problem.outputs)
    for missing in [set(range(count))] + ([{i} for i in range(count)] if count > 1 else []):
        results = jac.differentiable(problem.func(*problem.inputs))
        outputs = [cut(o) if i in missing else o for i, o in enumerate(results)]
        zeros = [strata.zeros_like(o) for o in outputs]
        try:
            grads = strata.autograd.grad(outputs, problem.active, zeros, allow_unused=True)
        except RuntimeError as error:
            raise GradcheckError(
                "Expected backward function to handle undefined output grads; "
                "check_undefined_grad=False skips this check"
            ) from error
        if any(g is not None and any(v != 0 for v in jac.flat_list(g)) for g in grads):
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are undefined or zero; "
                "check_undefined_grad=False skips this check"
            )
