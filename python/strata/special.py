"""strata.special: special functions, under SciPy's names."""

from __future__ import annotations

from strata import _lazy

# Names whose operator has another name in the table.
_SAME = {
    "expit": "sigmoid",
    "psi": "digamma",
    "gammaln": "lgamma",
    "multigammaln": "mvlgamma",
    "gammainc": "igamma",
    "gammaincc": "igammac",
}

__getattr__, __dir__ = _lazy.operators(globals(), _SAME, plain=True)
