"""Calls of a module with other tensors than its own; strata.func.functional_call is the public name."""

from __future__ import annotations

from contextlib import contextmanager

from strata import Tensor

from ..modules.module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["functional_call"]


_ABSENT: Any = object()  # before a name that the module does not have


def _tied_names(module: Module) -> list[set[str]]:
    """Names that stand for one tensor, in sets."""
    named = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    by_tensor: dict[int, set[str]] = {}
    for name, tensor in named:
        by_tensor.setdefault(id(tensor), set()).add(name)
    return [names for names in by_tensor.values() if len(names) > 1]


def _with_ties(module: Module, given: dict[str, Tensor], groups: list[set[str]]) -> dict[str, Tensor]:
    result = dict(given)
    for names in groups:
        present = [name for name in given if name in names]
        if any(given[name] is not given[present[0]] for name in present[1:]):
            raise ValueError(f"functional_call got multiple values for keys {sorted(present)}, which are tied.")
        if present:
            result.update(dict.fromkeys(names, given[present[0]]))
    return result


@contextmanager
def _swapped(module: Module, tensors: dict[str, Tensor], given: dict[str, Tensor]) -> Iterator[None]:
    """Inside, the module's tensors of these names are those in `tensors`; afterwards `given` has, under the names that
    it has, what a forward assigned to them.
    """
    swapped = []
    try:
        for name, tensor in tensors.items():
            path, _, last = name.rpartition(".")
            owner = module.get_submodule(path)
            registry = next((r for r in (owner._parameters, owner._buffers) if last in r), None)
            if not isinstance(tensor, Tensor) and tensor is not None:
                raise TypeError(f"{tensor} is not an instance of strata.Tensor")
            if registry is None:
                if hasattr(owner, last):
                    raise TypeError(f"functional_call: expected names of parameters and buffers, got `{last}`, another attribute of {type(owner).__name__}")
                registry = owner.__dict__
            swapped.append((registry, last, registry.get(last, _ABSENT), name))
            registry[last] = tensor
        yield
    finally:
        for registry, last, before, name in reversed(swapped):
            if name in given and last in registry:
                given[name] = registry[last]
            if before is _ABSENT:
                registry.pop(last, None)
            else:
                registry[last] = before


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor] | tuple[dict[str, Tensor], ...] | list[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """module(*args, **kwargs) with the tensors of that names in place of its parameters and buffers.

    parameters_and_buffers: by dotted name, in one dictionary or several; names that are left out keep their own tensor, and names
    that the module does not have are its attributes during the call.
    What forward assigns to one of them (`self.count = self.count + 1`) is put into the one dictionary, in place of the
    tensor given. args: a tuple, or the one argument. tie_weights: names that share a tensor are replaced together. strict:
    RuntimeError where names are missing or unexpected. ValueError for a name in two dictionaries or two tensors
    for tied names.
    """
    if isinstance(parameters_and_buffers, dict):
        given = parameters_and_buffers
    elif isinstance(parameters_and_buffers, (tuple, list)):
        if not all(isinstance(part, dict) for part in parameters_and_buffers):
            raise ValueError("Expected all elements of parameters_and_buffers to be dictionaries")
        names = [name for part in parameters_and_buffers for name in part]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{twice} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        given = {name: tensor for part in parameters_and_buffers for name, tensor in part.items()}
    else:
        raise ValueError(
            "Expected parameters_and_buffers to be a dict, or a list/tuple of dicts, but got "
            f"{type(parameters_and_buffers)}"
        )
    tensors = _with_ties(module, given, _tied_names(module)) if tie_weights else dict(given)
    if strict:
        own = {name for name, _ in module.named_parameters(remove_duplicate=False)}
        own |= {name for name, _ in module.named_buffers(remove_duplicate=False)}
        missing, unexpected = sorted(own - set(tensors)), sorted(set(tensors) - own)
        if missing or unexpected:
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(module).__name__}: unexpected key(s): {unexpected}, missing "
                f"key(s): {missing}"
            )
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _swapped(module, tensors, given):
        return module(*args, **(kwargs or {}))
