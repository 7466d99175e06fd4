"""Fuzzer: draws within bounds, tensors of them, and what is refused."""

import pytest
import strata as torch
from strata.utils.benchmark import FuzzedParameter, FuzzedTensor, Fuzzer, ParameterAlias


def fuzzer(seed=0, **tensor):
    return Fuzzer(
        [
            FuzzedParameter("n", minval=2, maxval=64, distribution="loguniform"),
            [FuzzedParameter("m", distribution={ParameterAlias("n"): 0.5, 3: 0.5}), FuzzedParameter("step", minval=1, maxval=2, distribution="uniform")],
        ],
        [FuzzedTensor("x", size=("n", "m"), steps=("step", 1), **tensor)],
        seed=seed,
    )  # fmt: skip


def test_draws_fit_their_bounds():
    drawn = list(fuzzer(min_elements=20, max_elements=600, probability_contiguous=0.5).take(40))
    for tensors, about, params in drawn:
        x = tensors["x"]
        assert x.shape == (params["n"], params["m"]) and params["m"] in (3, params["n"]) and 20 <= x.numel() <= 600
        assert about["x"] == {
            "numel": x.numel(), "order": about["x"]["order"], "steps": [params["step"], 1], "is_contiguous": x.is_contiguous(),
            "dtype": str(torch.float32),
        }  # fmt: skip
    assert {a["x"]["is_contiguous"] for _, a, _ in drawn} == {True, False} and {p["step"] for *_, p in drawn} == {1, 2}
    again = [p for *_, p in fuzzer(min_elements=20, max_elements=600, probability_contiguous=0.5).take(40)]
    assert again == [p for *_, p in drawn]


def test_dims_dtypes_and_constructors():
    made = Fuzzer(
        [FuzzedParameter("dim", distribution={1: 0.5, 2: 0.5}), FuzzedParameter("k", 1, 5, "uniform")],
        [FuzzedTensor("x", ("k", "k"), dim_parameter="dim", dtype=torch.int64, tensor_constructor=lambda size, dtype, **_: torch.zeros(size, dtype=dtype))],
        constraints=[lambda p: p["k"] != 3], seed=1,
    )  # fmt: skip
    for tensors, _, params in made.take(20):
        assert tensors["x"].dim() == params["dim"] and tensors["x"].dtype == torch.int64 and params["k"] != 3
    assert 0 < made.rejection_rate < 1


def test_refusals():
    with pytest.raises(AssertionError, match="Unknown distribution"):
        FuzzedParameter("n", 1, 2, "normal")
    with pytest.raises(AssertionError, match="not normalized"):
        FuzzedParameter("n", distribution={1: 0.3})
    with pytest.raises(ValueError, match="Duplicate names"):
        Fuzzer([FuzzedParameter("n", 1, 2, "uniform")] * 2, [])
    with pytest.raises(ValueError, match="no draw of 1000 fits"):
        next(fuzzer(max_elements=1).take(1))
    with pytest.raises(ValueError, match="expected a FuzzedTensor, got int"):
        Fuzzer([], [3])
