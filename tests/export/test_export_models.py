"""Twelve kinds of modules: exported, saved, loaded and taken apart, each run with eager's bits, in Python and in C++."""

from __future__ import annotations

import copy
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import strata
from export_models import cases
from strata import _C
from strata.utils._pytree import tree_flatten

RUN = Path(os.path.realpath(_C.__file__)).parent / "strata_run"
NAMES = list(cases())


def tensors(nest: object) -> list:
    return [leaf for leaf in tree_flatten(nest)[0] if isinstance(leaf, strata.Tensor)]


def same(a: object, b: object) -> None:
    (left, form), (right, other) = tree_flatten(a), tree_flatten(b)
    assert form == other
    for x, y in zip(left, right, strict=True):
        assert strata.equal(x, y) if isinstance(x, strata.Tensor) else x == y


@pytest.mark.parametrize("name", NAMES)
def test_an_exported_module_has_eagers_bits_everywhere(name: str, tmp_path: Path) -> None:
    strata.manual_seed(5)
    module, example, inputs = cases()[name]
    before = copy.deepcopy(module.state_dict())
    program = strata.export.export(module, example)
    same(before, module.state_dict())  # the capture computes nothing
    path, functional = tmp_path / "p.pt2", tmp_path / "f.pt2"
    strata.export.save(program, path)
    loaded = strata.export.load(path)
    assert str(loaded) == str(program)
    strata.export.save(strata.export.load(path).run_decompositions(), functional)
    eager = copy.deepcopy(module)
    strata.manual_seed(1)
    expected = eager(*inputs)
    for which in (path, functional):
        again = strata.export.load(which).module()
        strata.manual_seed(1)
        same(again(*inputs), expected)
        same(dict(sorted(again.state_dict().items())), dict(sorted(eager.state_dict().items())))
        for k, t in enumerate(tensors(inputs)):
            np.save(tmp_path / f"in{k}.npy", t.numpy())
        given = [tmp_path / f"in{k}.npy" for k in range(len(tensors(inputs)))]
        done = subprocess.run([RUN, which, *given, "--out", tmp_path / "out"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        for k, t in enumerate(tensors(expected)):
            got = np.load(tmp_path / f"out{k}.npy")
            assert got.shape == tuple(t.shape)
            if name != "vae":  # which draws: C++'s generator begins at another place
                assert got.tobytes() == t.detach().contiguous().numpy().tobytes(), k


def test_what_is_written_is_listed_once_writes_are_outputs() -> None:
    program = strata.export.export(cases()["cnn"][0], cases()["cnn"][1])
    assert dict(program.graph_signature.buffers_to_mutate) == {}
    written = program.run_decompositions().graph_signature.buffers_to_mutate
    assert sorted(written.values()) == ["norm.num_batches_tracked", "norm.running_mean", "norm.running_var"]
    names = {node.name for node in program.run_decompositions().graph.nodes}
    assert set(written) <= names


def test_gradients_flow_through_an_exported_module() -> None:
    for name in ("mlp", "cnn", "branch", "loop"):
        module, example, inputs = cases()[name]
        copied = copy.deepcopy(module)
        x, y = (inputs[0].clone().requires_grad_() for _ in range(2))
        tree_flatten(module(x))[0][0].square().sum().backward()
        tree_flatten(strata.export.export(copied, example).module()(y))[0][0].square().sum().backward()
        assert strata.equal(x.grad, y.grad), name
        for p, q in zip(module.parameters(), copied.parameters(), strict=True):
            assert (p.grad is None) == (q.grad is None) and (p.grad is None or strata.equal(p.grad, q.grad)), name
