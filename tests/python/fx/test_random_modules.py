"""Random programs as modules of fx: as captured, copied, pickled, interpreted and transformed they have eager's bits."""

import copy
import os
import pickle
import sys
from pathlib import Path

import pytest
import strata
from strata import fx

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))
import fuzz_graphs

SEED = int(os.environ.get("STRATA_TEST_SEED", "1"))
COUNT = 300 if os.environ.get("STRATA_TEST_ALL") else 25
FORMS = {
    "captured": lambda gm: gm,
    "copied": copy.deepcopy,
    "pickled": lambda gm: pickle.loads(pickle.dumps(gm)),
    "interpreted": lambda gm: fx.Interpreter(gm).run,
    "transformed": lambda gm: fx.Transformer(gm).transform(),
    "captured again": lambda gm: strata.graph(gm, *[n.meta["example"] for n in gm.graph.find_nodes(op="placeholder")]),
}


@pytest.mark.filterwarnings("ignore")
def test_random_programs():
    done = 0
    for number in range(COUNT):
        maker = fuzz_graphs.Maker(SEED, number)
        maker.grow()
        f, text = maker.function()

        def given(maker=maker):
            return [fuzz_graphs.copy(t) for t in maker.inputs]

        try:
            gm = fx.from_graph(strata.graph(f, *given()))
        except fuzz_graphs.ERRORS:
            continue
        done += 1
        for node, example in zip(gm.graph.find_nodes(op="placeholder"), given()):
            node.meta["example"] = example
        strata.manual_seed(number)
        inputs = given()
        wanted = fuzz_graphs.look(f(*inputs), inputs)
        for name, form in FORMS.items():
            g = form(gm)
            strata.manual_seed(number)
            inputs = given()
            assert fuzz_graphs.look(g(*inputs), inputs) == wanted, f"{name}, --seed {SEED}, number {number}:\n{text}{gm.code}"
    assert done > COUNT // 2


def test_one_of_several_results():
    """An operator whose other results are None, and one that gives a list of one."""

    def f(x):
        (y,) = strata.autograd.grad(strata.nn.functional.layer_norm(x, (3,)).exp().sum(), x)
        return y

    x = strata.randn(2, 3, requires_grad=True)
    gm = fx.from_graph(strata.graph(f, x))
    assert strata.equal(gm(x), f(x))

    def g(x):
        return x.chunk(1)[0] + 1

    gm = fx.from_graph(strata.graph(g, x))
    assert strata.equal(gm(x), g(x))
