"""Probability distributions: samples, log probabilities, entropies, divergences. Names are loaded on first use.

`rsample` follows gradients to the parameters by the pathwise method; for discrete ones use `log_prob` as a score.
"""

from __future__ import annotations

from strata import _lazy

_HOMES = {
    "bernoulli": "Bernoulli",
    "categorical": "Categorical",
    "cauchy": "Cauchy",
    "constraint_registry": "biject_to transform_to",
    "counts": "Binomial Multinomial NegativeBinomial Poisson",
    "dirichlet": "Beta Dirichlet",
    "distribution": "Distribution",
    "exp_family": "ExponentialFamily",
    "exponential": "Exponential",
    "gamma": "Chi2 Gamma InverseGamma",
    "geometric": "Geometric",
    "gumbel": "Gumbel",
    "half_normal": "HalfNormal",
    "independent": "Independent",
    "kl": "kl_divergence register_kl",
    "laplace": "Laplace",
    "log_normal": "LogNormal",
    "matrices": "LKJCholesky Wishart",
    "mixture_same_family": "MixtureSameFamily",
    "multivariate_normal": "LowRankMultivariateNormal MultivariateNormal",
    "normal": "Normal",
    "one_hot_categorical": "OneHotCategorical OneHotCategoricalStraightThrough",
    "relaxed": "ContinuousBernoulli LogisticNormal RelaxedBernoulli RelaxedOneHotCategorical",
    "student_t": "FisherSnedecor StudentT",
    "tails": "GeneralizedPareto HalfCauchy Kumaraswamy Pareto VonMises Weibull",
    "transformed_distribution": "TransformedDistribution",
    "transforms": (
        "AbsTransform AffineTransform CatTransform ComposeTransform CorrCholeskyTransform CumulativeDistributionTransform "
        "ExpTransform IndependentTransform LowerCholeskyTransform PositiveDefiniteTransform PowerTransform ReshapeTransform "
        "SigmoidTransform SoftmaxTransform SoftplusTransform StackTransform StickBreakingTransform TanhTransform Transform "
        "identity_transform"
    ),
    "uniform": "Uniform",
}
__all__ = _lazy.listed(_HOMES)
# PyTorch's names of files that hold one class each.
_FILES = {
    "beta": "dirichlet", "binomial": "counts", "chi2": "gamma", "continuous_bernoulli": "relaxed", "fishersnedecor": "student_t",
    "generalized_pareto": "tails", "half_cauchy": "tails", "inverse_gamma": "gamma", "kumaraswamy": "tails",
    "lkj_cholesky": "matrices", "logistic_normal": "relaxed", "lowrank_multivariate_normal": "multivariate_normal",
    "multinomial": "counts", "negative_binomial": "counts", "pareto": "tails", "poisson": "counts",
    "relaxed_bernoulli": "relaxed", "relaxed_categorical": "relaxed", "studentT": "student_t", "von_mises": "tails",
    "weibull": "tails", "wishart": "matrices",
}  # fmt: skip
__getattr__, __dir__ = _lazy.of(globals(), _HOMES, " ".join(("constraints", "utils", *_HOMES)))
_lazy.aliases(globals(), _FILES)
