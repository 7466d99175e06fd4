"""strata.special: special functions, under SciPy's names."""

from __future__ import annotations

from strata import _namespace

# Names whose operator has another name in the table.
_SAME = {
    "expit": "sigmoid",
    "psi": "digamma",
    "gammaln": "lgamma",
    "multigammaln": "mvlgamma",
    "gammainc": "igamma",
    "gammaincc": "igammac",
}

__getattr__, __dir__ = _namespace.of("special", _SAME, plain=True)
