"""What a compiled graph says of itself: one text that a C compiler takes, a memory plan without overlap, which small pieces of
work are one kernel."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
import strata
from strata import nn

BLOCK = re.compile(r"b(\d+): (\d+) bytes at (\d+), from step (\d+) to (\d+)")


def model():
    strata.manual_seed(1)
    return nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 16), nn.Softmax(-1))


def trained():
    net = model()
    compiled = strata.graph(net, strata.rand(8, 16, requires_grad=True)).compile()
    compiled(strata.rand(8, 16, requires_grad=True)).sum().backward()
    return compiled


def test_what_is_alive_together_lies_apart():
    plans = trained().memory_plan().split("arena of")[1:]
    count = 0
    for plan in plans:
        blocks = [tuple(map(int, m)) for m in BLOCK.findall(plan)]
        count += len(blocks)
        for _, size, at, first, last in blocks:
            assert first <= last and size >= 0 and at >= 0
        for i, (_, size, at, first, last) in enumerate(blocks):
            for _, other_size, other_at, other_first, other_last in blocks[:i]:
                if first <= other_last and other_first <= last:
                    assert at + size <= other_at or other_at + other_size <= at
    assert count > 3 and "aten::" in plans[0]


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_forward_and_backward_are_one_file(tmp_path):
    (tmp_path / "kernels.c").write_text(trained().source())
    for words in ([], ["-DBACKWARD"]):
        command = ["gcc", "-O1", "-ffp-contract=off", "-fopenmp", "-c", "kernels.c", "-o", "kernels.o", *words]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
        if shutil.which("nm"):
            names = subprocess.run(["nm", "kernels.o"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
            assert " T run_0" in names


def test_a_graph_without_kernels_says_why():
    text = strata.graph(lambda x: x + 1, strata.rand(3)).compile().source()
    assert "explain()" in text


def test_small_pieces_of_work_are_one_kernel():
    def many(*tensors):
        return [(t.sin() * 2, t.cos() + 1) for t in tensors]

    inputs = [strata.randn(64) for _ in range(6)]
    compiled = strata.graph(many, *inputs).compile()
    assert all(strata.equal(a, b) for pair, other in zip(compiled(*inputs), many(*inputs), strict=True)
               for a, b in zip(pair, other, strict=True))
    assert len(re.findall("^kernel", compiled.explain(), re.M)) <= 3
    long = [strata.randn(5000) for _ in range(4)]
    assert len(re.findall("^kernel", strata.graph(many, *long).compile().explain(), re.M)) == 4


def test_a_compiler_that_fails_is_as_none(tmp_path):
    code = """
import warnings, strata
def f(x): return (x.sin() + 1) * x
x = strata.rand(100)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    c = strata.graph(f, x).compile()
    assert strata.equal(c(x), f(x))
assert "not fused" in str(told[0].message) and "made no object" in str(told[0].message), told
assert "3 operators by themselves" in c.explain(), c.explain()
"""
    import os
    import sys

    env = {**os.environ, "STRATA_COMPILER": "system", "STRATA_CC": "false", "STRATA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=env, check=True)


def test_what_is_but_returned_is_that_object():
    weight, table = strata.rand(2, requires_grad=True), strata.arange(3)
    x = strata.rand(2)
    compiled = strata.graph(lambda x: (x * 2, table, weight), x).compile()
    made, same, learned = compiled(x)
    assert same is table and learned is weight and strata.equal(made, x * 2)


def test_a_sparse_input_is_refused():
    with pytest.raises(NotImplementedError, match="input x is sparse"):
        strata.graph(lambda x: x * 2, strata.eye(3).to_sparse())


def test_a_text_with_types_that_a_plan_does_not_give_is_refused(tmp_path):
    graph = strata.graph(lambda x: strata.softmax(x, -1), strata.rand(2, 4))
    text = str(graph)
    assert "_softmax" in text and strata._C._graph_parse(text, []) is not None
    line = next(line for line in text.splitlines() if "_softmax" in line)
    with pytest.raises(ValueError, match=r"gives f32\[2, 4\]"):
        strata._C._graph_parse(text.replace(line, line.replace("f32[2, 4] = ", "f32[2, 16] = ")), [])
