"""Text of a tensor, the same as PyTorch's character for character.

`tensor_repr(t)` is what `Tensor.__repr__` returns. Only the elements that will be shown are read, with slices and
`tolist()`; all formatting is plain Python on plain numbers, so printing needs no operator of the table but slicing.
"""

import math
import sys
from contextlib import contextmanager

import strata

_PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


_NAMES = ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")


class _Options:
    __slots__ = _NAMES

    def __init__(self):
        self.sci_mode = None
        for name, value in _PROFILES["default"].items():
            setattr(self, name, value)


PRINT_OPTS = _Options()


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """Sets how tensors print.

    Args:
        precision: digits after the point (4).
        threshold: a tensor with more elements is summarised (1000).
        edgeitems: elements shown at each end of a summarised dimension (3).
        linewidth: characters per line before a vector wraps (80).
        profile: "default", "short" or "full"; the other arguments are applied after it.
        sci_mode: True or False forces the notation; None (the default, also when left out) lets the values choose.

    Raises:
        ValueError: for an unknown profile.
    """
    changes = {}
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(
                f"set_printoptions: profile must be one of {', '.join(map(repr, _PROFILES))}, got {profile!r}"
            )
        changes.update(_PROFILES[profile])
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    changes.update((name, value) for name, value in given.items() if value is not None)
    for name, value in changes.items():
        setattr(PRINT_OPTS, name, value)
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions():
    """The options as a dict that `set_printoptions(**options)` accepts."""
    return {name: getattr(PRINT_OPTS, name) for name in _NAMES}


@contextmanager
def printoptions(**options):
    """Context in which the given options (those of `set_printoptions`) hold."""
    saved = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**saved)


class _NumberFormat:
    """Text of one kind of number, all padded to the widest of the values it was made from.

    The width is that of the finite nonzero floats (any integer or bool): PyTorch ignores zeros, infinities and NaN
    there, so its columns are not always aligned, and ours are not either.
    """

    def __init__(self, values, is_float):
        self.width = 1
        self.spec = ".0f"
        self.point = "."
        if not is_float:
            self.text = self._exact
            self.width = max(map(len, map(str, values)), default=1)
            return
        self.text = self._fixed
        # One pass keeps what decides: v != 0 and v - v == 0 is "finite and not zero".
        normal = [v for v in values if v and v - v == 0]
        if not normal:
            return
        precision = PRINT_OPTS.precision
        integral = all(v == math.floor(v) for v in normal)
        if PRINT_OPTS.sci_mode is None:
            low, high = min(map(abs, normal)), max(map(abs, normal))
            scientific = high / low > 1000.0 or high > 1.0e8 or low < 1.0e-4
        else:
            scientific = PRINT_OPTS.sci_mode
        if scientific:
            self.spec, self.point = f".{precision}e", ""
        elif not integral:
            self.spec, self.point = f".{precision}f", ""
        spec = self.spec
        self.width = max(1, max(len(format(v, spec)) for v in normal) + len(self.point))

    def _exact(self, value):
        return str(value).rjust(self.width)

    def _fixed(self, value):
        out = format(value, self.spec)
        if self.point and value - value == 0:
            out += self.point
        return out.rjust(self.width)


def _shown(t, dim, edge):
    """Nested list of the elements that the summary shows: `edge` from each end of every longer dimension."""
    if dim == t.dim():
        return t.tolist()
    size = t.size(dim)
    if size <= 2 * edge:
        return _shown(t, dim + 1, edge)
    head = _shown(t.narrow(dim, 0, edge), dim + 1, edge)
    tail = _shown(t.narrow(dim, size - edge, edge), dim + 1, edge)
    return _join(head, tail, dim)


def _join(a, b, depth):
    return a + b if depth == 0 else [_join(x, y, depth - 1) for x, y in zip(a, b, strict=True)]


def _flat(nested, depth):
    for _ in range(depth - 1):
        nested = [item for row in nested for item in row]
    return nested


class _Writer:
    """Brackets, commas and line breaks around one tensor's elements (`cut[d]`: dimension d is abbreviated)."""

    def __init__(self, text, element_width, cut, ndim):
        self.text = text
        self.element_width = element_width
        self.cut = cut
        self.ndim = ndim

    def write(self, data, dim, indent):
        if dim == self.ndim - 1:
            return self._vector(data, indent, self.cut[dim])
        rows = [self.write(row, dim + 1, indent + 1) for row in data]
        if self.cut[dim]:
            rows.insert(PRINT_OPTS.edgeitems, "...")
        gap = "," + "\n" * (self.ndim - dim - 1) + " " * (indent + 1)
        return "[" + gap.join(rows) + "]"

    def _vector(self, data, indent, cut):
        items = [self.text(value) for value in data]
        if cut:
            # With no edge items PyTorch drops the leading space of the ellipsis.
            items.insert(PRINT_OPTS.edgeitems, " ..." if PRINT_OPTS.edgeitems else "...")
        per_line = max(1, math.floor((PRINT_OPTS.linewidth - indent) / self.element_width))
        lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _contents(t, indent):
    """Text of the elements of a tensor that has some, for a prefix of `indent` characters."""
    ndim = t.dim()
    edge = PRINT_OPTS.edgeitems
    if t.numel() > PRINT_OPTS.threshold:
        cut = [size > 2 * edge for size in t.shape]
        if ndim and not edge:
            return "[...]"
        data = _shown(t, 0, edge)
    else:
        cut = [False] * ndim
        data = t.tolist()
    flat = _flat(data, ndim) if ndim else [data]
    if t.dtype.is_complex:
        real = _NumberFormat([v.real for v in flat], True)
        imag = _NumberFormat([v.imag for v in flat], True)

        def text(value):
            tail = imag.text(value.imag).lstrip() + "j"
            return real.text(value.real) + (tail if tail[0] in "+-" else "+" + tail)

        width = real.width + imag.width + 3
    else:
        number = _NumberFormat(flat, t.dtype.is_floating_point)
        text, width = number.text, number.width + 2
    return _Writer(text, width, cut, ndim).write(data, 0, indent) if ndim else text(data)


def _tensor_str(self, indent):
    """Text of a tensor's elements alone, for a prefix of `indent` characters; "[]" where there are none."""
    with strata.no_grad():
        return "[]" if self.numel() == 0 else _contents(self, indent)


def _add_suffixes(body, suffixes, indent, force_newline=False):
    """`body` and its suffixes, each on a new line where the current one would grow over the line width; the first one also where
    `force_newline` says so."""
    out = [body]
    column = len(body) - body.rfind("\n") + 1
    for suffix in suffixes:
        if force_newline or column + len(suffix) + 2 > PRINT_OPTS.linewidth:
            out.append(",\n" + " " * indent + suffix)
            column = indent + len(suffix)
            force_newline = False
        else:
            out.append(", " + suffix)
            column += len(suffix) + 2
    return "".join(out) + ")"


def _grad_fn_name(t):
    try:
        fn = t.grad_fn
    except RuntimeError:
        # A view taken without grad mode and then written in place has no history to show.
        return "Invalid"
    return None if fn is None else fn.name().rsplit("::", 1)[-1]


def _tangent(t):
    """The (primal, tangent) pair of a dual tensor; forward mode is asked only when something has loaded it."""
    forward_ad = sys.modules.get("strata.autograd.forward_ad")
    return (t, None) if forward_ad is None else forward_ad.unpack_dual(t)


def tensor_repr(t, *, tensor_contents=None):
    """`repr(t)`: prefix, elements, then device, size, dtype, layout of the history, in PyTorch's order.

    `tensor_contents` replaces the elements' text (for subclasses that print something else).
    """
    with strata.no_grad():
        return _repr(t, tensor_contents)


def _repr(t, contents):
    kind = type(t)
    plain = kind is strata.Tensor or kind is strata.nn.Parameter
    prefix = "tensor(" if plain else kind.__name__ + "("
    indent = len(prefix)
    primal, tangent = _tangent(t)
    dtype, default = t.dtype, strata.get_default_dtype()
    default_complex = strata.complex128 if default == strata.float64 else strata.complex64
    suffixes = []
    if t.device.type != "cpu":
        suffixes.append(f"device='{t.device}'")
    empty = t.numel() == 0
    if t.is_meta or (empty and t.dim() != 1) or (not empty and not PRINT_OPTS.edgeitems):
        suffixes.append(f"size={tuple(t.shape)}")
    # Without elements nothing tells integers from floats, so only the default dtype goes without saying.
    implied = (default,) if t.is_meta or empty else (default, default_complex, strata.int64, strata.bool)
    if dtype not in implied:
        suffixes.append(f"dtype={dtype}")
    if contents is None:
        contents = "..." if t.is_meta else "[]" if empty else _contents(primal, indent)
    name = _grad_fn_name(t)
    if name is not None:
        suffixes.append(f"grad_fn=<{name}>")
    elif t.requires_grad:
        suffixes.append("requires_grad=True")
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")
    out = _add_suffixes(prefix + contents, suffixes, indent)
    return out if plain or not isinstance(t, strata.nn.Parameter) else f"Parameter({out})"


def _str_intern(inp, *, tensor_contents=None):
    """tensor_repr, by the name that PyTorch has for it."""
    return tensor_repr(inp, tensor_contents=tensor_contents)
