"""Passes over graphs of fx. Modules are loaded when they are first used."""

from __future__ import annotations

from strata import _lazy

__getattr__, __dir__ = _lazy.of(globals(), parts="graph_drawer infra operator_support shape_prop split_module tools_common utils")
