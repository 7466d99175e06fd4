"""FlopCounterMode: counts the multiplications and additions of matrix products, convolutions and attention."""

from __future__ import annotations

import math

import strata
from strata.utils._python_dispatch import TorchDispatchMode
from strata.utils.module_tracker import ModuleTracker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from strata import Tensor

__all__ = ["FlopCounterMode"]

_aten = strata.ops.aten


def _product(a: Any, b: Any) -> int:
    """[.., m, k] times [.., k, n]."""
    batch = math.prod(strata.broadcast_shapes(a[:-2], b[:-2]))
    return 2 * batch * a[-2] * a[-1] * b[-1]


def _linear(out: Any, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> tuple[Any, int]:
    return (_aten.mm if bias is None else _aten.addmm), 2 * x.numel() * weight.shape[0]


def _matmul(out: Any, a: Tensor, b: Tensor) -> tuple[Any, int]:
    if a.dim() == 1 or b.dim() == 1:  # PyTorch counts products of matrices alone
        return _aten.mv, 0
    return (_aten.mm if 2 in (a.dim(), b.dim()) else _aten.bmm), _product(a.shape, b.shape)


def _convolution(out: Any, x: Tensor, weight: Tensor, *rest: Any, **options: Any) -> tuple[Any, int]:
    batch = out.shape[0] if x.dim() == weight.dim() else 1
    return _aten.convolution, 2 * batch * math.prod(out.shape[2 - weight.dim() :]) * weight.numel()


def _transposed(out: Any, x: Tensor, weight: Tensor, *rest: Any, **options: Any) -> tuple[Any, int]:
    batch = x.shape[0] if x.dim() == weight.dim() else 1
    return _aten.convolution, 2 * batch * math.prod(x.shape[2 - weight.dim() :]) * weight.numel()


def _convolution_backward(out: Any, grad: Tensor, x: Tensor, weight: Tensor, *rest: Any, **options: Any) -> tuple[Any, int]:
    """As PyTorch counts: for the gradient of a grouped weight, the products of all channels with all."""
    named = dict(zip(("bias_sizes", "stride", "padding", "dilation", "transposed", "output_padding", "groups", "output_mask"), rest, strict=False))
    named |= options
    inner = math.prod((x if named["transposed"] else grad).shape[2:]) * x.shape[0]
    wanted = named["output_mask"]
    of_input = 2 * inner * weight.numel() if wanted[0] else 0
    of_weight = 2 * inner * x.shape[1] * grad.shape[1] * math.prod(weight.shape[2:]) if wanted[1] else 0
    return _aten.convolution_backward, of_input + of_weight


def _attention(out: Any, query: Tensor, key: Tensor, value: Tensor, *rest: Any, **options: Any) -> tuple[Any, int]:
    scores = math.prod(query.shape[:-1]) * key.shape[-2]
    return _aten.scaled_dot_product_attention, 2 * scores * (query.shape[-1] + value.shape[-1])


def _attention_backward(out: Any, grad: Tensor, query: Tensor, key: Tensor, value: Tensor, *rest: Any, **options: Any) -> tuple[Any, int]:
    """The scores and four products: the gradients of value, weights, query, key."""
    scores = math.prod(query.shape[:-1]) * key.shape[-2]
    return _aten.scaled_dot_product_attention, 2 * scores * (3 * query.shape[-1] + 2 * value.shape[-1])


def _einsum(out: Any, equation: str, operands: Any, *rest: Any, **options: Any) -> tuple[Any, int]:
    """Of two operands, every pair of numbers that is multiplied; more would need the order in which they meet."""
    if len(operands) == 1:
        return _aten.bmm, 0
    if len(operands) > 2 or "." in equation:
        raise NotImplementedError(f"FlopCounterMode: einsum {equation!r} is not counted; write it as products of two, without an ellipsis")
    sizes: dict[str, int] = {}
    for term, t in zip(equation.replace(" ", "").partition("->")[0].split(","), operands, strict=True):
        sizes.update(zip(term, t.shape, strict=True))
    return _aten.bmm, 2 * math.prod(sizes.values())


def _plain(packet: Any, at: int) -> Callable:
    """A product of two arguments, from the one at that position on."""
    return lambda out, *args, **options: (packet, _product(args[at].shape, args[at + 1].shape))


_FORMULAS = {
    "aten.linear": _linear,
    "aten.matmul": _matmul,
    "aten.mm": _plain(_aten.mm, 0),
    "aten.bmm": _plain(_aten.bmm, 0),
    "aten.addmm": _plain(_aten.addmm, 1),
    "aten.baddbmm": _plain(_aten.baddbmm, 1),
    "aten.einsum": _einsum,
    **dict.fromkeys(("aten.conv1d", "aten.conv2d", "aten.conv3d"), _convolution),
    **dict.fromkeys(("aten.conv_transpose1d", "aten.conv_transpose2d", "aten.conv_transpose3d"), _transposed),
    "aten.convolution_backward": _convolution_backward,
    "aten.scaled_dot_product_attention": _attention,
    "aten._scaled_dot_product_flash_attention_for_cpu_backward": _attention_backward,
}


class FlopCounterMode(TorchDispatchMode):
    """Counts in its block, two for each multiplication with its addition; backward inside the block, too.

    Counts are of the whole ("Global") and of each module that is called, those within it too. custom_mapping: {operator: function of
    the arguments' shapes, with out_shape=, that gives a count}; what stands there replaces the count here. display: prints the table
    at the end of the block, of modules down to `depth`. mods is accepted: modules are found where they are called.
    NotImplementedError for an einsum of more than two operands.
    """

    def __init__(self, mods: Any = None, depth: int | None = 2, display: bool = True, custom_mapping: dict[Any, Callable] | None = None) -> None:
        self.depth = math.inf if depth is None else depth
        self.display, self.custom_mapping = display, {str(op): f for op, f in (custom_mapping or {}).items()}
        self._counts: dict[str, dict[Any, int]] = {}
        self._tracker = ModuleTracker()

    def __enter__(self) -> FlopCounterMode:
        self._counts = {"Global": {}}
        self._tracker.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._tracker.__exit__()
        if self.display:
            print(self.get_table(self.depth))

    def __torch_dispatch__(self, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        name = str(func).rpartition(".")[0]
        if name in self.custom_mapping:
            shapes = strata.utils._pytree.tree_map(lambda v: v.shape if isinstance(v, strata.Tensor) else v, (args, kwargs, out))
            self._add(func.overloadpacket, self.custom_mapping[name](*shapes[0], out_shape=shapes[2], **shapes[1]))
        elif name in _FORMULAS:
            self._add(*_FORMULAS[name](out, *args, **kwargs))
        return out

    def _add(self, packet: Any, count: int) -> None:
        for name in self._tracker.parents if count else ():
            counts = self._counts.setdefault(name, {})
            counts[packet] = counts.get(packet, 0) + count

    def get_total_flops(self) -> int:
        """What the block has counted."""
        return sum(self._counts.get("Global", {}).values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """{"Global": {operator: count}, the name of a module: {operator: count}}."""
        return {name: dict(counts) for name, counts in self._counts.items()}

    def get_table(self, depth: float | None = None) -> str:
        """The whole and the modules down to `depth` (as given at first), each with its operators: counts and parts of the whole."""
        depth, total = self.depth if depth is None else depth, self.get_total_flops()
        rows = [("Module", "FLOP", "% Total")]
        for name in sorted(self._counts, key=lambda name: (name != "Global", name)):
            level = 0 if name == "Global" else name.count(".") + 1
            if level > depth:
                continue
            counts, indent = self._counts[name], " " * level
            for text, n in [(name, sum(counts.values())), *((f" - {op}", n) for op, n in sorted(counts.items(), key=lambda item: -item[1]))]:
                rows.append((indent + text, f"{n:,}", f"{100 * n / total if total else 0:.2f}%"))
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows]
        return "\n".join([lines[0], "  ".join("-" * w for w in widths), *lines[1:]])
