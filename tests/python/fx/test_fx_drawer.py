"""Drawings of graphs of fx: XML with a box for each node and an arrow for each use, without other programs."""

import xml.etree.ElementTree as ET

import pytest
import strata
from strata import fx, nn
from strata.fx._from_graph import graph_module
from strata.fx.passes.graph_drawer import FxGraphDrawer
from strata.fx.passes.shape_prop import ShapeProp

SVG = "{http://www.w3.org/2000/svg}"


def parts(svg):
    root = ET.fromstring(svg.decode())
    boxes = {g.get("id"): g for g in root.iter(f"{SVG}g")}
    return root, boxes, [p for p in root.iter(f"{SVG}path") if p.get("class") == "edge"]


def rects(boxes):
    for name, g in boxes.items():
        r = g.find(f"{SVG}rect")
        yield name, *(float(r.get(k)) for k in ("x", "y", "width", "height"))


def test_a_box_for_each_node_and_an_arrow_for_each_use(tmp_path):
    def f(x):
        return strata.sin(x) ** 2 + strata.cos(x) ** 2

    gm = graph_module(strata.graph(f, strata.randn(1, 1000)))
    dot = FxGraphDrawer(gm, "f").get_dot_graph()
    root, boxes, edges = parts(dot.create_svg())
    assert list(boxes) == [n.name for n in gm.graph.nodes]
    assert len(edges) == sum(len(n.users) for n in gm.graph.nodes) == len(dot.get_edges()) == 7
    assert dot.write_svg(tmp_path / "f.svg") and (tmp_path / "f.svg").read_bytes() == dot.create_svg()
    assert dot.create_svg() == FxGraphDrawer(gm, "f").get_dot_graph().create_svg()
    text = dot.to_string()
    assert text.startswith("digraph f {\nrankdir=TB;\n") and "sin -> pow_1;" in text and text.count("->") == 7
    places = {name: (x, y, w, h) for name, x, y, w, h in rects(boxes)}
    for node in gm.graph.nodes:  # readers are below, all of it lies in the picture, and no two boxes overlap
        x, y, w, h = places[node.name]
        assert 0 <= x and x + w <= float(root.get("width")) and y + h <= float(root.get("height"))
        for user in node.users:
            assert places[user.name][1] >= y + h
        for other, (x2, y2, w2, h2) in places.items():
            assert other == node.name or x2 >= x + w or x >= x2 + w2 or y2 >= y + h or y >= y2 + h2


def test_labels_say_what_is_known():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.w = nn.Conv2d(3, 4, 3), nn.Parameter(strata.ones(1))

        def forward(self, x):
            return strata.clamp(self.conv(x) * self.w, min=0.5).view(2, -1)

    gm = fx.symbolic_trace(Net())
    ShapeProp(gm).propagate(strata.ones(2, 3, 5, 5))
    drawer = FxGraphDrawer(gm, "net", parse_stack_trace=True)
    labels = {node.get_name(): node.get_label() for node in drawer.get_dot_graph().get_nodes()}
    assert {"conv.weight", "conv.bias", "conv", "w"} <= set(labels) and "strata.float32[4, 3, 3, 3]" in labels["conv.weight"]
    assert r"kwargs=\{min: 0.5,\}" in labels["clamp"] and r"|dtype=strata.float32\n|shape=(2, 4, 3, 3)\n" in labels["clamp"]
    assert "target=strata.clamp" in labels["clamp"] and "num_users=1" in labels["clamp"] and "args=(-1" not in labels["clamp"]
    _, boxes, _ = parts(drawer.get_dot_graph().create_svg())
    assert any("kwargs={min: 0.5,}" in "".join(t.itertext()) for t in boxes["clamp"].iter(f"{SVG}text"))
    bare = FxGraphDrawer(gm, "net", ignore_getattr=True, ignore_parameters_and_buffers=True).get_dot_graph()
    assert [n.get_name() for n in bare.get_nodes()] == "x conv mul clamp view output".split()
    assert not any(e.get_source() == "w" for e in bare.get_edges())


def test_arguments_by_name():
    gm = fx.symbolic_trace(lambda x: strata.nn.functional.dropout(strata.flatten(x, 1), 0.25) + x)
    label = {n.get_name(): n.get_label() for n in FxGraphDrawer(gm, "f", normalize_args=True).get_dot_graph().get_nodes()}
    assert r"kwargs=\{\lstart_dim: 1,\nend_dim: -1,\n\}\l" in label["flatten"] and "p: 0.25" in label["dropout"] and "args=" not in label["add"]


def test_submodules_that_are_graphs_have_drawings():
    from strata.fx.passes.split_module import split_module

    gm = fx.symbolic_trace(lambda x: x.sin().cos())
    made = split_module(gm, None, lambda n: int(n.name == "cos"))
    drawer = FxGraphDrawer(made, "m")
    assert set(drawer.get_all_dot_graphs()) == {"m", "m_submod_0", "m_submod_1"}
    assert [n.get_name() for n in drawer.get_submod_dot_graph("submod_1").get_nodes()] == ["sin", "cos", "output"]


def test_strange_texts_stay_xml():
    gm = fx.symbolic_trace(lambda x: strata.einsum("ij,jk->ik", x, x).foo("<&\"'\x01|{}>"))
    _, boxes, _ = parts(FxGraphDrawer(gm, 'a "b" <c>').get_dot_graph().create_svg())
    assert "foo" in boxes


def test_what_needs_graphviz_says_so():
    dot = FxGraphDrawer(fx.symbolic_trace(lambda x: x), "f").get_dot_graph()
    with pytest.raises(NotImplementedError, match="create_png is not provided; use create_svg"):
        dot.create_png()
    assert not hasattr(dot, "nothing")
