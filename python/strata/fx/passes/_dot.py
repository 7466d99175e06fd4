"""Graphs of boxes and arrows: as DOT text, and as SVG with a layout of their own."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Any, NoReturn

_LINE, _PAD, _GAP_X, _GAP_Y, _LETTER, _LONGEST = 14, 6, 18, 40, 6.7, 80

# Names of colours that graphviz has and SVG has not, as SVG writes them.
_COLORS = {
    "cadetblue1": "#98f5ff", "darkolivegreen1": "#caff70", "darkseagreen1": "#c1ffc1", "khaki1": "#fff68f", "lavenderblush1": "#fff0f5",
    "lemonchiffon1": "#fffacd", "mistyrose1": "#ffe4e1", "mistyrose2": "#eed5d2", "paleturquoise2": "#aeeeee", "peachpuff1": "#ffdab9",
    "thistle1": "#ffe1ff", "thistle3": "#cdb5cd", "wheat1": "#ffe7ba", "yellow2": "#eeee00",
}  # fmt: skip


def _quoted(text: str) -> str:
    if re.fullmatch(r"[A-Za-z_]\w*|-?\d+(\.\d+)?", text) or (len(text) > 1 and text[0] == text[-1] == '"'):
        return text
    return '"' + text.replace('"', '\\"').replace("\n", "\\n") + '"'


def _attributes(values: dict[str, Any]) -> str:
    return f" [{', '.join(f'{key}={_quoted(str(value))}' for key, value in values.items())}]" if values else ""


class Node:
    """A box with graphviz's attributes: label, fillcolor and others."""

    def __init__(self, name: str, **attributes: Any) -> None:
        self.name, self.attributes = name, attributes

    def get_name(self) -> str:
        return self.name

    def get_label(self) -> str:
        return self.attributes.get("label", self.name)

    def lines(self) -> list[str]:
        """The label's lines; fields of a record are lines, too."""
        text = self.get_label().removeprefix("{").removesuffix("}")
        parts = re.split(r"\\n|\\l|\n|(?<!\\)\|", text)
        return [_shortened(re.sub(r"\\([{}|])", r"\1", part)) for part in parts if part.strip()]


class Edge:
    """An arrow between the boxes of these names."""

    def __init__(self, source: str, destination: str) -> None:
        self.source, self.destination = source, destination

    def get_source(self) -> str:
        return self.source

    def get_destination(self) -> str:
        return self.destination


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


class Dot:
    """A graph: `to_string` is its DOT text, `create_svg` a picture."""

    def __init__(self, name: str, **attributes: Any) -> None:
        self.name, self.attributes = name, attributes
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []

    def get_name(self) -> str:
        return self.name

    def get_nodes(self) -> list[Node]:
        return self.nodes

    def get_edges(self) -> list[Edge]:
        return self.edges

    def add_node(self, node: Node) -> None:
        self.nodes.append(node)

    def add_edge(self, edge: Edge) -> None:
        self.edges.append(edge)

    # ---- texts and files

    def to_string(self) -> str:
        """The DOT text, for graphviz's tools."""
        lines = [f"{key}={_quoted(str(value))};" for key, value in self.attributes.items()]
        lines += [f"{_quoted(node.name)}{_attributes(node.attributes)};" for node in self.nodes]
        lines += [f"{_quoted(edge.source)} -> {_quoted(edge.destination)};" for edge in self.edges]
        return "\n".join([f"digraph {_quoted(self.name)} {{", *lines, "}", ""])

    def create_dot(self) -> bytes:
        """The DOT text in UTF-8."""
        return self.to_string().encode()

    def create_svg(self) -> bytes:
        """The picture as SVG in UTF-8."""
        return _Picture(self).svg().encode()

    def write_svg(self, path: str | os.PathLike) -> bool:
        """Writes the picture to a file."""
        with open(path, "wb") as file:
            file.write(self.create_svg())
        return True

    def write_dot(self, path: str | os.PathLike) -> bool:
        """Writes the DOT text to a file."""
        with open(path, "wb") as file:
            file.write(self.create_dot())
        return True

    write_raw = write = write_dot

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith(("create_", "write_")):
            raise NotImplementedError(f"{name} is not provided; use create_svg or write_svg, or give to_string() to graphviz's dot")
        raise AttributeError(name)


class _Box:
    def __init__(self, node: Node) -> None:
        self.node, self.lines = node, node.lines()
        self.width = 2 * _PAD + _LETTER * max(map(len, self.lines), default=1)
        self.height = 2 * _PAD + _LINE * max(1, len(self.lines))
        self.layer = 0
        self.x = self.y = 0.0
        self.above: list[_Box] = []
        self.below: list[_Box] = []

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


class _Picture:
    """Boxes in layers, each below all that it reads; in a layer by the mean place of their neighbours, which makes few crossings."""

    def __init__(self, graph: Dot) -> None:
        self.boxes = {node.name: _Box(node) for node in graph.nodes}
        for edge in graph.edges:
            a, b = self.boxes.get(edge.source), self.boxes.get(edge.destination)
            if a is not None and b is not None:
                b.above.append(a)
                a.below.append(b)
        self.set_layers()
        self.set_places()

    def set_layers(self) -> None:
        waiting = {name: len(box.above) for name, box in self.boxes.items()}
        free = [box for box in self.boxes.values() if not box.above]
        for box in free:  # it grows while it is walked through
            for lower in box.below:
                lower.layer = max(lower.layer, box.layer + 1)
                waiting[lower.node.name] -= 1
                if not waiting[lower.node.name]:
                    free.append(lower)
        for box in self.boxes.values():  # what reads nothing stands right above its first reader
            if not box.above and box.below:
                box.layer = max(0, min(lower.layer for lower in box.below) - 1)

    def set_places(self) -> None:
        rows: list[list[_Box]] = [[] for _ in range(max((box.layer for box in self.boxes.values()), default=-1) + 1)]
        for box in self.boxes.values():
            rows[box.layer].append(box)

        def spread(row: list[_Box]) -> float:
            x = 10.0
            for box in row:
                box.x = x
                x += box.width + _GAP_X
            return x

        def mean(box: _Box, near: list[_Box]) -> float:
            return sum(other.middle for other in near) / len(near) if near else box.middle

        self.width = max(map(spread, rows), default=20.0)
        for _ in range(4):
            for row in rows:
                row.sort(key=lambda box: mean(box, box.above))
                spread(row)
            for row in reversed(rows):
                row.sort(key=lambda box: mean(box, box.below))
                spread(row)
        y = 10.0
        for row in rows:
            if row:
                shift = (self.width - row[-1].x - row[-1].width - 10) / 2
                height = max(box.height for box in row)
                for box in row:
                    box.x, box.y = box.x + shift, y + (height - box.height) / 2
                y += height + _GAP_Y
        self.height = y

    def svg(self) -> str:
        out = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width:g}" height="{self.height:g}" '
            f'viewBox="0 0 {self.width:g} {self.height:g}">',
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path class="head" d="M0 0 L8 4 L0 8 z"/></marker></defs>',
            "<style>rect{stroke:#555}.edge{fill:none;stroke:#888;marker-end:url(#arrow)}.head{fill:#888}"
            "text{font:11px monospace;text-anchor:middle}</style>",
        ]
        for box in self.boxes.values():
            for lower in box.below:
                y1, y2 = box.y + box.height, lower.y
                mid = (y1 + y2) / 2
                ends = f"{box.middle:g} {mid:g} {lower.middle:g} {mid:g} {lower.middle:g} {y2:g}"
                out.append(f'<path class="edge" d="M{box.middle:g} {y1:g} C{ends}"/>')
        for name, box in self.boxes.items():
            fill = str(box.node.attributes.get("fillcolor", "white")).strip('"')
            fill = _COLORS.get(fill.lower(), fill)
            out.append(
                f'<g class="node" id={quoteattr(name)}><rect x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}" '
                f'rx="5" fill={quoteattr(fill)}/>'
            )
            for i, line in enumerate(box.lines):
                text = escape("".join(c for c in line if c >= " "))
                out.append(f'<text x="{box.middle:g}" y="{box.y + _PAD + _LINE * i + 11:g}">{text}</text>')
            out.append("</g>")
        return "\n".join([*out, "</svg>", ""])
