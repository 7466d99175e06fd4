"""Selective activation checkpointing: what a policy keeps is not computed again, and gradients are those without it."""

import functools

import pytest
import strata
from strata import nn
from strata.utils._python_dispatch import TorchDispatchMode
from strata.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

aten = strata.ops.aten


class Names(TorchDispatchMode):
    def __init__(self):
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def keeping(policy, **options):
    return functools.partial(create_selective_checkpoint_contexts, policy, **options)


def gradients(f, tensors, context_fn=None):
    """(gradients, operators that backward called)"""
    y = f(*tensors) if context_fn is None else checkpoint(f, *tensors, use_reentrant=False, context_fn=context_fn)
    with Names() as seen:
        found = strata.autograd.grad(y.sum(), tensors)
    return found, seen.names


def tensors():
    strata.manual_seed(0)
    return [strata.randn(4, 4, requires_grad=True) for _ in range(3)]


@pytest.mark.parametrize(
    "f",
    [
        lambda x, w, v: ((x @ w).tanh() @ v).sin(),
        lambda x, w, v: (nn.functional.linear(x, w).relu() @ v).exp(),
        lambda x, w, v: (x @ w).max(dim=0).values * v.cos(),
        lambda x, w, v: (x.exp() @ w).view(16).exp() * v.exp().view(16),
    ],
)
@pytest.mark.parametrize("ops", [[aten.mm.default], [aten.addmm.default, aten.mm.default, aten.exp.default], [aten.max.dim], []])
def test_gradients(f, ops):
    plain, _ = gradients(f, tensors())
    found, _ = gradients(f, tensors(), keeping(ops))
    assert all(strata.equal(a, b) for a, b in zip(plain, found, strict=True))


def test_what_is_kept_is_not_computed_again():
    def f(x, w, v):
        return (x @ w).sin() @ v

    calls = {}
    for ops in ([], [aten.mm.default]):
        _, names = gradients(f, tensors(), keeping(ops))
        calls[bool(ops)] = names.count("aten.matmul.default") + names.count("aten.mm.default"), names.count("aten.sin.default")
    assert calls[False][0] == calls[True][0] + 2
    assert calls[False][1] == calls[True][1] == 1


def test_policies_are_functions_of_the_call():
    asked = []

    def policy(context, op, *args, **kwargs):
        assert not context.is_recompute
        asked.append((str(op), context.op_output.shape))
        return CheckpointPolicy.MUST_SAVE if op is aten.sin.default else CheckpointPolicy.PREFER_RECOMPUTE

    found, names = gradients(lambda x, w, v: x.sin().exp() * w * v, tensors(), keeping(policy))
    plain, _ = gradients(lambda x, w, v: x.sin().exp() * w * v, tensors())
    assert all(strata.equal(a, b) for a, b in zip(plain, found, strict=True))
    assert asked == [(f"aten.{name}", (4, 4)) for name in ("sin.default", "exp.default", "mul.Tensor", "mul.Tensor")]
    assert "aten.sin.default" not in names and "aten.exp.default" in names


@pytest.mark.parametrize("ops", [[aten.dropout.default], [aten.rand_like.default], []])
def test_random_numbers_go_on_where_the_first_run_was(ops):
    def f(x, w, v):
        return nn.functional.dropout(x, 0.5) * strata.rand_like(w) * w * nn.functional.dropout(v, 0.5).exp()

    def run(context_fn=None):
        inputs = tensors()
        strata.manual_seed(3)
        return gradients(f, inputs, context_fn)[0]

    assert all(strata.equal(a, b) for a, b in zip(run(), run(keeping(ops)), strict=True))


def test_results_that_were_written_are_refused():
    def f(x, w, v):
        y = x @ w
        y.mul_(2.0)
        return y.sin() * v

    with pytest.raises(RuntimeError, match="has been mutated: a result of aten.matmul.default"):
        gradients(f, tensors(), keeping([aten.mm.default]))

    def writes(x, w, v):
        return x.clone().mul_(w) * v

    with pytest.raises(RuntimeError, match="writes its arguments"):
        gradients(writes, tensors(), keeping(lambda *_, **__: CheckpointPolicy.MUST_SAVE))


def test_a_region_is_gone_through_once():
    x, w, v = tensors()
    y = checkpoint(lambda x: ((x @ w).sin() @ v).sum(), x, use_reentrant=False, context_fn=keeping([aten.mm.default]))
    y.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="only allowed to backward once"):
        y.backward()


def test_a_backward_inside_of_the_region_says_so():
    def f(x, w, v):
        y = (x @ w).sin()
        (g,) = strata.autograd.grad(y.sum(), x, create_graph=True)
        return (g * y).exp()

    with pytest.raises(RuntimeError, match="only allowed to backward once"):
        gradients(f, tensors(), keeping([aten.mm.default]))


def test_wrong_policies():
    with pytest.raises(TypeError, match="either a function or a list"):
        create_selective_checkpoint_contexts(3)
    with pytest.raises(ValueError, match="to be an OpOverload"):
        create_selective_checkpoint_contexts([aten.mm])
    with pytest.raises(RuntimeError, match="expected the policy to give"):
        gradients(lambda x, w, v: x * w * v, tensors(), keeping(lambda *_: "save"))


@pytest.mark.parametrize(
    ("answer", "kept"),
    [(True, True), (False, False), (CheckpointPolicy.PREFER_SAVE, True), (CheckpointPolicy.PREFER_CPU_OFFLOAD, False), (CheckpointPolicy.MUST_CPU_OFFLOAD, False)],
)
def test_answers_of_policies(answer, kept):
    found, names = gradients(lambda x, w, v: x.sin().exp() * w * v, tensors(), keeping(lambda *_: answer))
    plain, _ = gradients(lambda x, w, v: x.sin().exp() * w * v, tensors())
    assert all(strata.equal(a, b) for a, b in zip(plain, found, strict=True)) and ("aten.sin.default" in names) is not kept


def test_policies_may_count():
    calls = []

    def every_second(context, op, *args, **kwargs):
        if op is not aten.matmul.default:
            return False
        calls.append(op)
        return len(calls) % 2 == 1

    def f(x, w, v):
        return ((x @ w).sin() @ v).cos() @ w

    found, names = gradients(f, tensors(), keeping(every_second))
    plain, _ = gradients(f, tensors())
    assert all(strata.equal(a, b) for a, b in zip(plain, found, strict=True)) and len(calls) == 3
    assert names.count("aten.matmul.default") == 1


def test_regions_of_which_nothing_is_kept_may_be_gone_through_again():
    x, w, v = tensors()
    y = checkpoint(lambda x: ((x @ w).sin() @ v).sum(), x, use_reentrant=False, context_fn=keeping([]))
    y.backward(retain_graph=True)
    first = x.grad.clone()
    y.backward()
    assert strata.equal(x.grad, 2 * first)


def test_a_region_inside_of_one():
    def f(call):
        return lambda x, w, v: call(lambda u: (u @ w).sin(), x.cos()) @ v

    found, _ = gradients(f(lambda g, u: checkpoint(g, u, use_reentrant=False)), tensors(), keeping([aten.mm.default]))
    plain, _ = gradients(f(lambda g, u: g(u)), tensors())
    assert all(strata.equal(a, b) for a, b in zip(plain, found, strict=True))


def test_a_second_run_that_calls_more_says_so():
    runs = []

    def f(x, w, v):
        runs.append(0)
        return (x.sin().sin() if len(runs) == 2 else x.sin()) * w * v.exp()

    with pytest.raises(RuntimeError, match="calls aten.sin.default more often"):
        gradients(f, tensors(), keeping([aten.mul.Tensor]))
