"""Tools for tests: `assert_close` compares, `make_tensor` invents."""

from strata.testing._comparison import assert_allclose, assert_close, default_tolerances
from strata.testing._creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "default_tolerances", "make_tensor"]
