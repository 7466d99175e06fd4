"""Libraries below the operators: `with strata.backends.library(False):` computes products and convolutions without.

The namespaces that PyTorch has here answer what programs ask, and keep the settings that they make: `openmp` and
`mkldnn` are there as long as the library is, `opt_einsum` is not, and those of devices come from device_words.json.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext

from strata import _C, _device_words, _lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

__path__: list[str] = []  # modules inside are made here


def library_report() -> str:
    """The name, version and instruction set of the library, or why there is none."""
    return _C._library_report()


def lapack_report() -> str:
    """The name and version of the library behind strata.linalg's decompositions, or why there is none."""
    return _C._lapack_report()


def fourier_report() -> str:
    """The name and version of the library behind strata.fft, or why there is none."""
    return _C._fourier_report()


@contextmanager
def library(enabled: bool = True) -> Iterator[None]:
    """Whether operators may use the library; False gives the generated kernels' bits. Restored at the end of the block."""
    before = _C._set_library_enabled(enabled)
    try:
        yield
    finally:
        _C._set_library_enabled(before)


def _library_namespace(name: str, is_available: Callable[[], bool], **settings: object) -> ModuleType:
    module = _lazy.made(f"strata.backends.{name}", "What programs ask of the library, and settings that they make.")
    module.is_available = is_available
    module.flags = lambda *args, **kwargs: nullcontext()
    vars(module).update(settings)
    return module


def _get_cpu_capability() -> str:
    """The instructions that kernels are made of, by PyTorch's words: DEFAULT, AVX2 or AVX512."""
    return {"v4": "AVX512", "v3": "AVX2"}.get(_C.cpu_capability(), "DEFAULT")


fp32_precision = "none"  # kept for programs that set it: products of float32 are computed in float32
quantized = _library_namespace("quantized", lambda: False, supported_engines=["none"], engine="none")
mkldnn = _library_namespace("mkldnn", lambda: library_report().startswith("oneDNN"), enabled=True, deterministic=False)
openmp = _library_namespace("openmp", lambda: True)
cpu = _library_namespace("cpu", lambda: True, get_cpu_capability=_get_cpu_capability)
mkl = _library_namespace("mkl", lambda: False)
nnpack = _library_namespace("nnpack", lambda: False)
opt_einsum = _library_namespace("opt_einsum", lambda: False, enabled=False, strategy=None)


def _get_fastpath_enabled() -> bool:
    """Whether encoders leave padding out in evaluation, see strata.nn.TransformerEncoder, and attention's results have no gaps there."""
    from strata.nn.modules import multihead_attention

    return multihead_attention.fastpath_enabled


def _set_fastpath_enabled(value: bool) -> None:
    from strata.nn.modules import multihead_attention

    multihead_attention.fastpath_enabled = bool(value)


mha = _library_namespace("mha", lambda: True, get_fastpath_enabled=_get_fastpath_enabled, set_fastpath_enabled=_set_fastpath_enabled)
globals().update(_device_words.backends())
