"""strata.as_torch(): libraries that import torch get strata."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import strata
strata.as_torch()
strata.as_torch()
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
import torch.utils._pytree
import importlib.metadata, importlib.util, pickle
assert torch is strata and nn is strata.nn and F is strata.nn.functional and nn.Linear is strata.nn.Linear
assert torch.utils._pytree is strata.utils._pytree and sys.modules["torch.nn"] is strata.nn
assert strata.nn.__spec__.name == "strata.nn" and strata.nn.__name__ == "strata.nn"
assert importlib.metadata.version("torch") == torch.__version__ and importlib.util.find_spec("torch") is not None
assert importlib.util.find_spec("torch.nothing_like_it") is None and importlib.util.find_spec("torch.optim") is not None
try:
    import torch.nothing_like_it
except ModuleNotFoundError as error:
    assert error.name == "torch.nothing_like_it"
else:
    raise AssertionError
x = torch.ones(2, 3, dtype=torch.float64)
assert str(x.dtype) == "torch.float64" and repr(x.shape) == "torch.Size([2, 3])" and repr(x).endswith("dtype=torch.float64)")
assert str(torch.channels_last) == "torch.channels_last" and str(torch.strided) == "torch.strided"
for name in ("complex32", "float8_e4m3fn", "qint8", "sparse_coo", "sparse_csr", "jagged"):
    assert str(getattr(torch, name)) == repr(getattr(torch, name)) == "torch." + name
assert x.type() == torch.typename(x) == "torch.DoubleTensor" and x.to_sparse().type() == "torch.sparse.DoubleTensor"
assert "layout=torch.sparse_coo" in repr(x.to_sparse()) and "layout=torch.sparse_csr" in repr(x.to_sparse_csr())
assert str(torch.FloatTensor) == "<class 'torch.FloatTensor'>" and pickle.loads(pickle.dumps(torch.complex32)) is torch.complex32
assert pickle.loads(pickle.dumps(x.dtype)) is torch.float64
graph = strata.graph(lambda t: t.sin(), x)
assert strata.load_graph is not None
layer = pickle.loads(pickle.dumps(nn.Linear(2, 2)))
assert type(layer) is nn.Linear
print(torch.compile(layer)(torch.ones(1, 2)).shape)
"""


def run(text: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", "import sys\n" + text], capture_output=True, text=True)


def test_stands_in():
    done = run(PROGRAM)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "torch.Size([1, 2])\n"


def test_after_another_torch():
    done = run("import types\nsys.modules['torch'] = types.ModuleType('torch')\nimport strata\nstrata.as_torch()")
    assert done.returncode == 1 and "before anything imports torch" in done.stderr


def test_names_of_devices_that_are_not_here():
    done = run(
        "import strata\n"
        "from strata import _device_words\n"
        "for name in _device_words.device_names():\n"
        "    d = strata.device(name)\n"
        "    assert d.type == name and d.index is None and strata.device(f'{name}:1').index == 1 and d == strata.device(name)\n"
        "    for use in (lambda: strata.zeros(2, device=d), lambda: strata.ones(2).to(name), lambda: strata.zeros(2, device=name)):\n"
        "        try:\n"
        "            use()\n"
        "        except RuntimeError as error:\n"
        "            assert 'load the plugin' in str(error), error\n"
        "        else:\n"
        "            raise AssertionError(name)\n"
        "    assert not getattr(strata.ones(1), f'is_{name}')\n"
        "try:\n"
        "    strata.device('abacus')\n"
        "except RuntimeError as error:\n"
        "    assert 'abacus' in str(error)\n"
        "else:\n"
        "    raise AssertionError\n"
    )
    assert done.returncode == 0, done.stderr


def test_autocast_for_devices_that_are_not_here():
    done = run(
        "import strata, warnings\n"
        "from strata import _device_words\n"
        "warnings.simplefilter('ignore')\n"
        "for name in _device_words.device_names():\n"
        "    for _ in range(2):\n"
        "        with strata.autocast(name), strata.autocast(name, enabled=False):\n"
        "            assert (strata.ones(2, 2) @ strata.ones(2, 2)).dtype is strata.float32\n"
        "        assert not strata.is_autocast_enabled(name) and not strata.amp.is_autocast_available(name)\n"
        "        strata.device(name)  # known by name from now on\n"
    )
    assert done.returncode == 0, done.stderr


def test_modules_of_devices():
    done = run(
        "import strata\n"
        "from strata import _device_words\n"
        "strata.as_torch()\n"
        "name = _device_words.device_names()[0]\n"
        "exec(f'import torch.{name}.amp; from torch.{name}.amp import GradScaler, autocast; import torch.{name}.nvtx')\n"
        "assert GradScaler is getattr(strata, name).amp.GradScaler\n"
    )
    assert done.returncode == 0, done.stderr


def test_kernels_for_devices_that_are_not_here():
    done = run(
        "import strata\n"
        "from strata import _device_words\n"
        "name = _device_words.device_names()[0]\n"
        "@strata.library.custom_op('absent::double', mutates_args=(), device_types=name)\n"
        "def double(x: strata.Tensor) -> strata.Tensor:\n"
        "    return x * 2\n"
        "try:\n"
        "    double(strata.ones(2))\n"
        "except NotImplementedError as error:\n"
        "    assert f'kernels exist for: {name};' in str(error), error\n"
        "else:\n"
        "    raise AssertionError\n"
        "double.register_kernel('cpu')(lambda x: x + x)\n"
        "assert double(strata.ones(2)).tolist() == [2.0, 2.0]\n"
    )
    assert done.returncode == 0, done.stderr


def test_empty_storages():
    done = run(
        "import strata\n"
        "s = strata.ones(3).untyped_storage()\n"
        "t = strata.asarray(s[0:0], dtype=strata.uint8)\n"
        "assert t.shape == (0,) and t.dtype is strata.uint8 and strata.asarray(s, dtype=strata.uint8).shape == (12,)\n"
    )
    assert done.returncode == 0, done.stderr


def test_einsum_of_a_list():
    """Who overrides it gets the operands, not their list."""
    import strata

    class Module(strata.nn.Module):
        def forward(self, a, b):
            return strata.einsum("ij,jk->ik", [a, b])

    traced = strata.fx.symbolic_trace(Module())
    (call,) = (n for n in traced.graph.nodes if n.op == "call_function")
    assert [str(a) for a in call.args] == ["ij,jk->ik", "a", "b"]
    a, b = strata.randn(2, 3), strata.randn(3, 4)
    assert strata.equal(traced(a, b), a @ b) and strata.equal(strata.einsum("ij,jk->ik", [a, b]), a @ b)
