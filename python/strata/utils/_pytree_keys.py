"""Where each leaf of a nest is: key paths, and forms as JSON text."""

from __future__ import annotations

import json
from collections import OrderedDict, deque
from typing import Any, NamedTuple

from strata.utils import _pytree
from strata.utils._pytree import LeafSpec, TreeSpec, tree_flatten, tree_unflatten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class MappingKey(NamedTuple):
    """The value at a key of a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        return mapping[self.key]


class SequenceKey(NamedTuple):
    """The value at an index of a tuple, list or deque."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        return sequence[self.idx]


class GetAttrKey(NamedTuple):
    """The value of an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        return getattr(obj, self.name)


def keystr(kp: Any) -> str:
    """A path as Python would write it: ['a'][0].x."""
    return "".join(str(key) for key in kp)


def key_get(obj: Any, kp: Any) -> Any:
    """What is at that path of a nest."""
    for key in kp:
        obj = key.get(obj)
    return obj


def _keyed(node: Any, tree: Any) -> list[tuple[Any, Any]]:
    """(key, child) of each child of a nest."""
    if node.keyed is not None:
        return list(node.keyed(tree)[0])
    children, _ = node.flatten(tree)
    if isinstance(tree, dict):
        return list(zip(map(MappingKey, tree), children, strict=True))
    if hasattr(tree, "_fields"):
        return list(zip(map(GetAttrKey, tree._fields), children, strict=True))
    if isinstance(tree, (tuple, list, deque)):
        return list(zip(map(SequenceKey, range(len(children))), children, strict=True))
    raise ValueError(
        f"Did not find a flatten_with_keys_fn for type: {type(tree)}. "
        "Please pass a flatten_with_keys_fn argument to register_pytree_node."
    )


def _dict_flatten(d: dict) -> tuple[list, list]:
    """(values, keys): what classes that derive from dict register themselves with."""
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d: dict) -> tuple[list[tuple[Any, Any]], list]:
    """([(key, value)], keys)."""
    return [(MappingKey(k), v) for k, v in d.items()], list(d)


def _dict_unflatten(values: Any, context: list) -> dict:
    return dict(zip(context, values, strict=True))


def _paths(tree: Any, path: tuple, is_leaf: Callable | None, found: list) -> list[tuple[tuple, Any]]:
    node = None if is_leaf is not None and is_leaf(tree) else _pytree._node_of(tree)
    if node is None:
        found.append((path, tree))
    else:
        for key, child in _keyed(node, tree):
            _paths(child, (*path, key), is_leaf, found)
    return found


def tree_leaves_with_path(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[tuple[tuple, Any]]:
    """(path, leaf) of each leaf, in the order of tree_leaves.

    ValueError where a class was registered without flatten_with_keys_fn.
    """
    return _paths(tree, (), is_leaf, [])


def tree_flatten_with_path(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[tuple[tuple, Any]], TreeSpec]:
    """([(path, leaf)], spec). Errors as tree_leaves_with_path."""
    return tree_leaves_with_path(tree, is_leaf), tree_flatten(tree, is_leaf)[1]


def tree_map_with_path(func: Callable, tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The nest of func(path, leaf, ...) over one nest or several of the same form. Errors as tree_leaves_with_path."""
    keyed, spec = tree_flatten_with_path(tree, is_leaf)
    others = [tree_flatten(rest, is_leaf)[0] for rest in rests]
    return tree_unflatten([func(path, *leaves) for (path, *leaves) in zip(*zip(*keyed), *others, strict=True)] if keyed else [], spec)


_SAVED = {cls: f"{cls.__module__}.{cls.__qualname__}" for cls in (tuple, list, dict, OrderedDict, deque)}


def _plain(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    node = _pytree._nodes.get(spec.type)
    name = _SAVED.get(spec.type) or getattr(node, "saved_name", None)
    if name is None:
        raise NotImplementedError(
            f"treespec_dumps: {spec.type} has no name to be saved by; register it with "
            "register_pytree_node(..., serialized_type_name=), or use a dict, list or tuple in its place"
        )
    return {"type": name, "context": json.dumps(spec.context), "children_spec": [_plain(child) for child in spec.children_specs]}


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A form as JSON text. NotImplementedError for named tuples, defaultdicts and classes without a serialized_type_name."""
    if protocol not in (None, 1):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return json.dumps([1, _plain(treespec)])


def _read(data: dict[str, Any]) -> TreeSpec:
    if data["type"] is None:
        return LeafSpec()
    named = {name: cls for cls, name in _SAVED.items()}
    named.update({node.saved_name: cls for cls, node in _pytree._nodes.items() if node.saved_name})
    if data["type"] not in named:
        raise NotImplementedError(f"Deserializing {data['type']} in pytree is not registered.")
    return TreeSpec(named[data["type"]], json.loads(data["context"]), [_read(child) for child in data["children_spec"]])


def treespec_loads(serialized: str) -> TreeSpec:
    """The form of such a text. NotImplementedError for a class that is not registered here."""
    protocol, data = json.loads(serialized)
    if protocol != 1:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return _read(data)


class _Star:
    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """The form written as a nest of stars."""
    return repr(tree_unflatten([_Star()] * treespec.num_leaves, treespec))
