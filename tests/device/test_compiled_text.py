"""The text of compiled graphs in the dialect of a device that is not here: NVRTC compiles it for sm_90, where it is found."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import devices
import pytest
import strata
from strata.nn import functional as F

DEVICE = devices.null()


def nvrtc():
    """STRATA_NVRTC, or the wheel nvidia-cuda-nvrtc's library."""
    named = [Path(os.environ["STRATA_NVRTC"])] if "STRATA_NVRTC" in os.environ else []
    for folder in sys.path:
        named += sorted(Path(folder).glob("nvidia/cuda_nvrtc/lib/libnvrtc.so*")) + sorted(Path(folder).glob("nvidia/cu*/lib/libnvrtc.so*"))
    for file in named:
        try:
            return ctypes.CDLL(str(file))
        except OSError:
            continue
    return None


def compiled(library, text: str) -> str:
    """What the compiler says to the text; nothing where it is right."""
    program = ctypes.c_void_p()
    options = [b"--gpu-architecture=sm_90", b"--fmad=false", b"--ftz=false", b"--prec-div=true", b"--prec-sqrt=true"]
    assert library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"graph.cu", 0, None, None) == 0
    status = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    size = ctypes.c_size_t()
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return log.value.decode() or "no words" if status else ""


def texts(name: str) -> list[str]:
    """Of a forward and a backward in two dtypes, and of long rows. Loads the device's plugin, which stays."""
    strata.accelerator.load(devices.plugin(name))
    x, w = strata.randn(64, 300, device=DEVICE), strata.randn(300, device=DEVICE)

    def f(x, w):
        return F.dropout(F.gelu(F.layer_norm(x, (300,), w, w)), 0.3).softmax(-1)

    found = []
    for dtype in (strata.float32, strata.bfloat16):
        leaves = [t.to(dtype).requires_grad_() for t in (x, w)]
        graph = strata.graph(f, *leaves).compile()
        found += [text for _, text in strata._C._compiled_text(graph._handle, f"source {name}")]
    long = strata.graph(lambda x: (x.sin() ** 2).sum() + x.amax(), strata.randn(200_000, device=DEVICE)).compile()
    return found + [text for _, text in strata._C._compiled_text(long._handle, f"source {name}")]


def test_nvrtc_compiles_the_kernels_of_graphs():
    if not devices.plugin("cuda").exists():
        pytest.skip("the plugin is not in this build")
    # In a process of its own: others ask what happens where no plugin offers the device.
    folder = str(Path(__file__).parent)
    program = f"import sys, json; sys.path.insert(0, {folder!r}); import test_compiled_text as t; print(json.dumps(t.texts('cuda')))"
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    made = json.loads(child.stdout.splitlines()[-1])
    assert len(made) == 5 and all("__global__" in t and "__launch_bounds__" in t for t in made[:4])
    library = nvrtc()
    if library is None:
        pytest.skip("NVRTC is not here: pip install nvidia-cuda-nvrtc-cu12, or STRATA_NVRTC")
    for text in made:
        assert not compiled(library, text)


def test_a_device_that_nobody_offers_and_a_graph_of_the_cpu():
    there = strata.graph(lambda x: x.exp(), strata.randn(3, device=DEVICE)).compile()
    with pytest.raises(ValueError, match="no plugin offers the device nowhere"):
        strata._C._compiled_text(there._handle, "source nowhere")
    here = strata.graph(lambda x: x.exp(), strata.randn(3)).compile()
    with pytest.raises(ValueError, match="expected a graph of a device's tensors"):
        strata._C._compiled_text(here._handle, "source null")
