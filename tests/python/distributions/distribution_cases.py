"""Distributions whose numbers are recorded from PyTorch by tools/record_distributions.py, and how they are asked."""

from __future__ import annotations

import itertools
import math


def _t(torch, *values):
    return torch.tensor(values, dtype=torch.float64)


def _matrix(torch):
    return torch.tensor([[2.0, 0.3], [0.3, 1.0]], dtype=torch.float64)


# name: (make(torch, D), values(torch) or None)
CASES = {
    "Beta": (lambda t, D: D.Beta(_t(t, 0.5, 2.0), _t(t, 0.7, 3.0)), lambda t: _t(t, 0.2, 0.9)),
    "Gamma": (lambda t, D: D.Gamma(_t(t, 0.5, 3.0), _t(t, 1.0, 2.0)), lambda t: _t(t, 0.2, 3.0)),
    "Chi2": (lambda t, D: D.Chi2(_t(t, 1.0, 4.0)), lambda t: _t(t, 0.2, 3.0)),
    "InverseGamma": (lambda t, D: D.InverseGamma(_t(t, 2.5, 3.0), _t(t, 1.0, 2.0)), lambda t: _t(t, 0.2, 3.0)),
    "Dirichlet": (lambda t, D: D.Dirichlet(_t(t, 0.5, 2.0, 3.0)), lambda t: _t(t, 0.2, 0.3, 0.5)),
    "StudentT": (lambda t, D: D.StudentT(_t(t, 1.5, 4.0), 0.5, 2.0), lambda t: _t(t, -0.2, 3.0)),
    "FisherSnedecor": (lambda t, D: D.FisherSnedecor(_t(t, 3.0, 4.0), _t(t, 5.0, 6.0)), lambda t: _t(t, 0.2, 3.0)),
    "Poisson": (lambda t, D: D.Poisson(_t(t, 0.5, 4.0)), lambda t: _t(t, 0.0, 3.0)),
    "Binomial": (lambda t, D: D.Binomial(5, probs=_t(t, 0.3, 0.8)), lambda t: _t(t, 0.0, 3.0)),
    "NegativeBinomial": (lambda t, D: D.NegativeBinomial(_t(t, 2.0, 3.0), logits=_t(t, 0.3, -0.8)), lambda t: _t(t, 0.0, 3.0)),
    "Multinomial": (lambda t, D: D.Multinomial(4, probs=_t(t, 0.2, 0.3, 0.5)), lambda t: _t(t, 1.0, 1.0, 2.0)),
    "MultivariateNormal": (lambda t, D: D.MultivariateNormal(_t(t, 0.5, -1.0), _matrix(t)), lambda t: _t(t, 0.2, 1.0)),
    "MVN precision": (lambda t, D: D.MultivariateNormal(_t(t, 0.5, -1.0), precision_matrix=_matrix(t)), lambda t: _t(t, 0.2, 1.0)),
    "LowRankMultivariateNormal": (
        lambda t, D: D.LowRankMultivariateNormal(_t(t, 0.5, -1.0, 0.0), _t(t, 1.0, 0.5, -0.2)[:, None], _t(t, 1.0, 2.0, 0.5)),
        lambda t: _t(t, 0.2, 1.0, 0.3),
    ),
    "Wishart": (lambda t, D: D.Wishart(t.tensor(4.0, dtype=t.float64), _matrix(t)), lambda t: _matrix(t) * 3),
    "LKJCholesky": (
        lambda t, D: D.LKJCholesky(3, t.tensor(1.5, dtype=t.float64)),
        lambda t: t.linalg.cholesky(t.eye(3, dtype=t.float64) * 0.7 + 0.3),
    ),
    "MixtureSameFamily": (
        lambda t, D: D.MixtureSameFamily(D.Categorical(_t(t, 0.3, 0.7)), D.Normal(_t(t, -1.0, 2.0), _t(t, 0.5, 1.5))),
        lambda t: _t(t, 0.2, 3.0),
    ),
    "RelaxedBernoulli": (lambda t, D: D.RelaxedBernoulli(t.tensor(0.7, dtype=t.float64), _t(t, 0.3, 0.6)), lambda t: _t(t, 0.2, 0.9)),
    "RelaxedOneHotCategorical": (
        lambda t, D: D.RelaxedOneHotCategorical(t.tensor(0.7, dtype=t.float64), _t(t, 0.3, 0.6, 0.1)),
        lambda t: _t(t, 0.2, 0.7, 0.1),
    ),
    "LogisticNormal": (lambda t, D: D.LogisticNormal(_t(t, 0.5, -1.0), _t(t, 1.0, 0.7)), lambda t: _t(t, 0.2, 0.7, 0.1)),
    "ContinuousBernoulli": (lambda t, D: D.ContinuousBernoulli(_t(t, 0.3, 0.5, 0.9)), lambda t: _t(t, 0.2, 0.7, 0.1)),
    "HalfCauchy": (lambda t, D: D.HalfCauchy(_t(t, 0.5, 2.0)), lambda t: _t(t, 0.2, 3.0)),
    "Pareto": (lambda t, D: D.Pareto(_t(t, 0.5, 2.0), _t(t, 3.0, 2.5)), lambda t: _t(t, 0.6, 3.0)),
    "Weibull": (lambda t, D: D.Weibull(_t(t, 0.5, 2.0), _t(t, 3.0, 1.5)), lambda t: _t(t, 0.6, 3.0)),
    "Kumaraswamy": (lambda t, D: D.Kumaraswamy(_t(t, 0.5, 2.0), _t(t, 3.0, 1.5)), lambda t: _t(t, 0.6, 0.3)),
    "VonMises": (lambda t, D: D.VonMises(_t(t, 0.5, 2.0), _t(t, 3.0, 10.0)), lambda t: _t(t, 0.6, 3.0)),
    "GeneralizedPareto": (  # in float32: PyTorch's raises for float64
        lambda t, D: D.GeneralizedPareto(t.tensor([0.0, 0.5]), 1.5, t.tensor([0.3, 0.0])), lambda t: t.tensor([0.6, 3.0]),
    ),
    "TransformedDistribution": (
        lambda t, D: D.TransformedDistribution(D.Normal(_t(t, 0.5, -1.0), 0.7), [D.AffineTransform(0.1, -2.0), D.ExpTransform()]),
        lambda t: _t(t, 0.6, 0.3),
    ),
    "TanhNormal": (
        lambda t, D: D.Independent(D.TransformedDistribution(D.Normal(_t(t, 0.5, -1.0), 0.7), D.TanhTransform(cache_size=1)), 1),
        lambda t: _t(t, 0.6, 0.3),
    ),
}

TRANSFORMS = {
    "exp": lambda t, D: (D.ExpTransform(), _t(t, -0.5, 1.0)),
    "sigmoid": lambda t, D: (D.SigmoidTransform(), _t(t, -0.5, 1.0)),
    "tanh": lambda t, D: (D.TanhTransform(), _t(t, -0.5, 1.0)),
    "softplus": lambda t, D: (D.SoftplusTransform(), _t(t, -0.5, 1.0)),
    "power": lambda t, D: (D.PowerTransform(_t(t, 2.0, -0.5)), _t(t, 0.5, 1.5)),
    "affine": lambda t, D: (D.AffineTransform(0.5, _t(t, 2.0, -0.5), event_dim=1), _t(t, 0.5, 1.5)),
    "sticks": lambda t, D: (D.StickBreakingTransform(), _t(t, 0.5, -1.5, 0.3)),
    "corr": lambda t, D: (D.CorrCholeskyTransform(), _t(t, 0.5, -1.5, 0.3)),
    "reshape": lambda t, D: (D.ReshapeTransform((4,), (2, 2)), _t(t, 0.5, -1.5, 0.3, 1.0)),
    "compose": lambda t, D: (D.ComposeTransform([D.AffineTransform(0.0, 2.0), D.ExpTransform()]), _t(t, 0.5, -1.0)),
    "inverse": lambda t, D: (D.ExpTransform().inv, _t(t, 0.5, 1.5)),
    "cat": lambda t, D: (D.CatTransform([D.ExpTransform(), D.TanhTransform()], 0, [1, 2]), _t(t, 0.5, -1.0, 0.2)),
    "stack": lambda t, D: (D.StackTransform([D.ExpTransform(), D.TanhTransform()], 0), _t(t, 0.5, -1.0)),
    "cdf": lambda t, D: (D.CumulativeDistributionTransform(D.Normal(0.0, 1.0)), _t(t, 0.5, -1.0)),
}
NO_JACOBIAN = {
    "softmax": lambda t, D: (D.SoftmaxTransform(), _t(t, 0.5, -1.5, 0.3)),
    "lower": lambda t, D: (D.LowerCholeskyTransform(), _matrix(t)),
    "definite": lambda t, D: (D.PositiveDefiniteTransform(), _matrix(t)),
    "abs": lambda t, D: (D.AbsTransform(), _t(t, 0.5, -1.5)),
}
DIVERGENCES = {
    "Beta": lambda t, D: (D.Beta(_t(t, 0.5), _t(t, 0.7)), D.Beta(_t(t, 1.5), _t(t, 2.7))),
    "Dirichlet": lambda t, D: (D.Dirichlet(_t(t, 0.5, 1.0)), D.Dirichlet(_t(t, 1.5, 2.0))),
    "Gamma": lambda t, D: (D.Gamma(_t(t, 0.5), _t(t, 0.7)), D.Gamma(_t(t, 1.5), _t(t, 2.7))),
    "Exponential Gamma": lambda t, D: (D.Exponential(_t(t, 0.5)), D.Gamma(_t(t, 1.5), _t(t, 2.7))),
    "Gamma Exponential": lambda t, D: (D.Gamma(_t(t, 1.5), _t(t, 2.7)), D.Exponential(_t(t, 0.5))),
    "Poisson": lambda t, D: (D.Poisson(_t(t, 0.5)), D.Poisson(_t(t, 1.5))),
    "Binomial": lambda t, D: (D.Binomial(3, _t(t, 0.5)), D.Binomial(3, _t(t, 0.2))),
    "Pareto": lambda t, D: (D.Pareto(_t(t, 1.5), _t(t, 2.0)), D.Pareto(_t(t, 1.0), _t(t, 3.0))),
    "ContinuousBernoulli": lambda t, D: (D.ContinuousBernoulli(_t(t, 0.3)), D.ContinuousBernoulli(_t(t, 0.6))),
    "MultivariateNormal": lambda t, D: (
        D.MultivariateNormal(_t(t, 0.5, -1.0), _matrix(t)), D.MultivariateNormal(_t(t, 0.0, 1.0), scale_tril=t.eye(2, dtype=t.float64) * 2),
    ),
    "Normal Laplace": lambda t, D: (D.Normal(_t(t, 0.5), 2.0), D.Laplace(_t(t, 0.2), 1.0)),
    "Normal Gumbel": lambda t, D: (D.Normal(_t(t, 0.5), 2.0), D.Gumbel(_t(t, 0.2), 1.0)),
    "Laplace Normal": lambda t, D: (D.Laplace(_t(t, 0.5), 2.0), D.Normal(_t(t, 0.2), 1.0)),
    "Transformed": lambda t, D: (
        D.TransformedDistribution(D.Normal(_t(t, 0.5), 2.0), D.AffineTransform(1.0, 2.0)),
        D.TransformedDistribution(D.Normal(_t(t, 0.1), 1.0), D.AffineTransform(1.0, 2.0)),
    ),
}  # fmt: skip

# Distributions of different kinds, each with each that PyTorch has a formula for; the last two reach beyond [0, 1].
MIXED = {
    "Beta": lambda t, D: D.Beta(_t(t, 0.5, 2.0, 1.0, 3.0), _t(t, 0.7, 3.0, 1.0, 0.5)),
    "ContinuousBernoulli": lambda t, D: D.ContinuousBernoulli(_t(t, 0.3, 0.499, 0.6, 0.9)),
    "Exponential": lambda t, D: D.Exponential(_t(t, 0.5, 3.0, 1.0, 0.2)),
    "Gamma": lambda t, D: D.Gamma(_t(t, 0.5, 3.0, 1.5, 1.0), _t(t, 0.7, 2.0, 2.7, 1.0)),
    "Gumbel": lambda t, D: D.Gumbel(_t(t, 0.5, -3.0, -1.5, 0.0), _t(t, 0.7, 2.0, 2.7, 1.0)),
    "Laplace": lambda t, D: D.Laplace(_t(t, 0.5, -3.0, -1.5, 0.0), _t(t, 0.7, 2.0, 2.7, 1.0)),
    "Normal": lambda t, D: D.Normal(_t(t, 0.5, -3.0, -1.5, 0.0), _t(t, 0.7, 2.0, 2.7, 1.0)),
    "Pareto": lambda t, D: D.Pareto(_t(t, 0.1, 0.5, 0.3, 1.0), _t(t, 2.7, 3.0, 1.5, 0.5)),
    "Poisson": lambda t, D: D.Poisson(_t(t, 0.5, 2.0, 1.5, 0.8)),
    "Bernoulli": lambda t, D: D.Bernoulli(_t(t, 0.5, 0.2, 0.1, 0.8)),
    "Binomial": lambda t, D: D.Binomial(3, _t(t, 0.5, 0.2, 0.1, 0.8)),
    "Uniform": lambda t, D: D.Uniform(_t(t, 0.2, 0.6, -1.0, -0.5), _t(t, 0.9, 0.8, 1.5, 3.0)),
}


def mixed(torch):
    """Of every pair of those that have a divergence, its numbers."""
    found = {}
    for (a, p), (b, q) in itertools.product(MIXED.items(), MIXED.items()):
        try:
            value = torch.distributions.kl_divergence(p(torch, torch.distributions), q(torch, torch.distributions))
        except NotImplementedError:
            continue
        found[f"{a} {b}"] = numbers(value)
    return found


def numbers(value):
    """A tensor as rounded numbers, NaN and infinities as text."""
    flat = value.detach().double().flatten().tolist()
    return [list(value.shape), [float(f"{v:.12g}") if math.isfinite(v) else str(v) for v in flat]]


def facts(torch, make, values):
    """What a distribution says of itself and of values."""
    d = make(torch, torch.distributions)
    x = values(torch)
    found = {"shapes": [list(d.batch_shape), list(d.event_shape)], "repr": repr(d), "rsample": bool(d.has_rsample)}
    for name in ("mean", "mode", "variance", "stddev"):
        try:
            found[name] = numbers(getattr(d, name))
        except NotImplementedError:
            found[name] = None
    for name, args in (("log_prob", (x,)), ("cdf", (x,)), ("entropy", ())):
        try:
            found[name] = numbers(getattr(d, name)(*args))
        except NotImplementedError:
            found[name] = None
    found["support"] = str(d.support.check(x).tolist())
    wide = d.expand([2, *d.batch_shape])
    found["expanded"] = [list(wide.batch_shape), numbers(wide.log_prob(x))]
    return found


def transformed(torch, make, jacobian=True):
    """What a transform and its inverse give."""
    f, x = make(torch, torch.distributions)
    y = f(x)
    found = {"y": numbers(y), "back": numbers(f.inv(y)), "shape": list(f.forward_shape(x.shape)), "bijective": f.bijective}
    if jacobian:
        found["jacobian"] = numbers(f.log_abs_det_jacobian(x, y))
    return found


def biject(torch):
    """transform_to and biject_to of the constraints that have them."""
    D, found = torch.distributions, {}
    c = D.constraints
    x = _t(torch, 0.5, -1.5, 0.3)
    sets = {
        "real": c.real, "positive": c.positive, "above": c.greater_than(2.0), "below": c.less_than(2.0),
        "interval": c.interval(-1.0, 3.0), "unit": c.unit_interval, "simplex": c.simplex, "corr": c.corr_cholesky,
    }  # fmt: skip
    for name, constraint in sets.items():
        found[name] = [repr(constraint), numbers(D.transform_to(constraint)(x)), numbers(D.biject_to(constraint)(x))]
    return found
