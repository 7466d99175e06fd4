"""Hooks and callbacks that change what is being gone through, gradients that are read, replaced and freed while others are made."""

from __future__ import annotations

import subprocess
import sys
import threading

import strata


def test_a_graph_that_hangs_on_its_own_gradient_is_freed():
    # The old gradient's graph holds the last reference to what accumulates into w.
    code = """
import strata
for drop in (lambda w: setattr(w, "grad", None), lambda w: strata.optim.SGD([w], 0.1).zero_grad(),
             lambda w: setattr(w, "grad", w.grad.detach()), lambda w: w.__delattr__("grad")):
    w = strata.ones(3, requires_grad=True)
    (w * w * w).sum().backward(create_graph=True)
    drop(w)
print("done")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "done\n", done.stderr


def test_a_gradient_may_be_read_while_it_is_added_to():
    seen = []

    class Reads(strata.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(w.grad is None)
            return func(*args, **(kwargs or {}))

    w = strata.ones(4, requires_grad=True)
    (w * 2).sum().backward()
    loss = (w * 3).sum()
    with Reads():
        loss.backward()
    assert seen and w.grad.tolist() == [5.0] * 4


def test_threads_add_into_one_leaf():
    w = strata.zeros(2000, requires_grad=True)

    def work():
        for _ in range(50):
            (w * 1.0).sum().backward()

    stop = threading.Event()

    def read():
        while not stop.is_set():
            if w.grad is not None:
                w.grad.sum()

    reader = threading.Thread(target=read)
    reader.start()
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    stop.set()
    reader.join()
    assert w.grad.equal(strata.full((2000,), 200.0))


def test_hooks_that_remove_themselves_and_add_others():
    seen = []
    x = strata.ones(2, requires_grad=True)
    y = x * 2

    def once(number, add=False):
        def hook(_):
            seen.append(number)
            handles[number].remove()
            if add:
                y.register_hook(lambda _: seen.append(9))

        return hook

    handles = {1: y.register_hook(once(1)), 2: y.register_hook(once(2, add=True)), 3: y.register_hook(once(3))}
    y.sum().backward(retain_graph=True)
    assert seen == [1, 2, 3]
    y.sum().backward()
    assert seen == [1, 2, 3, 9]


def test_hooks_behind_a_sum_that_remove_themselves():
    seen = []
    w = strata.ones(2, requires_grad=True)
    handles = {}

    def once(number):
        def hook(_):
            seen.append(number)
            handles[number].remove()

        return hook

    for number in (1, 2, 3):
        handles[number] = w.register_post_accumulate_grad_hook(once(number))
    (w * 2).sum().backward()
    (w * 2).sum().backward()
    assert seen == [1, 2, 3]


def test_callbacks_may_queue_others():
    log = []

    class F(strata.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            queue = strata.autograd.Variable._execution_engine.queue_callback

            def callback(n):
                log.append(n)
                if n < 40:
                    queue(lambda: callback(n + 1))

            queue(lambda: callback(0))
            return g

    F.apply(strata.ones(1, requires_grad=True)).sum().backward()
    assert log == list(range(41))


def test_a_kept_gradient_is_added_to():
    x = strata.ones(3, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert y.grad.tolist() == [2.0] * 3
    z = x * 3
    z.backward(strata.ones(3), inputs=[z], retain_graph=True)
    assert z.retains_grad and z.grad.tolist() == [1.0] * 3 and x.grad.tolist() == [4.0] * 3
    z.backward(strata.ones(3), inputs=[z, x])
    assert z.grad.tolist() == [2.0] * 3 and x.grad.tolist() == [7.0] * 3


def test_what_is_captured_of_a_tensor_with_hooks():
    def case(ask):
        x = strata.ones(1, requires_grad=True)
        t = x * 2
        t.register_hook(lambda g: g * 10)
        return [g.item() for g in strata.autograd.grad((t * 3).sum(), ask(x, t))]

    assert case(lambda x, t: [t]) == [30.0] and case(lambda x, t: [t, x]) == [3.0, 60.0] and case(lambda x, t: [x]) == [60.0]


def test_a_gradient_lies_as_its_leaf_does():
    for make in (lambda: strata.ones(4, 3).t(), lambda: strata.ones(2, 3, 4, 4).to(memory_format=strata.channels_last), lambda: strata.ones(2, 3)):
        w = make().requires_grad_()
        (w.contiguous() * strata.arange(float(w.numel())).view(w.shape)).sum().backward()
        assert w.grad.stride() == w.stride() and w.grad.equal(strata.arange(float(w.numel())).view(w.shape))
    step = strata.ones(4, 6)[:, ::2].requires_grad_()
    (step * 2).sum().backward()
    assert step.grad.is_contiguous()
