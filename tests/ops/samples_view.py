"""Samples of views, of lists of views and of writing views back."""

from __future__ import annotations

from kit import D, call, sample


@sample("expand_as", "view_as")
def like_another(m):
    if "expand" in m.op:
        yield call(m.tensor(3, 1), m.tensor(2, 3, 4))
    else:
        yield call(m.tensor(3, 4), m.tensor(2, 6))
    yield call(m.tensor(3, 4), m.tensor(5))


@sample("slice")
def slice_(m):
    yield call(m.tensor(5, 4), 0, 1, 4, 2)
    yield call(m.tensor(5, 4), 1, -3, None, 1)
    yield call(m.tensor(5, 4), -1, None, -1)
    yield call(m.tensor(5, 4), 0, 4, 2)
    yield call(m.tensor(5), 0, -100, 100, 7)
    yield call(m.tensor(5, 4), 0, 0, 3, 0)
    yield call(m.tensor(5, 4), 2, 0, 3)
    yield call(m.tensor())


@sample("select")
def select(m):
    yield call(m.tensor(3, 4), 0, 1)
    yield call(m.tensor(3, 4), -1, -4)
    yield call(m.tensor(3), 0, 2)
    yield call(m.tensor(3, 4), 0, 3)
    yield call(m.tensor(3, 4), 2, 0)
    yield call(m.tensor(), 0, 0)


@sample("narrow")
def narrow(m):
    yield call(m.tensor(5, 4), 0, 1, 3)
    yield call(m.tensor(5, 4), -1, -2, 2)
    yield call(m.tensor(5, 4), 0, 5, 0)
    yield call(m.tensor(5, 4), 0, 3, 3)
    yield call(m.tensor(5, 4), 0, 6, 0)
    yield call(m.tensor(5, 4), 0, 0, -1)


@sample("narrow_tensor")
def narrow_tensor(m):
    yield call(m.tensor(5, 4), 0, m.integers(low=1, high=3), 2)
    yield call(m.tensor(5, 4), 1, m.integers(low=-2, high=-1, dtype="int32"), 2)
    yield call(m.tensor(5, 4), 0, m.integers(1), 2)
    yield call(m.tensor(5, 4), 0, m.tensor(dtype="float32"), 2)


@sample("transpose")
def transpose(m):
    yield call(m.tensor(3, 4), 0, 1)
    yield call(m.tensor(2, 3, 4), -1, 0)
    yield call(m.tensor(2, 3), 1, 1)
    yield call(m.tensor(), 0, -1)
    yield call(m.tensor(2, 3), 0, 2)


@sample("matrix_or_less")
def matrix_or_less(m):
    yield call(m.tensor(3, 4))
    yield call(m.tensor(3))
    yield call(m.tensor())
    yield call(m.tensor(2, 3, 4))


@sample("batch_of_matrices")
def batch_of_matrices(m):
    yield call(m.tensor(3, 4))
    yield call(m.tensor(2, 3, 4))
    yield call(m.tensor(3))


@sample("permute")
def permute(m):
    yield call(m.tensor(2, 3, 4), [2, 0, 1])
    yield call(m.tensor(2, 3), [-1, 0])
    yield call(m.tensor(), [])
    yield call(m.tensor(2, 3), [0])
    yield call(m.tensor(2, 3), [0, 0])
    yield call(m.tensor(2, 3), [0, 2])


@sample("movedim")
def movedim(m):
    yield call(m.tensor(2, 3, 4), 0, 2)
    yield call(m.tensor(2, 3, 4), -1, 0)
    yield call(m.tensor(2, 3, 4), 0, 3)


@sample("movedim_list")
def movedim_list(m):
    yield call(m.tensor(2, 3, 4, 5), [0, 3], [2, 0])
    yield call(m.tensor(2, 3, 4), [-1, 0], [0, 1])
    yield call(m.tensor(2, 3, 4), [0, 0], [0, 1])
    yield call(m.tensor(2, 3, 4), [0], [0, 1])


@sample("become")
def become(m):
    yield call(m.tensor(2, 3), m.tensor(3, 2))
    yield call(m.tensor(2, 3), m.tensor(1, 6, 1))
    yield call(m.tensor(0), m.tensor(0, 4))
    yield call(m.tensor(2, 3), m.tensor(7))


@sample("squeeze")
def squeeze(m):
    yield call(m.tensor(1, 3, 1, 4))
    yield call(m.tensor(1, 1))
    yield call(m.tensor(3, 0))


@sample("squeeze_dims")
def squeeze_dims(m):
    yield call(m.tensor(1, 3, 1, 4), [0, 1])
    yield call(m.tensor(1, 3, 1), [-1, 0])
    yield call(m.tensor(1, 3, 1), [])
    yield call(m.tensor(1, 3, 1), [0, 0])
    yield call(m.tensor(1, 3, 1), [3])


@sample("view_dtype")
def view_dtype(m):
    for name in ("uint8", "int32", "float64", "int64", "float16", "bfloat16", "complex64"):
        if name != "float64" or m.dtype != "bool":
            yield call(m.tensor(3, 8), D(name))
    yield call(m.tensor(3, 7), D("float64"))
    yield call(m.tensor(), D("uint8"))


@sample("flatten")
def flatten(m):
    yield call(m.tensor(2, 3, 4))
    yield call(m.tensor(2, 3, 4), 1)
    yield call(m.tensor(2, 3, 4), 0, -2)
    yield call(m.tensor())
    yield call(m.tensor(2, 3, 4), 2, 1)


@sample("unflatten")
def unflatten(m):
    yield call(m.tensor(2, 12), 1, [3, 4])
    yield call(m.tensor(2, 12), -1, [3, -1, 2])
    yield call(m.tensor(12), 0, [12])
    yield call(m.tensor(2, 12), 1, [5, -1])
    yield call(m.tensor(2, 12), 1, [])


@sample("unfold")
def unfold(m):
    yield call(m.tensor(7), 0, 3, 2)
    yield call(m.tensor(3, 7), 1, 2, 1)
    yield call(m.tensor(3, 5), 0, 2, 1)
    yield call(m.tensor(3, 5), -1, 5, 3)
    yield call(m.tensor(), 0, 1, 1)
    yield call(m.tensor(3), 0, 4, 1)
    yield call(m.tensor(3), 0, 2, 0)


@sample("view_as_complex")
def view_as_complex(m):
    if m.dtype == "float16":
        return
    yield call(m.tensor(3, 2))
    yield call(m.tensor(2))
    yield call(m.tensor(3, 4))


@sample("contiguous")
def contiguous(m):
    yield call(m.tensor(3, 4))


@sample("tensor_list")
def tensor_list(m):
    yield call([m.tensor(), m.tensor(3), m.tensor(2, 3), m.tensor(2, 3, 4)])


@sample("unbind")
def unbind(m):
    yield call(m.tensor(3, 4))
    yield call(m.tensor(3, 4), 1)
    yield call(m.tensor(3, 2, 4), -2)
    yield call(m.tensor(0, 4))
    yield call(m.tensor())
    yield call(m.tensor(3), 1)


@sample("split")
def split(m):
    yield call(m.tensor(7, 2), 3)
    yield call(m.tensor(2, 6), 2, 1)
    yield call(m.tensor(2, 6), 10, -1)
    yield call(m.tensor(0, 2), 0)
    yield call(m.tensor(3), 0)
    yield call(m.tensor(3), -1)
    yield call(m.tensor(), 1)


@sample("split_sizes")
def split_sizes(m):
    yield call(m.tensor(7, 2), [3, 0, 4])
    yield call(m.tensor(2, 6), [1, 5], -1)
    yield call(m.tensor(7), [3, 3])
    yield call(m.tensor(7), [8, -1])


@sample("chunk")
def chunk(m):
    yield call(m.tensor(7, 2), 3)
    yield call(m.tensor(2, 6), 4, 1)
    yield call(m.tensor(3), 5)
    yield call(m.tensor(0, 2), 3)
    yield call(m.tensor(3), 0)
    yield call(m.tensor(), 1)


@sample("split_indices")
def split_indices(m):
    yield call(m.tensor(7, 2), [2, 5])
    yield call(m.tensor(2, 6), [1, 1, -1], 1)
    yield call(m.tensor(7), [10])
    yield call(m.tensor(7), [])
    yield call(m.tensor(), [1])


@sample("split_tensor_indices")
def split_tensor_indices(m):
    yield call(m.tensor(7, 2), m.integers(high=4, low=3))
    yield call(m.tensor(7, 2), m.integers(1, low=2, high=6))
    yield call(m.tensor(7, 2), m.tensor(2, 2, dtype="int64"))
    yield call(m.tensor(7, 2), m.tensor(2, dtype="float32"))


@sample("split_columns")
def split_columns(m):
    yield call(m.tensor(3, 6), 3)
    yield call(m.tensor(6), 2)
    yield call(m.tensor(3, 6), 4)
    yield call(m.tensor(), 1)


@sample("split_columns_indices")
def split_columns_indices(m):
    yield call(m.tensor(3, 6), [1, 4])
    yield call(m.tensor(6), [2])


@sample("split_rows")
def split_rows(m):
    yield call(m.tensor(6, 2), 3)
    yield call(m.tensor(6, 2), 4)
    yield call(m.tensor(6), 2)


@sample("split_rows_indices")
def split_rows_indices(m):
    yield call(m.tensor(6, 2), [1, 4])


@sample("split_depth")
def split_depth(m):
    yield call(m.tensor(2, 2, 6), 3)
    yield call(m.tensor(2, 2, 6), 4)
    yield call(m.tensor(2, 6), 2)


@sample("split_depth_indices")
def split_depth_indices(m):
    yield call(m.tensor(2, 2, 6), [1, 4])


@sample("slice_scatter")
def slice_scatter(m):
    yield call(m.tensor(5, 4), m.tensor(2, 4), 0, 1, 4, 2)
    yield call(m.tensor(5, 4), m.tensor(5, 2), -1, 2)
    yield call(m.tensor(5, 4), m.tensor(4, 5))


@sample("select_scatter")
def select_scatter(m):
    yield call(m.tensor(3, 4), m.tensor(4), 0, 1)
    yield call(m.tensor(3, 4), m.tensor(3), 1, -1)
    yield call(m.tensor(3, 4), m.tensor(4), 1, 0)
    yield call(m.tensor(3, 4), m.tensor(4), 0, 3)


@sample("as_strided_scatter")
def as_strided_scatter(m):
    yield call(m.tensor(3, 4), m.tensor(2, 2), [2, 2], [4, 2], 1)
    yield call(m.tensor(6), m.tensor(3), [3], [2])
    yield call(m.tensor(6), m.tensor(4), [3], [2])


@sample("slice_backward")
def slice_backward(m):
    yield call(m.tensor(2, 4), [5, 4], 0, 1, 4, 2)
    yield call(m.tensor(5, 3), [5, 4], 1, 0, 3, 1)


@sample("select_backward")
def select_backward(m):
    yield call(m.tensor(4), [3, 4], 0, 1)
    yield call(m.tensor(3), [3, 4], -1, -1)


@sample("unfold_backward")
def unfold_backward(m):
    if not (m.is_float or m.is_complex):
        return
    yield call(m.tensor(3, 3), [7], 0, 3, 2)
    yield call(m.tensor(3, 6, 2), [3, 7], 1, 2, 1)
    yield call(m.tensor(3, 2, 2), [3, 5], 1, 2, 3)


@sample("as_strided_backward")
def as_strided_backward(m):
    if m.is_float or m.is_complex:
        yield call(m.tensor(3, 2), [12], [1], 0, [3, 2], [4, 1], 1)
        yield call(m.tensor(3, 3), [6], [1], 0, [3, 3], [1, 1], 0)
        yield call(m.tensor(4), [3, 3], [3, 1], 2, [4], [2], 2)
