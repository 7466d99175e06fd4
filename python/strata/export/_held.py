"""What an exported program is made of."""

from __future__ import annotations

import copy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Held:
    """graph: of ir/. count: of its inputs that are the user's tensors. leaves, paths: of all user inputs; a tensor may be any
    of its kind. results: of the output, ("tensor", place among the graph's results), ("constant", value) or ("size", text). forward_names: of
    the arguments, `positional` of them positional. functional: writes are the last nodes. same: paths of tensors that
    are held under another path.
    """

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def copy(self) -> Held:
        return copy.copy(self)
