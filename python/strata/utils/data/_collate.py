"""How samples become a batch, and (without batching) how one sample becomes tensors."""

import copy
import sys
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence

import strata

_REFUSAL = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}; "
    "a collate_fn of your own can batch anything"
)


def collate_tensor_fn(batch, *, collate_fn_map=None):
    return strata.stack(batch, 0)


def collate_float_fn(batch, *, collate_fn_map=None):
    return strata.tensor(batch, dtype=strata.float64)


def collate_int_fn(batch, *, collate_fn_map=None):
    return strata.tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None):
    return batch


# Open to users: type -> function of (batch, *, collate_fn_map).
default_collate_fn_map = {strata.Tensor: collate_tensor_fn, float: collate_float_fn, int: collate_int_fn, str: collate_str_fn, bytes: collate_str_fn}


def stacks_tensors():
    """Whether default_collate still treats tensors as it did, whatever users have put into its table."""
    return default_collate_fn_map.get(strata.Tensor) is collate_tensor_fn


def collate_numpy_array_fn(batch, *, collate_fn_map=None):
    if batch[0].dtype.kind in "SUO":
        raise TypeError(_REFUSAL.format(batch[0].dtype))
    return collate([strata.as_tensor(sample) for sample in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch, *, collate_fn_map=None):
    return strata.as_tensor(sys.modules["numpy"].array(batch))


def _numpy_function(sample):
    """The function for NumPy's types, which are known only once somebody has loaded NumPy."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    if isinstance(sample, numpy.ndarray):
        return collate_numpy_array_fn
    return collate_numpy_scalar_fn if isinstance(sample, (numpy.bool_, numpy.number)) else None


def collate(batch, *, collate_fn_map=None):
    """`default_collate` with another table of functions by type."""
    first = batch[0]
    kind = type(first)
    table = collate_fn_map or {}
    function = table.get(kind)
    if function is None and collate_fn_map is not None:
        # NumPy first: its float64 is also a float.
        function = _numpy_function(first) or next((f for t, f in table.items() if isinstance(first, t)), None)
    if function is not None:
        return function(batch, collate_fn_map=collate_fn_map)

    def column(samples):
        return collate(samples, collate_fn_map=collate_fn_map)

    if isinstance(first, Mapping):
        columns = {key: column([sample[key] for sample in batch]) for key in first}
        return _same_mapping(first, columns)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*(column(samples) for samples in zip(*batch, strict=True)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [column(samples) for samples in zip(*batch, strict=True)]
        return columns if isinstance(first, tuple) else _same_sequence(first, columns)
    raise TypeError(_REFUSAL.format(kind))


def _same_mapping(like, items):
    """`items` in a mapping of the type of `like`, which may carry more than its items."""
    try:
        if isinstance(like, MutableMapping):
            clone = copy.copy(like)
            clone.update(items)
            return clone
        return type(like)(items)
    except TypeError:
        return items


def _same_sequence(like, items):
    try:
        if isinstance(like, MutableSequence):
            clone = copy.copy(like)
            for i, item in enumerate(items):
                clone[i] = item
            return clone
        return type(like)(items)
    except TypeError:
        return items


def default_collate(batch):
    """Joins a list of samples into one batch, with a new first dimension.

    Tensors and NumPy arrays are stacked; floats become a float64 tensor, integers an int64 one; strings and bytes
    stay a list; mappings, named tuples and sequences are joined item by item (a tuple gives a list).

    Raises:
        TypeError: for samples of another type.
        RuntimeError: the samples are sequences of different lengths, or tensors of different shapes.
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def default_convert(data):
    """One sample with its NumPy arrays and scalars as tensors; everything else stays what it is."""
    kind = type(data)
    if isinstance(data, strata.Tensor):
        return data
    if _numpy_function(data) is not None:
        return data if data.dtype.kind in "SUO" else strata.as_tensor(data)
    if isinstance(data, Mapping):
        return _same_mapping(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return kind(*map(default_convert, data))
    if isinstance(data, tuple):
        return [default_convert(item) for item in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _same_sequence(data, [default_convert(item) for item in data])
    return data
