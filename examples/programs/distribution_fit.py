"""Distributions fitted by gradients: a mixture, a beta posterior, a normalising flow, constrained parameters."""

import strata as torch
import strata.distributions as D
from strata.distributions import constraints, transform_to

# A mixture of two normals, by the likelihood of fixed points.
points = torch.cat([torch.linspace(-2.5, -1.5, 21), torch.linspace(0.5, 2.5, 41)])
logits = torch.zeros(2, requires_grad=True)
loc = torch.tensor([-0.5, 0.5], requires_grad=True)
raw_scale = torch.zeros(2, requires_grad=True)
to_positive = transform_to(constraints.positive)
optimizer = torch.optim.Adam([logits, loc, raw_scale], lr=0.05)
for _ in range(200):
    mixture = D.MixtureSameFamily(D.Categorical(logits=logits), D.Normal(loc, to_positive(raw_scale)))
    loss = -mixture.log_prob(points).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}, means {[round(v, 2) for v in loc.tolist()]}")
print(f"weights {[round(v, 2) for v in logits.softmax(0).tolist()]}, mean {mixture.mean.item():.3f}")

# A coin: the posterior is a beta distribution; its divergence from the prior in closed form.
prior = D.Beta(2.0, 2.0)
tosses = torch.tensor([1.0, 1, 0, 1, 1, 1, 0, 1])
posterior = D.Beta(prior.concentration1 + tosses.sum(), prior.concentration0 + (1 - tosses).sum())
print(f"{posterior.mean.item():.4f} {posterior.variance.item():.5f} {D.kl_divergence(posterior, prior).item():.4f}")
print(f"{D.Bernoulli(posterior.mean).log_prob(tosses).sum().item():.4f} {posterior.entropy().item():.4f}")

# A flow: an affine transform and tanh of a normal, fitted to data in (-1, 1).
data = torch.tanh(torch.linspace(-0.5, 1.5, 30))
shift, log_scale = (torch.zeros((), requires_grad=True) for _ in range(2))
optimizer = torch.optim.SGD([shift, log_scale], lr=0.1)
for _ in range(100):
    flow = D.TransformedDistribution(D.Normal(0.0, 1.0), [D.AffineTransform(shift, log_scale.exp()), D.TanhTransform()])
    loss = -flow.log_prob(data).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"shift {shift.item():.3f}, scale {log_scale.exp().item():.3f}, loss {loss.item():.3f}")

# Vectors, counts and parts of 1.
normal = D.MultivariateNormal(torch.zeros(2), torch.tensor([[2.0, 0.5], [0.5, 1.0]]))
print(normal, f"{normal.log_prob(torch.ones(2)).item():.4f} {normal.entropy().item():.4f}")
print(f"{D.Poisson(3.0).log_prob(torch.tensor(2.0)).item():.4f} {D.Binomial(5, 0.4).mean:.1f} {D.Gamma(2.0, 3.0).variance:.4f}")
dirichlet = D.Dirichlet(torch.tensor([1.0, 2.0, 3.0]))
sample = dirichlet.rsample((1000,))
print(dirichlet.mean.tolist(), sample.shape, bool((sample.sum(-1) - 1).abs().max() < 1e-5))
print(f"{D.StudentT(3.0).log_prob(torch.tensor(0.5)).item():.4f}")
try:
    D.Normal(0.0, -1.0)
except ValueError as error:
    print(str(error)[:60])
