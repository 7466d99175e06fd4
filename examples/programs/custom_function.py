"""Derivatives of one's own: autograd.Function, double backward, hooks, gradcheck, functional derivatives."""

import math

import strata as torch
from strata.autograd import Function, grad, gradcheck
from strata.autograd.functional import hessian, jacobian


class LegendrePolynomial3(Function):
    """P3(x) = (5 x^3 - 3 x) / 2."""

    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return 0.5 * (5 * input**3 - 3 * input)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input**2 - 1)


class Clamp(Function):
    """A clamp whose gradient passes as if it were the identity; bounds are no tensors."""

    @staticmethod
    def forward(ctx, x, low, high):
        ctx.mark_non_differentiable(outside := (x < low) | (x > high))
        return x.clamp(low, high), outside

    @staticmethod
    def backward(ctx, grad, _):
        return grad, None, None


P3 = LegendrePolynomial3.apply
x = torch.linspace(-math.pi, math.pi, 2000)
y = torch.sin(x)
a, b, c, d = (torch.full((), v, requires_grad=True) for v in (0.0, -1.0, 0.0, 0.3))
for t in range(1, 601):
    y_pred = a + b * P3(c + d * x)
    loss = (y_pred - y).pow(2).sum()
    if t % 200 == 0:
        print(t, f"{loss.item():.2f}")
    loss.backward()
    with torch.no_grad():
        for parameter in (a, b, c, d):
            parameter -= 5e-6 * parameter.grad
            parameter.grad = None
print(f"Result: y = {a.item():.3f} + {b.item():.3f} * P3({c.item():.3f} + {d.item():.3f} x)")

z = torch.tensor([0.5, -0.3], dtype=torch.float64, requires_grad=True)
print(gradcheck(P3, (z,)), P3(z).grad_fn.name())
(first,) = grad(P3(z).sum(), z, create_graph=True)
(second,) = grad(first.sum(), z)
print(first.tolist(), second.tolist())

w = torch.tensor([-2.0, 0.5, 3.0], requires_grad=True)
clamped, outside = Clamp.apply(w, -1.0, 1.0)
seen = []
handle = w.register_hook(lambda g: seen.append(g.clone()) or g * 2)
clamped.sum().backward()
handle.remove()
print(clamped.tolist(), outside.tolist(), outside.requires_grad, w.grad.tolist(), seen[0].tolist())

print(jacobian(lambda v: v**2, torch.tensor([1.0, 2.0])))
print(hessian(lambda v: (v**3).sum(), torch.tensor([1.0, 2.0])))
try:
    P3(z).sum().backward(retain_graph=False)
    out = P3(z).sum()
    out.backward()
    out.backward()
except RuntimeError as error:
    print(str(error).split(".")[0][:60])
