"""Tensor classes with __torch_dispatch__ around tensors of the null device: mixed precision is the device's."""

from __future__ import annotations

import devices
import strata
from strata.utils._pytree import tree_map

DEVICE = devices.null()


class Wrapper(strata.Tensor):
    seen: list = []

    @staticmethod
    def __new__(cls, inner):
        made = strata.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        inner = lambda t: t.inner if isinstance(t, Wrapper) else t  # noqa: E731
        cls.seen.append((str(func), {t.dtype for t in args if isinstance(t, strata.Tensor)}))
        made = func(*tree_map(inner, args), **tree_map(inner, kwargs or {}))
        return tree_map(lambda t: Wrapper(t) if isinstance(t, strata.Tensor) else t, made)


def test_autocast_is_that_of_the_device():
    x, w = Wrapper(strata.ones(2, 4, device=DEVICE)), Wrapper(strata.ones(4, 3, device=DEVICE))
    for device, low, dtype in ((DEVICE, strata.float16, strata.float16), ("cpu", strata.bfloat16, strata.float32)):
        Wrapper.seen.clear()
        with strata.autocast(strata.device(device).type, dtype=low):
            y = strata.mm(x, w)
        assert y.dtype == dtype and Wrapper.seen[-1] == ("aten.mm.default", {dtype})


def test_places_to_split_at_are_asked_for():
    where = Wrapper(strata.tensor([1, 3]))
    parts = strata.tensor_split(strata.arange(5), where)
    assert [p.tolist() for p in parts] == [[0], [1, 2], [3, 4]]
