"""Settings of PyTorch's ahead-of-time autograd. They keep what is written and change nothing here."""

from __future__ import annotations

import sys

from strata._flags import Flags

_config = Flags(
    __name__,
    {
        "activation_memory_budget": 1.0,
        "activation_memory_budget_runtime_estimator": "flops",
        "activation_memory_budget_solver": "dp",
        "aggressive_recomputation": False,
        "cse": True,
        "debug_assert": False,
        "debug_partitioner": False,
        "donated_buffer": True,
        "enable_autograd_cache": True,
        "fake_tensor_propagate_real_tensors": False,
        "functionalize_rng_ops": False,
        "recompute_views": False,
    },
)
for _name in ("__name__", "__doc__", "__file__", "__package__", "__spec__", "__loader__"):
    vars(_config)[_name] = globals()[_name]
sys.modules[__name__] = _config  # written and read as the module
