"""Names that PyTorch's programs mention besides tensors and layers: they load, answer, or say what to do instead."""

import importlib
import subprocess
import sys

import numpy as np
import pytest
import strata
from strata import nn


@pytest.mark.parametrize(
    "name",
    "__config__ backends compiler cpu distributed distributions distributions.normal func fx hub jit multiprocessing "
    "nn.attention onnx types utils.checkpoint utils.data utils.dlpack utils.hooks utils.model_zoo version".split(),
)
def test_modules_import_both_ways(name):
    module = importlib.import_module(f"strata.{name}")
    found = strata
    for part in name.split("."):
        found = getattr(found, part)
    assert found is module


def test_marks_for_a_compiler_change_nothing():
    @strata.jit.ignore
    @strata.jit.unused
    @strata.jit.export
    @strata.jit.script_if_tracing
    @strata.compiler.disable
    def f(x):
        return x + 1

    @strata.jit.ignore(drop=True)
    @strata.compiler.disable(recursive=False)
    def g(x):
        return x + 1

    assert f(1) == g(1) == 2
    assert not (strata.jit.is_scripting() or strata.jit.is_tracing() or strata.compiler.is_compiling())
    assert strata.jit.annotate(list[int], [1]) == [1] and strata.jit.isinstance(1, (str, int))


def test_compilers_say_what_to_do():
    for call in (lambda: strata.onnx.export(nn.ReLU(), (), "f"),
                 lambda: strata.hub.load("a/b", "c"), lambda: strata.utils.model_zoo.load_url("x")):  # fmt: skip
        with pytest.raises(NotImplementedError, match="is not provided: "):
            call()


def test_distributed_is_not_available():
    d = strata.distributed
    assert not d.is_available() and not d.is_initialized() and not d.is_gloo_available()
    with pytest.raises(NotImplementedError, match="this version trains in one process"):
        d.init_process_group("gloo")
    assert d.group.WORLD is None and isinstance(d.ReduceOp, type)


def words():
    import json

    from strata import _device_words

    return json.loads(json.dumps(_device_words._load()))


def test_settings_of_libraries_that_are_not_there():
    for name, entry in words()["backends"].items():
        module = getattr(strata.backends, name)
        assert importlib.import_module(f"strata.backends.{name}") is module
        for function, value in entry.get("answers", {}).items():
            assert getattr(module, function)() == value
        for setting, value in entry.get("settings", {}).items():
            assert getattr(module, setting) == value
            setattr(module, setting, "mine")
            assert getattr(module, setting) == "mine"
            setattr(module, setting, value)
        for context in entry.get("contexts", ()):
            with getattr(module, context)(enabled=True):
                pass
    assert strata.backends.openmp.is_available() and not strata.backends.mkl.is_available()
    assert isinstance(strata.backends.mkldnn.is_available(), bool)


def test_devices_that_are_not_there():
    for device in words()["devices"]:
        name = device["name"]
        if device["method"]:
            with pytest.raises(RuntimeError, match=f"Module.{name}: no plugin for the device"):
                getattr(nn.Linear(1, 1), name)()
        assert importlib.import_module(f"strata.{name}.amp") is getattr(strata, name).amp
        with strata.autocast(name, enabled=False):
            assert (strata.ones(2, 2) @ strata.ones(2, 2)).dtype == strata.float32
        with pytest.warns(UserWarning, match="stays off"):
            getattr(strata, name).amp.autocast()
        assert not getattr(strata, name).amp.GradScaler(enabled=False).is_enabled()
        for kind in (n for n in words()["raising"] if n[0].isupper()):
            cls = getattr(getattr(strata, name), kind)
            assert not isinstance(3, cls)
            with pytest.raises(RuntimeError, match=rf"strata.{name}.{kind}: no plugin"):
                cls()
    for name in words()["versions"]:
        assert getattr(strata.version, name) is None
    with pytest.raises(AttributeError, match="nope"):
        strata.version.nope  # noqa: B018


def test_autocast_of_a_device_by_import():
    name = words()["devices"][0]["name"]
    code = (f"import strata; from strata.{name}.amp import autocast, GradScaler\n"
            "with autocast(enabled=False): assert not strata.is_autocast_enabled('cpu')\n"
            "assert isinstance(autocast(), strata.amp.autocast) and isinstance(GradScaler(enabled=False), strata.amp.GradScaler)")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_attention_backends():
    from strata.nn.attention import SDPBackend, sdpa_kernel

    assert SDPBackend.MATH == 0 and all(getattr(SDPBackend, k) == v for k, v in words()["attention"].items())
    q = strata.ones(1, 2, 3)
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
        assert nn.functional.scaled_dot_product_attention(q, q, q).shape == q.shape
    with pytest.raises(AssertionError, match="instance of SDPBackend"), sdpa_kernel(["math"]):
        pass


def test_legacy_classes():
    assert strata.FloatTensor(2, 3).shape == (2, 3) and strata.LongTensor().shape == (0,)
    assert strata.LongTensor([1, 2]).tolist() == [1, 2] and strata.LongTensor([2]).dtype == strata.int64
    assert strata.DoubleTensor(np.ones(2)).dtype == strata.float64 and strata.FloatTensor(strata.Size([2])).shape == (
        2,
    )
    x = strata.ones(2)
    assert isinstance(x, strata.FloatTensor) and not isinstance(x, strata.LongTensor)
    assert x.type() == "strata.FloatTensor" and x.type(strata.LongTensor).dtype == strata.int64
    assert x.type(strata.float32) is x and x.type("strata.DoubleTensor").dtype == strata.float64
    assert repr(strata.ByteTensor) == "<class 'strata.ByteTensor'>"
    with pytest.raises(TypeError, match="data must be a sequence"):
        strata.FloatTensor(3.5)
    with pytest.raises(TypeError, match="expected a tensor of strata.int64, got strata.float32"):
        strata.LongTensor(x)
    assert x.new(2, 3).shape == (2, 3) and x.long().new([3]).dtype == strata.int64 and x.new(x).equal(x)


def test_layouts_to_compare_with():
    x = strata.ones(1)
    assert x.layout == strata.strided and x.layout != strata.sparse_coo
    assert repr(strata.sparse_csr) == "strata.sparse_csr"
    assert x.dtype != strata.float8_e4m3fn and x.dtype not in (strata.qint8, strata.complex32)
    with pytest.raises(TypeError):
        strata.ones(1, dtype=strata.float8_e5m2)


def test_what_there_is_none_of():
    assert not isinstance(3, (strata.SymInt, strata.SymFloat, strata.SymBool))
    x = strata.ones(2)
    assert x.to_dense() is x and x.to_dense(strata.float64).dtype == strata.float64
    assert strata.is_same_size(x, strata.zeros(2)) and not x.is_same_size(strata.zeros(1))
    assert not strata.is_conj(x) and not strata.is_neg(x) and strata.get_device(x) == -1
    assert strata.is_signed(x) and not strata.is_signed(x.to(strata.uint8))
    assert strata.set_flush_denormal(True) is False and strata.set_warn_always(True) is None
    # In a process of its own: other tests load devices.
    told = subprocess.run([sys.executable, "-c", "import strata; strata.ones(2).pin_memory()"], capture_output=True, text=True).stderr
    assert "RuntimeError: pin_memory: no accelerator is available" in told


def test_operators_of_python_refuse_as_they_should():
    with pytest.raises(TypeError, match="only implemented on integer and Boolean"):
        ~strata.ones(1)
    with pytest.raises(RuntimeError, match="invert a mask"):
        -strata.tensor([True])
    x = strata.ones(1)
    assert x.to() is x and (~strata.tensor([True])).tolist() == [False]


def test_zeros_for_what_was_not_used():
    x, y = strata.ones(2, requires_grad=True), strata.ones(2, requires_grad=True)
    plain = strata.autograd.grad((x * x).sum(), [x, y], materialize_grads=True)
    assert plain[1].tolist() == [0, 0] and not plain[1].requires_grad
    again = strata.autograd.grad((x * x).sum(), [x, y], materialize_grads=True, create_graph=True)
    assert again[0].requires_grad and again[1].requires_grad


SPAWN = """
import time, strata, strata.multiprocessing as mp
def work(i, total): assert strata.ones(2).sum() + i < total, "too much"
def stuck(i):
    if i == 1: raise SystemExit(7)
    time.sleep(45)
if __name__ == "__main__":
    mp.set_sharing_strategy("file_system")
    mp.spawn(work, args=(4,), nprocs=2)
    try:
        mp.spawn(work, args=(3,), nprocs=2)
    except mp.ProcessRaisedException as error:
        print("raised", "Process 1 terminated" in str(error), "too much" in str(error))
    started = time.monotonic()
    try:
        mp.spawn(stuck, nprocs=3)
    except mp.ProcessExitedException as error:
        print("ended", "exit code 7" in str(error), time.monotonic() - started < 30)
"""


def test_spawn(tmp_path):
    script = tmp_path / "spawn.py"
    script.write_text(SPAWN)
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=50, check=True)
    assert run.stdout.strip() == "raised True True\nended True True"


LOADER = """
import strata
from strata.utils.data import DataLoader, Dataset
class Local(Dataset):
    def __len__(self): return 4
    def __getitem__(self, i): return strata.ones(2) * i
print(sum(float(b.sum()) for b in DataLoader(Local(), 2, num_workers=2, collate_fn=lambda b: strata.stack(b))))
"""


@pytest.mark.skipif(sys.platform != "linux" or sys.version_info >= (3, 14), reason="where fork is Python's default")
def test_loader_in_a_plain_script(tmp_path):
    script = tmp_path / "loader.py"
    script.write_text(LOADER)
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=50, check=True)
    assert run.stdout.strip() == "12.0"


def test_old_names():
    x = strata.arange(-3.0, 3.0)
    assert strata.rrelu_(x.clone()).tolist() == strata.nn.functional.rrelu_(x.clone()).tolist() == strata.rrelu(x).tolist()
    assert strata.alpha_dropout_(x.clone(), 0.5, False).tolist() == x.tolist()
    assert strata.feature_alpha_dropout(x[None, None], 0.5, False).shape == (1, 1, 6)
    assert x.is_set_to(x.view(6)) and not x.is_set_to(x[1:]) and not x.is_set_to(x.clone())
    parts = [strata.utils.data.TensorDataset(x)] * 2
    assert strata.utils.data.ConcatDataset(parts).cummulative_sizes == [6, 12]
    module = strata.func.replace_all_batch_norm_modules_(strata.nn.Sequential(strata.nn.BatchNorm1d(3)))
    assert module[0].running_mean is None and module(strata.randn(4, 3)).shape == (4, 3)
    strata.testing.assert_allclose(x, x.double() + 1e-7)
    with pytest.raises(AssertionError):
        strata.testing.assert_allclose([1.0], [2.0])
