"""Shapes and dtypes of all values of a graph, found by running it."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

import strata

from ..interpreter import Interpreter
from ..node import Node, map_aggregate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..graph_module import GraphModule

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What a tensor is like."""

    shape: strata.Size
    dtype: strata.dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Optional[strata.memory_format]
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: strata.Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """What the tensor is like; memory_format is the first of the usual ones in which it lies, or None."""
    formats = {0: (strata.contiguous_format,), 4: (strata.contiguous_format, strata.channels_last)}
    formats[5] = (strata.contiguous_format, strata.channels_last_3d)
    tried = formats.get(result.dim(), formats[0]) if include_contiguity else ()
    lies_in = next((f for f in tried if result.is_contiguous(memory_format=f)), None)
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), lies_in, False, {})


class ShapeProp(Interpreter):
    """Runs a graph and notes in each node's meta what its value is like ("tensor_meta") and its class ("type")."""

    def __init__(self, gm: GraphModule, fake_mode: Any = None) -> None:
        if fake_mode is not None:
            raise NotImplementedError("ShapeProp: fake_mode is not provided; pass tensors on the device 'meta', which compute nothing")
        super().__init__(gm)

    def run_node(self, n: Node) -> Any:
        """The node's value. RuntimeError with the node where it fails."""
        try:
            result = super().run_node(n)
        except Exception as error:
            import traceback

            traceback.print_exc()
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from error
        found = False

        def described(value: Any) -> Any:
            nonlocal found
            if not isinstance(value, strata.Tensor):
                return value
            found = True
            return _extract_tensor_metadata(value)

        meta = map_aggregate(result, described)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Runs the graph on these arguments; gives its result."""
        return self.run(*args)
