"""Devices from outside, on the null device: loading, memory, queues, what fails, what falls back, training."""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import shutil
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import devices
import pytest
import strata
from strata.testing._device.whole import Net, trained

DEVICE = devices.null()
CONTROL = ctypes.CDLL(str(devices.plugin("null"))).strata_null_control


def control(what: str, value: object) -> None:
    assert CONTROL(what.encode(), str(value).encode()) == 0


@contextlib.contextmanager
def asked(what: str, value: object):
    control(what, value)
    try:
        yield
    finally:
        control(what, 0)


@contextlib.contextmanager
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(autouse=True)
def a_ledger_of_its_own():
    strata.fallback.reset()
    yield
    strata.accelerator.synchronize(DEVICE)


def parts_of_strata() -> dict:
    return {name: dict(vars(m)) for name, m in list(sys.modules.items()) if name.split(".")[0] == "strata"}


def test_loading_twice_is_one_plugin_and_changes_no_module():
    before = parts_of_strata()
    assert strata.accelerator.load(devices.plugin("null")) == "null"
    after = parts_of_strata()
    assert before.keys() == after.keys()
    for name, values in before.items():
        assert all(after[name].get(k) is v for k, v in values.items()), name


def test_a_library_that_is_no_plugin_and_a_file_that_is_none(tmp_path):
    with pytest.raises(RuntimeError, match="expected a shared object"):
        strata.accelerator.load(tmp_path / "absent.so")
    with pytest.raises(RuntimeError, match="expected a plugin with the symbol strata_device_v0"):
        strata.accelerator.load(devices.plugin("null").parent.parent.parent / "libstrata.so")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("table.size = sizeof table; table.minor = STRATA_SDK_MINOR + 1;", "expected a plugin for version 0.*build it anew"),
        ("table.size = 12; table.minor = STRATA_SDK_MINOR;", "a table of 12 bytes"),
        ('strcpy(error, "no such machine"); return 0;', "can't be used: no such machine"),
        ('table.size = sizeof table; table.minor = STRATA_SDK_MINOR; table.name = "NO";', "lower case letters, got 'NO'"),
    ],
)
def test_plugins_that_do_not_fit(tmp_path, body, words):
    compiler = shutil.which("cc") or shutil.which("clang-19")
    if compiler is None:
        pytest.skip("needs a C compiler")
    (tmp_path / "p.c").write_text(
        '#include "strata/sdk/device.h"\n#include <string.h>\nstatic StrataDevice table;\n'
        f"const StrataDevice* strata_device_v0(const StrataHost* host, char* error, uint64_t room) {{ {body} return &table; }}\n"
    )
    subprocess.run([compiler, "-shared", "-fPIC", "-I", devices.ROOT / "include", "-o", tmp_path / "p.so", tmp_path / "p.c"], check=True)
    with pytest.raises(RuntimeError, match=words):
        strata.accelerator.load(tmp_path / "p.so")


def test_the_environment_names_plugins():
    program = "import strata; print(strata.zeros(2, device='null:1').device, strata.accelerator.current_accelerator())"
    env = {**os.environ, "STRATA_PLUGINS": str(devices.plugin("null")), "PYTHONPATH": str(devices.ROOT / "python")}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["null:1", "null"]
    env["STRATA_PLUGINS"] = "/nowhere/libx.so"
    done = subprocess.run([sys.executable, "-c", "import strata; strata.device('null')"], env=env, capture_output=True, text=True, check=False)
    assert "expected one of cpu, meta device type" in done.stderr and "/nowhere/libx.so" in done.stderr


def test_tensors_move_with_their_strides_and_values():
    for t in (strata.randn(3, 4).t(), strata.arange(24).reshape(2, 3, 4)[:, ::2], strata.ones(2, 1).expand(2, 3), strata.zeros(0, 3)):
        there = t.to(DEVICE)
        assert there.device == strata.device("null:0") and there.cpu().equal(t)
        assert there.to("null:1").device.index == 1 and there.to("null:1").cpu().equal(t)
        if t.numel() and t.stride()[-1]:
            assert there.stride() == (t.contiguous().stride() if t.shape == (2, 2, 4) else t.stride())
    back = strata.zeros(2, 2)
    back.copy_(strata.eye(2, device=DEVICE))
    assert back.tolist() == [[1, 0], [0, 1]]
    there = strata.zeros(2, 2, device=DEVICE, dtype=strata.int64)
    there[1] = strata.tensor([2.5, -1])
    assert there.tolist() == [[0, 0], [2, -1]] and there[1, 0].item() == 2
    with pytest.raises(RuntimeError, match="same device"):
        there + strata.ones(2, 2)
    with pytest.raises(RuntimeError, match="below 2"):
        strata.zeros(1, device="null:7")


def test_indices_of_the_cpu_come_along():
    there = strata.arange(6.0, device=DEVICE).reshape(3, 2)
    assert there[[2, 0]].tolist() == [[4, 5], [0, 1]] and there[strata.tensor([1])].device.type == "null"
    with quiet():
        assert there[there > 3].tolist() == [4, 5]
    there[[0, 1], [1, 0]] = strata.tensor([7.0, 8.0], device=DEVICE)
    assert there.tolist() == [[0, 7], [8, 3], [4, 5]]


def test_results_lie_where_they_are_asked_for():
    there = strata.ones(2, 3, device=DEVICE)
    assert strata.zeros_like(there, device="cpu").device.type == "cpu"
    assert strata.ones_like(strata.ones(2), device=DEVICE).device == there.device
    assert there.new_full((2,), 3.0, device="null:1").tolist() == [3, 3]


def test_a_module_on_a_device_has_nothing_to_share():
    made = strata.nn.Linear(2, 2, device=DEVICE)
    assert made.share_memory() is made and made.weight.device.type == "null" and not made.weight.is_shared()


def test_a_compiled_graph_runs_on_the_device():
    def f(x, w):
        return (x @ w).softmax(-1).sum()

    x, w = strata.randn(3, 4, device=DEVICE), strata.randn(4, 5, device=DEVICE, requires_grad=True)
    with quiet():
        want = f(x, w)
        (grad,) = strata.autograd.grad(want, w)
        compiled = strata.graph(f, x, w).compile()
        got = compiled(x, w)
        (other,) = strata.autograd.grad(got, w)
    assert got.equal(want) and other.equal(grad) and got.device == x.device


def test_the_host_cannot_read_a_devices_memory():
    there = strata.ones(3, device=DEVICE)
    with pytest.raises((RuntimeError, TypeError), match="null|cpu"):
        there.numpy()
    assert "device='null:0'" in repr(there)


def test_a_call_returns_before_the_work_is_done():
    there = strata.ones(4, device=DEVICE)
    there + there  # compiled
    strata.accelerator.synchronize(DEVICE)
    with asked("delay_us", 20000):
        start = time.perf_counter()
        for _ in range(5):
            there = there + there
        called = time.perf_counter() - start
        assert there.tolist() == [32] * 4
        waited = time.perf_counter() - start
    assert waited > 0.1 > 4 * called


def test_an_index_outside_and_a_division_by_zero_name_operator_and_line():
    table, index = strata.ones(3, 2, device=DEVICE), strata.tensor([7], device=DEVICE)
    table.index_select(0, index)
    with pytest.raises(IndexError, match=r"index_select.*test_null\.py:\d+"):
        strata.accelerator.synchronize(DEVICE)
    one = strata.tensor([1], device=DEVICE)
    one // strata.tensor([0], device=DEVICE)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        one.tolist()
    assert one.tolist() == [1] and table.sum().item() == 6


def test_an_index_outside_of_what_has_no_places():
    """No kernel is launched for a result without elements; the index is refused as on the CPU."""
    for shape in ((0, 3), (3, 0)):
        x, index = strata.zeros(shape).to(DEVICE), strata.tensor([5]).to(DEVICE)
        for fill in (lambda x=x, index=index: x.index_fill_(0, index, 1.0), lambda x=x, index=index: x.index_fill(0, index, 1.0)):
            with pytest.raises(IndexError, match="index 5 is out of bounds for dimension 0 with size"):
                fill()
                strata.accelerator.synchronize()
        assert x.index_fill_(0, index[:0], 1.0).shape == shape


def test_indices_outside_where_there_is_nothing_to_give():
    outside = strata.tensor([1, 7])

    def calls(device):
        table, i = strata.ones(3, 0, device=device), outside.to(device)
        yield lambda: table.index_select(0, i)
        yield lambda: strata.nn.functional.embedding(i, table)
        yield lambda: table.index_add(0, i, strata.ones(2, 0, device=device))
        yield lambda: table.index_copy(0, i, strata.ones(2, 0, device=device))
        yield lambda: table[:0].take(i)
        for f in (lambda i, t: t.index_select(0, i), lambda i, t: strata.nn.functional.embedding(i, t)):
            compiled = strata.graph(f, i * 0, table).compile()
            yield lambda compiled=compiled: compiled(i, table)

    for own, there in zip(calls("cpu"), calls(DEVICE), strict=True):
        for call in (own, there):
            with pytest.raises((IndexError, RuntimeError), match="index|empty"):
                call()
                strata.accelerator.synchronize(DEVICE)


def test_results_that_are_given_and_what_they_are_made_of():
    x = strata.randn(4, 5)
    for name in ("softmax", "log_softmax", "cumsum", "logcumsumexp"):
        want, there, other = getattr(strata, name)(x, 1), x.to(DEVICE), strata.empty(0, device=DEVICE)
        getattr(strata, name)(there, 1, out=other)
        getattr(strata, name)(there, 1, out=there)
        assert there.cpu().equal(want) and other.cpu().equal(want), name


def test_without_a_fallback_wrong_arguments_are_told_as_ever():
    x = strata.ones(3, 4, device=DEVICE)
    strata.fallback.off()
    try:
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            x @ x
        with pytest.raises(RuntimeError, match="Expected p_in"):
            strata.bernoulli(x + 1)
        with pytest.raises(NotImplementedError, match="aten::sort.*fallback"):
            x.sort()
        assert strata.bernoulli(x).sum().item() == 12
    finally:
        strata.fallback.on()


def test_a_failing_kernel_is_told_once_and_the_device_goes_on():
    there = strata.ones(4, device=DEVICE)
    with asked("fail_kernel", 1):
        there.mul_(2)
        with pytest.raises(RuntimeError, match="null: .*a kernel failed"):
            strata.accelerator.synchronize(DEVICE)
    assert (there + 1).tolist() == [2] * 4


def test_faults_of_memory_leave_what_there_was():
    strata.accelerator.empty_cache(DEVICE)
    keep = strata.ones(1000, device=DEVICE)
    before = strata.accelerator.memory_allocated(DEVICE)
    chooser = random.Random(3)
    for turn in range(200):
        # The first time the cache is given back and it is tried again; a second fault is the program's.
        n = chooser.randrange(1 << 20, 1 << 21)
        with asked("fail_allocation", 1):
            made = strata.zeros(n, device=DEVICE)
        del made
        strata.accelerator.empty_cache(DEVICE)
        if turn % 20 == 0:
            with pytest.raises(RuntimeError, match=r"live \d+ bytes"):
                strata.zeros(1 << 40, device=DEVICE)
        assert strata.accelerator.memory_allocated(DEVICE) == before
    assert keep.sum().item() == 1000


def test_fallback_warns_once_and_is_in_the_ledger():
    x = strata.randn(4, 4)
    with asked("hide", "aten::asinh"):
        there = x.to(DEVICE)
        with pytest.warns(UserWarning, match="The operator 'aten::asinh' is not currently supported on the null backend"):
            made = there.asinh()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert there.asinh().cpu().equal(x.asinh()) and made.device.type == "null"
        row = strata.fallback.rows()[0]
        assert (row.op, row.device, row.calls, row.bytes) == ("aten::asinh", "null", 2, 256) and row.us > 0
        assert "aten::asinh" in strata.fallback.report() and "100.0%" in strata.fallback.report()
        strata.fallback.off()
        try:
            with pytest.raises(NotImplementedError, match=r"aten::asinh.*'null'.*fallback\.on"):
                there.asinh()
        finally:
            strata.fallback.on()
        strata.fallback.budget(0)
        there.asinh()
        with pytest.raises(RuntimeError, match="at most 0 us of fallbacks"):
            there.asinh()
        strata.fallback.budget(None)
    assert there.asinh().cpu().equal(x.asinh())


def test_fallback_writes_back():
    with asked("hide", "aten::add_.Tensor aten::sort aten::cumsum"), quiet():
        base = strata.zeros(3, 3, device=DEVICE)
        base[1].add_(strata.ones(3, device=DEVICE))
        assert base.tolist() == [[0] * 3, [1] * 3, [0] * 3]
        out = strata.empty(0, device=DEVICE)
        strata.cumsum(base.flatten()[3:6], 0, out=out)
        assert out.tolist() == [1, 2, 3]
        values, places = strata.tensor([3.0, 1, 2], device=DEVICE).sort()
        assert values.tolist() == [1, 2, 3] and places.device.type == "null"


@pytest.mark.parametrize("optimizer", [lambda p: strata.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: strata.optim.AdamW(p, lr=0.01)], ids=["sgd", "adamw"])
def test_training_has_the_cpus_bits(optimizer):
    with quiet():
        want, weights = trained("cpu", 20, optimizer)
        got, others = trained(DEVICE, 20, optimizer)
    assert got == want and want[-1] < want[0]
    assert all(a.equal(b) for a, b in zip(weights, others))


def test_hidden_operators_change_no_bits():
    """An operator of a network is hidden at random, 50 times under --all: loss and gradients are those of the native run, and
    the ledger names that operator with its calls and bytes."""

    def step():
        strata.manual_seed(1)
        net = Net()
        x, y = strata.randn(8, 12).to(DEVICE), strata.randint(4, (8,)).to(DEVICE)
        net.to(DEVICE)
        strata.manual_seed(2)
        loss = strata.nn.functional.nll_loss(net(x), y)
        loss.backward()
        return [loss.detach().cpu(), *(p.grad.cpu() for p in net.parameters())]

    def ledger():
        return {r.op: (r.calls, r.bytes) for r in strata.fallback.rows()}

    with quiet():
        want = step()
        native = ledger()
        strata.fallback.reset()
        with asked("hide", " ".join(strata.ops.names())):
            assert all(a.equal(b) for a, b in zip(step(), want))
        calls = {op: n for op, n in ledger().items() if op not in native}
        assert len(calls) > 15 and {"aten::gelu", "aten::gelu_backward", "aten::nll_loss_forward"} <= set(calls)
        chooser = random.Random(os.environ.get("STRATA_TEST_SEED", "7"))
        for _ in range(50 if os.environ.get("STRATA_TEST_ALL") else 8):
            hidden = chooser.choice(sorted(calls))
            strata.fallback.reset()
            with asked("hide", hidden):
                got = step()
            assert all(a.equal(b) for a, b in zip(got, want)), hidden
            found = ledger()
            assert {op: n for op, n in found.items() if op not in native} == {hidden: calls[hidden]}, hidden
            assert calls[hidden][0] > 0 and calls[hidden][1] > 0, hidden


def test_threads_share_a_device():
    want = [strata.arange(100).mul(k).sum().item() for k in range(8)]
    got = [None] * 8

    def work(k):
        got[k] = strata.arange(100, device=DEVICE).mul(k).sum().item()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))  # raises what one of them does
    assert got == want


def test_a_convolution_without_bias_keeps_the_sign_of_what_underflows():
    x, w = strata.full((1, 1, 4), -1e-30), strata.full((1, 1, 1), 1e-30)
    strata._C._set_library_enabled(False)
    try:
        expected = strata.conv1d(x, w)
        assert expected.signbit().all() and strata.conv1d(x.to(DEVICE), w.to(DEVICE)).cpu().signbit().all()
    finally:
        strata._C._set_library_enabled(True)


def test_a_gradient_lies_where_its_tensor_does():
    for build, want in (
        (lambda x: x.to(DEVICE), 3.0),
        (lambda x: x.to(DEVICE, strata.float64), 3.0),
        (lambda x: strata.empty(3, device=DEVICE).copy_(x), 3.0),
        (lambda x: strata.ones(3, device=DEVICE) * x.sum(), 9.0),
        (lambda x: x.to(DEVICE).to(strata.device("null", 1)), 3.0),
    ):
        x = strata.randn(3, requires_grad=True)
        (build(x) * 3).sum().backward()
        assert x.grad.device.type == "cpu" and x.grad.equal(strata.full((3,), want))
        there = x.detach().to(DEVICE).requires_grad_()
        (there.cpu() * 2).sum().backward()
        assert there.grad.device == there.device and there.grad.cpu().equal(strata.full((3,), 2.0))
