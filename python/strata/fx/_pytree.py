"""Leaves of a nest that has a known form, as the code of a graph takes its arguments apart."""

from __future__ import annotations

from strata.utils._pytree import tree_flatten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from strata.utils._pytree import TreeSpec

__all__ = ["register_pytree_flatten_spec", "tree_flatten_spec"]
_flatteners: dict[type, Callable[[Any, TreeSpec], list]] = {}


def register_pytree_flatten_spec(cls: type, flatten_fn_spec: Callable, flatten_fn_exact_match_spec: Callable | None = None) -> None:
    """For nests of a class, flatten_fn_spec(nest, form) gives the children that a form has. The other function is not asked."""
    _flatteners[cls] = flatten_fn_spec


def _dict_flatten_spec(d: dict, spec: TreeSpec) -> list:
    """The values of a dict by the form's keys."""
    return [d[key] for key in spec.context]


def tree_flatten_spec(pytree: Any, spec: TreeSpec) -> list:
    """The leaves of a nest by a form. Dicts are read by the form's keys, and what is a leaf there may be any nest.

    RuntimeError where the nest has another form.
    """
    if hasattr(spec, "flatten_call"):  # of an exported program, which says more where the form is another one
        return spec.flatten_call(pytree)
    if spec.is_leaf():
        return [pytree]
    if spec.type in _flatteners:
        children = _flatteners[spec.type](pytree, spec)
    elif issubclass(spec.type, dict) and isinstance(spec.context, list):
        children = _dict_flatten_spec(pytree, spec)
    elif issubclass(spec.type, (tuple, list)):
        children = [pytree[i] for i in range(spec.num_children)]
    else:
        leaves, real = tree_flatten(pytree)
        if real != spec:
            raise RuntimeError(f"tree_flatten_spec: expected the form {spec}, with which it was traced, got {real} of {pytree}")
        return leaves
    return [leaf for child, inner in zip(children, spec.children_specs) for leaf in tree_flatten_spec(child, inner)]
