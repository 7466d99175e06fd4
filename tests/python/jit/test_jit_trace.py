"""jit.trace: traces run with eager's bits, for other shapes too, and refuse inputs that would take another way through the function."""

import copy
import io
import pickle
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
import strata
from strata import nn
from strata.jit import TracerWarning


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
        self.norm, self.unused = nn.BatchNorm1d(2), nn.Linear(1, 1)
        self.register_buffer("scale", strata.tensor(2.0))

    def forward(self, x):
        return self.norm(self.layers(x)) * self.scale

    def doubled(self, x):
        return self.layers(x) * 2


def branch(x):
    if x.sum() > 0:
        return x * 2
    return -x


def same(a, b):
    return a.dtype == b.dtype and strata.equal(a, b)


def quiet(*args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TracerWarning)
        return strata.jit.trace(*args, **kwargs)


def test_a_branch_warns_and_the_other_one_is_refused():
    with pytest.warns(TracerWarning, match="Converting a tensor to a Python boolean might cause the trace to be incorrect") as found:
        traced = strata.jit.trace(branch, strata.ones(2, 3))
    line = branch.__code__.co_firstlineno + 1
    assert {(w.filename, w.lineno) for w in found} == {(__file__, line)}
    for x in (strata.ones(2, 3) * 3, strata.ones(5), strata.ones(2, 3, dtype=strata.float64)):
        assert same(traced(x), branch(x))
    for x in (-strata.ones(2, 3), -strata.ones(5), -strata.ones(4)):
        with pytest.raises(RuntimeError, match="became a Python boolean, which was True for the example inputs and False") as error:
            traced(x)
        assert f'File "{__file__}", line {line}, in branch\n    if x.sum() > 0:' in str(error.value)
    assert "neg" not in traced.code and traced.name == "branch"


READS = {
    "__int__": (lambda x: x * int(x.sum()), "a Python integer"),
    "__float__": (lambda x: x * float(x.sum()), "a Python float"),
    "__index__": (lambda x: x * [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0][x.sum().long()], "a Python index"),
    "item": (lambda x: x + x.sum().item(), "a Python number"),
    "tolist": (lambda x: x + x.tolist()[0][1], "a Python list"),
    "numpy": (lambda x: x + float(x.numpy().sum()), "a NumPy array"),
}


@pytest.mark.parametrize("name", READS)
def test_values_that_are_read_are_guarded(name):
    f, kind = READS[name]
    x = strata.ones(2, 3)
    with pytest.warns(TracerWarning, match=f"Converting a tensor to {kind} might"):
        traced = strata.jit.trace(f, x)
    assert same(traced(x), f(x))
    with pytest.raises(RuntimeError, match=f"became {kind}, which was"):
        traced(strata.zeros(2, 3))
    assert not hasattr(strata.Tensor.item, "__wrapped__")


def test_nan_is_nan_and_what_is_written_later_is_read_as_it_was():
    def f(x):
        y = x * float("nan")
        y.mean().item()
        z = x + 0
        if z.sum() == 3:
            z.add_(1)
        return z, f"{x}" is None

    traced = quiet(f, strata.ones(3))
    assert same(traced(strata.tensor([0.0, 1.0, 2.0]))[0], strata.tensor([1.0, 2.0, 3.0]))
    with pytest.raises(RuntimeError, match="False"):
        traced(strata.zeros(3))


def test_texts_of_tensors_are_no_reads(capsys):
    def f(x):
        print(x, f"{x.sum()}")
        return x + 1

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traced = strata.jit.trace(f, strata.ones(2))
    assert same(traced(strata.zeros(2)), strata.ones(2)) and "tensor([1., 1.])" in capsys.readouterr().out


def test_sizes_may_decide():
    def f(x):
        for row in x:
            x = x + row.sum()
        return x * len(x) if x.shape[0] > 2 else x

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traced = strata.jit.trace(f, strata.randn(2, 3))
        for n in (2, 3, 5, 1):
            x = strata.randn(n, 3)
            assert same(traced(x), f(x))


def test_a_module_traced_shows_its_parts():
    net = Net().eval()
    traced = strata.jit.trace(net, strata.randn(5, 3))
    assert repr(traced) == """Net(
  original_name=Net
  (layers): Sequential(
    original_name=Sequential
    (0): Linear(original_name=Linear)
    (1): ReLU(original_name=ReLU)
    (2): Linear(original_name=Linear)
  )
  (norm): BatchNorm1d(original_name=BatchNorm1d)
  (unused): Linear(original_name=Linear)
)"""
    assert list(traced.state_dict()) == list(net.state_dict()) and getattr(traced.layers, "0").weight is net.layers[0].weight
    assert isinstance(traced, (strata.jit.ScriptModule, nn.Module)) and not traced.training
    for n in (5, 2, 7):
        x = strata.randn(n, 3)
        assert same(traced(x), net(x))
    with strata.no_grad():
        net.layers[0].weight.mul_(2)
    assert same(traced(x), net(x))
    names = {"strata": strata}
    exec(traced.code, names)
    assert same(names["forward"](net, x[:2].repeat(4, 1)[:5]), net(x[:2].repeat(4, 1)[:5]))


def test_a_convolution_takes_a_larger_picture():
    conv = nn.Conv2d(1, 1, 3)
    traced = strata.jit.trace(conv, strata.rand(1, 1, 3, 3))
    x = strata.rand(1, 1, 28, 28)
    assert same(traced(x), conv(x))


def test_gradients_go_through():
    net = Net().eval()
    traced = strata.jit.trace(net, strata.randn(4, 3))
    x = strata.randn(6, 3, requires_grad=True)
    inputs = [x, *net.layers.parameters()]
    for a, b in zip(strata.autograd.grad(traced(x).sum(), inputs), strata.autograd.grad(net(x).sum(), inputs)):
        assert same(a, b)


def test_a_trace_keeps_its_mode_and_a_new_shape_changes_nothing_twice():
    net = Net()
    traced = strata.jit.trace(net, strata.randn(4, 3), check_trace=False)
    reference = copy.deepcopy(net)
    net.eval()  # the trace is one of training
    for n in (4, 6, 6, 9):
        x = strata.randn(n, 3)
        assert same(traced(x), reference(x))
        assert all(same(a, b) for a, b in zip(net.buffers(), reference.buffers())) and not net.norm.training


def test_a_new_shape_draws_as_eager_does():
    drop = nn.Dropout(0.5)
    traced = strata.jit.trace(drop, strata.ones(3), check_trace=False)
    for n in (8, 8, 5):
        strata.manual_seed(n)
        expected = drop(strata.ones(n))
        strata.manual_seed(n)
        assert same(traced(strata.ones(n)), expected)


def test_checks_warn_of_random_numbers_and_differences():
    with pytest.warns(TracerWarning) as found:
        strata.jit.trace(lambda x: x + strata.rand(3), strata.ones(3))
    texts = [str(w.message) for w in found]
    assert "Trace had nondeterministic nodes. Did you forget call .eval() on your model?" in texts[0] and "aten::rand" in texts[0]
    assert "Output nr 1. of the traced function does not match the corresponding output of the Python function" in texts[1]
    count = []

    def counting(x):
        count.append(1)
        return x + len(count)

    with pytest.warns(TracerWarning, match="does not match"):
        strata.jit.trace(counting, strata.ones(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        strata.jit.trace(counting, strata.ones(3), check_trace=False)
        strata.jit.trace(lambda x: x * 2, strata.ones(3), check_inputs=[strata.zeros(3), strata.ones(5)])


def test_arguments_of_all_kinds():
    def f(pair, table, scale=2):
        return {"a": pair[0] * table["k"] + scale, "m": pair[1].max(0)}

    a, b, c = strata.randn(3), strata.randn(2, 3), strata.randn(3)
    traced = strata.jit.trace(f, ((a, b), {"k": c}))
    got = traced((c, b), {"k": a})
    assert same(got["a"], c * a + 2) and same(got["m"].values, b.max(0).values)
    assert same(traced((c, b), {"k": a}, scale=5)["a"], c * a + 5)
    by_name = strata.jit.trace(f, example_kwarg_inputs={"pair": (a, b), "table": {"k": c}})
    assert same(by_name(pair=(a, b), table={"k": c})["a"], a * c + 2)


def test_what_cannot_be_traced_is_refused():
    x = strata.ones(3)
    for call, kind, text in (
        (lambda: strata.jit.trace(branch, 3), TypeError, "example_inputs: expected a tensor or a tuple of arguments, got int"),
        (lambda: strata.jit.trace(3, x), TypeError, "func: expected a function or module, got int"),
        (lambda: strata.jit.trace(branch), RuntimeError, "example_kwarg_inputs should be a dict"),
        (lambda: quiet(lambda x: x[x > 0], x), RuntimeError, "the size of its result depends on the values"),
        (lambda: strata.jit.trace_module(branch, {}), AttributeError, "expected strata.nn.Module"),
        (lambda: strata.jit.save(nn.ReLU(), "x"), TypeError, "expected a traced function or module, got ReLU"),
    ):
        with pytest.raises(kind, match=text):
            call()
    assert not strata.jit.is_tracing()


def test_is_tracing_says_so():
    seen = []
    strata.jit.trace(lambda x: seen.append(strata.jit.is_tracing()) or x + 1, strata.ones(1), check_trace=False)
    assert seen == [True] and not strata.jit.is_tracing()


def test_other_threads_read_values():
    seen = []

    def f(x):
        thread = threading.Thread(target=lambda: seen.append(float(strata.ones(3).sum())))
        thread.start()
        thread.join()
        return x + 1

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        strata.jit.trace(f, strata.ones(1), check_trace=False)
    assert seen == [3.0]


def test_several_methods():
    net = Net().eval()
    x = strata.randn(4, 3)
    traced = strata.jit.trace_module(net, {"forward": x, "doubled": x})
    assert same(traced(x), net(x)) and same(traced.doubled(x), net.doubled(x))
    buffer = io.BytesIO()
    traced.save(buffer)
    assert same(strata.jit.load(io.BytesIO(buffer.getvalue())).doubled(x), net.doubled(x))
    with pytest.raises(RuntimeError, match="forward was not traced"):
        strata.jit.trace_module(net, {"doubled": x})(x)


def test_files_hold_every_form_and_run_without_the_program(tmp_path):
    net = Net().eval()
    traced = strata.jit.trace(net, strata.randn(4, 3))
    traced(strata.randn(2, 3))
    path = tmp_path / "net.st"
    strata.jit.save(traced, path, _extra_files={"note": "text"})
    x = strata.randn(2, 3)
    strata.save({"x": x}, tmp_path / "x.pt")
    code = (
        "import strata, sys; m = strata.jit.load(sys.argv[1]); x = strata.load(sys.argv[2])['x']\n"
        "print(m(x).tolist(), m(x.repeat(2, 1)).tolist(), list(m.state_dict()), m.original_name, m.training)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path), str(tmp_path / "x.pt")], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    expected = (net(x).tolist(), net(x.repeat(2, 1)).tolist(), list(net.state_dict()), "Net", False)
    assert done.stdout.split() == " ".join(map(str, expected)).split()
    extra = {"note": ""}
    loaded = strata.jit.load(str(path), _extra_files=extra)
    assert extra == {"note": b"text"} and loaded.code == traced.code
    with pytest.raises(ValueError, match=r"the loaded trace does not take \(float32\[9, 4\]\)"):
        loaded(strata.randn(9, 4))
    with strata.no_grad():  # one tensor for all graphs
        getattr(loaded.layers, "0").weight.zero_()
        net.layers[0].weight.zero_()
    assert same(loaded(x), net(x)) and same(loaded(x.repeat(2, 1)), net(x.repeat(2, 1)))
    (got,) = strata.autograd.grad(loaded(x).sum(), getattr(loaded.layers, "2").weight)
    (expected,) = strata.autograd.grad(net(x).sum(), net.layers[2].weight)
    assert same(got, expected)
    loaded.load_state_dict(Net().state_dict())


def test_guards_go_to_the_file(tmp_path):
    traced = quiet(branch, strata.ones(3))
    traced.save(tmp_path / "f.st")
    loaded = strata.jit.load(tmp_path / "f.st")
    assert same(loaded(strata.ones(3)), strata.ones(3) * 2)
    with pytest.raises(RuntimeError, match="which was True for the example inputs and False"):
        loaded(-strata.ones(3))


def test_damaged_files_are_refused(tmp_path):
    traced = strata.jit.trace(lambda x: x + 1, strata.ones(3))
    path = tmp_path / "f.st"
    traced.save(path)
    good = path.read_bytes()
    path.write_bytes(good[: len(good) // 2])
    with pytest.raises(RuntimeError, match="expected a file of strata.jit.save"):
        strata.jit.load(path)
    strata.save({"a": strata.ones(1)}, path)
    with pytest.raises(RuntimeError, match="files of strata.save are for strata.load"):
        strata.jit.load(path)
    with pytest.raises(FileNotFoundError):
        strata.jit.load(tmp_path / "none")


def test_traces_are_saved_not_pickled():
    traced = strata.jit.trace(nn.ReLU(), strata.ones(3))
    for call in (pickle.dumps, copy.deepcopy):
        with pytest.raises(RuntimeError, match="save it with strata.jit.save"):
            call(traced)
    with pytest.warns(UserWarning, match="already a ScriptModule"):
        assert strata.jit.trace(traced, strata.ones(3)) is traced


def test_threads_trace_at_once():
    failed = []
    start = threading.Barrier(6)

    def work(k):
        try:
            start.wait()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                traced = strata.jit.trace(lambda x: x * float(x.sum()), strata.ones(3) * k)
            assert same(traced(strata.ones(3) * k), strata.ones(3) * 3 * k * k) and len(traced._trace.graph.reads) == 1
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and "__float__" not in vars(strata.Tensor)


def test_threads_call_one_trace_with_several_shapes():
    traced, failed = strata.jit.trace(lambda x: x * 2 + x.shape[0], strata.ones(1)), []
    start = threading.Barrier(6)

    def work(k):
        try:
            start.wait()
            for i in range(50):
                x = strata.full(((i + k) % 7 + 1,), float(i))
                assert same(traced(x), x * 2 + x.shape[0])
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and len(traced._trace.graphs) == 7


def test_errors_of_operators_come_through():
    traced = strata.jit.trace(lambda x, i: x[i], (strata.ones(3), strata.tensor([0, 1])))
    with pytest.raises(IndexError):
        traced(strata.ones(3), strata.tensor([0, 9]))
    assert len(traced._trace.graphs) == 1
    x = strata.ones(3, requires_grad=True)
    assert traced(x, strata.tensor([0, 1])).requires_grad and not traced(x.detach(), strata.tensor([0, 1])).requires_grad


def test_frozen_modules_keep_their_parameters():
    net = Net()
    traced = strata.jit.trace(net.eval(), strata.randn(4, 3))
    frozen = strata.jit.freeze(traced)
    x, y = strata.randn(4, 3), strata.randn(7, 3)
    expected = net(x).detach(), net(y).detach()
    with strata.no_grad():
        net.layers[0].weight.zero_()
        net.norm.running_mean.fill_(3)
    assert same(frozen(x), expected[0]) and same(frozen(y), expected[1]) and not frozen(x).requires_grad
    assert not same(traced(x), expected[0]) and not list(frozen.parameters()) and not frozen.state_dict()
    assert strata.jit.optimize_for_inference(frozen) is frozen
    assert same(strata.jit.optimize_for_inference(traced)(y), net(y))
    with pytest.raises(RuntimeError, match="only implemented for modules in eval mode"):
        strata.jit.freeze(traced.train())
    with pytest.raises(RuntimeError, match="expects a ScriptModule"):
        strata.jit.freeze(net)
    buffer = io.BytesIO()
    frozen.save(buffer)
    buffer.seek(0)
    assert same(strata.jit.load(buffer)(x), expected[0])


def test_operators_of_ones_own_that_read_values():
    @strata.library.custom_op("traced::sine", mutates_args=())
    def sine(x: strata.Tensor) -> strata.Tensor:
        return strata.from_numpy(np.sin(x.detach().numpy()))

    def f(x):
        return sine(x) * 2

    x = strata.arange(3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refused = strata.jit.trace(f, x)
    with pytest.raises(RuntimeError, match="register_fake"):
        refused(x + 1)
    sine.register_fake(strata.empty_like)
    sine.register_autograd(lambda ctx, grad: grad * ctx.x.cos(), setup_context=lambda ctx, inputs, output: setattr(ctx, "x", inputs[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traced = strata.jit.trace(f, x)
    assert strata.equal(traced(x + 1), f(x + 1)) and strata.equal(traced(strata.ones(2, 2)), f(strata.ones(2, 2)))
    assert "traced::sine" in str(traced.graph)


def test_inputs_of_other_strides():
    traced, x = strata.jit.trace(lambda a: a.flatten() * 2, strata.ones(2, 2)), strata.randn(3, 4)
    for part in (x[:2, ::2], x.t()[:2, :2], x[:1, :1].expand(2, 2), x.as_strided((2, 2), (1, 1)), x[:2, :2]):
        assert strata.equal(traced(part), part.flatten() * 2)


def test_modules_converted_after_they_were_traced(tmp_path):
    traced, path, x = strata.jit.trace(nn.Sequential(nn.Linear(3, 3), nn.ReLU()), strata.ones(2, 3)), tmp_path / "t", strata.ones(2, 3).double()
    traced.double()
    with pytest.raises(RuntimeError, match="another dtype.*trace it again"):
        strata.jit.save(traced, path)
    wanted = traced(x)
    strata.jit.save(traced, path)
    assert strata.equal(strata.jit.load(path)(x), wanted)
