"""Levels 4 and 5 beside single operators: training, errors, threads, what the device hides."""

from __future__ import annotations

import threading

import strata
from strata.testing._device.calls import shown


class Net(strata.nn.Module):
    """Linear, normalised, with dropout: a network with reductions, products, random numbers and an optimiser's work."""

    def __init__(self) -> None:
        super().__init__()
        nn = strata.nn
        self.body = nn.Sequential(nn.Linear(12, 16), nn.LayerNorm(16), nn.GELU(), nn.Dropout(0.1), nn.Linear(16, 4))

    def forward(self, x: strata.Tensor) -> strata.Tensor:
        return strata.nn.functional.log_softmax(self.body(x), dim=-1)


def trained(device: object, steps: int, optimizer: object, compiled: bool = False) -> tuple[list, list]:
    """Losses and weights."""
    strata.manual_seed(11)
    net = Net()
    x, y = strata.randn(32, 12).to(device), strata.randint(4, (32,)).to(device)
    net.to(device)
    step = optimizer(net.parameters())

    def loss_of(x: strata.Tensor, y: strata.Tensor) -> strata.Tensor:
        return strata.nn.functional.nll_loss(net(x), y)

    run = strata.graph(loss_of, x, y).compile() if compiled else loss_of
    strata.manual_seed(12)
    losses = []
    for _ in range(steps):
        loss = run(x, y)
        step.zero_grad()
        loss.backward()
        strata.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        step.step()
        losses.append(loss.item())
    return losses, [p.detach().cpu() for p in net.parameters()]


def _trains(device: strata.device, compiled: bool) -> None:
    def sgd(p: object) -> object:
        return strata.optim.SGD(p, lr=0.1, momentum=0.9)

    def adamw(p: object) -> object:
        return strata.optim.AdamW(p, lr=0.01)

    with strata.backends.library(False):
        for optimizer in (sgd, adamw):
            want, weights = trained("cpu", 20, optimizer)
            got, others = trained(device, 20, optimizer, compiled)
            assert got == want, f"losses {got[:3]}..., expected {want[:3]}..."
            assert all(shown(a) == shown(b) for a, b in zip(weights, others)), "weights have other bits after 20 steps"


def training(device: strata.device) -> None:
    """20 steps of SGD and AdamW, eager."""
    _trains(device, False)


def compiled_training(device: strata.device) -> None:
    """The same with forward and backward as a compiled graph."""
    _trains(device, True)


def an_index_outside(device: strata.device) -> None:
    """Raises IndexError at the next wait, by the operator's name; the device remains usable."""
    table, index = strata.ones(3, 2, device=device), strata.tensor([7], device=device)
    strata.accelerator.synchronize(device)
    try:
        table.index_select(0, index)
        strata.accelerator.synchronize(device)
    except IndexError as error:
        assert "index_select" in str(error), f"the error says: {error}"
    else:
        raise AssertionError("nothing was raised")
    assert table.sum().item() == 6


def a_division_by_zero(device: strata.device) -> None:
    """Raises ZeroDivisionError's words; the device remains usable."""
    one = strata.tensor([1], device=device)
    try:
        one // strata.tensor([0], device=device)
        strata.accelerator.synchronize(device)
    except RuntimeError as error:
        assert "ZeroDivisionError" in str(error), f"the error says: {error}"
    else:
        raise AssertionError("nothing was raised")
    assert one.tolist() == [1]


def threads_share_it(device: strata.device) -> None:
    """Eight threads compute at the same time, one of them on a stream of numbers of its own."""
    want = [strata.arange(1000).mul(k).cumsum(0).sum().item() for k in range(8)]
    got: list = [None] * 8

    def work(k: int) -> None:
        got[k] = strata.arange(1000, device=device).mul(k).cumsum(0).sum().item()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert got == want


def memory_after_work(device: strata.device) -> None:
    """Training leaves no memory behind."""
    import gc

    gc.collect()
    before = strata.accelerator.memory_allocated(device)
    _trains(device, False)
    gc.collect()
    assert strata.accelerator.memory_allocated(device) == before


def nothing_is_hidden(device: strata.device) -> None:
    """The device offers every operator for which kernels are printed."""
    hidden = [row.op for row in strata.ops.coverage(device.type).rows() if row.runs == "hidden"]
    assert not hidden, f"the plugin does not offer {' '.join(hidden)}"


TRAINING = [training, compiled_training]
CHECKS = [an_index_outside, a_division_by_zero, threads_share_it, memory_after_work, nothing_is_hidden]
