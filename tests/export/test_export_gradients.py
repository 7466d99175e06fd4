"""Programs of modules that differentiate in their forward: they read what operators saved, and give eager's gradients."""

import io

import pytest
import strata
from strata import nn
from strata.nn import functional as F
from strata.utils.checkpoint import checkpoint


class Differentiates(nn.Module):
    """Of the sum of what `inner` gives: the gradient by the input, by the first parameter, or both orders of it."""

    def __init__(self, inner, by="input", swallow=False):
        super().__init__()
        self.inner, self.by, self.swallow = inner, by, swallow

    def forward(self, x):
        if self.swallow:
            try:
                return self.gradient(x)
            except RuntimeError:
                return x * 0
        return self.gradient(x)

    def gradient(self, x):
        with strata.enable_grad():
            x = x.detach().requires_grad_() if x.is_floating_point() else x
            loss = self.inner(x).sum()
            first = next(self.inner.parameters())
            if self.by == "input":
                return strata.autograd.grad(loss, x)[0] * 2
            if self.by == "parameter":
                return strata.autograd.grad(loss, first)[0] + 1
            if self.by == "both":
                return strata.autograd.grad(loss, [x, first])
            (g,) = strata.autograd.grad(loss, x, create_graph=True)
            return strata.autograd.grad((g * g).sum(), first)[0]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x):
        q, k, v = self.qkv(x).reshape(2, 5, 3, 2, 4).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).tanh()


class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 6)
        self.register_buffer("labels", strata.tensor([1, 5, 0]))

    def forward(self, x):
        return F.cross_entropy(self.head(x), self.labels)


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 4)

    def forward(self, x):
        return checkpoint(lambda x: F.dropout(self.lin(x).tanh(), 0.5, self.training), x, use_reentrant=False)


MODULES = {
    "linear": (lambda: nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 3)), (3, 8)),
    "conv_norm": (lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.GELU()), (2, 2, 6, 6)),
    "batch_norm": (lambda: nn.Sequential(nn.Conv1d(2, 4, 3), nn.BatchNorm1d(4), nn.SiLU()), (2, 2, 9)),
    "layer_norm": (lambda: nn.Sequential(nn.Linear(8, 6), nn.LayerNorm(6), nn.Softmax(-1), nn.Softplus()), (3, 8)),
    "attention": (Attention, (2, 5, 8)),
    "loss": (Loss, (3, 8)),
    "checkpoint": (Checkpointed, (3, 8)),
    "gru": (lambda: First(nn.GRU(8, 4)), (5, 2, 8)),
}


class First(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)[0]


def check(module, x):
    module.eval()
    before = {name: p.grad for name, p in module.named_parameters()}
    expected = module(x)
    program = strata.export.export(module, (x,))
    assert not any(name.startswith("lifted") for name in program.constants)
    file = io.BytesIO()
    strata.export.save(program, file)
    file.seek(0)
    for run in (program, program.run_decompositions(), strata.export.load(file)):
        got = run.module()(x)
        for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (got, expected)), strict=True):
            strata.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
    assert {name: p.grad for name, p in module.named_parameters()} == before


@pytest.mark.parametrize("by", ["input", "parameter", "both", "twice"])
@pytest.mark.parametrize("name", MODULES)
def test_gradients_inside_of_a_program(name, by):
    make, shape = MODULES[name]
    strata.manual_seed(1)
    check(Differentiates(make(), by), strata.randn(shape))


def test_a_module_that_catches_the_error_of_a_capture():
    check(Differentiates(nn.Linear(8, 4), swallow=True), strata.randn(3, 8))


def test_composites_stay_whole_where_no_backward_reads_them():
    program = strata.export.export(nn.Linear(8, 4), (strata.randn(3, 8),))
    assert "aten.linear" in program.graph_module.code


def test_values_require_gradients_as_in_eager():
    class Asks(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(strata.randn(4))

        def forward(self, x):
            y = F.linear(x, self.w.reshape(1, 4))
            return y * 2 if y.requires_grad else y

    m, x = Asks(), strata.randn(3, 4)
    assert strata.export.export(m, (x,)).module()(x).equal(m(x))


def test_a_parameter_that_is_written_raises_as_in_eager():
    class Writes(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(strata.randn(4))

        def forward(self, x):
            self.w.add_(1)
            return x * self.w

    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        strata.export.export(Writes(), (strata.randn(4),))


@pytest.mark.parametrize("inner", [[], [nn.Tanh()]])
def test_sizes_that_a_gradient_keeps_raise(inner):
    module, n = Differentiates(nn.Sequential(nn.Linear(8, 4), *inner)), strata.export.Dim("n", max=64)
    with pytest.raises(ValueError, match=r"Constraints violated \(n\)! With n = 4"):
        strata.export.export(module, (strata.randn(3, 8),), dynamic_shapes={"x": {0: n}})


def agree(module, x):
    """The program's result is the module's, and the module is as it was."""
    before = [(name, t.requires_grad, t.grad_fn, t.clone()) for name, t in [*module.named_parameters(), *module.named_buffers()]]
    program = strata.export.export(module, (x,))
    after = [(name, t.requires_grad, t.grad_fn, t) for name, t in [*module.named_parameters(), *module.named_buffers()]]
    assert all(a[:3] == b[:3] and a[3].equal(b[3]) for a, b in zip(before, after, strict=True))
    got = program.module()(x)
    for (_, _, _, old), (_, t) in zip(before, [*module.named_parameters(), *module.named_buffers()], strict=True):
        t.data = old
    wanted = module(x)
    assert got.equal(wanted)
    return got, wanted


class Written(nn.Module):
    def __init__(self, write):
        super().__init__()
        self.w = nn.Parameter(strata.full((4, 4), 1.5))
        self.register_buffer("b", strata.ones(4, 4))
        self.write = write

    def forward(self, x):
        self.write(self.b, self.w)
        y = F.linear(F.linear(x, self.b), self.w)
        (g,) = strata.autograd.grad(y.sum() + self.w.sum(), self.w)
        self.b.detach_()
        return g


@pytest.mark.parametrize("write", [lambda b, w: b.mul_(w), lambda b, w: b.copy_(w), lambda b, w: b.add_(F.linear(w, w.detach()))], ids=["mul_", "copy_", "add_"])
def test_a_gradient_through_a_buffer_that_is_written(write):
    agree(Written(write), strata.ones(4, 4))


class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(strata.randn(4, 4))

    def forward(self, x):
        self.w.requires_grad_(False)
        y = F.linear(x, self.w)
        self.w.requires_grad_(True)
        return y + strata.autograd.grad(F.linear(x, self.w).tanh().sum(), self.w)[0]


def test_a_parameter_that_is_frozen_meanwhile():
    agree(Frozen(), strata.randn(4, 4))


class Scaled(strata.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0], None


class OfAFunction(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(strata.full((3,), 2.0))

    def forward(self, x):
        x = x.detach().requires_grad_()
        (g,) = strata.autograd.grad(Scaled.apply(x, self.w).sum(), x)
        return (g * self.w).sum()


def test_a_backward_that_somebody_wrote_has_no_gradient_of_its_own():
    module = OfAFunction()
    found = []
    for f in (strata.export.export(module, (strata.ones(3),)).module(), module):
        module.w.grad = None
        f(strata.ones(3)).backward()
        found.append(module.w.grad)
    assert found[0].equal(found[1])


class Keeps(nn.Module):
    """Differentiates by its weight, which takes two runs of a capture, and keeps something of a run."""

    def __init__(self, where):
        super().__init__()
        self.lin, self.where, self.kept = nn.Linear(4, 4), where, []

    def forward(self, x):
        if self.where == "buffer" and not hasattr(self, "scale"):
            self.register_buffer("scale", self.lin.weight.detach().mean())
        if self.where == "attribute":
            self.scale = self.lin.weight.detach().mean()
        if self.where == "list":
            self.kept.append(self.lin.weight.detach().mean())
        scale = self.kept[0] if self.where == "list" else self.scale
        return strata.autograd.grad(F.cross_entropy(self.lin(x), strata.tensor([0, 1, 2])) * scale, self.lin.weight)[0]


@pytest.mark.parametrize("where", ["buffer", "attribute", "list"])
def test_what_a_run_keeps_is_no_part_of_a_program(where):
    module = Keeps(where)
    error, text = (RuntimeError, "an earlier run of it has kept") if where == "list" else (ValueError, "self.scale was assigned during export")
    with pytest.raises(error, match=text):
        strata.export.export(module, (strata.randn(3, 4),))
    assert not hasattr(module, "scale") and not dict(module.named_buffers())
    module.kept.clear()
    assert not module(strata.randn(3, 4)).is_meta


@pytest.mark.parametrize("inputs", [False, True])
def test_backward_raises_where_it_would_leave_gradients(inputs):
    class Leaves(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(strata.ones(4))

        def forward(self, x):
            (x * self.w).sum().backward(inputs=[self.w] if inputs else None)
            return self.w.grad * 1

    module = Leaves()
    with pytest.raises(RuntimeError, match=r"take them with strata\.autograd\.grad"):
        strata.export.export(module, (strata.randn(4),))
    assert module.w.grad is None


def test_an_error_after_an_assigned_buffer_is_forwards_own():
    class Fails(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("b", strata.ones(3), persistent=False)

        def forward(self, x):
            self.b = self.b + 1
            raise ValueError("forward's own")

    module = Fails()
    before = module.b
    with pytest.raises(ValueError, match="forward's own"):
        strata.export.export(module, (strata.ones(3),))
    assert module.b is before and not module.state_dict()
