"""A training step as one compiled graph, and the proof that it is eager's, bit for bit."""

from __future__ import annotations

import strata as torch


class State:
    """All that a training step changes, as it is now: parameters, buffers, gradients, the optimiser's state, the generator."""

    def __init__(self, model, optimizer) -> None:
        self.model, self.optimizer = model, optimizer
        self.values = [t.detach().clone() for t in self.tensors()]
        self.gradients = [None if p.grad is None else p.grad.clone() for p in model.parameters()]
        self.generator = torch.default_generator.get_state()

    def tensors(self) -> list:
        kept = [v for state in self.optimizer.state.values() for v in state.values() if isinstance(v, torch.Tensor)]
        return [*self.model.parameters(), *self.model.buffers(), *kept]

    def restore(self) -> None:
        with torch.no_grad():
            for tensor, value in zip(self.tensors(), self.values, strict=True):
                tensor.copy_(value)
        for parameter, gradient in zip(self.model.parameters(), self.gradients, strict=True):
            parameter.grad = gradient
        torch.default_generator.set_state(self.generator)


def compiled_step(step, model, optimizer, batch, target):
    """`step(batch, target)` as a compiled graph. The model is as it was before. RuntimeError where a step of the graph gives
    another loss, other weights or another state than a step of eager."""
    before = State(model, optimizer)
    graph = torch.graph(step, batch, target)
    compiled = graph.compile()
    outcomes = []
    for form in (step, compiled):
        before.restore()
        loss = form(batch, target).detach().clone()
        outcomes.append([loss, *(t.detach().clone() for t in before.tensors()), torch.default_generator.get_state()])
    before.restore()
    if not all(torch.equal(a, b) for a, b in zip(*outcomes, strict=True)):
        raise RuntimeError("the compiled step differs from the eager one")
    return graph, compiled
