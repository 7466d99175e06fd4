"""Modules, optimisers and schedules of C++ against Python's: one program prints what its cases compute, each under the text
of Python's expression for the same, and that gives the same bits here. A class of the headers without a case fails."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import strata
from strata import nn, optim
from strata.optim import lr_scheduler

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ROOT / "include/strata"


def put(name: str, t: strata.Tensor) -> str:
    plain = t.detach().contiguous()
    return f"{name} ({','.join(map(str, plain.shape))}) {zlib.crc32(plain.numpy().tobytes()):08x}"


def flatten(result: object) -> Iterator[strata.Tensor]:
    if isinstance(result, (tuple, list)):
        for each in result:
            yield from flatten(each)
    elif result is not None:
        yield result


def drawn(word: str) -> strata.Tensor:
    kind, _, text = word.partition(":")
    sizes = tuple(int(n) for n in text.split(",") if n)
    if kind[0] == "i":
        return strata.randint(int(kind[1:]), sizes)
    if kind == "s":
        return strata.randint(2, sizes).to(strata.float32) * 2 - 1
    if kind == "b":
        return strata.rand(sizes) > 0.7
    if kind in "np":
        return strata.randn(sizes) if kind == "n" else strata.rand(sizes)
    if kind == "r":
        return strata.rand(sizes).requires_grad_()
    if kind == "l":
        return strata.randn(sizes).log_softmax(-1).detach().requires_grad_()
    return strata.randn(sizes).requires_grad_()


def names(**more: object) -> dict:
    return {"strata": strata, "nn": nn, "optim": optim, "lr_scheduler": lr_scheduler, **more}


def run_module(python: str, call: str, inputs: str) -> list[str]:
    strata.manual_seed(7)
    module = eval(python, names())
    out = [put(f"state {name}", value) for name, value in module.state_dict().items()]
    x = [drawn(word) for word in inputs.split()]
    total = None
    for y in flatten(eval(call, names(m=module, x=x))):
        out.append(put("result", y))
        if y.requires_grad:
            part = (y * strata.randn_like(y)).sum()
            total = part if total is None else total + part
    if total is not None:
        total.backward()
    out += [put(f"gradient of {name}", p.grad) for name, p in module.named_parameters() if p.grad is not None]
    out += [put("gradient of input", each.grad) for each in x if each.grad is not None]
    out += [put(f"buffer {name}", value) for name, value in module.named_buffers()]
    module.eval()
    with strata.no_grad():
        out += [put("evaluated", y) for y in flatten(eval(call, names(m=module, x=x)))]
    return out


def run_optimizer(python: str) -> list[str]:
    strata.manual_seed(7)
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
    x = strata.randn(4, 3)
    p = list(model.parameters())
    optimizer = eval(python, names(p=p))
    out = []
    for _ in range(6):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()
        out += [put(name, value) for name, value in model.named_parameters()]
    for number, state in optimizer.state_dict()["state"].items():
        out += [put(f"state.{number}.{name}", value) for name, value in state.items() if value is not None]
    return out


def run_schedule(python: str) -> list[str]:
    a, b = (strata.ones(1).requires_grad_() for _ in range(2))
    o = optim.SGD([{"params": [a], "lr": 0.5}, {"params": [b], "lr": 0.125}])
    schedule = eval(python, names(o=o))
    out = []
    for k in range(20):
        out.append(put("rates", strata.tensor([group["lr"] for group in o.param_groups], dtype=strata.float64)))
        o.step()
        schedule.step(*([(k * 7) % 5] if isinstance(schedule, lr_scheduler.ReduceLROnPlateau) else []))
    return out


def run_clip() -> list[str]:
    strata.manual_seed(7)
    out = []
    for limit in (0.5, 100.0):
        p = [drawn("f:3,4"), drawn("f:5")]
        (p[0].square().sum() + p[1].square().sum()).backward()
        out.append(put("norm", nn.utils.clip_grad_norm_(p, limit)))
        out.append(put("clipped", p[0].grad))
        nn.utils.clip_grad_value_(p, 0.05)
        out.append(put("limited", p[1].grad))
    return out


RUNS = {"module": run_module, "optimizer": run_optimizer, "schedule": run_schedule, "clip": run_clip}


def cases(output: str) -> list[tuple[list[str], list[str]]]:
    """Each case's kind and texts, and its lines."""
    found: list[tuple[list[str], list[str]]] = []
    for line in output.splitlines():
        head = line.removesuffix(" |").split(" | ")
        if head[0] in RUNS:
            found.append((head, []))
        else:
            found[-1][1].append(line)
    return found


@pytest.fixture(scope="module")
def output(built: Callable[..., Path], run: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("modules")
    return run(built(ROOT / "tests/nn/cpp_modules", folder, "cpp_modules", "Debug"))


@pytest.mark.filterwarnings("ignore")
def test_modules_and_optimizers_of_cpp_give_the_bits_of_python(output: str) -> None:
    wrong = []
    for (kind, *texts), lines in cases(output):
        expected = RUNS[kind](*texts)
        if kind == "optimizer":  # what is kept of a parameter has no order
            lines, expected = sorted(lines), sorted(expected)
        if lines != expected:
            differing = [f"{a}   expected {b}" for a, b in zip(lines, expected, strict=False) if a != b]
            wrong.append(f"{kind} {texts}: {len(lines)} lines, expected {len(expected)}\n    " + "\n    ".join(differing[:6]))
    assert not wrong, f"{len(wrong)} cases differ:\n" + "\n".join(wrong)


def classes() -> set[str]:
    """The classes of the headers that Python has, too."""
    found: set[str] = set()
    for path in [*HEADERS.glob("nn/*.h"), *HEADERS.glob("optim/*.h")]:
        text = path.read_text()
        found.update(re.findall(r"^class (\w+?)(?:Impl)?(?: final)? :", text, re.M))
        found.update(re.findall(r"^\s*STRATA_[A-Z_0-9]+\((\w+)", text, re.M))
        for name in re.findall(r"STRATA_POOL\((\w+), N\)", text):
            found.update(f"{name}{rank}d" for rank in "123")
    for name in ("Conv", "ConvTranspose", "MaxPool", "AvgPool"):
        found.update(f"{name}{rank}d" for rank in "123")
    shared = {name for name in found if any(hasattr(space, name) for space in (nn, optim, lr_scheduler))}
    return {name for name in shared if not name.endswith("Base")}


def test_every_class_of_cpp_has_a_case(output: str) -> None:
    texts = " ".join(texts[0] for (kind, *texts), _ in cases(output) if texts)
    known = classes()
    assert len(known) > 150
    missing = sorted(name for name in known if not re.search(rf"\b{name}\(", texts))
    assert not missing, f"without a case in tests/nn/cpp_modules: {missing}"
