"""A small network and its training, for devices beside the CPU."""

from __future__ import annotations

import strata


class Net(strata.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = strata.nn.Sequential(
            strata.nn.Linear(12, 16), strata.nn.LayerNorm(16), strata.nn.GELU(), strata.nn.Dropout(0.1), strata.nn.Linear(16, 4)
        )

    def forward(self, x):
        return strata.nn.functional.log_softmax(self.body(x), dim=-1)


def trained(device, steps: int, optimizer):
    strata.manual_seed(11)
    net = Net()
    x, y = strata.randn(32, 12).to(device), strata.randint(4, (32,)).to(device)
    net.to(device)
    strata.manual_seed(12)
    step = optimizer(net.parameters())
    losses = []
    for _ in range(steps):
        loss = strata.nn.functional.nll_loss(net(x), y)
        step.zero_grad()
        loss.backward()
        strata.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        step.step()
        losses.append(loss.item())
    return losses, [p.detach().cpu() for p in net.parameters()]
