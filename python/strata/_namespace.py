"""Namespaces of operators: `strata.linalg.norm` is the table's `linalg_norm`."""

from __future__ import annotations

from strata import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def of(name: str, same: dict[str, str], plain: bool = False) -> tuple[Callable, Callable]:
    """`__getattr__` and `__dir__` of the module strata.<name>.

    same: names of the namespace whose operator is called otherwise. plain: operators without the prefix count too.
    """
    functions = vars(_C._functions)

    def get(attribute: str) -> Any:
        if not attribute.startswith("__"):
            for wanted in (f"{name}_{attribute}", same.get(attribute), attribute if plain else None):
                if wanted in functions:
                    return functions[wanted]
        raise AttributeError(
            f"module 'strata.{name}' has no attribute {attribute!r}: the operator table does not hold {name}_{attribute}"
        )

    def names() -> list[str]:
        prefix = f"{name}_"
        return sorted({*same, *(f.removeprefix(prefix) for f in functions if f.startswith(prefix))})

    return get, names
