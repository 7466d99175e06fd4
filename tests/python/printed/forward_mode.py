"""Dual tensors, as PyTorch's tutorial of forward mode has them."""

import strata as torch
import strata.autograd.forward_ad as fwAD

primal = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
tangent = torch.tensor([[0.5, -1.0], [0.0, 2.0]])


def fn(x, y):
    return x**2 + y**2


with fwAD.dual_level():
    dual_input = fwAD.make_dual(primal, tangent)
    print(fwAD.unpack_dual(dual_input).tangent is tangent)
    plain = torch.ones(2, 2)
    output = fn(dual_input, plain)
    print(fwAD.unpack_dual(output).tangent, fwAD.unpack_dual(plain).tangent, fwAD.unpack_dual(output).primal)
    print(fwAD.unpack_dual((dual_input.sin() @ dual_input).sum()).tangent)
print(fwAD.unpack_dual(output).tangent)

model = torch.nn.Linear(2, 1)
with torch.no_grad():
    model.weight.copy_(torch.tensor([[0.5, -0.25]]))
    model.bias.fill_(0.1)
x = torch.tensor([[1.0, 2.0]])
params = dict(model.named_parameters())
tangents = {name: torch.ones_like(p) for name, p in params.items()}
with fwAD.dual_level():
    for name, p in params.items():
        delattr(model, name)
        setattr(model, name, fwAD.make_dual(p, tangents[name]))
    out = model(x)
    print(fwAD.unpack_dual(out).tangent.detach())

with fwAD.dual_level():
    for wrong in (lambda: fwAD.make_dual(primal, torch.ones(3)), lambda: fwAD.make_dual(torch.ones(2, dtype=torch.int), torch.ones(2))):
        try:
            print(wrong())
        except (RuntimeError, ValueError) as error:
            print(type(error).__name__)
try:
    fwAD.make_dual(primal, tangent)
except RuntimeError as error:
    print(str(error)[:40])
