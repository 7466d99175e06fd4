"""Random texts of graphs with branches and loops in one another, views, writes and parts that say nothing new: each pass keeps what
runs give."""

from __future__ import annotations

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "ops"))

import numpy as np
import test_graphs
from table import pytest, sampled, strata

PLAIN = ["aten::neg({})", "aten::sin({})", "aten::mul.Scalar({}, 1)", "aten::add.Tensor({}, {}, alpha=1)", "aten::abs({})", "aten::detach({})",
         "aten::view({}, [3, 3])", "aten::clone({}, memory_format=None)", "aten::rand_like({}, dtype=None, device=None, memory_format=None)",
         "aten::permute({}, [0, 1])", "aten::sub.Scalar({}, 0, 1)", "aten::zeros([3, 3], dtype=float32, device=cpu)"]
WRITES = ["aten::neg_({})", "aten::add_.Tensor({}, {}, alpha=1)", "aten::copy_({}, {}, False)", "aten::mul_.Scalar({}, 3)"]


class Text:
    def __init__(self, seed: int):
        self.random, self.count = random.Random(seed), 4

    def fresh(self) -> str:
        self.count += 1
        return f"%{self.count - 1}"

    def body(self, known: list[str], depth: int) -> tuple[list[str], list[str]]:
        """Lines, and the values that they know afterwards."""
        lines, known = [], list(known)
        for _ in range(self.random.randint(1, 5)):
            kind = self.random.random()
            if kind < 0.15 and depth < 3:
                condition = self.random.choice(["%2", "%3", "constant"])
                if condition == "constant":
                    condition = self.fresh()
                    lines.append(f"{condition}: bool = constant {self.random.choice(['True', 'False'])}")
                blocks = [self.block(known, depth, "") for _ in range(2)]
                made = self.fresh()
                lines += [f"{made}: f32[3, 3] = if {condition} " + blocks[0] + " else " + blocks[1]]
            elif kind < 0.3 and depth < 3:
                turn, carried, start = self.fresh(), self.fresh(), self.random.choice(known)
                going = self.random.choice(["True", "%2", "False"])
                inner = self.block([*known, carried], depth, "%2, ")
                made = self.fresh()
                lines.append(f"{made}: f32[3, 3] = loop {self.random.randint(0, 3)}, {going}, {start} ({turn}: int, {carried}: f32[3, 3]) {inner}")
            else:
                call = self.random.choice(PLAIN if kind < 0.8 else WRITES)
                made = self.fresh()
                lines.append(f"{made}: f32[3, 3] = " + call.format(*[self.random.choice(known) for _ in range(2)]))
            known.append(made)
        return lines, known

    def block(self, known: list[str], depth: int, first: str) -> str:
        lines, inside = self.body(known, depth + 1)
        return "{\n" + "\n".join(lines) + f"\nyield {first}{self.random.choice(inside)}\n}}"

    def graph(self) -> str:
        lines, known = self.body(["%0", "%1"], 0)
        results = self.random.sample(known, self.random.randint(1, min(3, len(known))))
        return "graph(%0: f32[3, 3], %1: f32[3, 3], %2: b8[], %3: b8[]) {\n" + "\n".join(lines) + f"\nreturn {', '.join(results)}\n}}"


@pytest.mark.parametrize("seed", sampled(list(range(3000)), 300))
def test_blocks(seed):
    graph = strata._C._graph_parse(Text(seed).graph(), [])
    test_graphs.reads_back(graph)
    draw = np.random.default_rng(seed)
    a, b = (strata.tensor(draw.standard_normal((3, 3)).astype(np.float32)) for _ in range(2))
    for truth in (True, False):
        test_graphs.keeps_results(graph, [a, b, strata.tensor(truth), strata.tensor(not truth)])
