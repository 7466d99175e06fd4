"""Strata: tensors, automatic differentiation and neural networks with PyTorch's names.

`import strata as torch` runs ordinary PyTorch programs. Importing this package loads the C++ module and little else:
strata.nn, strata.optim and the other parts are loaded when they are first named.
"""

from __future__ import annotations

import builtins
import sys

from strata import _C, _lazy
from strata._tensor import Tensor
from strata.autograd.grad_mode import enable_grad as enable_grad
from strata.autograd.grad_mode import inference_mode as inference_mode
from strata.autograd.grad_mode import no_grad as no_grad
from strata.autograd.grad_mode import set_grad_enabled as set_grad_enabled
from strata.version import __version__ as __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import NoneType
    from typing import Any

# Everything public of the C++ module: dtypes, Size, Generator, tensor(), settings; then the operators of the table.
globals().update({name: value for name, value in vars(_C).items() if not name.startswith("_")})
globals().update({name: value for name, value in vars(_C._functions).items() if not name.startswith(("__", "_foreach"))})

# Where strata.functional has another form of a function, that one is the public one.
from strata import functional  # noqa: E402

globals().update({name: getattr(functional, name) for name in functional.__all__})

from strata._device_names import install as _install  # noqa: E402

# math's, whose import would take longer than many a module of this package.
inf, nan, pi, e = builtins.float("inf"), builtins.float("nan"), 3.141592653589793, 2.718281828459045
newaxis = None
legacy_contiguous_format = _C.contiguous_format
globals().update({name: module for name, module in _install(Tensor).items() if name not in globals()})
from strata._device_names import namespace as _namespace  # noqa: E402

del _install

# Where names live that are loaded on first use.
_MODULES = (
    "__config__ _custom_ops _dynamo _functorch _higher_order_ops _inductor _logging _subclasses _tensor_str _utils _vmap_internals accelerator amp ao autograd backends cache classes compiler cpu debug distributed distributions doctor export "
    "fallback fft func futures fx hub jit library linalg masked monitor multiprocessing nested nn numa onnx ops optim overrides package profiler quantization random return_types safetensors serialization signal "
    "sparse special storage testing types utils warm"
)
_NAMES = {
    "_tensor_str": "set_printoptions get_printoptions printoptions",
    "_type_info": "finfo iinfo",
    "_legacy_types": (
        "BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor "
        "ShortTensor SymBool SymFloat SymInt jagged sparse_bsc sparse_bsr sparse_coo sparse_csc sparse_csr "
        "complex32 float4_e2m1fn_x2 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu qint8 qint32 "
        "quint8"
    ),
    "_streams": "Event Stream",
    "_as_torch": "as_torch",
    "_graph": "CompiledGraph Graph graph load_graph",
    "_control_flow": "cond while_loop",
    "_checks": (
        "_check _check_index _check_is_size _check_not_implemented _check_tensor_all _check_tensor_all_with _check_type _check_value "
        "_check_with"
    ),
    "_sparse_coo": "sparse_coo_tensor",
    "_sparse_csr": "_convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo sparse_csr_tensor",
    "sparse": "dsmm hspmm smm spmm sspaddmm",
    "_lowrank": "pca_lowrank svd_lowrank",
    "_composed": "range unravel_index",
    "_foreach": (
        "_foreach_abs _foreach_abs_ _foreach_acos _foreach_acos_ _foreach_asin _foreach_asin_ _foreach_atan _foreach_atan_ "
        "_foreach_ceil _foreach_ceil_ _foreach_cos _foreach_cos_ _foreach_cosh _foreach_cosh_ _foreach_erf _foreach_erf_ "
        "_foreach_erfc _foreach_erfc_ _foreach_exp _foreach_exp_ _foreach_expm1 _foreach_expm1_ _foreach_floor _foreach_floor_ "
        "_foreach_frac _foreach_frac_ _foreach_lgamma _foreach_lgamma_ _foreach_log _foreach_log_ _foreach_log10 "
        "_foreach_log10_ _foreach_log1p _foreach_log1p_ _foreach_log2 _foreach_log2_ _foreach_neg _foreach_neg_ "
        "_foreach_reciprocal _foreach_reciprocal_ _foreach_round _foreach_round_ _foreach_rsqrt _foreach_rsqrt_ "
        "_foreach_sigmoid _foreach_sigmoid_ _foreach_sign _foreach_sign_ _foreach_sin _foreach_sin_ _foreach_sinh "
        "_foreach_sinh_ _foreach_sqrt _foreach_sqrt_ _foreach_tan _foreach_tan_ _foreach_tanh _foreach_tanh_ _foreach_trunc "
        "_foreach_trunc_ _foreach_add _foreach_add_ _foreach_sub _foreach_sub_ _foreach_mul _foreach_mul_ _foreach_div "
        "_foreach_div_ _foreach_pow _foreach_pow_ _foreach_maximum _foreach_maximum_ _foreach_minimum _foreach_minimum_ "
        "_foreach_clamp_max _foreach_clamp_max_ _foreach_clamp_min _foreach_clamp_min_ _foreach_lerp _foreach_lerp_ "
        "_foreach_addcmul _foreach_addcmul_ _foreach_addcdiv _foreach_addcdiv_ _foreach_zero_ _foreach_clone _foreach_copy_ "
        "_foreach_norm _foreach_max"
    ),
    "_numeric": "histogram histogramdd",
    "func": "vmap",
    "nn.functional.grouped": "_grouped_mm",
    "_pt_reader": "PyTorchFileReader",
    "jit": "ScriptModule",
    "futures": "Future",
    "_misc": (
        "AcceleratorError _assert_async _reshape_from_tensor _sample_dirichlet _segment_reduce _shape_as_tensor alpha_dropout_ channel_shuffle compiled_with_cxx11_abi detach_ feature_alpha_dropout "
        "feature_alpha_dropout_ frobenius_norm get_autocast_cpu_dtype "
        "get_deterministic_debug_mode get_device_module has_lapack has_mkl has_openmp has_spectral is_autocast_cpu_enabled "
        "is_distributed norm_except_dim nuclear_norm rrelu rrelu_ segment_reduce set_deterministic_debug_mode sym_float sym_int "
        "sym_ite sym_max sym_min sym_not sym_sum"
    ),
    "random": "manual_seed seed initial_seed get_rng_state set_rng_state fork_rng",
    "serialization": "save load",
    "storage": (
        "BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage ComplexFloatStorage DoubleStorage FloatStorage "
        "HalfStorage IntStorage LongStorage ShortStorage TypedStorage"
    ),
    "amp": "autocast GradScaler",
    "ops": "explain_dispatch kernel_source",
    "_settings": (
        "are_deterministic_algorithms_enabled use_deterministic_algorithms is_deterministic_algorithms_warn_only_enabled "
        "get_float32_matmul_precision set_float32_matmul_precision get_default_device set_default_device "
        "set_default_tensor_type get_num_interop_threads set_num_interop_threads is_warn_always_enabled set_flush_denormal "
        "set_warn_always"
    ),
}


def _get_tracing_state() -> builtins.bool | None:
    """True while a function is being traced by jit.trace, else None: programs ask it of strata._C."""
    jit = sys.modules.get("strata.jit")
    return None if jit is None else jit.is_tracing() or None


def _maker(name: str) -> Any:
    """A function of the class of storages, which gets its methods from _storage_methods when one of a storage is asked for."""

    def make(*args: Any, **kwargs: Any) -> Any:
        _lazy.load("strata._storage_methods")  # has the class's own there
        return getattr(_C.UntypedStorage, name)(*args, **kwargs)

    return staticmethod(make)


_C.UntypedStorage.from_buffer, _C.UntypedStorage.from_file = _maker("from_buffer"), _maker("from_file")
_C._get_tracing_state = _get_tracing_state
_C._default_device = _C._get_default_device
_C._get_default_device = lambda: _C._default_device().type  # programs compare it with a device's type
_C._log_api_usage_once = lambda event: None  # programs tell PyTorch's statistics
_C._are_functorch_transforms_active = lambda: False  # vmap and grad call the function itself
_C.__getattr__ = _lazy.of(vars(_C), otherwise=lambda name: _lazy.load("strata._core_names").make(name))[0]  # names that are Python's
torch = sys.modules[__name__]  # programs write torch.torch
from strata._absent import install as _install_absent  # noqa: E402

_install_absent()
del _install_absent

__getattr__, __dir__ = _lazy.of(globals(), _NAMES, _MODULES, otherwise=_namespace)


def is_tensor(obj: object) -> builtins.bool:
    """Whether the object is a strata.Tensor."""
    return isinstance(obj, Tensor)


def is_storage(obj: object) -> builtins.bool:
    """Whether the object is a strata.UntypedStorage."""
    return isinstance(obj, _C.UntypedStorage)


def _as_tensor(function: str, value: Any, name: str = "input", position: builtins.int = 1) -> Tensor:
    """The argument, which must be a tensor."""
    if not isinstance(value, Tensor):
        kind = type(value).__name__
        raise TypeError(f"{function}(): argument '{name}' (position {position}) must be Tensor, not {kind}")
    return value


def _asking(name: str, doc: str) -> Any:
    """The function of that name, which a tensor's method answers."""

    def asked(input: Tensor) -> Any:
        if _C._has_torch_function_unary(input):
            return _C._handle_torch_function(asked, (input,), (input,), {})
        return getattr(_as_tensor(name, input), name)()

    asked.__name__ = asked.__qualname__ = name
    asked.__doc__ = doc
    return asked


is_floating_point = _asking("is_floating_point", "Whether the tensor's dtype is a floating-point one.")
is_complex = _asking("is_complex", "Whether the tensor's dtype is complex64 or complex128.")
is_signed = _asking("is_signed", "Whether the tensor's dtype has negative numbers.")
is_conj = _asking("is_conj", "False: conj() computes its result at once.")
is_neg = _asking("is_neg", "False: neg() computes its result at once.")
get_device = _asking("get_device", "The index of the tensor's device; -1 for the CPU.")
numel = _asking("numel", "The number of elements.")
is_inference = _asking("is_inference", "Whether the tensor was made in inference mode.")


def is_same_size(input: Tensor, other: Tensor) -> builtins.bool:
    """Whether both have the same shape."""
    return _as_tensor("is_same_size", input).is_same_size(_as_tensor("is_same_size", other, "other", 2))


def typename(obj: object) -> str:
    """The name of the object's type with its module; for tensors the legacy name, such as strata.FloatTensor."""
    if isinstance(obj, Tensor):
        return obj.type()
    cls = obj if isinstance(obj, type) else type(obj)
    module = "" if cls.__module__ in ("builtins", "__builtin__") else cls.__module__ + "."
    return module + cls.__qualname__


def compile(  # noqa: A001
    model: Any = None,
    *,
    fullgraph: builtins.bool = False,
    dynamic: builtins.bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: builtins.bool = False,
) -> Any:
    """The function or module, compiled: at a call its bytecode is captured to graphs, whose kernels have eager's bits.

    Without a model: a decorator. fullgraph: RuntimeError where the function is not one graph, instead of a break.
    dynamic: sizes and ints that change are symbols from the second value on (None), from the first (True), or never (False).
    options: {"numerics": "fast"} leaves out roundings of half types (Graph.compile); hints at how kernels are chosen
    ("max_autotune", "epilogue_fusion", "triton.cudagraphs" and others) are accepted, without effect, as mode is. docs/compile.md tells how it works.
    """
    api = _lazy.load("strata._bytecode.api")
    return api.compile(
        model, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable
    )


def _assert(condition: Any, message: str) -> NoneType:
    """`assert` as a function."""
    if not isinstance(condition, Tensor) and _C._has_torch_function_unary(condition):
        return _C._handle_torch_function(_assert, (condition,), (condition, message), {})
    if not condition:
        raise AssertionError(message)
