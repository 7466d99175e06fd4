"""strata.linalg: the operators of the table whose names begin with linalg_."""

from __future__ import annotations

from strata import _namespace

__getattr__, __dir__ = _namespace.of("linalg", {})
