"""Probability distributions: samples, log probabilities, entropies, divergences. Names are loaded on first use.

`rsample` follows gradients to the parameters by the pathwise method; for discrete ones use `log_prob` as a score.
"""

from __future__ import annotations

import importlib

from strata._missing import missing_class

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FILES = {
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
_HOME = {name: file for file, names in _FILES.items() for name in names.split()}
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
_SUBMODULES = ("constraints", *_FILES)

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _HOME:
        value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    elif name in _MISSING:
        value = missing_class(__name__, name, _MISSING[name])
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBMODULES})
