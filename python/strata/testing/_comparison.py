"""`assert_close`: tensors, arrays, numbers and nests of them, compared within tolerances.

Comparison has two steps, as in PyTorch: the two structures are walked into pairs of leaves (lengths, keys and types
must match before any value is read), then each pair is compared. The first failure is raised, with the path to it.
"""

import cmath
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import strata

_NUMBERS = (bool, int, float, complex)


def _tolerance_table():
    single, half = (1.3e-6, 1e-5), (0.001, 1e-5)
    table = {
        strata.float16: half,
        strata.bfloat16: (0.016, 1e-5),
        strata.float32: single,
        strata.float64: (1e-7, 1e-7),
        strata.complex64: single,
        strata.complex128: (1e-7, 1e-7),
    }
    if hasattr(strata, "complex32"):
        table[strata.complex32] = half
    return table


_TOLERANCES = _tolerance_table()


def default_tolerances(*inputs):
    """The loosest default (rtol, atol) of the given tensors or dtypes; (0.0, 0.0) for integers and bool.

    Raises:
        TypeError: an input is neither a tensor nor a dtype.
    """
    pairs = []
    for value in inputs:
        dtype = value.dtype if isinstance(value, strata.Tensor) else value
        if not isinstance(dtype, strata.dtype):
            raise TypeError(f"default_tolerances: expected a Tensor or a dtype, got {type(value).__name__}")
        pairs.append(_TOLERANCES.get(dtype, (0.0, 0.0)))
    return max(r for r, _ in pairs), max(a for _, a in pairs)


class _Mismatch(Exception):
    """A failure on its way to the user: the exception type to raise, the text, and where in the nest it was."""

    def __init__(self, kind, text, path):
        super().__init__(text)
        self.kind, self.text, self.path = kind, text, path

    def to_error(self, msg=None):
        if isinstance(msg, str):
            return self.kind(msg)
        text = self.text
        if self.path:
            text += f"\n\nThe failure occurred for item {''.join(f'[{step!r}]' for step in self.path)}"
        return self.kind(msg(text) if callable(msg) else text)


class _Options:
    """The keyword arguments of `assert_close` as attributes."""

    def __init__(self, **given):
        self.__dict__.update(given)

    def tolerances(self, path, *dtypes):
        if (self.rtol is None) != (self.atol is None):
            absent = "rtol" if self.rtol is None else "atol"
            raise _Mismatch(
                ValueError, f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {absent}.", path
            )
        return default_tolerances(*dtypes) if self.rtol is None else (self.rtol, self.atol)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg=None,
):
    """Asserts that |actual - expected| <= atol + rtol * |expected| for every element.

    Args:
        actual, expected: tensors, NumPy arrays, numbers, None, or sequences and mappings of them (nested at will).
        allow_subclasses: a tensor may be compared with one of a related type.
        rtol, atol: tolerances, given together; by default from the dtype: float16 (1e-3, 1e-5), bfloat16
            (1.6e-2, 1e-5), float32 and complex64 (1.3e-6, 1e-5), float64 and complex128 (1e-7, 1e-7), others (0, 0).
            The looser pair counts where the dtypes differ. Numbers count as int64, float64, complex128.
        equal_nan: NaN equals NaN.
        check_device, check_dtype, check_layout, check_stride: these attributes must agree too.
        msg: text of the error, or a function from the usual text to another.

    Raises:
        AssertionError: values, attributes, lengths or keys differ.
        TypeError: a pair cannot be compared.
        ValueError: only one tolerance is given.
    """
    __tracebackhide__ = True
    options = _Options(
        allow_subclasses=allow_subclasses,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=check_device,
        check_dtype=check_dtype,
        check_layout=check_layout,
        check_stride=check_stride,
    )
    try:
        leaves = list(_leaves(actual, expected, (), options))
    except _Mismatch as found:
        raise found.to_error() from None
    try:
        for compare, *args in leaves:
            compare(*args)
    except _Mismatch as found:
        failure = found
    else:
        return
    raise failure.to_error(msg)


def _leaves(actual, expected, path, options):
    """Yields (function, its arguments) for each pair of leaves."""
    both = (actual, expected)
    if all(isinstance(v, Sequence) and not isinstance(v, str) for v in both):
        if len(actual) != len(expected):
            text = f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
            raise _Mismatch(AssertionError, text, path)
        for i in range(len(actual)):
            yield from _leaves(actual[i], expected[i], (*path, i), options)
    elif all(isinstance(v, Mapping) for v in both):
        for key in _common_keys(actual, expected, path):
            yield from _leaves(actual[key], expected[key], (*path, key), options)
    elif actual is None or expected is None:
        yield _compare_none, actual, expected, path
    elif all(isinstance(v, _kinds((bool,), "bool_")) for v in both):
        yield _compare_bools, *map(_plain, both), path
    elif all(isinstance(v, _kinds(_NUMBERS, "number")) for v in both):
        a, e = map(_plain, both)
        yield _compare_numbers, a, e, path, options, options.tolerances(path, _number_dtype(a), _number_dtype(e))
    else:
        a, e = _as_tensors(actual, expected, path, options)
        yield _compare_tensors, a, e, path, options, options.tolerances(path, a, e)


def _common_keys(actual, expected, path):
    ours, theirs = set(actual.keys()), set(expected.keys())
    if ours != theirs:
        text = (
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {_sorted(theirs - ours)}\n"
            f"Additional keys in the actual mapping: {_sorted(ours - theirs)}"
        )
        raise _Mismatch(AssertionError, text, path)
    return _sorted(ours)


def _sorted(keys):
    try:
        return sorted(keys)
    except TypeError:
        return sorted(keys, key=repr)


def _kinds(types, numpy_type):
    """The Python types, with NumPy's scalars of that kind where NumPy is loaded."""
    numpy = sys.modules.get("numpy")
    return types if numpy is None else (*types, getattr(numpy, numpy_type))


def _plain(value):
    return value if type(value) in _NUMBERS else value.item()


def _number_dtype(value):
    if isinstance(value, int):
        return strata.int64
    return strata.float64 if isinstance(value, float) else strata.complex128


def _as_tensors(actual, expected, path, options):
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    if related and (options.allow_subclasses or type(actual) is type(expected)):
        # Whatever as_tensor refuses cannot be compared.
        with suppress(Exception):
            return tuple(v if isinstance(v, strata.Tensor) else strata.as_tensor(v) for v in (actual, expected))
    text = f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}."
    raise _Mismatch(TypeError, text, path)


def _compare_none(actual, expected, path):
    if actual is not expected:
        raise _Mismatch(AssertionError, f"None mismatch: {actual} is not {expected}", path)


def _compare_bools(actual, expected, path):
    if actual is not expected:
        raise _Mismatch(AssertionError, f"Booleans mismatch: {actual} is not {expected}", path)


def _compare_numbers(actual, expected, path, options, tolerances):
    if options.check_dtype and type(actual) is not type(expected):
        text = f"The (d)types do not match: {type(actual)} != {type(expected)}."
        raise _Mismatch(AssertionError, text, path)
    if actual == expected or (options.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
        return
    rtol, atol = tolerances
    difference = abs(actual - expected)
    if not (cmath.isfinite(difference) and difference <= atol + rtol * abs(expected)):
        raise _Mismatch(AssertionError, _scalar_text(actual, expected, rtol, atol), path)


def _compare_tensors(actual, expected, path, options, tolerances):
    __tracebackhide__ = True
    for name, wanted in (
        ("shape", True),
        ("layout", options.check_layout),
        ("stride()", options.check_stride),
        ("device", options.check_device),
        ("dtype", options.check_dtype),
    ):
        if wanted:
            a, e = (t.stride() if name == "stride()" else getattr(t, name) for t in (actual, expected))
            if a != e:
                raise _Mismatch(AssertionError, f"The values for attribute '{name}' do not match: {a} != {e}.", path)
    if actual.is_meta or expected.is_meta:
        return
    with strata.no_grad():
        actual, expected = _like_each_other(actual, expected)
        rtol, atol = tolerances
        matches = strata.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=options.equal_nan)
        if bool(matches.all()):
            return
        if actual.dim() == 0:
            text = _scalar_text(actual.item(), expected.item(), rtol, atol)
        else:
            text = _tensor_text(actual, expected, matches, rtol, atol)
    raise _Mismatch(AssertionError, text, path)


def _like_each_other(actual, expected):
    if actual.device != expected.device:
        actual, expected = actual.cpu(), expected.cpu()
    if actual.dtype != expected.dtype:
        # Wide unsigned integers promote with nothing; values that fit int64 are compared as such.
        wide = [getattr(strata, name) for name in ("uint16", "uint32", "uint64") if hasattr(strata, name)]
        dtypes = [strata.int64 if t.dtype in wide else t.dtype for t in (actual, expected)]
        common = strata.promote_types(*dtypes)
        actual, expected = actual.to(common), expected.to(common)
    return actual, expected


def _head(what, rtol, atol):
    return f"{what} are not {'equal' if rtol == 0 and atol == 0 else 'close'}!\n\n"


def _allowed(tolerance, rtol, atol):
    return "" if rtol == 0 and atol == 0 else f" (up to {tolerance} allowed)"


def _scalar_text(actual, expected, rtol, atol):
    difference = abs(actual - expected)
    relative = float("inf") if expected == 0 else difference / abs(expected)
    return (
        _head("Scalars", rtol, atol)
        + f"Expected {expected} but got {actual}.\n"
        + f"Absolute difference: {difference}{_allowed(atol, rtol, atol)}\n"
        + f"Relative difference: {relative}{_allowed(rtol, rtol, atol)}"
    )


def _tensor_text(actual, expected, matches, rtol, atol):
    count = matches.numel()
    wrong = count - int(matches.sum())
    lines = [f"Mismatched elements: {wrong} / {count} ({wrong / count:.1%})"]
    shape = matches.shape
    matches, actual, expected = matches.flatten(), actual.flatten(), expected.flatten()
    if not (actual.dtype.is_floating_point or actual.dtype.is_complex):
        # Unsigned and small integers would wrap in the difference.
        actual, expected = actual.to(strata.int64), expected.to(strata.int64)
    absolute = (actual - expected).abs().masked_fill(matches, 0)
    relative = (absolute / expected.abs()).masked_fill(matches, 0)
    for name, difference, tolerance in (("absolute", absolute, atol), ("relative", relative, rtol)):
        worst, at = difference.max(0)
        index = _unravel(int(at), shape)
        lines.append(f"Greatest {name} difference: {worst.item()} at index {index}{_allowed(tolerance, rtol, atol)}")
    return _head("Tensor-likes", rtol, atol) + "\n".join(lines)


def _unravel(position, shape):
    index = []
    for size in reversed(shape):
        position, step = divmod(position, size)
        index.append(step)
    return tuple(reversed(index))


def assert_allclose(actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None, equal_nan: bool = True, msg: str = "") -> None:
    """The old form of assert_close: dtypes may differ, NaN equals NaN, and data that are no tensors become some."""
    actual, expected = (x if isinstance(x, strata.Tensor) else strata.tensor(x) for x in (actual, expected))
    assert_close(
        actual, expected.to(actual.device), rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None
    )
