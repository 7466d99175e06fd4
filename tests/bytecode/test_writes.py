"""Writes of what takes part in autograd, also through views, gradients that are reset, and what a capture keeps alive."""

import weakref

import pytest
import strata
from both import same
from strata import nn


def t():
    return strata.arange(3.0)


def test_views_of_parameters_are_written():
    w, b = nn.Parameter(strata.ones(3, 3)), strata.ones(3, requires_grad=True)

    def chunks(x):
        with strata.no_grad():
            for c in w.chunk(3):
                c.add_(1)
            for row in w:
                row.mul_(2)
            w.unbind(1)[0].zero_()
        return (w.t() @ w).sum() + x

    def between(x):
        y = (w * x).sum()
        with strata.no_grad():
            w.view(9)[:3].mul_(0)
            b.detach().add_(1)
        return (w * b).sum() + y.detach()

    def twice(x):
        y = w * w
        with strata.no_grad():
            w.view(9).mul_(5)
        return y.sum() + x.sum()

    def scenario(n):
        with strata.no_grad():
            w.copy_(strata.arange(9.0).view(3, 3)), b.fill_(1)

        for f in (chunks, between, twice):
            g = n.compile(f)

            def step(g=g):
                w.grad = b.grad = None
                y = g(t()).sum()
                try:
                    y.backward()
                except RuntimeError:
                    return "written since"
                return y, w.grad, b.grad, w, b

            n.call(step), n.call(step)

    reasons = same(scenario)
    assert "a tensor that requires a gradient is written in place where a result has a gradient" in reasons


def test_gradients_that_are_reset_after_a_backward():
    def scenario(n):
        w = strata.ones(3, requires_grad=True)
        o = strata.optim.SGD([w], 0.1)

        def read(x):
            (w * x).sum().backward()
            found = w.grad
            w.grad = None
            return found

        def step(x):
            (w * x).sum().backward()
            o.step()
            o.zero_grad()
            return w.detach().clone()

        for f in (read, step):
            g = n.compile(f)
            n.call(g, t()), n.call(g, t())
            w.grad = strata.ones(3)
            n.call(g, t()), n.call(g, t())
            n.say(w.grad)

    assert not same(scenario)[2:]


def test_nothing_is_kept_alive():
    class Holder:
        v = 3

    def scenario(n):
        held = Holder()
        ref = weakref.ref(held)

        def f(x):
            found = ref()
            return x if found is None else x + found.v

        g = n.compile(f)
        n.call(g, t())
        del held
        n.call(g, t())

    same(scenario)


def test_results_of_a_whole_step_have_used_up_their_history():
    def scenario(n):
        w = strata.ones(3, requires_grad=True)
        o = strata.optim.SGD([w], 0.1)

        def f(x):
            o.zero_grad()
            y = w * x
            loss = y.sum()
            loss.backward()
            o.step()
            return loss, y, loss.detach(), {"a": loss}

        g, total = n.compile(f), 0
        for _ in range(3):
            loss, y, free, d = g(t())
            n.say(loss.requires_grad, y.requires_grad, free.requires_grad, loss.grad_fn is None, loss.is_leaf, d["a"] is loss)
            total += loss
            loss /= 2
            try:
                (loss + y.sum()).backward()
            except RuntimeError as error:
                n.say(str(error).partition(":")[0][:40])
        n.say(total)

    assert not same(scenario)


def test_what_a_stretch_reads_of_tensors_from_before(capsys):
    def f(x, w):
        y = x * w
        print(float(y.detach().sum()))
        return y.requires_grad, y.is_leaf

    def out(x, o):
        return strata.add(x, 1, out=o) + 1, o

    def scenario(n):
        w, h = strata.ones(3, requires_grad=True), strata.ones(3, requires_grad=True)
        h.register_hook(lambda g: g * 10)
        g, hooked, into = n.compile(f), n.compile(lambda x: (x * h).sum()), n.compile(out)
        for _ in range(3):
            n.call(g, t(), w)
            hooked(t()).backward()
            n.say(h.grad)
        n.call(into, t(), strata.empty(3)), n.call(into, t(), strata.empty(0))
        if n.compiles:
            assert all(len(table.entries) == 1 for table in g._strata_compiled.tables.values())

    reasons = same(scenario)
    assert "a tensor with backward hooks" in reasons and "add resizes its out=" in reasons


def test_data_of_a_tensor_that_changes_behind_it():
    """A tensor of a list holds what was in it then, and the list may be handed on."""

    def f(x, items):
        own = [1.0, 2.0]
        a = strata.tensor(own)
        own.append(5.0)
        b = strata.tensor(own)
        nested = [[1, 2], own]
        c = strata.as_tensor(nested[0])
        nested[0][1] = 7
        items.append(4.0)
        d = strata.tensor(items)
        items[0] = 9.0
        return x + a.sum() + b.sum() * 10, c, d, own, nested, items

    def scenario(n):
        for options in ({}, {"dynamic": True}):
            compiled = n.compile(f, **options)
            for items in ([1.0], [2.0], [1.0, 2.0]):
                n.call(compiled, strata.ones(2), items)
                n.say(items)

    assert not same(scenario)


class Registered(nn.Module):
    def __init__(self, way):
        super().__init__()
        self.way = way
        self.register_buffer("count", strata.zeros(2))
        self.lin = nn.Linear(2, 2)

    def forward(self, x):
        before = dict(self.named_buffers()) if self.way == "before" else {}
        held = self._buffers if self.way == "held" else None
        self.count = self.count + 1
        if self.way == "named":
            for _, t in self.named_buffers():
                x = x + t
        elif self.way == "dict":
            x = x + self._buffers["count"]
        elif self.way == "state":
            x = x + self.state_dict()["count"]
        elif self.way == "held":
            x = x + held["count"]
        else:
            x = x + before["count"] + self.count
        return x


@pytest.mark.parametrize("way", ["named", "dict", "state", "held", "before"])
def test_an_assigned_buffer_is_seen_in_the_modules_dict(way):
    plain, other = Registered(way), Registered(way)
    compiled = strata.compile(other)
    for _ in range(3):
        assert strata.equal(compiled(strata.ones(2)), plain(strata.ones(2))) and strata.equal(other.count, plain.count)


def test_a_dead_result_of_other_strides_that_was_zeroed():
    def f(x, w):
        a = w + x
        b = x.t() * a
        b.zero_()
        w.sub_(1)
        return a

    for g in (f, strata.compile(f)):
        leaf = strata.ones(2, 2, requires_grad=True)
        g(strata.ones(2, 2), leaf * 1.0).sum().backward()
        assert leaf.grad.tolist() == [[1.0, 1.0]] * 2
