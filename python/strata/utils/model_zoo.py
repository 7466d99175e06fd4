"""Weights from the network, under an older name of strata.hub."""

from __future__ import annotations

from strata.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]
