"""Tools around training: data, checkpointing, hooks, DLPack. Parts are loaded on first use."""

from __future__ import annotations

from strata import _lazy

__all__ = ["benchmark", "checkpoint", "collect_env", "cpp_extension", "data", "dlpack", "flop_counter", "hooks", "model_zoo", "module_tracker", "tensorboard"]
__getattr__, __dir__ = _lazy.of(globals(), {"_swap": "swap_tensors"}, parts=" ".join([*__all__, "_pytree", "_python_dispatch"]))
