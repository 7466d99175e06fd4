"""strata.library and strata.ops: operators and kernels from Python."""

import gc
import warnings

import pytest
import strata as torch
from strata import library
from strata.library import Library


@pytest.fixture
def lib():
    made = Library("testlib", "FRAGMENT")
    yield made
    made._destroy()


def quiet_override(*args):
    context = library.override(*args)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        context.__enter__()
    return context


# ---- strata.ops


def test_operator_objects():
    op = torch.ops.aten.add.Tensor
    assert op is torch.ops.aten.add.Tensor and op.name() == "aten::add.Tensor"
    assert str(op) == "aten.add.Tensor" and repr(op) == "<OpOverload(op='aten.add', overload='Tensor')>"
    assert op.namespace == "aten" and op._overloadname == "Tensor" and op.__name__ == "add.Tensor"
    assert op.overloadpacket is torch.ops.aten.add and str(torch.ops.aten.add) == "aten.add"
    assert torch.ops.aten.relu.default.name() == "aten::relu" and "Tensor" in torch.ops.aten.add.overloads()


def test_calls_with_defaults_and_keywords():
    x = torch.ones(2)
    assert torch.ops.aten.add.Tensor(x, x, alpha=3).tolist() == [4.0, 4.0]
    assert torch.ops.aten.add.Tensor(x, other=x).tolist() == [2.0, 2.0]
    assert torch.ops.aten.add(x, 2).tolist() == [3.0, 3.0]
    assert torch.ops.aten.add.Tensor(x, 2).tolist() == [3.0, 3.0]
    assert torch.ops.aten.sum.dim_IntList(torch.ones(2, 3), [1], keepdim=True).shape == (2, 1)
    out = torch.empty(2)
    assert torch.ops.aten.add.out(x, x, out=out) is out and out.tolist() == [2.0, 2.0]
    y = torch.ones(2)
    assert torch.ops.aten.add_.Tensor(y, x) is y and y.tolist() == [2.0, 2.0]


def test_call_errors_name_the_operator():
    x = torch.ones(2)
    for args, kwargs, text in (
        (("a", x), {}, "argument 'self' .* must be Tensor, not str"),
        ((x,), {}, "missing a value for the argument 'other'"),
        ((x, x, 1), {}, "takes 2 positional arguments, got 3"),
        ((x, x), {"beta": 1}, "unexpected keyword argument 'beta'"),
        ((x, x), {"other": x}, "two values for the argument 'other'"),
    ):
        with pytest.raises(TypeError, match=text) as error:
            torch.ops.aten.add.Tensor(*args, **kwargs)
        assert "aten::add.Tensor" in str(error.value)
    with pytest.raises(TypeError, match="no overload takes"):
        torch.ops.aten.add("a", "b")
    with pytest.raises(AttributeError, match="no operator 'nope'"):
        torch.ops.aten.nope
    with pytest.raises(AttributeError, match="no overload name 'Nope'"):
        torch.ops.aten.add.Nope


def test_schema_and_names():
    assert torch.ops.schema("aten::relu").splitlines()[0] == "aten::relu(Tensor self) -> Tensor"
    assert "aten::add.out(" in torch.ops.schema("add") and "aten::add.Tensor" in torch.ops.names()
    schema = torch.ops.aten.add.out._schema
    assert schema.name == "aten::add" and schema.overload_name == "out" and schema.is_mutable
    alpha = schema.arguments[2]
    assert (alpha.name, alpha.type, alpha.default_value, alpha.kwarg_only) == ("alpha", "Scalar", 1, True)
    assert schema.arguments[3].is_out and schema.returns[0].alias_info.is_write
    assert library.FunctionSchema(str(schema)) == schema
    with pytest.raises(RuntimeError, match="did you mean"):
        torch.ops.get("aten::add.Nope")


@pytest.mark.parametrize("name", torch.ops.names())
def test_every_schema_parses_back(name):
    schema = torch.ops.get(name)._schema
    assert library.FunctionSchema(str(schema)) == schema and str(schema) == torch.ops.get(name)._schema_text


def test_explain_dispatch_of_functions():
    x = torch.ones(2)
    assert str(torch.explain_dispatch(torch.add, x, x)) == str(torch.explain_dispatch("add", x, x))
    assert "aten::add_.Tensor" in torch.explain_dispatch(torch.Tensor.add_, x, x)
    assert "aten::relu" in torch.explain_dispatch(torch.nn.functional.relu, x)
    with pytest.raises(TypeError, match="'save' is no operator of the table"):
        torch.explain_dispatch(torch.save, x)


def test_explain_dispatch():
    x = torch.ones(2)
    plain = torch.explain_dispatch("add", x, x)
    assert "first: Backend" in plain and "Autograd" not in plain and "ops/" in plain
    assert "first: Autograd" in torch.explain_dispatch("aten::add.Tensor", x.clone().requires_grad_(), x)
    assert "aten::add.Scalar" in torch.explain_dispatch("add", x, 1) or "aten::add.Tensor" in plain
    with torch.no_grad():
        assert "Autograd: off on this thread" in torch.explain_dispatch("add", x.clone().requires_grad_(), x)
    with library.active_keys("Autocast"):
        assert "Autocast" in torch.explain_dispatch(torch.ops.aten.add.Tensor, x, x)
    assert "Backend[cpu]" in torch.ops.dump("aten::add.Tensor") and repr(plain) == str(plain)


# ---- definitions and kernels


def test_define_and_impl(lib):
    name = lib.define("scale(Tensor x, float factor=2.0, *, int[] shape=[], str tag='a') -> Tensor")
    assert name == "scale"
    seen = []

    def scale(x, factor=2.0, *, shape=(), tag="a"):
        seen.append((factor, list(shape), tag))
        return x * factor

    lib.impl("scale", scale, "CPU")
    op = torch.ops.testlib.scale
    x = torch.ones(2)
    assert op(x).tolist() == [2.0, 2.0] and op(x, 3, shape=[1, 2], tag="b").tolist() == [3.0, 3.0]
    assert seen == [(2.0, [], "a"), (3.0, [1, 2], "b")]
    assert "test_library.py" in torch.ops.dump("testlib::scale")
    with pytest.raises(RuntimeError, match="exists already"):
        lib.define("scale(Tensor x) -> Tensor")


def test_bad_schemas_show_the_column(lib):
    for text, what in (("f(Tenor x) -> Tensor", "unknown type 'Tenor'"), ("f(Tensor x) Tensor", "expected '->'"), ("f", "'\\('")):
        with pytest.raises(ValueError, match=what) as error:
            lib.define(text)
        assert "column" in str(error.value) and "^" in str(error.value)


def test_kernels_that_do_not_fit_are_refused(lib):
    lib.define("pair(Tensor x, Tensor y) -> Tensor")
    with pytest.raises(TypeError, match=r"kernel one\(x\) does not fit testlib::pair.*Tensor x, Tensor y") as error:

        def one(x):
            return x

        lib.impl("pair", one, "CPU")
    assert "schema is testlib::pair(Tensor x, Tensor y) -> Tensor" in str(error.value)
    with pytest.raises(ValueError, match="expected a dispatch key, got 'Nope'.*User0"):
        lib.impl("pair", lambda x, y: x, "Nope")
    with pytest.raises(RuntimeError, match="nope"):
        lib.impl("nope", lambda x: x, "CPU")


def test_wrong_results_are_named(lib):
    lib.define("two(Tensor x) -> (Tensor, int)")
    results = [(torch.ones(1), 2), torch.ones(1), (torch.ones(1), "b"), None]
    lib.impl("two", lambda x: results.pop(0), "CPU")
    op = torch.ops.testlib.two
    assert op(torch.ones(1))[1] == 2
    for _ in range(3):
        with pytest.raises(TypeError, match="testlib::two: the Python kernel from .*test_library.py.*expected a tuple of"):
            op(torch.ones(1))


def test_python_errors_pass_through(lib):
    lib.define("fail(Tensor x) -> Tensor")

    def fail(x):
        raise KeyError("inside")

    lib.impl("fail", fail, "CPU")
    with pytest.raises(KeyError, match="inside"):
        torch.ops.testlib.fail(torch.ones(1))


def test_one_kernel_changes_one_key_only():
    x = torch.ones(2)
    local = Library("aten", "IMPL")
    with pytest.warns(UserWarning, match="Overriding a previously registered kernel.*aten::neg.*ops/.*test_library.py"):
        local.impl("neg", lambda x: x * 100, "CPU")
    assert torch.neg(x).tolist() == [100.0, 100.0] and (-x).tolist() == [100.0, 100.0]
    assert torch.exp(torch.zeros(1)).tolist() == [1.0]
    local._destroy()
    assert torch.neg(x).tolist() == [-1.0, -1.0]


def test_registrations_end_with_their_library():
    local = Library("testlib2", "DEF")
    local.define("gone(Tensor x) -> Tensor")
    assert "testlib2::gone" in torch.ops.names()
    del local
    gc.collect()
    assert "testlib2::gone" not in torch.ops.names()


def test_missing_device_kernel(lib):
    lib.define("lonely(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="Could not run 'testlib::lonely'.*'cpu'"):
        torch.ops.testlib.lonely(torch.ones(1))


def test_written_arguments(lib):
    lib.define("fill_with(Tensor(a!) x, float value) -> Tensor(a!)")
    lib.impl("fill_with", lambda x, value: x.fill_(value), "CPU")
    x = torch.zeros(2)
    before = x._version
    assert torch.ops.testlib.fill_with(x, 3.0) is x and x.tolist() == [3.0, 3.0] and x._version > before
    with pytest.raises(RuntimeError, match="leaf"):
        torch.ops.testlib.fill_with(torch.zeros(2, requires_grad=True), 1.0)


def test_lists_and_optionals(lib):
    lib.define("total(Tensor[] xs, Tensor? bias=None, bool[] flags=[]) -> Tensor[]")

    def total(xs, bias=None, flags=()):
        assert isinstance(xs, list)
        return [x + (0 if bias is None else bias) for x in xs]

    lib.impl("total", total, "CPU")
    x = torch.ones(1)
    assert [t.tolist() for t in torch.ops.testlib.total([x, x], x, [True])] == [[2.0], [2.0]]
    assert [t.tolist() for t in torch.ops.testlib.total((x,))] == [[1.0]]


# ---- autograd of custom operators


def test_composite_operators_are_differentiable(lib):
    lib.define("square(Tensor x) -> Tensor")
    lib.impl("square", lambda x: x * x, "CompositeImplicitAutograd")
    x = torch.ones(2, requires_grad=True)
    torch.ops.testlib.square(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_opaque_operators_say_what_is_missing(lib):
    lib.define("opaque(Tensor x) -> Tensor")
    lib.impl("opaque", lambda x: x * 2, "CPU")
    x = torch.ones(2, requires_grad=True)
    y = torch.ops.testlib.opaque(x)
    assert y.requires_grad and y.tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="backward through testlib::opaque but no autograd formula"):
        y.sum().backward()


def test_custom_op():
    @library.custom_op("testlib::numpy_sin", mutates_args=())
    def numpy_sin(x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        import numpy as np

        return torch.from_numpy(np.sin(x.detach().numpy())) * scale

    assert torch.ops.schema("testlib::numpy_sin") == "testlib::numpy_sin(Tensor x, float scale=1.0) -> Tensor"
    x = torch.tensor([0.5, 1.0], requires_grad=True)
    assert torch.equal(numpy_sin(x).detach(), torch.from_numpy(__import__("numpy").sin(x.detach().numpy())))
    with pytest.raises(RuntimeError, match="no autograd formula"):
        numpy_sin(x).sum().backward()

    def setup_context(ctx, inputs, output):
        x, scale = inputs
        ctx.save_for_backward(x)
        ctx.scale = scale

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.cos() * ctx.scale, None

    numpy_sin.register_autograd(backward, setup_context=setup_context)
    y = numpy_sin(x, 3.0)
    assert "numpy_sin" in y.grad_fn.name()
    y.sum().backward()
    assert torch.allclose(x.grad, 3 * x.detach().cos())
    with torch.no_grad():
        assert not numpy_sin(x).requires_grad

    @numpy_sin.register_fake
    def _(x, scale=1.0):
        return torch.empty_like(x)

    assert library.opcheck(numpy_sin, (x.detach(),))["test_schema"] == "SUCCESS"


def test_custom_op_rules():
    @library.custom_op("testlib::same", mutates_args=())
    def same(x: torch.Tensor) -> torch.Tensor:
        return x

    with pytest.raises(RuntimeError, match="must not also be an input"):
        same(torch.ones(2))

    @library.custom_op("testlib::inc_", mutates_args={"x"})
    def inc_(x: torch.Tensor, n: int = 1) -> None:
        x.add_(n)

    x = torch.zeros(2)
    assert inc_(x, 2) is None and x.tolist() == [2.0, 2.0]
    assert torch.ops.schema("testlib::inc_") == "testlib::inc_(Tensor(a0!) x, SymInt n=1) -> ()"
    with pytest.raises(RuntimeError, match="writes an argument"):
        inc_.register_autograd(lambda ctx, g: None)


def test_autograd_with_lists_and_keywords():
    @library.custom_op("testlib::weighted", mutates_args=())
    def weighted(xs: list[torch.Tensor], *, weight: float) -> list[torch.Tensor]:
        return [x * weight for x in xs]

    def setup(ctx, inputs, keyword_only_inputs, output):
        ctx.weight = keyword_only_inputs["weight"]

    weighted.register_autograd(lambda ctx, grads: [g * ctx.weight for g in grads], setup_context=setup)
    a, b = torch.ones(2, requires_grad=True), torch.ones(1, requires_grad=True)
    ys = weighted([a, b], weight=5.0)
    assert isinstance(ys, list)
    (ys[0].sum() + ys[1].sum()).backward()
    assert a.grad.tolist() == [5.0, 5.0] and b.grad.tolist() == [5.0]


def test_infer_schema_errors():
    def unannotated(x):
        return x

    def strange(x: dict) -> torch.Tensor:
        return x

    with pytest.raises(ValueError, match="must have a type annotation"):
        library.infer_schema(unannotated, mutates_args=())
    with pytest.raises(ValueError, match="not supported"):
        library.infer_schema(strange, mutates_args=())
    with pytest.raises(ValueError, match="no arguments"):
        library.infer_schema(unannotated, mutates_args={"y"})


def test_opcheck_finds_false_schemas(lib):
    lib.define("liar(Tensor x) -> Tensor")

    def liar(x):
        x.add_(1)
        return x.clone()

    lib.impl("liar", liar, "CPU")
    results = library.opcheck(torch.ops.testlib.liar.default, (torch.zeros(2),), raise_exception=False)
    assert "wrote 'x'" in results["test_schema"]


# ---- overrides


def test_override_warns_works_and_restores():
    x = torch.ones(2)
    with pytest.warns(UserWarning, match="aten::add.Tensor.*previous kernel from ops/.*new kernel from .*test_library.py"):
        with library.override("aten::add.Tensor", lambda a, b, alpha=1: a * 10 + b, "CPU"):
            assert (x + x).tolist() == [11.0, 11.0]
    assert (x + x).tolist() == [2.0, 2.0]


def test_override_of_a_name_and_nesting():
    x = torch.ones(2)
    outer = quiet_override("aten::add", lambda a, b, alpha=1: torch.zeros(2) - 1, "CPU")
    assert (x + x).tolist() == (x + 1).tolist() == [-1.0, -1.0]
    inner = quiet_override("aten::add.Tensor", lambda a, b, alpha=1: torch.zeros(2) - 2, "CPU")
    assert (x + x).tolist() == [-2.0, -2.0]
    inner.__exit__(None, None, None)
    assert (x + x).tolist() == [-1.0, -1.0]
    outer.__exit__(None, None, None)
    assert (x + x).tolist() == [2.0, 2.0] and (x + 1).tolist() == [2.0, 2.0]


def test_override_may_call_what_it_replaces():
    x = torch.ones(2)
    context = quiet_override("aten::add.Tensor", lambda a, b, alpha=1: (a + b) * 100, "CPU")
    assert (x + x).tolist() == [200.0, 200.0]
    context.__exit__(None, None, None)


def test_override_keeps_autograd():
    x = torch.ones(2, requires_grad=True)
    context = quiet_override("aten::mul.Tensor", lambda a, b: a.detach() * b.detach() * 1.0, "CPU")
    (x * torch.tensor([3.0, 3.0])).sum().backward()
    context.__exit__(None, None, None)
    assert x.grad.tolist() == [3.0, 3.0]


def test_override_restores_after_an_error():
    x = torch.ones(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(KeyError):
            with library.override("aten::add.Tensor", lambda a, b, alpha=1: a, "CPU"):
                raise KeyError
    assert (x + x).tolist() == [2.0, 2.0]
    with pytest.raises(TypeError, match="does not fit"):
        with library.override("aten::add.Tensor", lambda a: a, "CPU"):
            pass


# ---- whole keys


def test_key_fallback_sees_every_operator():
    calls = []

    def count(op, *args, **kwargs):
        calls.append(str(op))
        return op(*args, **kwargs)

    x = torch.ones(2)
    with library.register_fallback("User0", count, fallthrough=["aten::mul.Tensor"]):
        y = (x + x) * x
        assert calls == []  # nobody asks for the key
        with library.active_keys("User0"):
            y = ((x + x) * x).exp()
    assert calls == ["aten.add.Tensor", "aten.exp.default"] and y.shape == (2,)
    with library.active_keys("User0"):
        x + x
    assert len(calls) == 2


def test_key_fallback_refuses_what_is_not_listed():
    x = torch.ones(2)
    with library.register_fallback("User1", fallthrough=["aten::add.Tensor"]), library.active_keys("User1"):
        assert (x + x).tolist() == [2.0, 2.0]
        with pytest.raises(NotImplementedError, match="aten::mul.Tensor: no kernel for the key User1"):
            x * x
        with library.inactive_keys("User1"):
            x * x


def test_key_kernels_come_before_the_fallback():
    local = Library("aten", "IMPL")
    local.impl("exp", lambda x: x * 0 + 7, "User2")
    x = torch.zeros(2)
    with library.active_keys("User2"):
        assert x.exp().tolist() == [7.0, 7.0]
    assert x.exp().tolist() == [1.0, 1.0]
    local._destroy()
    with library.active_keys("User2"):
        assert x.exp().tolist() == [1.0, 1.0]


def test_redispatch():
    calls = []
    local = Library("aten", "IMPL")

    def noisy(x):
        calls.append(1)
        return torch.ops.aten.exp.default.redispatch("User3", x)

    local.impl("exp", noisy, "User3")
    with library.active_keys("User3"):
        assert torch.zeros(1, requires_grad=True).exp().grad_fn is not None and calls == [1]
    local._destroy()


def test_defaults_are_what_the_schema_says(lib):
    cases = {
        "int n=9223372036854775807": 2**63 - 1, "int n=-9223372036854775808": -(2**63), "Scalar s=9007199254740993": 2**53 + 1, "float[] s=[0.5, 1.5]": [0.5, 1.5],
        "float[2] s=1.5": [1.5, 1.5], "int[2] k=3": [3, 3], "bool[2] m=[True, False]": [True, False], "bool[3] m=True": [True] * 3, "float f=1e-3": 1e-3,
    }  # fmt: skip
    for i, (argument, value) in enumerate(cases.items()):
        lib.define(f"default_{i}(Tensor x,\n\t{argument}) -> Tensor")
        assert getattr(torch.ops.testlib, f"default_{i}").default._schema.arguments[1].default_value == value, argument
    for argument in ("int n=99999999999999999999", "int n=1.5", "bool[2] m=[1, 0]", "float f=x"):
        with pytest.raises((ValueError, RuntimeError), match="schema: column"):
            lib.define(f"wrong(Tensor x, {argument}) -> Tensor")


def test_a_derivative_is_told_what_needs_a_gradient():
    asked = []

    @library.custom_op("testlib::scaled_by", mutates_args=())
    def scaled_by(x: torch.Tensor, n: int, y: torch.Tensor) -> torch.Tensor:
        return x * y * n

    def backward(ctx, grad):
        asked.append(ctx.needs_input_grad[:3])
        return grad, None, grad

    scaled_by.register_autograd(backward)
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    scaled_by(x, 2, y.detach()).sum().backward()
    scaled_by(x.detach(), 2, y).sum().backward()
    assert asked == [(True, False, False), (False, False, True)]
