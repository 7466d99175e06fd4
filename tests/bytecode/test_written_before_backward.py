"""An argument without a gradient that is written between a compiled forward and its backward: what eager's backward reads, the
compiled one reads, and where that is refused, so it is here."""

from __future__ import annotations

import pytest
import strata

F = strata.nn.functional
WRITES = {
    "in place": lambda q: q.add_(1),
    "data": lambda q: q.data.add_(1),
    "numpy": lambda q: q.numpy().__iadd__(1),
}
FUNCTIONS = {
    "itself": lambda w, q: (w * q).sum(),
    "a view": lambda w, q: (w * q[:3].view(3)).sum(),
    "contiguous": lambda w, q: (w * q.contiguous()).sum(),
    "clone": lambda w, q: (w * q.clone()).sum(),
    "clone in a product": lambda w, q: w @ q.clone().detach(),
    "product": lambda w, q: (w * (q * 2)).sum(),
    "exp": lambda w, q: (w * q.exp()).sum(),
    "dtype": lambda w, q: (w * q.double()).sum(),
    "where": lambda w, q: strata.where(q > 1, w, w * 3).sum(),
    "both": lambda w, q: strata.relu(w * q + q * 2).sum(),
    "two uses": lambda w, q: (w * q.sin() * q.cos()).sum(),
    "learned": lambda w, q: ((w * 2).exp() * (q + 1)).sum(),
    "loss": lambda w, q: F.mse_loss(w * 3, q * 2),
    "expanded": lambda w, q: (w * q[:1].expand(3)).sum(),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_backward_reads_what_eagers_does(name, write):
    function, results = FUNCTIONS[name], []
    for f in (function, strata.compile(function)):
        w, q = strata.tensor([0.5, 1.0, 2.0], requires_grad=True), strata.tensor([2.0, 1.0, 3.0])
        loss = f(w, q)
        WRITES[write](q)
        try:
            loss.backward()
            results.append((loss.item(), w.grad.tolist()))
        except RuntimeError as error:
            results.append((loss.item(), "modified by an inplace operation" in str(error)))
    assert results[0] == results[1]


def test_a_queue_that_each_step_fills():
    """As in momentum contrast (He et al. 2020): negatives from a buffer that the step itself writes."""

    class Contrast(strata.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = strata.nn.Linear(4, 3)
            self.register_buffer("queue", strata.linspace(-1, 1, 24).view(3, 8))
            self.register_buffer("at", strata.zeros(1, dtype=strata.int64))

        def forward(self, x):
            q = F.normalize(self.encoder(x), dim=1)
            k = q.detach() * 0.5
            logits = strata.cat([(q * k).sum(1, keepdim=True), q @ self.queue.clone().detach()], 1)
            at = int(self.at)
            self.queue[:, at : at + 2] = k.T
            self.at[0] = (at + 2) % 8
            return F.cross_entropy(logits, strata.zeros(2, dtype=strata.int64))

    results = []
    for compiled in (False, True):
        strata.manual_seed(0)
        model = Contrast()
        step = strata.compile(model) if compiled else model
        optimizer, losses = strata.optim.SGD(model.parameters(), 0.1), []
        for i in range(6):
            optimizer.zero_grad()
            loss = step(strata.linspace(i, i + 1, 8).view(2, 4))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        results.append((losses, model.queue.tolist(), model.encoder.weight.tolist()))
    assert results[0] == results[1]
