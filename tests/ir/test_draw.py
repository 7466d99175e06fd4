"""Pictures of graphs: XML, a box for each node, parameter and what is returned, none over another."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as xml
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "ops"))

from table import pytest, strata

C, SVG = strata._C, "{http://www.w3.org/2000/svg}"


def chain(count):
    def f(x, y):
        for _ in range(count):
            x = (x * y).sin()
        return [x, x + strata.ones(2)]

    return f


@pytest.mark.parametrize("count", [0, 1, 20, 150])
def test_boxes(count):
    graph, _ = C._record(chain(count), [strata.ones(2), strata.ones(2)])
    tree = xml.fromstring(C._graph_draw(graph))
    boxes = [tuple(float(r.get(k)) for k in ("x", "y", "width", "height")) for r in tree.iter(SVG + "rect")]
    assert len(boxes) == 2 * count + 2 + 2 + 1  # ones, +; two inputs; return
    width, height = float(tree.get("width")), float(tree.get("height"))
    for i, (x, y, w, h) in enumerate(boxes):
        assert x >= 0 and y >= 0 and x + w <= width and y + h <= height
        assert not any(x < a + c and a < x + w and y < b + d and b < y + h for a, b, c, d in boxes[:i])
    assert len({r.get("fill") for r in tree.iter(SVG + "rect")}) == 3


def test_colours_and_escapes():
    text = """graph(%0: f32[2] 'a<b>&"\\'\x01') captures(%1: f32[2] 'weight') {
  %2: b8[] = aten::all(%0)
  %3: f32[2] = if %2 {
    %4: f32[2] = aten::add_.Tensor(%0, %1, alpha=1)
    yield %4
  } else {
    yield %1
  }
  return %3
}
"""
    tree = xml.fromstring(C._graph_draw(C._graph_parse(text, [strata.ones(2)])))
    assert len(list(tree.iter(SVG + "rect"))) == 2 + 3 + 1
    assert len({r.get("fill") for r in tree.iter(SVG + "rect")}) == 5
    assert "a<b>&\"'" in [t.text for t in tree.iter(SVG + "text")]
