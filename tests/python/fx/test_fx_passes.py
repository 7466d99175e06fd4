"""Constant folding and pass managers."""

import pytest
import strata
from strata import fx, nn
from strata.fx.experimental.const_fold import split_const_subgraphs
from strata.fx.passes.infra.pass_base import PassBase, PassResult
from strata.fx.passes.infra.pass_manager import PassManager, pass_result_wrapper, this_before_that_pass_constraint


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(strata.ones(1, 2)), nn.Parameter(strata.full((1, 2), 3.0))
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        d = (self.a + self.b) * 2
        e = strata.cat([d, self.a], 1)
        return self.layer(x + d) * e.sum() + self.a


def test_constants_are_computed_once():
    net = Net()
    folded = split_const_subgraphs(net)
    assert folded.code == """


def forward(self, x):
    a = self.a
    _fx_const_folded_attrs = self._FX_CONST_FOLDED_ATTRS
    getitem = _fx_const_folded_attrs[0]
    getitem_1 = _fx_const_folded_attrs[1];  _fx_const_folded_attrs = None
    add = x + getitem;  x = getitem = None
    layer = self.layer(add);  add = None
    mul = layer * getitem_1;  layer = getitem_1 = None
    add_1 = mul + a;  mul = a = None
    return add_1
    """
    x = strata.randn(4, 2)
    assert not folded.has_folding_been_run
    assert strata.equal(folded(x), net(x)) and folded.has_folding_been_run
    with pytest.raises(AssertionError, match="already been run"):
        folded.run_folding()
    assert not hasattr(net, "_FX_CONST_FOLDED_ATTRS")


def test_what_draws_or_is_skipped_is_no_constant():
    class Noisy(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Parameter(strata.ones(2))

        def forward(self, x):
            return x + strata.ops.aten.bernoulli.default(self.a * 0.5)

    code = split_const_subgraphs(Noisy()).code
    assert "bernoulli" in code and "_FX_CONST_FOLDED_ATTRS" in code
    whole = split_const_subgraphs(Noisy(), lambda node: node.name == "mul")
    assert whole.const_subgraph_module is None and "mul" in whole.code
    whole(strata.ones(2))


class Swap(PassBase):
    def __init__(self, old, new):
        self.old, self.new = old, new

    def call(self, graph_module):
        found = graph_module.graph.find_nodes(op="call_function", target=self.old)
        for node in found:
            node.target = self.new
        return PassResult(graph_module, bool(found))


def test_passes_run_in_order_until_nothing_changes():
    gm = fx.symbolic_trace(lambda x: strata.relu(x))
    first, second, runs = Swap(strata.relu, strata.tanh), Swap(strata.tanh, strata.sigmoid), []
    count = pass_result_wrapper(lambda module: runs.append(1))
    manager = PassManager([second, first], [this_before_that_pass_constraint(first, second)], steps=5)
    with pytest.raises(RuntimeError, match="pass schedule constraint violated"):
        manager.validate_constraints()
    result = manager(gm)
    assert result.modified and strata.equal(result.graph_module(strata.zeros(1)), strata.full((1,), 0.5)) and manager.passes == [first, second]
    assert not manager(gm).modified
    manager.add_pass(count)
    manager.add_checks(lambda module: module.graph.lint())
    assert manager(gm).modified and len(runs) == 5


def test_managers_say_what_is_wrong():
    gm = fx.symbolic_trace(lambda x: x)
    a, b = Swap(1, 2), Swap(3, 4)
    both = [this_before_that_pass_constraint(a, b), this_before_that_pass_constraint(b, a)]
    with pytest.raises(RuntimeError, match="Circular dependency"):
        PassManager([a, b], both)(gm)
    with pytest.raises(Exception, match=r"running the 'bare' pass after the following passes: \['Swap'\]") as error:
        PassManager([a, bare])(gm)
    assert "wrap it with pass_result_wrapper" in str(error.value.__cause__)
    with pytest.raises(TypeError, match="one variable"):
        PassManager().add_checks(lambda: None)


def bare(module):
    pass
