"""Lists and dicts that cannot be changed: the arguments of nodes, whose users are counted."""

from __future__ import annotations

from strata.utils._pytree import register_pytree_node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

__all__ = ["immutable_dict", "immutable_list"]

_WAY_OUT = """\
If you are attempting to modify the kwargs or args of a strata.fx.Node object,
instead create a new copy of it and assign the copy to the node:

    new_args = ...  # copy and mutate args
    node.args = new_args"""


def _no_mutation(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(f"{type(self).__name__!r} object does not support mutation. {_WAY_OUT}")


class immutable_list(list):
    """A list that raises TypeError where it would be changed; it has a hash."""

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> tuple:
        return type(self), (tuple(self),)


class immutable_dict(dict):
    """A dict that raises TypeError where it would be changed; it has a hash."""

    def __hash__(self) -> int:
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple:
        return type(self), (tuple(self.items()),)


for _cls, _names in (
    (immutable_list, "__delitem__ __iadd__ __imul__ __setitem__ append clear extend insert pop remove reverse sort"),
    (immutable_dict, "__delitem__ __ior__ __setitem__ clear pop popitem setdefault update"),
):
    for _name in _names.split():
        setattr(_cls, _name, _no_mutation)

register_pytree_node(immutable_list, lambda a: (list(a), None), lambda values, _: immutable_list(values))
register_pytree_node(
    immutable_dict,
    lambda a: (list(a.values()), list(a)),
    lambda values, keys: immutable_dict(zip(keys, values, strict=True)),
)
