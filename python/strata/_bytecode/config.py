"""Settings of strata.compile that programs write, by PyTorch's names."""

from __future__ import annotations

from strata._flags import Flags

_OFF = (
    "allow_ignore_mark_dynamic allow_rnn allow_unspec_int_on_nn_module compiled_autograd "
    "prefer_deferred_runtime_asserts_over_guards skip_fwd_side_effects_in_bwd_under_checkpoint specialize_float specialize_int suppress_errors verbose "
    "verify_correctness"
)
_ON = (
    "assume_static_by_default automatic_dynamic_shapes capture_func_transforms dynamic_shapes force_parameter_static_shapes "
    "guard_nn_modules inline_inbuilt_nn_modules optimize_ddp report_guard_failures skip_fsdp_guards trace_numpy"
)


class Config(Flags):
    """recompile_limit: entries of one place in a function, beyond which it runs as it is (cache_size_limit is another name of
    it). accumulated_recompile_limit: entries of all that has one code object (accumulated_cache_size_limit).
    capture_scalar_outputs, capture_dynamic_output_shape_ops: whether numbers that are read of tensors (item, tolist), and operators
    whose results' sizes are data (nonzero, masks), are captured where they would break; with fullgraph=True they are. The
    others keep what is written and change nothing."""

    def __init__(self) -> None:
        super().__init__("strata._dynamo.config", dict.fromkeys(_OFF.split(), False) | dict.fromkeys(_ON.split(), True))
        self.recompile_limit, self.accumulated_recompile_limit = 8, 256
        self.capture_scalar_outputs = self.capture_dynamic_output_shape_ops = False

    @property
    def cache_size_limit(self) -> int:
        return self.recompile_limit

    @cache_size_limit.setter
    def cache_size_limit(self, value: int) -> None:
        self.recompile_limit = value

    @property
    def accumulated_cache_size_limit(self) -> int:
        return self.accumulated_recompile_limit

    @accumulated_cache_size_limit.setter
    def accumulated_cache_size_limit(self, value: int) -> None:
        self.accumulated_recompile_limit = value


config = Config()
