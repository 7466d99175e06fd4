"""In-place operators on what autograd records, for every one of the table: a leaf or a view of one is refused before it is
written; elsewhere the gradient is the slope of the function that was written, or the derivative is said to be missing."""

from __future__ import annotations

import zlib

import numpy as np
from table import ENTRIES, calls, operator, pytest, sampled, strata

ERRORS = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError)
# Their results are random or undefined, or they change the shape of what they are given.
NOT_A_FUNCTION = {"resize_", "resize_as_", "set_", "_become", "as_strided_", "transpose_", "swapaxes_", "swapdims_", "t_", "squeeze_",
                  "unsqueeze_"}
# By PyTorch's choice a sample has no gradient by what its distribution was shaped from, or one of its own.
DRAWS = {"bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "normal_", "random_", "uniform_"}


def inplace_forms():
    for e in ENTRIES:
        for kind, s in e.operators():
            first = s.args[0] if s.args else None
            if kind != "out" and first is not None and first.written and first.type == "Tensor":
                yield e, s


FORMS = list(inplace_forms())


def working_calls(entry, schema):
    """Samples in float64 that the in-place form takes, with the first operand apart."""
    op = operator(schema)
    for args, kwargs in calls(entry, "float64"):
        if not args or not isinstance(args[0], strata.Tensor) or args[0].dtype != strata.float64:
            continue
        if not args[0].is_contiguous() or args[0].numel() == 0 or not args[0].isfinite().all():
            continue
        if any(a is args[0] for a in args[1:]):
            continue
        copy = args[0].clone()
        try:
            strata.manual_seed(0)
            op(copy, *args[1:], **kwargs)
        except ERRORS:
            continue
        if copy._version == 0:  # nothing was to be done, as dropout_ outside of training
            continue
        yield op, args[0], args[1:], kwargs


@pytest.mark.parametrize(("entry", "schema"), sampled(FORMS, 400), ids=lambda v: getattr(v, "full", "entry"))
def test_leaves_are_refused(entry, schema):
    for op, x, rest, kwargs in working_calls(entry, schema):
        for view in (False, True):
            leaf = x.clone().requires_grad_()
            target = leaf.view(leaf.shape) if view else leaf
            with pytest.raises(RuntimeError, match="leaf Variable that requires grad|cannot resize variables"):
                op(target, *rest, **kwargs)
            assert leaf.detach().tolist() == x.tolist() or bool(x.isnan().any()), "written before it was refused"
            assert leaf.shape == x.shape
        break


def slope(f, x, direction) -> float:
    h = 1e-6
    with strata.no_grad():
        return (f(x + h * direction).item() - f(x - h * direction).item()) / (2 * h)


def check_gradient(f, x, name: str) -> None:
    """f(x), a number, against its slope along two directions."""
    leaf = x.clone().requires_grad_()
    value = f(leaf)
    try:
        (grad,) = strata.autograd.grad(value, leaf)
    except RuntimeError as error:
        assert "is not implemented" in str(error), error
        return
    random = np.random.default_rng(zlib.crc32(name.encode()))
    for _ in range(2):
        d = strata.tensor(random.uniform(-1, 1, tuple(x.shape)))
        expected, got = slope(f, x, d), (grad * d).sum().item()
        assert np.isclose(got, expected, rtol=1e-4, atol=1e-5), f"{name}: slope {got}, expected {expected}"


@pytest.mark.parametrize(("entry", "schema"), sampled(FORMS, 400), ids=lambda v: getattr(v, "full", "entry"))
def test_gradient_of_what_was_written(entry, schema):
    if schema.name in NOT_A_FUNCTION | DRAWS:
        return
    for op, x, rest, kwargs in working_calls(entry, schema):
        weight = strata.tensor(np.random.default_rng(5).uniform(0.5, 1, tuple(x.shape)))

        def written(v, whole, op=op, rest=rest, kwargs=kwargs, weight=weight):
            strata.manual_seed(3)
            y = v * 1
            op(y if whole else y.view(y.shape), *rest, **kwargs)
            return (y * weight).nan_to_num(0, 0, 0).sum()

        for whole in (True, False):
            check_gradient(lambda v, whole=whole: written(v, whole), x, schema.full)
        break


def test_zeros_of_comparisons_and_logic():
    x = strata.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for name, args in [("eq_", (2.0,)), ("ne_", (2.0,)), ("lt_", (2.0,)), ("le_", (x.detach(),)), ("gt_", (2.0,)),
                       ("ge_", (x.detach(),)), ("logical_and_", (x.detach(),)), ("logical_or_", (x.detach(),)),
                       ("logical_xor_", (x.detach(),)), ("logical_not_", ())]:
        y = x * 2
        getattr(y, name)(*args)
        (grad,) = strata.autograd.grad(y.sum(), x)
        assert grad.tolist() == [0, 0, 0], name
        other = strata.zeros(3)
        if args and name != "logical_not_":
            getattr(other, name)(x)
            assert strata.autograd.grad(other.sum(), x)[0].tolist() == [0, 0, 0], name
    y = x * 2
    y.eq_(1.0)
    assert y.grad_fn.name() == "EqBackward0"


def test_missing_derivatives_are_said():
    x = strata.tensor([1.0, 2.0, 3.0], requires_grad=True)
    two = strata.full((3,), 2.0)
    for name, f in [("floor_divide", lambda: strata.floor_divide(x, 2)), ("floor_divide", lambda: strata.floor_divide(two, x)),
                    ("floor_divide_", lambda: (x * 2).floor_divide_(2)), ("heaviside", lambda: strata.heaviside(x, two)),
                    ("heaviside_", lambda: (x * 2).heaviside_(two)), ("floor_divide", lambda: x // 2),
                    ("bincount", lambda: strata.bincount(strata.tensor([0, 1, 1]), weights=x))]:
        y = f()
        assert y.requires_grad and y.grad_fn.name() == "NotImplemented"
        with pytest.raises(RuntimeError, match=f"derivative for aten::{name} is not implemented"):
            (y.sum() + x.sum()).backward()


def test_operands_that_a_derivative_leaves_out_are_refused():
    x = strata.tensor([0.5, 0.25, 0.75], requires_grad=True)
    p = x.detach()
    f = strata.nn.functional
    for argument, call in [
        ("weight", lambda: f.binary_cross_entropy(p, p, weight=x)),
        ("weight", lambda: f.binary_cross_entropy_with_logits(p, p, weight=x)),
        ("pos_weight", lambda: f.binary_cross_entropy_with_logits(p, p, pos_weight=x)),
        ("weight", lambda: f.nll_loss(p.reshape(1, 3), strata.tensor([0]), weight=x)),
        ("weight", lambda: f.cross_entropy(p.reshape(1, 3), strata.tensor([0]), weight=x)),
        ("atol", lambda: strata.linalg.pinv(strata.eye(2), atol=x.sum())),
        ("running_mean", lambda: f.batch_norm(p.reshape(1, 3), x, p.clone())),
    ]:
        with pytest.raises(RuntimeError, match=f"not differentiable with respect to argument '{argument}'. This input cannot"):
            call()


def test_a_view_made_without_recording_is_not_written_recorded():
    x = strata.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    with strata.no_grad():
        v = y[:2]
        v.mul_(3)
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and is being modified inplace with grad mode"):
        v.mul_(3)
    assert y.tolist() == [6, 12, 6]
    free = y.detach()
    free.mul_(2)
    base = strata.zeros(3)
    part = base[:2]
    base.add_(x)
    part.mul_(5)
    assert strata.autograd.grad(base.sum(), x)[0].tolist() == [5, 5, 1]


def multi_views():
    """Calls of operators that give several views of their first operand."""
    for e in ENTRIES:
        if e.schema.returns[:1] and e.schema.returns[0].type == "Tensor[]" and e.schema.args[0].type == "Tensor":
            for args, kwargs in calls(e, "float64"):
                if not isinstance(args[0], strata.Tensor) or args[0].dtype != strata.float64 or args[0].numel() == 0:
                    continue
                try:
                    outs = operator(e.schema)(*args, **kwargs)
                except ERRORS:
                    continue
                if len(outs) > 1 and all(o._is_view() for o in outs):
                    yield e.schema.full, operator(e.schema), args, kwargs
                    break


def test_writes_through_several_views_of_one_call():
    names = set()
    for name, op, args, kwargs in multi_views():
        names.add(name.partition(".")[0])
        x, rest = args[0].clone(), args[1:]

        def f(v, steps, op=op, rest=rest, kwargs=kwargs):
            y = v * v
            outs = op(y, *rest, **kwargs)
            last = len(outs) - 1
            for step in steps:
                if step == "first":
                    outs[0].mul_(3)
                elif step == "last":
                    outs[last].sin_()
                elif step == "base":
                    y.mul_(1.5)
                elif step == "cross":
                    outs[0].add_(outs[last].sum())
            return (y * y).sum() + sum((k + 2) * (o * o).sum() for k, o in enumerate(outs))

        for steps in (["first"], ["last"], ["first", "last"], ["first", "base", "last"], ["cross"], ["base", "cross", "first"]):
            check_gradient(lambda v, steps=steps: f(v, steps), x, f"{name} {steps}")
    assert names >= {"aten::split", "aten::chunk", "aten::unbind", "aten::tensor_split", "aten::hsplit"}, names


OUTS = [e for e in ENTRIES if e.out and e.schema.returns[0].type == "Tensor" and len(e.schema.returns) == 1]


@pytest.mark.parametrize("entry", sampled(OUTS, 300), ids=lambda e: e.schema.full)
def test_out_refuses_what_requires_grad(entry):
    op, name = operator(entry.out_schema()), entry.out_schema().args[-1].name
    for args, kwargs in calls(entry, "float64"):
        try:
            result = operator(entry.schema)(*args, **kwargs)
            target = (result if result.is_floating_point() else result.to(strata.float64)).clone()
            op(*args, **kwargs, **{name: target.clone()})
        except ERRORS:
            continue
        before = target.clone()
        for out in (target.requires_grad_(), (target * 1)):
            with pytest.raises(RuntimeError, match="requires? grad"):
                op(*args, **kwargs, **{name: out})
            assert strata.equal(out.detach().nan_to_num(), before.nan_to_num()), "written before it was refused"
        break


def test_a_leaf_that_took_another_shape():
    p = strata.arange(6.0).reshape(2, 3).clone().requires_grad_()
    row = p[0]
    with strata.no_grad():
        p.t_()
    row.sum().backward()
    assert p.grad.tolist() == [[1, 0], [1, 0], [1, 0]]
