"""Settings of PyTorch's generator of kernels. They keep what is written and change nothing: there is one way to compile here."""

from __future__ import annotations

import sys

from strata._flags import Flags

_OFF = (
    "aggressive_fusion b2b_gemm_pass benchmark_fusion benchmark_kernel combo_kernels comment_origin conv_1x1_as_mm "
    "coordinate_descent_tuning cpp_wrapper dce debug decompose_mem_bound_mm emulate_precision_casts fallback_random "
    "force_disable_caches force_fuse_int_mm_with_mul freezing group_fusion max_autotune max_autotune_gemm max_autotune_pointwise "
    "nan_asserts permute_fusion profile_bandwidth save_args search_autotune_cache verbose_progress warn_mix_layout"
)
_ON = (
    "allow_buffer_reuse batch_fusion bw_outputs_user_visible dynamic_scale_rblock epilogue_fusion fx_graph_cache graph_partition "
    "implicit_fallbacks inplace_buffers joint_graph_constant_folding keep_output_stride layout_optimization "
    "loop_ordering_after_fusion pattern_matcher prologue_fusion reorder_for_locality shape_padding size_asserts split_reductions "
    "use_mixed_mm"
)
_HOOKS = "joint_custom_post_pass joint_custom_pre_pass post_grad_custom_post_pass post_grad_custom_pre_pass pre_grad_custom_pass"

_values = {
    **dict.fromkeys(_OFF.split(), False),
    **dict.fromkeys(_ON.split(), True),
    **dict.fromkeys(_HOOKS.split()),
    "compile_threads": 1,
    "max_autotune_gemm_backends": "ATEN",
    "aot_inductor": {"output_path": "", "package": False},
    "cpp": {"cxx": (None, "g++"), "enable_kernel_profile": False, "simdlen": None, "threads": -1},
    "trace": {"enabled": False, "graph_diagram": False},
    "triton": {"cudagraphs": False, "cudagraph_trees": True, "unique_kernel_names": True, "autotune_pointwise": True},
}
_config = Flags(__name__, _values, _HOOKS)
for _name in ("__name__", "__doc__", "__file__", "__package__", "__spec__", "__loader__"):
    vars(_config)[_name] = globals()[_name]
sys.modules[__name__] = _config  # written and read as the module
