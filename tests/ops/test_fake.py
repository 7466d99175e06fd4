"""Every operator under FakeTensorMode: FakeTensors of the real results' shapes, dtypes, strides and places in storages;
what it writes included. Operators whose sizes or results are values raise."""

from __future__ import annotations

from strata._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from strata.utils._pytree import tree_leaves, tree_map_only
from table import ENTRIES, calls, operator, pytest, strata


def described(nest):
    return [
        (tuple(t.shape), t.dtype, t.stride() if t.numel() else None, t.storage_offset(), t.device, t.requires_grad)
        for t in tree_leaves(nest)
        if isinstance(t, strata.Tensor)
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.schema.full)
def test_fake(entry):
    op, info = operator(entry.schema), strata.ops.info(entry.schema.full)
    for args, kwargs in calls(entry, "float32"):
        mode = FakeTensorMode()
        fake_args, fake_kwargs = tree_map_only(strata.Tensor, mode.from_tensor, (args, kwargs))
        try:
            want = op(*args, **kwargs)
        except (RuntimeError, ValueError, TypeError, IndexError):
            continue
        try:
            with mode:
                got = op(*fake_args, **fake_kwargs)
        except DynamicOutputShapeException:
            assert info.size.startswith("data") or info.kind == "composite"
            continue
        except DataDependentOutputException:
            assert info.reads == "value" or info.kind == "composite"
            continue
        assert described([want, args, kwargs]) == described([got, fake_args, fake_kwargs])
        assert all(type(t) is FakeTensor for t in tree_leaves([got, fake_args, fake_kwargs]) if isinstance(t, strata.Tensor))
