"""default_collate and default_convert."""

from collections import OrderedDict, namedtuple
from types import MappingProxyType

import pytest
import strata
from strata.testing import assert_close
from strata.utils.data import default_collate, default_collate_fn_map, default_convert

Point = namedtuple("Point", "x y")


def test_leaves():
    assert_close(default_collate([strata.ones(2), strata.zeros(2)]), strata.tensor([[1.0, 1.0], [0.0, 0.0]]))
    assert_close(default_collate([0.5, 1.5]), strata.tensor([0.5, 1.5], dtype=strata.float64))
    assert_close(default_collate([1, 2]), strata.tensor([1, 2]))
    assert_close(default_collate([True, False]), strata.tensor([True, False]))
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert default_collate([b"a"]) == [b"a"]


def test_nests():
    assert_close(default_collate([(1, 2.0), (3, 4.0)]), [default_collate([1, 3]), default_collate([2.0, 4.0])])
    joined = default_collate([{"a": [1, "x"]}, {"a": [2, "y"]}])
    assert_close(joined["a"][0], strata.tensor([1, 2]))
    assert joined["a"][1] == ("x", "y")
    point = default_collate([Point(1, 2), Point(3, 4)])
    assert isinstance(point, Point) and point.y.tolist() == [2, 4]
    assert type(default_collate([OrderedDict(a=1)])) is OrderedDict
    assert type(default_collate([MappingProxyType({"a": 1})])) is MappingProxyType


def test_numpy():
    numpy = pytest.importorskip("numpy")
    assert_close(default_collate([numpy.ones(2), numpy.zeros(2)]).shape, (2, 2))
    assert default_collate([numpy.float32(1), numpy.float32(2)]).dtype == strata.float32
    with pytest.raises(TypeError, match="default_collate"):
        default_collate([numpy.array(["x"])])


def test_refusals():
    with pytest.raises(TypeError, match="found <class 'NoneType'>"):
        default_collate([None])
    with pytest.raises(RuntimeError, match="equal size"):
        default_collate([[1], [1, 2]])


def test_own_types():
    class Mark:
        pass

    default_collate_fn_map[Mark] = lambda batch, *, collate_fn_map=None: len(batch)
    try:
        assert default_collate([{"m": Mark()}, {"m": Mark()}]) == {"m": 2}
    finally:
        del default_collate_fn_map[Mark]


def test_convert():
    numpy = pytest.importorskip("numpy")
    out = default_convert({"a": numpy.ones(2), "b": (1, numpy.int32(3)), "c": "text", "d": Point(numpy.zeros(1), 2)})
    assert isinstance(out["a"], strata.Tensor) and isinstance(out["b"], list) and out["b"][0] == 1
    assert out["b"][1].dtype == strata.int32 and out["c"] == "text" and isinstance(out["d"].x, strata.Tensor)
