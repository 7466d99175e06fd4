"""Nests of tuples, lists, dicts and named tuples as flat lists of leaves and a spec that puts them back."""

from __future__ import annotations

from _collections import OrderedDict, defaultdict, deque  # collections' own, at a tenth of its import

from strata import _lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

__all__ = [
    "LeafSpec",
    "TreeSpec",
    "arg_tree_leaves",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq",
    "is_structseq_class",
    "is_structseq_instance",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_structure",
    "tree_unflatten",
    "treespec_leaf",
]
__getattr__, __dir__ = _lazy.of(
    globals(),
    {
        "._pytree_keys": (
            "GetAttrKey MappingKey SequenceKey _dict_flatten _dict_flatten_with_keys _dict_unflatten key_get keystr tree_flatten_with_path tree_leaves_with_path tree_map_with_path "
            "treespec_dumps treespec_loads treespec_pprint"
        ),
    },
    otherwise=lambda name: _supported(name),
)


Context = PyTree = object  # in annotations of programs


class _Node:
    __slots__ = ("flatten", "keyed", "saved_name", "unflatten")
    # The names in PyTorch's files.
    flatten_fn = property(lambda self: self.flatten)
    unflatten_fn = property(lambda self: self.unflatten)

    def __init__(self, flatten: Callable, unflatten: Callable, keyed: Callable | None = None, saved_name: str | None = None):
        self.flatten = flatten  # value -> (children, context)
        self.unflatten = unflatten  # (children, context) -> value
        self.keyed = keyed  # value -> ([(key, child)], context)
        self.saved_name = saved_name


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


def register_pytree_node(
    cls: type,
    flatten_fn: Callable,
    unflatten_fn: Callable,
    *,
    serialized_type_name: str | None = None,
    flatten_with_keys_fn: Callable | None = None,
    **_: Any,
) -> None:
    """Makes a class a nest: flatten_fn(value) gives (children, context), unflatten_fn(children, context) the value.

    flatten_with_keys_fn: gives ([(key, child)], context), for paths. serialized_type_name: by which treespec_dumps writes it; its
    context must then be what JSON has. ValueError where the class is a nest already.
    """
    if cls in _nodes:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _nodes[cls] = _Node(flatten_fn, unflatten_fn, flatten_with_keys_fn, serialized_type_name)


_register_pytree_node = register_pytree_node


def _get_node_type(tree: Any) -> Any:
    """The key of SUPPORTED_NODES for a nest: its class, or collections.namedtuple for values of the classes that this makes."""
    if not is_namedtuple_instance(tree):
        return type(tree)
    from collections import namedtuple

    return namedtuple


def _supported(name: str) -> dict:
    """SUPPORTED_NODES: all classes that are nests, for programs that walk nests themselves."""
    if name != "SUPPORTED_NODES":
        raise KeyError(name)
    from collections import namedtuple  # one entry for all of their classes, which is told by the function

    _nodes.setdefault(namedtuple, _NAMED)
    return _nodes


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
        return self._text(0)

    def _text(self, indent: int) -> str:
        """As PyTorch prints it: what follows the first child on lines of their own."""
        if self.is_leaf():
            return "*"
        context = list(self.context) if isinstance(self.type, type) and issubclass(self.type, defaultdict) else self.context
        name = "namedtuple" if is_namedtuple_class(self.type) else self.type.__name__
        children = (",\n" + " " * (indent + 2)).join(child._text(indent + 2) for child in self.children_specs)
        return f"TreeSpec({name}, {context}, [{children}])"


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


def _chosen(kind: Any) -> Callable[[Any], bool]:
    """The predicate that a type, a tuple or union of types, or a predicate stands for."""
    return (lambda leaf: isinstance(leaf, kind)) if isinstance(kind, (type, tuple)) or hasattr(kind, "__or__") else kind


def tree_map_only(kind: Any, func: Callable, tree: Any = None, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """tree_map over the leaves that are instances of `kind` (a type, a tuple of types, or a predicate)."""
    wanted = _chosen(kind)
    return tree_map(lambda leaf: func(leaf) if wanted(leaf) else leaf, tree, is_leaf=is_leaf)


def tree_map_only_(kind: Any, func: Callable, tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """tree_map_ over the leaves that are instances of `kind`."""
    tree_map_only(kind, func, tree, is_leaf)
    return tree


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(kind: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether pred holds for every leaf that is an instance of `kind`."""
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if _chosen(kind)(leaf))


def tree_any_only(kind: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether pred holds for some leaf that is an instance of `kind`."""
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if _chosen(kind)(leaf))


def tree_is_leaf(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether it is a leaf, not a nest."""
    return (is_leaf is not None and is_leaf(tree)) or _node_of(tree) is None


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list:
    """The leaves of a call's arguments."""
    return [leaf for value in (*args, *kwargs.values()) for leaf in tree_iter(value)]


def treespec_leaf() -> LeafSpec:
    """The form of a leaf."""
    return LeafSpec()


def is_namedtuple_class(cls: Any) -> bool:
    """Whether it is a class that collections.namedtuple made."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields") and hasattr(cls, "_make")


def is_namedtuple_instance(obj: Any) -> bool:
    """Whether the class of it is one."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: Any) -> bool:
    """Whether it is such a class or a value of one."""
    return is_namedtuple_class(obj) or is_namedtuple_instance(obj)


def is_structseq_class(cls: Any) -> bool:
    """Whether it is a class as max and others return: a tuple with n_sequence_fields."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "n_sequence_fields")


def is_structseq_instance(obj: Any) -> bool:
    """Whether the class of it is one."""
    return is_structseq_class(type(obj))


def is_structseq(obj: Any) -> bool:
    """Whether it is such a class or a value of one."""
    return is_structseq_class(obj) or is_structseq_instance(obj)
