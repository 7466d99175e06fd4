"""dynamic_shapes: programs for many sizes, with eager's bits at each, in Python and in C++; and what is refused."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
import strata
from export_models import Bag, Branch, Cnn, Encoder, Gpt, Loop, Lstm, Mlp, Residual
from strata import _C, nn
from strata.export import Dim, dims, export, load, save
from strata.utils._pytree import tree_flatten, tree_map

RUN = Path(os.path.realpath(_C.__file__)).parent / "strata_run"
BATCH, TIME = Dim("batch", min=2, max=64), Dim("time", min=2, max=12)


class Pool(nn.Module):
    def forward(self, x):
        b, c, h, w = x.shape
        return x.reshape(b, c, h * w).mean(-1) / x.shape[0] + x.size(2)


class Two(nn.Module):
    def forward(self, x, y):
        return strata.cat([x, y])[: x.shape[0] + 1], x.sum() * y.shape[0], strata.arange(len(x.T)) + x.numel() // 2


class Chosen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return strata.cond(x.sum() > 0, lambda x: self.layer(x).reshape(x.shape[0] * 4), lambda x: x.reshape(-1) * x.shape[0], (x,))


class Counts(nn.Module):
    """Numbers that hang on sizes, also of values that nothing else reads."""

    def forward(self, x):
        twice, wide = strata.cat([x, x]), x.sin()
        return wide, {"rows": x.shape[0] * 2 + 1, "shape": x.shape, "rest": [-x.size(0) % 3, 3, None]}, twice.shape[0], strata.stack([wide, wide]).numel() // 2


def floats(*sizes):
    return (strata.randn(*sizes),)


CASES = {
    "mlp": (Mlp, floats(3, 8), {"x": {0: BATCH}}, lambda n: floats(n, 8)),
    "cnn": (Cnn, floats(3, 3, 8, 8), {"x": {0: BATCH}}, lambda n: floats(n, 3, 8, 8)),
    "residual": (Residual, floats(3, 4, 6, 6), {"x": {0: Dim.AUTO, 2: Dim.DYNAMIC, 3: Dim.DYNAMIC}}, lambda n: floats(n, 4, n + 3, 7)),
    "encoder": (lambda: Encoder().eval(), floats(3, 5, 16), {"x": {0: BATCH, 1: TIME}}, lambda n: floats(n, 4, 16)),
    "gpt": (Gpt, (strata.randint(0, 50, (3, 7)),), ({0: BATCH, 1: TIME},), lambda n: (strata.randint(0, 50, (n, min(n, 11))),)),
    "lstm": (Lstm, floats(3, 5, 6), [(BATCH, None, Dim.STATIC)], lambda n: floats(n, 5, 6)),
    "pool": (Pool, floats(3, 4, 5, 6), {"x": {0: BATCH, 2: Dim("h", max=50)}}, lambda n: floats(n, 4, n + 2, 6)),
    "two": (Two, (strata.randn(3, 4), strata.randn(7, 4)), {"x": {0: BATCH}, "y": {0: 2 * BATCH + 1}}, lambda n: (strata.randn(n, 4), strata.randn(2 * n + 1, 4))),
    "chosen": (Chosen, floats(3, 4), {"x": {0: BATCH}}, lambda n: (strata.randn(n, 4) + n % 3 - 1,)),
    "counts": (Counts, floats(3, 4), {"x": {0: BATCH}}, lambda n: floats(n, 4)),
    "loop": (Loop, floats(5), {"x": {0: BATCH}}, lambda n: floats(n)),
    "branch": (Branch, floats(5, 4), {"x": {0: BATCH}}, lambda n: floats(n, 4)),
    "bag": (Bag, (strata.randint(0, 20, (7,)), strata.tensor([0, 3])), {"tokens": {0: BATCH}}, lambda n: (strata.randint(0, 20, (n + 2,)), strata.tensor([0, 3]))),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_program_is_right_for_every_size(name: str, tmp_path: Path) -> None:
    strata.manual_seed(2)
    make, example, spec, others = CASES[name]
    module, path = make(), tmp_path / "p.pt2"
    program = export(module, example, dynamic_shapes=spec)
    save(program, path)
    assert load(path).text() == program.text()
    assert repr(load(path).range_constraints) == repr(program.range_constraints)
    for n in (2, 4, 9):
        inputs, eager = others(n), copy.deepcopy(module)
        expected = tree_flatten(tree_map(lambda v: tuple(v) if isinstance(v, strata.Size) else v, eager(*inputs)))[0]
        for got, want in zip(tree_flatten(load(path).module()(*inputs))[0], expected, strict=True):
            assert strata.equal(got, want) if isinstance(want, strata.Tensor) else type(got) is type(want) and got == want
    for k, t in enumerate(inputs):
        np.save(tmp_path / f"in{k}.npy", t.numpy())
    words = [RUN, path, *(tmp_path / f"in{k}.npy" for k in range(len(inputs))), "--out", tmp_path / "out"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for k, t in enumerate(t for t in expected if isinstance(t, strata.Tensor)):
        assert np.load(tmp_path / f"out{k}.npy").tobytes() == t.detach().contiguous().numpy().tobytes()


def refused(forward, spec, match, *example, kind=ValueError) -> None:
    class Refused(nn.Module):
        pass

    Refused.forward = forward
    with pytest.raises(kind, match=match):
        export(Refused(), example or (strata.randn(4, 6),), dynamic_shapes=spec)
    assert strata.ones(3).shape == (3,)
    assert type(strata.ones(3).shape[0]) is int


def test_numbers_among_results_are_those_of_each_call_or_refused() -> None:
    program = export(Counts(), (strata.randn(4, 6),), dynamic_shapes={"x": {0: BATCH}})
    kinds = [type(s.arg).__name__ for s in program.graph_signature.output_specs]
    assert kinds == ["TensorArgument", "SymIntArgument", "SymIntArgument", "ConstantArgument", "SymIntArgument", *["ConstantArgument"] * 2, *["SymIntArgument"] * 2]
    for forward in (lambda self, x: (x, len(x)), lambda self, x: x * 2 if len(x) > 40 else x):
        refused(forward, {"x": {0: BATCH}}, r"expected x.size\(0\) == 4")
    refused(lambda self, x: (x, x.stride(0)), {"x": {1: BATCH}}, r"result 1 is 7, where the exported program has 6; a size was used as a number")
    refused(lambda self, x: (x, x.shape[0] / 2), {"x": {0: BATCH}}, r"expected x.size\(0\) == 4")


@pytest.mark.parametrize("text", ("%0.size(2)", "%9.size(0)", "3%0.size(0)", "%0.size(0)1", "%0.size(00)", "(1 // 0)", "(%0.size(0) + (1)", "-%0.size(0)", "__import__('os')", "%0.size(0)**9", "1 if 1 else 2", "(" * 1000 + "1" + ")" * 1000, "", 3))
def test_a_file_with_another_expression_is_no_program(text: object, tmp_path: Path) -> None:
    save(export(Counts(), (strata.randn(4, 6),), dynamic_shapes={"x": {0: BATCH}}), tmp_path / "p.pt2")
    with zipfile.ZipFile(tmp_path / "p.pt2") as before, zipfile.ZipFile(tmp_path / "q.pt2", "w") as after:
        for name in before.namelist():
            data = before.read(name)
            if name.endswith("model.json"):
                model = json.loads(data)
                model["results"][1] = ["size", text]
                data = json.dumps(model).encode()
            after.writestr(name, data)
    with pytest.raises(Exception, match="results of the graph"):
        load(tmp_path / "q.pt2")


def test_what_a_program_relies_on_is_told_with_its_line() -> None:
    def compared(self, x):
        if x.shape[0] == 4:
            return x + 1
        return x

    place = r"test_export_sizes.py:\d+: `if x\.shape\[0\] == 4:`"
    refused(compared, {"x": {0: BATCH}}, rf"Constraints violated \(batch\)! You marked batch as dynamic .* x\.size\(0\) == 4 does not hold, which .*{place}")
    refused(compared, {"x": {0: Dim.DYNAMIC}}, place)

    def turned(self, x):
        for _ in range(x.shape[0]):
            x = x * 2
        return x

    refused(turned, {"x": {0: BATCH}}, r"x\.size\(0\) == 4 does not hold.*`for _ in range\(x\.shape\[0\]\):`")

    def limited(self, x):
        return x * 2 if x.shape[0] <= 16 else x

    refused(limited, {"x": {0: BATCH}}, r"With batch = 64.*another program|x\.size\(0\) <= 16")
    export(_module(limited), floats(4, 6), dynamic_shapes={"x": {0: Dim("small", max=16)}})
    refused(lambda self, x: x + strata.ones(4, 6), {"x": {0: BATCH}}, r"With batch = 5, within batch in \[2, 64\], forward raises RuntimeError")
    a, b = dims("a", "b", max=9)
    refused(lambda self, x, y: x + y, {"x": {0: a}, "y": {0: b}}, "forward raises", strata.randn(4), strata.randn(4))


def _module(forward) -> nn.Module:
    made = type("Made", (nn.Module,), {"forward": forward})
    return made()


def test_sizes_that_may_vary_are_the_examples_where_they_must() -> None:
    def compared(self, x):
        return x + 1 if x.shape[0] == 4 else x

    program = export(_module(compared), floats(4, 6), dynamic_shapes={"x": {0: Dim.AUTO}})
    assert program.range_constraints == {}
    with pytest.raises(AssertionError, match=r"x\.size\(\)\[0\] == 4"):
        program.module()(strata.randn(5, 6))


def test_a_call_outside_of_the_range_is_refused(tmp_path: Path) -> None:
    program = export(Mlp(), floats(3, 8), dynamic_shapes={"x": {0: BATCH}})
    assert str(program.range_constraints) == "{'batch': VR[2, 64]}"
    save(program, tmp_path / "p.pt2")
    for n, text in ((65, "x.size(0) <= 64"), (1, "x.size(0) >= 2")):
        with pytest.raises(ValueError) as error:
            program.module()(strata.randn(n, 8))
        assert f"expected {text}, got {n} (x.size(0): batch in VR[2, 64])" in str(error.value)
        np.save(tmp_path / "x.npy", np.zeros((n, 8), np.float32))
        done = subprocess.run([RUN, tmp_path / "p.pt2", tmp_path / "x.npy"], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert f"got {n} (x.size(0): batch in VR[2, 64])" in done.stderr
    two = export(_module(lambda self, x, y: (x * 2, y)), (strata.randn(3), strata.randn(6)), dynamic_shapes=({0: BATCH}, {0: 2 * BATCH}))
    with pytest.raises(ValueError, match="share batch"):
        two.module()(strata.randn(3), strata.randn(7))
    with pytest.raises(NotImplementedError, match="whose sizes vary"):
        two.run_decompositions()


def test_what_dynamic_shapes_may_not_be() -> None:
    x = strata.randn(4, 6)
    for spec, match in (
        ({"z": {0: BATCH}}, "names 'z'; the arguments are x"), ({"x": {2: BATCH}}, r"expected dims in \[0, 2\), got 2"),
        ({"x": {0: "batch"}}, "expected a Dim"), (({0: BATCH}, None), "2 items for 1 arguments"), ({"x": [BATCH]}, "1 items for 2 dims"),
        ({"x": {0: Dim("batch", max=3)}}, r"x\.size\(0\) is 4 in the example, outside of batch in VR\[2, 3\]"),
        ({"x": {0: BATCH, 1: BATCH}}, r"x\.size\(1\) is 6 in the example, where batch is 4"), ({"x": {0: 3 * BATCH}}, r"which is no 3\*batch"),
        ({"x": {0: BATCH, 1: Dim("batch", max=9)}}, "different definitions"), ({"x": BATCH}, "expected a dict by dim"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=match):
            export(_module(lambda self, x: x * 2), (x,), dynamic_shapes=spec)
    for make, kind in ((lambda: Dim("a b"), ValueError), (lambda: Dim("a", min=3, max=2), ValueError), (lambda: BATCH * 1.5, NotImplementedError)):
        with pytest.raises(kind):
            make()


LEAST = {  # what forward does, its input, the dims that vary, and the least size that PyTorch 2.13 finds
    "convolution": (nn.Conv2d(1, 2, 3), (1, 1, 8, 8), (2, 3), 3),
    "windows": (_module(lambda self, x: nn.functional.max_pool2d(x, 4)), (1, 1, 8, 8), (2, 3), 4),
    "narrowed": (_module(lambda self, x: x.narrow(0, 2, 3) + 1), (8, 2), (0,), 5),
    "unfolded": (_module(lambda self, x: x.unfold(0, 4, 2).sum(-1)), (8,), (0,), 4),
    "element": (_module(lambda self, x: x[5] * 2), (8, 2), (0,), 6),
    "any": (_module(lambda self, x: x * 2), (8, 2), (0,), 2),
}


@pytest.mark.parametrize("hint", [Dim.DYNAMIC, Dim.AUTO], ids=["DYNAMIC", "AUTO"])
@pytest.mark.parametrize("name", LEAST)
def test_ranges_that_nobody_gave_begin_where_forward_does(name, hint) -> None:
    module, shape, varying, least = LEAST[name]
    program = export(module, (strata.randn(shape),), dynamic_shapes=({d: hint for d in varying},))
    assert [(r.low, r.high) for r in program.range_constraints.values()] == [(least, None)] * len(varying)
    for size in (least, least + 1, 9, 10, 23):
        x = strata.randn([size if d in varying else n for d, n in enumerate(shape)])
        assert strata.equal(program.module()(x), module(x))
    if least > 2:
        with pytest.raises(ValueError, match=f">= {least}"):
            program.module()(strata.randn([least - 1 if d in varying else n for d, n in enumerate(shape)]))
