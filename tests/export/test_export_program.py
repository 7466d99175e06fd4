"""What export says of a module, checks at a call, and refuses."""

from __future__ import annotations

import pytest
import strata
from strata import nn
from strata.export.graph_signature import ConstantArgument, InputKind, InputSpec, OutputKind, TensorArgument


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.constant = nn.Linear(4, 3), strata.ones(3)
        self.register_buffer("seen", strata.zeros(()))
        self.register_buffer("hidden", strata.zeros(3), persistent=False)
        self.unused = nn.Parameter(strata.ones(2))

    def forward(self, x, pair, flag=True, *, scale=2.0):
        self.seen.add_(1)
        y = self.linear(x) * scale + self.constant + pair[1] + self.hidden
        return {"y": y, "same": x, "one": 1}


ARGS = strata.randn(2, 4), (strata.randn(1), strata.randn(3))


@pytest.fixture(scope="module")
def program() -> strata.export.ExportedProgram:
    return strata.export.export(Model(), ARGS, {"scale": 3.0})


def test_inputs_and_outputs_are_told(program) -> None:
    signature = program.graph_signature
    assert signature.parameters == ("unused", "linear.weight", "linear.bias")
    assert signature.buffers == ("seen", "hidden")
    assert signature.non_persistent_buffers == ("hidden",)
    assert signature.lifted_tensor_constants == ("constant",)
    assert signature.user_inputs == ("x", "pair_0", "pair_1", 3.0)
    assert signature.user_outputs == ("add_2", "x", 1)
    assert dict(signature.inputs_to_parameters)["p_linear_weight"] == "linear.weight"
    assert [s.kind for s in signature.output_specs] == [OutputKind.USER_OUTPUT] * 3
    assert signature.input_specs[3] == InputSpec(InputKind.BUFFER, TensorArgument("b_seen"), "seen", True)
    assert signature.input_specs[-1] == InputSpec(InputKind.USER_INPUT, ConstantArgument("scale", 3.0), None)
    assert str(signature).startswith("\n# inputs\np_unused: PARAMETER target='unused'\n")
    assert list(program.state_dict) == ["unused", "linear.weight", "linear.bias", "seen"]
    assert sorted(program.constants) == ["constant", "hidden"]
    names = [node.name for node in program.graph.nodes]
    assert names[-8:] == ["add_", "linear", "mul", "add", "add_1", "add_2", "output"][-8:] or names[-1] == "output"
    assert [str(n.target) for n in program.graph.nodes if n.op == "call_function"][1] == "aten.linear.default"


def test_a_module_is_called_as_the_exported_one_was(program) -> None:
    module = program.module()
    expected = Model()
    expected.load_state_dict(program.state_dict)
    y = module(*ARGS, scale=3.0)
    with strata.no_grad():
        assert strata.equal(y["y"], expected(*ARGS, scale=3.0)["y"])
    assert y["same"] is ARGS[0]
    assert y["one"] == 1
    assert "x, pair_0, pair_1, scale, = fx_pytree.tree_flatten_spec(([x, pair], {'scale':scale}), self._in_spec)" in module.code
    assert dict(module.named_parameters()).keys() == dict(expected.named_parameters()).keys()
    module.seen.fill_(0)
    module(*ARGS, scale=3.0)
    assert module.seen.item() == 1
    assert program.state_dict["seen"].item() == 1  # shared


def test_calls_are_checked(program) -> None:
    module = program.module()
    x, pair = ARGS
    cases = [
        ((strata.randn(3, 4), pair), 3.0, r"x\.size\(\)\[0\] == 2\n.*argument x: expected f32\[2, 4\], got f32\[3, 4\]"),
        ((x.double(), pair), 3.0, r"x\.dtype == strata\.float32"),
        ((x, (pair[0], pair[1].reshape(1, 3))), 3.0, r"pair_1\.dim\(\) == 1\n.*argument pair\[1\]"),
        ((x, (pair[0], 5)), 3.0, r"isinstance\(pair_1, strata\.Tensor\)"),
        ((x, pair), 2.0, r"scale == 3\.0\n.*argument scale: expected 3\.0, got 2\.0"),
        ((x, pair), 3, "scale == 3.0"),
    ]
    for args, scale, text in cases:
        for kind in (AssertionError, ValueError):
            with pytest.raises(kind, match=f"Guard failed: {text}"):
                module(*args, scale=scale)
    for args in ((x, [*pair]), (x, pair[0]), (x, (*pair, x))):
        with pytest.raises(ValueError, match="but actually got inputs with tree spec"):
            module(*args, scale=3.0)
    with pytest.raises(RuntimeError, match="You should use `exported_program.module\\(\\)` instead"):
        program(*ARGS)
    program.module(check_guards=False)(x, pair, scale=2.0)


def refused(forward, kind, match) -> None:
    class Refused(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("state", strata.zeros(2))

    Refused.forward = forward
    module = Refused()
    with pytest.raises(kind, match=match):
        strata.export.export(module, (strata.ones(2),))
    assert module.state.tolist() == [0, 0]
    assert "kept" not in vars(module)
    strata.export.export(nn.Linear(2, 2), (strata.ones(2),))  # the next one is as ever


def test_what_cannot_be_exported() -> None:
    def branches(self, x):
        return x + 1 if x.sum() > 0 else x

    refused(branches, RuntimeError, r"(?s)reads the values of a tensor.*test_export_program.py:\d+ in branches.*strata\.cond")

    def masked(self, x):
        return x[x > 0]

    refused(masked, RuntimeError, r"(?s)the size of its result depends on the values.*test_export_program.py:\d+ in masked.*fixed size")

    def keeps(self, x):
        self.kept = x + 1
        return x

    refused(keeps, ValueError, "The tensor attribute self.kept was assigned during export")

    def reshapes(self, x):
        self.state = x[:1] * 2
        return x

    refused(reshapes, RuntimeError, "the buffer state was assigned")
    refused(lambda self, x: {1, 2}, TypeError, "result 0 is a set")
    refused(lambda self, x: x.nonzero(), RuntimeError, "nonzero")
    layer = nn.Linear(2, 2)
    for args, kwargs, kind in (((layer, strata.ones(2)), {}, ValueError), ((layer, (strata.ones(2),)), {"strict": True}, NotImplementedError),
                               ((lambda x: x, (strata.ones(2),)), {}, ValueError), ((layer, (strata.ones(2), 1)), {}, TypeError)):  # fmt: skip
        with pytest.raises(kind):
            strata.export.export(*args, **kwargs)


def test_values_of_python_data_are_made_anew_by_each_call() -> None:
    class Data(nn.Module):
        def forward(self, x):
            t = strata.tensor([1.0, 2.0])
            t.add_(x)
            return t

    module = strata.export.export(Data(), (strata.ones(2),)).module()
    for _ in range(2):
        assert module(strata.ones(2)).tolist() == [2, 3]


def test_no_grad_stays() -> None:
    class Off(nn.Module):
        def forward(self, x):
            with strata.no_grad():
                y = x * 2
            return y * x

    x = strata.ones(2, requires_grad=True)
    strata.export.export(Off(), (strata.ones(2),)).module()(x).sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert strata.is_grad_enabled()


class Turns(nn.Module):
    """A loop whose counter is made inside, and whose first condition is a result, too."""

    def forward(self, x):
        begin = strata.zeros((), dtype=strata.int64)
        i, y = strata._higher_order_ops.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (begin, x))
        return i, y, begin < 3


def test_a_loop_whose_state_is_made_inside():
    x = strata.ones(2, 3)
    found = strata.export.export(Turns(), (x,)).module()(x)
    assert [t.tolist() for t in found] == [3, (x * 8).tolist(), True]
