"""A program in C++ against an installed prefix, built in an empty folder: the demo's model has Python's losses bit for bit."""

from __future__ import annotations

import gzip
import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import strata
from strata import nn
from strata.utils.data import DataLoader, TensorDataset

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples"))
EPOCHS = 1


@pytest.fixture(scope="module")
def digits_csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("sklearn") is None:
        pytest.skip("needs scikit-learn's digits")
    packed = Path(importlib.util.find_spec("sklearn").origin).parent / "datasets/data/digits.csv.gz"
    plain = tmp_path_factory.mktemp("data") / "digits.csv"
    plain.write_bytes(gzip.decompress(packed.read_bytes()))
    return plain


def python_run(csv: Path) -> list[str]:
    """What examples/cpp_digits prints with --hex."""
    import numpy as np
    from digits import Net

    strata.manual_seed(0)
    table = np.loadtxt(csv, delimiter=",", dtype=np.float32)
    images = strata.from_numpy(table[:, :-1].reshape(-1, 1, 8, 8).copy()) / 16.0
    labels = strata.from_numpy(table[:, -1].astype(np.int64))
    order = strata.randperm(len(images), generator=strata.Generator().manual_seed(0))
    train = order[len(images) // 5 :]
    loader = DataLoader(TensorDataset(images[train], labels[train]), batch_size=64, shuffle=True)
    model = Net()
    optimizer = strata.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    schedule = strata.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=EPOCHS * len(loader), cycle_momentum=False)
    lines = []
    for _ in range(EPOCHS):
        for batch, target in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(batch), target)
            loss.backward()
            optimizer.step()
            schedule.step()
            lines.append(loss.item().hex())
    for name, value in model.state_dict().items():
        lines.append(f"{name} {float(value.double().abs().sum()).hex()}")
    return lines


def numbers(lines: list[str]) -> list[tuple[str, float]]:
    return [(line.rpartition(" ")[0], float.fromhex(line.rpartition(" ")[2])) for line in lines]


def test_the_digits_in_cpp_have_the_losses_and_weights_of_python(
    built: Callable[..., Path], run: Callable[..., str], digits_csv: Path, tmp_path: Path
) -> None:
    program = built(ROOT / "examples/cpp_digits", tmp_path / "build", "digits")
    out = run(program, digits_csv, "--epochs", EPOCHS, "--hex").split("\n")
    expected = python_run(digits_csv)
    assert numbers([line for line in out if line]) == numbers(expected)


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 5))

    def forward(self, pair, scale):
        logits = self.body(pair[0] * scale) + pair[1]
        return {"probabilities": logits.softmax(-1), "best": logits.argmax(-1), "same": pair[1]}, logits.to(strata.float64).sum()


def test_a_saved_graph_runs_without_python(prefix: Path, run: Callable[..., str], tmp_path: Path) -> None:
    import numpy as np

    strata.manual_seed(3)
    model, x, y = Classifier().eval(), strata.randn(7, 16), strata.randn(7, 5)
    path = tmp_path / "f.strata"
    with strata.no_grad():
        strata.graph(model, (x, y), 0.5).save(path)
    x, y = strata.randn(7, 16), strata.randn(7, 5)
    for name, value in (("x", x), ("y", y)):
        np.save(tmp_path / f"{name}.npy", value.numpy())
    with strata.no_grad():
        first, total = model((x, y), 0.5)
    words = (prefix / "bin/strata_run", path, tmp_path / "x.npy", tmp_path / "y.npy", "--out", tmp_path / "out")
    run(*words, cwd=tmp_path)
    for k, expected in enumerate([*first.values(), total]):
        got = np.load(tmp_path / f"out{k}.npy")
        assert got.dtype == expected.numpy().dtype and got.tobytes() == expected.numpy().tobytes(), k

    def refused(*words: object) -> str:
        done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False)
        assert done.returncode == 1, done
        return done.stderr

    assert "expected 2 tensors, got 1" in refused(*words[:3])
    np.save(tmp_path / "y.npy", y.numpy()[:3])
    assert "strata_run: " in refused(*words)
    np.save(tmp_path / "y.npy", y.numpy())
    whole = path.read_bytes()
    for cut in range(1, len(whole), len(whole) // 40):
        path.write_bytes(whole[:cut])
        refused(*words)
        path.write_bytes(whole[:cut] + bytes([whole[cut] ^ 1]) + whole[cut + 1 :])
        refused(*words)


def test_a_program_of_the_core_alone_needs_little(built: Callable[..., Path], run: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(p LANGUAGES CXX)\nfind_package(Strata REQUIRED)\n"
        "add_executable(p p.cpp)\ntarget_link_libraries(p PRIVATE Strata::core)\n"
    )
    (tmp_path / "p.cpp").write_text(
        "#include <strata/autograd.h>\n#include <cstdio>\n#include <strata/tensors.h>\n"
        "int main() {\n  auto x = strata::ones({2, 3}).requires_grad_();\n  (x * x + 1).sum().backward();\n"
        '  std::printf("%g\\n", strata::item<double>(x.grad().sum()));\n}\n'
    )
    program = built(tmp_path, tmp_path / "build", "p")
    assert run(program).strip() == "12"
    needed = {line.split()[0] for line in run("ldd", program).split("\n") if "=>" in line}
    allowed = ("libstrata.so", "libomp.so", "libstdc++.so", "libm.so", "libc.so", "libgcc_s.so", "libdl.so", "libpthread.so", "librt.so")
    assert all(name.startswith(allowed) for name in needed), needed
