"""Slow parts that seldom apply: one lane of many takes them, at each place, just below and beyond where they begin, and beside NaN."""

import numpy as np
import pytest
import strata as torch

# Functions, and where their slow parts begin in float32 and float64.
CASES = {
    "sin": (48000.0, 1600000.0),
    "cos": (-48000.0, -1600000.0),
    "tan": (48000.0, 1600000.0),
    "gelu": (-3.75, -3.75),
    "erfc": (2.3, 2.3),
    "erfinv": (0.99496, 0.99496),
}


def function(name):
    called = torch.nn.functional.gelu if name == "gelu" else getattr(torch, name)
    return lambda x: called(x * 1.0) * 0.5  # one kernel


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_one_lane(name, dtype):
    kind = np.float32 if dtype is torch.float32 else np.float64
    limit = kind(CASES[name][dtype is torch.float64])
    beyond = np.nextafter(limit, kind(np.inf) * np.sign(limit), dtype=kind)
    near = np.nextafter(limit, kind(0), dtype=kind)
    f = function(name)
    calm = torch.linspace(-0.9, 0.9, 192, dtype=dtype)
    compiled = torch.graph(f, calm).compile()
    values = [limit, beyond, near, kind(1.25) * limit, kind(np.nan), kind(-np.inf), kind(np.inf), -limit]
    for place in range(192):
        x = calm.clone()
        x[place] = float(values[place % len(values)])
        if place % 3 == 0:
            x[(place + 70) % 192] = float("nan")
        got, expected = compiled(x).numpy(), f(x).numpy()
        assert np.array_equal(got.view(np.uint8), expected.view(np.uint8)), (place, x[place].item())


def test_product_by_one():
    """A number that is 1, as alpha is most often, takes no product; another one is read anew and needs no other text."""
    x, y = torch.randn(1000), torch.randn(1000)
    kernels = {}
    for alpha in (1, 1.0, 2, 0.5):
        compiled = torch.graph(lambda a, b, alpha=alpha: torch.add(a.sin(), b.cos(), alpha=alpha), x, y).compile()
        assert torch.equal(compiled(x, y), torch.add(x.sin(), y.cos(), alpha=alpha))
        kernels[alpha] = compiled.source().split("// ---- Whole tensors")[0]
    assert kernels[1.0] == kernels[1] != kernels[2] == kernels[0.5]
