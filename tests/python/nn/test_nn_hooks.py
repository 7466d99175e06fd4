"""Hooks of modules: what runs, in which order, and what a returned value replaces."""

import warnings

import pytest
import strata
from strata import nn


class Twice(nn.Module):
    def forward(self, x, bonus=0):
        return x * 2 + bonus


def ones():
    return strata.ones(2, requires_grad=True)


def test_forward_hooks_replace():
    module, log = Twice(), []
    module.register_forward_pre_hook(lambda m, args: log.append("pre") or (args[0] + 1,))
    module.register_forward_hook(lambda m, args, out: log.append(float(args[0][0])) or out + 10)
    module.register_forward_pre_hook(lambda m, args: log.append("first"), prepend=True)
    assert module(strata.ones(2)).tolist() == [14.0, 14.0]
    assert log == ["first", "pre", 2.0]


def test_keyword_hooks():
    module, seen = Twice(), []
    module.register_forward_pre_hook(lambda m, a, k: (a, {"bonus": k["bonus"] + 1}), with_kwargs=True)
    module.register_forward_hook(lambda m, a, k, out: seen.append(k), with_kwargs=True)
    assert module(strata.ones(1), bonus=5).tolist() == [8.0]
    assert seen == [{"bonus": 6}]
    module.register_forward_pre_hook(lambda m, a, k: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="forward pre-hook must return None or a tuple"):
        module(strata.ones(1), bonus=0)


def test_handles_remove():
    module = Twice()
    handle = module.register_forward_hook(lambda m, a, out: out * 0)
    handle.remove()
    handle.remove()
    assert module(strata.ones(1)).tolist() == [2.0]
    with module.register_forward_hook(lambda m, a, out: out * 0):
        assert module(strata.ones(1)).tolist() == [0.0]
    assert module(strata.ones(1)).tolist() == [2.0] and not module._forward_hooks


def test_always_called_after_an_error():
    class Broken(nn.Module):
        def forward(self, x):
            raise ValueError("no")

    module, log = Broken(), []
    module.register_forward_hook(lambda m, a, out: log.append("skipped"))
    module.register_forward_hook(lambda m, a, out: log.append(out), always_call=True)
    with pytest.raises(ValueError, match="no"):
        module(1)
    assert log == [None]

    def fail(m, a, out):
        raise KeyError("late")

    module.register_forward_hook(fail, always_call=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(ValueError, match="no"):
            module(1)
    assert "silenced as another error was raised in forward" in str(caught[0].message)


def test_full_backward_hooks():
    module, log = Twice(), []
    module.register_full_backward_pre_hook(lambda m, out: log.append(("pre", out[0].tolist())) or (out[0] * 3,))
    module.register_full_backward_hook(lambda m, i, o: log.append((i[0].tolist(), o[0].tolist())) or (i[0] + 1,))
    x = ones()
    module(x).sum().backward()
    assert log == [("pre", [1.0, 1.0]), ([6.0, 6.0], [3.0, 3.0])]
    assert x.grad.tolist() == [7.0, 7.0]


def test_backward_hook_sees_none_where_no_gradient():
    class Two(nn.Module):
        def forward(self, x, word, y):
            return x * y, word

    module, seen = Two(), []
    module.register_full_backward_hook(lambda m, i, o: seen.append((len(i), [p is None for p in i[:2]], len(o))))
    x = ones()
    out, word = module(x, "w", strata.full((2,), 3.0))
    out.sum().backward()
    assert word == "w" and seen == [(3, [False, True], 2)]
    assert x.grad.tolist() == [3.0, 3.0]


def test_backward_hook_without_input_gradients():
    module, seen = nn.Linear(2, 1), []
    module.register_full_backward_hook(lambda m, i, o: seen.append(i))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module(strata.ones(1, 2)).sum().backward()
    assert seen == [(None,)]
    assert any("no inputs require gradients" in str(w.message).replace("\n", " ") for w in caught)


def test_wrong_number_of_gradients():
    module = Twice()
    module.register_full_backward_hook(lambda m, i, o: (i[0], i[0]))
    with pytest.raises(RuntimeError, match="invalid number of grad_input, got 2, but expected 1"):
        module(ones()).sum().backward()


def test_kinds_of_backward_hooks_exclude_each_other():
    module = Twice()
    module.register_full_backward_hook(lambda *a: None)
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full backward hooks"):
        module.register_backward_hook(lambda *a: None)


def test_regular_backward_hook():
    class Square(nn.Module):
        def forward(self, x):
            return x.exp()

    module, seen = Square(), []
    module.register_backward_hook(lambda m, i, o: seen.append(o[0].tolist()))
    module(ones()).sum().backward()
    assert seen == [[1.0, 1.0]]


def test_global_hooks():
    log = []
    hooks = nn.modules.module
    handles = [
        hooks.register_module_forward_pre_hook(lambda m, a: log.append("pre")),
        hooks.register_module_forward_hook(lambda m, a, out: log.append("post")),
        hooks.register_module_full_backward_hook(lambda m, i, o: log.append("backward")),
        hooks.register_module_parameter_registration_hook(lambda m, n, p: log.append(n)),
        hooks.register_module_buffer_registration_hook(lambda m, n, p: log.append(n)),
        hooks.register_module_module_registration_hook(lambda m, n, p: log.append(n)),
    ]
    try:
        Twice()(ones()).sum().backward()
        module = nn.Module()
        module.p = nn.Parameter(strata.ones(1))
        module.child = Twice()
        module.register_buffer("b", strata.ones(1))
    finally:
        for handle in handles:
            handle.remove()
    assert log == ["pre", "post", "backward", "p", "child", "b"]
    assert Twice()(strata.ones(1)).tolist() == [2.0] and len(log) == 6
