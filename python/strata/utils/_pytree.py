"""Nests of tuples, lists, dicts and named tuples as flat lists of leaves and a spec that puts them back."""

from __future__ import annotations

from _collections import OrderedDict, defaultdict, deque  # collections' own, at a tenth of its import

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

__all__ = [
    "LeafSpec",
    "TreeSpec",
    "register_pytree_node",
    "tree_all",
    "tree_any",
    "tree_flatten",
    "tree_iter",
    "tree_leaves",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_structure",
    "tree_unflatten",
]


class _Node:
    __slots__ = ("flatten", "unflatten")

    def __init__(self, flatten: Callable, unflatten: Callable):
        self.flatten = flatten  # value -> (children, context)
        self.unflatten = unflatten  # (children, context) -> value


def _dict_with(make: Callable) -> _Node:
    return _Node(lambda d: (list(d.values()), list(d)), lambda values, keys: make(zip(keys, values, strict=True)))


_nodes: dict[type, _Node] = {
    tuple: _Node(lambda t: (list(t), None), lambda values, _: tuple(values)),
    list: _Node(lambda t: (t, None), lambda values, _: list(values)),
    dict: _dict_with(dict),
    OrderedDict: _dict_with(OrderedDict),
    defaultdict: _Node(
        lambda d: (list(d.values()), (d.default_factory, list(d))),
        lambda values, context: defaultdict(context[0], zip(context[1], values, strict=True)),
    ),
    deque: _Node(lambda d: (list(d), d.maxlen), lambda values, size: deque(values, size)),
}
_NAMED = _Node(lambda t: (list(t), type(t)), lambda values, cls: cls(*values))
_RETURNED = _Node(lambda t: (list(t), type(t)), lambda values, cls: cls(values))  # what max and others return, as strata.return_types.max


def register_pytree_node(cls: type, flatten_fn: Callable, unflatten_fn: Callable, **_: Any) -> None:
    """Makes a class a nest: flatten_fn(value) gives (children, context), unflatten_fn(children, context) the value.

    ValueError where the class is one already.
    """
    if cls in _nodes:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _nodes[cls] = _Node(flatten_fn, unflatten_fn)


def _node_of(value: Any) -> _Node | None:
    return _nodes.get(type(value)) or _named(type(value))


def _named(cls: type) -> _Node | None:
    if not issubclass(cls, tuple):
        return None
    return _NAMED if hasattr(cls, "_fields") else _RETURNED if hasattr(cls, "n_sequence_fields") else None


class TreeSpec:
    """The form of a nest without its leaves. Equal specs have equal forms."""

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]) -> None:
        self.type = type
        self.context = context
        self.children_specs = children_specs
        self.num_children = len(children_specs)
        self.num_leaves = 1 if type is None else sum(c.num_leaves for c in children_specs)

    def is_leaf(self) -> bool:
        return self.type is None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TreeSpec)
            and self.type is other.type
            and self.context == other.context
            and self.children_specs == other.children_specs
        )

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves, self.num_children))

    def __repr__(self) -> str:
        if self.is_leaf():
            return "*"
        return f"TreeSpec({self.type.__name__}, {self.context}, {self.children_specs})"


class LeafSpec(TreeSpec):
    """The form of a leaf."""

    def __init__(self) -> None:
        super().__init__(None, None, [])


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list, TreeSpec]:
    """(leaves, spec)."""
    leaves: list = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: Any, leaves: list, is_leaf: Callable | None) -> TreeSpec:
    node = None if is_leaf is not None and is_leaf(tree) else _node_of(tree)
    if node is None:
        leaves.append(tree)
        return LeafSpec()
    children, context = node.flatten(tree)
    return TreeSpec(type(tree), context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The nest of this form with these leaves. ValueError where there are too many or too few."""
    values = list(leaves)
    if len(values) != treespec.num_leaves:
        raise ValueError(f"tree_unflatten: the form has {treespec.num_leaves} leaves, got {len(values)}")
    return _unflatten(iter(values), treespec)


def _unflatten(leaves: Any, spec: TreeSpec) -> Any:
    if spec.is_leaf():
        return next(leaves)
    node = _nodes.get(spec.type) or _named(spec.type)
    return node.unflatten([_unflatten(leaves, child) for child in spec.children_specs], spec.context)


def tree_iter(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Iterable[Any]:
    yield from tree_flatten(tree, is_leaf)[0]


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list:
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable, tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The nest of func(leaf, ...) over one nest or several of the same form."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [tree_flatten(rest, is_leaf)[0] for rest in rests]
    return _unflatten(iter([func(*values) for values in zip(leaves, *others, strict=True)]), spec)


def tree_map_(func: Callable, tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Calls func on the leaves for its effects; returns the nest."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(kind: Any, func: Callable, tree: Any = None, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """tree_map over the leaves that are instances of `kind` (a type, a tuple of types, or a predicate)."""
    if isinstance(kind, (type, tuple)) or hasattr(kind, "__or__"):

        def wanted(leaf: Any) -> bool:
            return isinstance(leaf, kind)
    else:
        wanted = kind
    return tree_map(lambda leaf: func(leaf) if wanted(leaf) else leaf, tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    return any(map(pred, tree_iter(tree, is_leaf)))
