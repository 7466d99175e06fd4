"""Which nodes a backend can run."""

from __future__ import annotations

import abc

from .shape_prop import TensorMetadata
from .tools_common import CALLABLE_NODE_OPS, get_node_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    import strata
    from strata import nn

    from ..node import Node

__all__ = ["OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain", "create_op_support"]


class OperatorSupportBase(abc.ABC):
    """Says of nodes whether they are supported."""

    @abc.abstractmethod
    def is_node_supported(self, submodules: Mapping[str, nn.Module], node: Node) -> bool:
        """Whether the node is. submodules: the graph's module's, by path."""


class OperatorSupport(OperatorSupportBase):
    """By a table: of each target's name None, or the dtypes that its arguments may have: (positional, by name).

    Dtypes are read from meta, where ShapeProp has left them. Nodes that call nothing are supported.
    """

    def __init__(self, support_dict: Mapping[str, Any] | None = None) -> None:
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules: Mapping[str, nn.Module], node: Node) -> bool:
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        if self._support_dict[target] is None:
            return True
        positional, named = self._support_dict[target]
        pairs = [*zip(node.args, positional), *((node.kwargs[k], dtypes) for k, dtypes in named.items() if k in node.kwargs)]
        return all(_dtype(arg) in dtypes for arg, dtypes in pairs if dtypes is not None and hasattr(arg, "meta"))


def _dtype(node: Node) -> Any:
    meta = node.meta.get("tensor_meta")
    return meta.dtype if isinstance(meta, TensorMetadata) else node.meta["type"]


def create_op_support(is_node_supported: Callable[[Mapping[str, nn.Module], Node], bool]) -> OperatorSupportBase:
    """Support that a function decides."""

    class FunctionalOperatorSupport(OperatorSupportBase):
        def is_node_supported(self, submodules: Mapping[str, nn.Module], node: Node) -> bool:
            return is_node_supported(submodules, node)

    return FunctionalOperatorSupport()


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Supported where all of them say so."""
    return create_op_support(lambda submodules, node: all(s.is_node_supported(submodules, node) for s in op_support))


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Supported where one of them says so."""
    return create_op_support(lambda submodules, node: any(s.is_node_supported(submodules, node) for s in op_support))


class OpSupports:
    """Usual parts of a chain."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: strata.dtype) -> OperatorSupportBase:
        """Nothing that reads a value of that dtype."""
        return create_op_support(lambda submodules, node: all(_dtype(arg) != dtype for arg in node.all_input_nodes))

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """Nothing of these names."""
        return create_op_support(lambda submodules, node: node.name not in disallow_set)
