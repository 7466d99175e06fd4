"""Hooks come and go while other threads run backward over the same tensors and nodes; vmap asks for its own thread's draws alone."""

import sys
import threading

import pytest
import strata


@pytest.fixture
def hurried():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def beside(work, count, call):
    """call() while `count` threads repeat work(); what these raised."""
    over, errors = threading.Event(), []

    def repeat():
        while not over.is_set():
            try:
                work()
            except Exception as error:
                errors.append(error)
                return

    threads = [threading.Thread(target=repeat) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        call()
    finally:
        over.set()
        for thread in threads:
            thread.join()
    return errors


@pytest.mark.parametrize("kind", ["leaf", "accumulated", "tensor", "node", "before node"])
def test_hooks_come_and_go(hurried, kind):
    w = strata.ones(4, requires_grad=True)
    y = (w * 3).cos()
    z = y.sum()
    register = {
        "leaf": lambda: w.register_hook(lambda g: None),
        "accumulated": lambda: w.register_post_accumulate_grad_hook(lambda t: None),
        "tensor": lambda: y.register_hook(lambda g: None),
        "node": lambda: y.grad_fn.register_hook(lambda a, b: None),
        "before node": lambda: y.grad_fn.register_prehook(lambda a: None),
    }[kind]

    def come_and_go():
        for _ in range(1500):
            register().remove()

    assert not beside(lambda: z.backward(retain_graph=True), 3, come_and_go)
    w.grad = None
    z.backward()
    assert w.grad.tolist() == (-3 * (strata.ones(4) * 3).sin()).tolist()


def test_vmap_while_others_draw(hurried):
    x, found = strata.arange(12.0).view(4, 3), []

    def map_often():
        for _ in range(100):
            found.append(strata.func.vmap(lambda a: (a * a).sum().sin())(x).tolist())

    assert not beside(lambda: strata.rand(3), 2, map_often)
    assert found == [(x * x).sum(1).sin().tolist()] * 100
    with pytest.raises(RuntimeError, match="random"):
        strata.func.vmap(lambda a: a + strata.rand(3))(x)
    with pytest.raises(RuntimeError, match="random"):
        strata.func.vmap(lambda a: a + strata.rand(3, generator=strata.Generator()))(x)
