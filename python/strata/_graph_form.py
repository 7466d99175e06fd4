"""How a captured function is called: its arguments' form and names, what of them are constants, and what it gives."""

from __future__ import annotations

import sys
from _collections import OrderedDict, defaultdict  # as in strata.utils._pytree

import strata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from strata.utils._pytree import TreeSpec


def _flattened(nest: Any) -> tuple[list, TreeSpec]:
    """Loaded here: a function of tensors, the first use of a graph as a rule, has no nests."""
    from strata.utils._pytree import tree_flatten

    return tree_flatten(nest)


class _Form:
    """With a spec of its leaves' nest, which is made when it is asked for where there are tensors alone."""

    _spec: TreeSpec | None = None
    _bare: Any  # a nest of that form, where there is no spec yet

    @property
    def spec(self) -> TreeSpec:
        if self._spec is None:
            self._spec = _flattened(self._bare)[1]
        return self._spec

    @spec.setter
    def spec(self, spec: TreeSpec) -> None:
        self._spec = spec


def parameter_names(f: Any) -> list[str]:
    """What a function calls its positional arguments, as far as it says so."""
    if "strata.nn" in sys.modules and isinstance(f, strata.nn.Module):
        f = f.forward
    code = getattr(getattr(f, "__func__", f), "__code__", None)
    if code is None:
        return []
    return list(code.co_varnames[1 if hasattr(f, "__self__") else 0 : code.co_argcount])


def _keys(spec: TreeSpec) -> list | None:
    """Of a dict."""
    return spec.context[1] if spec.type is defaultdict else spec.context if spec.type in (dict, OrderedDict) else None


def leaf_names(spec: TreeSpec, name: str) -> Iterator[str]:
    """Of each leaf of a nest that is called so: "pair[0]", "options['scale']"."""
    if spec.is_leaf():
        yield name
        return
    fields = getattr(spec.type, "_fields", None)
    keys = _keys(spec)
    for i, child in enumerate(spec.children_specs):
        inner = f".{fields[i]}" if fields else f"[{(keys[i] if keys is not None else i)!r}]"
        yield from leaf_names(child, name + inner)


def same_constant(a: Any, b: Any) -> bool:
    """Whether a graph that was captured with the one is right for the other: 0.0 is not -0.0, 1 is not True, nan is nan."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return (a == b and (a != 0 or float.__repr__(a) == float.__repr__(b))) or (a != a and b != b)
    if isinstance(a, complex):
        return same_constant(a.real, b.real) and same_constant(a.imag, b.imag)
    try:
        return bool(a == b)
    except Exception:  # as arrays, whose == is an array
        return False


def places_of(leaves: list) -> tuple[list, list[int]]:
    """The tensors among them, each once, and of each leaf which of these it is, or -1."""
    tensors: list = []
    places = []
    known: dict[int, int] = {}
    for leaf in leaves:
        place = -1
        if isinstance(leaf, strata.Tensor):
            place = known.setdefault(id(leaf), len(tensors))
            if place == len(tensors):
                tensors.append(leaf)
        places.append(place)
    return tensors, places


class Arguments(_Form):
    """The arguments of a capture: their form, which are tensors, what the others were."""

    def __init__(self, names: list[str], args: tuple, kwargs: dict[str, Any]):
        self.parameters = names
        args, kwargs = self._ordered(args, kwargs)
        if kwargs or not all(isinstance(a, strata.Tensor) for a in args):
            leaves, self.spec = _flattened((args, kwargs))
        else:
            leaves, self._bare = list(args), ((0,) * len(args), {})
        self.leaves = leaves
        self.tensors, self.places = places_of(leaves)
        self.constants = [None if isinstance(leaf, strata.Tensor) else leaf for leaf in leaves]
        self.count = len(self.tensors)
        self.finish()

    def finish(self) -> None:
        """What follows from the form."""
        if self._spec is None:
            self.plain = self.places == list(range(len(self.places)))
            self.names = [self.parameters[i] if i < len(self.parameters) else f"args[{i}]" for i in range(len(self.places))]
            return
        positional, keywords = self.spec.children_specs
        # Of different tensors alone.
        deep = any(not child.is_leaf() for child in positional.children_specs)
        self.plain = keywords.num_children == 0 and not deep and self.places == list(range(len(self.places)))
        self.names = []
        for i, child in enumerate(positional.children_specs):
            self.names += leaf_names(child, self.parameters[i] if i < len(self.parameters) else f"args[{i}]")
        for key, child in zip(keywords.context, keywords.children_specs, strict=True):
            self.names += leaf_names(child, key)

    def tensor_names(self) -> list[str]:
        return [self.names[self.places.index(i)] for i in range(self.count)]

    def _ordered(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """Keywords that are next in turn as positional ones, the others by name: one form for one call."""
        if not kwargs:
            return args, kwargs
        rest, given = dict(kwargs), list(args)
        while len(given) < len(self.parameters) and self.parameters[len(given)] in rest:
            given.append(rest.pop(self.parameters[len(given)]))
        return tuple(given), dict(sorted(rest.items()))

    def take(self, args: tuple, kwargs: dict[str, Any]) -> list:
        """The tensors of a call. ValueError where it is another one than the capture."""
        if self.plain and not kwargs and len(args) == self.count and (not args or all(isinstance(a, strata.Tensor) for a in args)):
            return list(args)
        leaves, spec = _flattened(self._ordered(args, kwargs))
        if spec != self.spec:
            raise ValueError(f"graph: expected arguments of the form {self._form(self.spec)}, as they were captured, got {self._form(spec)}")
        tensors: list = [None] * self.count
        for i, (leaf, place) in enumerate(zip(leaves, self.places, strict=True)):
            if place < 0:
                if not same_constant(leaf, self.constants[i]):
                    raise ValueError(
                        f"graph: argument {self.names[i]}: expected {self.constants[i]!r}, as it was captured, got {leaf!r}; "
                        "what is no tensor is part of the graph: capture it again, or give a tensor"
                    )
            elif not isinstance(leaf, strata.Tensor):
                raise ValueError(f"graph: argument {self.names[i]}: expected a tensor, as it was captured, got {leaf!r}")
            elif tensors[place] is None:
                tensors[place] = leaf
            elif tensors[place] is not leaf:
                raise ValueError(
                    f"graph: argument {self.names[i]}: expected the same tensor as {self.names[self.places.index(place)]}, "
                    "as it was captured; capture it again with two tensors"
                )
        return tensors

    def _form(self, spec: TreeSpec) -> str:
        def text(spec: TreeSpec) -> str:
            if spec.is_leaf():
                return "*"
            inner = [text(child) for child in spec.children_specs]
            keys = _keys(spec)
            if keys is not None:
                return "{" + ", ".join(f"{k!r}: {v}" for k, v in zip(keys, inner, strict=True)) + "}"
            joined = ", ".join(inner)
            return {tuple: f"({joined})", list: f"[{joined}]"}.get(spec.type, f"{spec.type.__name__}({joined})")

        positional, keywords = spec.children_specs
        words = [text(child) for child in positional.children_specs]
        words += [f"{key}={text(child)}" for key, child in zip(keywords.context, keywords.children_specs, strict=True)]
        return f"({', '.join(words)})"


class Results(_Form):
    """What a captured function returns: its form, which leaves are tensors, what the others were."""

    def __init__(self, returned: Any):
        if isinstance(returned, strata.Tensor):
            leaves, self._bare = [returned], 0
        elif type(returned) is tuple and all(isinstance(leaf, strata.Tensor) for leaf in returned):
            leaves, self._bare = list(returned), (0,) * len(returned)
        else:
            leaves, self.spec = _flattened(returned)
        self.tensors, self.places = places_of(leaves)
        self.constants = [None if isinstance(leaf, strata.Tensor) else leaf for leaf in leaves]

    def bind(self, known: list) -> None:
        """Those that are inputs are these objects at each call, and no results of the graph."""
        at = {id(t): i for i, t in enumerate(known)}
        made = [t for t in self.tensors if id(t) not in at]
        of = {id(t): i for i, t in enumerate(made)}
        place = [of[id(t)] if id(t) in of else -2 - at[id(t)] for t in self.tensors]
        self.places = [place[p] if p >= 0 else -1 for p in self.places]
        self.tensors, self.count = made, len(made)
        self.finish()

    def finish(self) -> None:
        self.inputs = any(p < -1 for p in self.places)
        # Whether it is a tensor (0), a tuple (1) or a list (2) of them, and which, where these are not what is made in order.
        if self._spec is None:
            form, deep = int(type(self._bare) is tuple), False
        else:
            form = 0 if self._spec.is_leaf() else {tuple: 1, list: 2}.get(self._spec.type)
            deep = any(not child.is_leaf() for child in self._spec.children_specs)
        self.plain = form if self.places and -1 not in self.places and not deep else None
        self.order = None if self.places == list(range(len(self.places))) else tuple(self.places)

    def give(self, made: list, known: list) -> Any:
        """The function's result of what the graph made and of its inputs."""
        leaves = [c if p == -1 else made[p] if p >= 0 else known[-2 - p] for p, c in zip(self.places, self.constants, strict=True)]
        if self._spec is None:
            return tuple(leaves) if type(self._bare) is tuple else leaves[0]
        if self._spec.is_leaf():
            return leaves[0]
        from strata.utils._pytree import tree_unflatten

        return tree_unflatten(leaves, self._spec)
