"""Probability distributions: samples, log probabilities, entropies, divergences. Names are loaded on first use.

`rsample` follows gradients to the parameters by the pathwise method; for discrete ones use `log_prob` as a score.
"""

from __future__ import annotations

from strata import _lazy
from strata._missing import missing_class

_HOMES = {
    "bernoulli": "Bernoulli",
    "categorical": "Categorical",
    "cauchy": "Cauchy",
    "distribution": "Distribution",
    "exponential": "Exponential",
    "geometric": "Geometric",
    "gumbel": "Gumbel",
    "half_normal": "HalfNormal",
    "independent": "Independent",
    "kl": "kl_divergence register_kl",
    "laplace": "Laplace",
    "log_normal": "LogNormal",
    "normal": "Normal",
    "one_hot_categorical": "OneHotCategorical OneHotCategoricalStraightThrough",
    "uniform": "Uniform",
}
_GAMMA = "samples of gamma variables are not provided; use Normal or LogNormal"
_MISSING = {
    "Beta": _GAMMA,
    "Binomial": "add samples of Bernoulli",
    "Chi2": _GAMMA,
    "Dirichlet": _GAMMA,
    "Gamma": _GAMMA,
    "MixtureSameFamily": "choose the component with Categorical, and strata.logsumexp over log_prob",
    "Multinomial": "add samples of OneHotCategorical",
    "MultivariateNormal": "use Independent(Normal(mean, std), 1), or multiply normal samples by a factor of it",
    "Poisson": "samples are not provided; the likelihood is strata.nn.functional.poisson_nll_loss",
    "RelaxedBernoulli": "use strata.nn.functional.gumbel_softmax",
    "RelaxedOneHotCategorical": "use strata.nn.functional.gumbel_softmax",
    "StudentT": _GAMMA,
    "TransformedDistribution": "transform the sample, and subtract the logarithm of the derivative from log_prob",
    "VonMises": "use Normal",
}

__all__ = _lazy.listed(_HOMES)
__getattr__, __dir__ = _lazy.of(
    globals(),
    _HOMES,
    " ".join(("constraints", *_HOMES)),
    lambda name: missing_class(__name__, name, _MISSING[name]),
)
