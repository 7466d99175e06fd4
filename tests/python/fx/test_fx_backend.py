"""A backend that looks at its graph: printed, drawn, its shapes found, and run as it is."""

import xml.etree.ElementTree as ET

import strata
from strata.fx.passes.graph_drawer import FxGraphDrawer
from strata.fx.passes.shape_prop import ShapeProp


def waves(x):
    return strata.sin(x) ** 2 + strata.cos(x) ** 2


def test_a_backend_reads_draws_and_returns_its_graph(tmp_path, capsys):
    seen = []

    def inspect_backend(gm, sample_inputs):
        gm.print_readable()
        ShapeProp(gm).propagate(*sample_inputs)
        (tmp_path / "forward.svg").write_bytes(FxGraphDrawer(gm, "f").get_dot_graph().create_svg())
        seen.append(gm)
        return gm.forward

    x = strata.rand(1, 1000, requires_grad=True)
    compiled = strata.compile(waves, backend=inspect_backend)
    assert not seen
    y = compiled(x)
    compiled(x)
    assert len(seen) == 1 and ((y - waves(x)) ** 2).mean() <= 1e-14 and (y - 1).abs().max() <= 1.2e-7
    names = [n.name for n in seen[0].graph.nodes]
    assert names[1:-1] == ["sin", "pow_1", "cos", "pow_2", "add"]
    text = capsys.readouterr().out
    assert text.startswith("class GraphModule(strata.nn.Module):\n    def forward(self, ") and 'pow_2: "f32[1, 1000]" = ' in text
    assert f"# File: {__file__}:{waves.__code__.co_firstlineno + 1} in waves, code: return strata.sin(x)" in text
    assert text.count("return (add,)") == 1
    boxes = [g for g in ET.parse(tmp_path / "forward.svg").iter("{http://www.w3.org/2000/svg}g")]
    assert len(boxes) == len(names)
    (gradient,) = strata.autograd.grad(y.sum(), x)
    assert not gradient.any()
