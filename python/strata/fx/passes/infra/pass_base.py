"""What a pass is, and what it gives."""

from __future__ import annotations

import abc
from typing import NamedTuple, Optional

from strata import nn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...graph_module import GraphModule

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """The module behind a pass, and whether the pass changed anything."""

    graph_module: nn.Module
    modified: bool


class PassBase(abc.ABC):
    """A pass: `call` changes a module; `requires` and `ensures` check it before and behind, by raising."""

    def __call__(self, graph_module: GraphModule) -> Optional[PassResult]:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> Optional[PassResult]:
        """What the pass does."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Raises where the module is not as the pass needs it."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Raises where the module is not as the pass should leave it."""
