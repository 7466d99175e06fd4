"""functional_call inside of what is captured: the module's attributes are written before its call, and as they were after it."""

from __future__ import annotations

import collections

from strata.nn.utils.stateless import _tied_names

from . import values
from .reasons import Break

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_DICTS = (dict, collections.OrderedDict)
_NAMES = ("module", "parameters_and_buffers", "args", "kwargs", "tie_weights", "strict")


def functional_call(tracer: Any, given: tuple, keywords: dict[str, Any]) -> Any:
    """strata.nn.utils.stateless.functional_call of a module whose names have a tensor each."""
    found = {**dict(zip(_NAMES, given, strict=False)), **keywords}
    module, tensors = found.get("module"), found.get("parameters_and_buffers")
    if not values.is_module(module) or not tracer.is_outside(module) or set(found) - set(_NAMES) or len(given) > len(_NAMES):
        raise Break("functional_call of a module that is made here, or by other arguments than its own")
    if type(tensors) in (list, tuple) and all(type(part) in _DICTS for part in tensors):
        names = [name for part in tensors for name in part]
        tensors = {name: tensor for part in tensors for name, tensor in part.items()} if len(names) == len(set(names)) else None
    if type(tensors) not in _DICTS or not all(type(name) is str and values.is_tensor(t) for name, t in tensors.items()):
        raise Break("functional_call by other than a dict of tensors by name, or several of different names")
    if found.get("strict") or _tied_names(module):
        raise Break("functional_call with strict=True, or of a module in which names share a tensor")
    args = found.get("args")
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    places, touched = [_place(tracer, module, name) for name in tensors], set(tracer.attributes)
    for place, tensor in zip(places, tensors.values(), strict=True):
        tracer.attributes[id(place[0]), place[1]] = (place[0], tensor)
    try:
        result = tracer.call(module, args, found.get("kwargs") or {})
        for place, tensor in zip(places, tensors.values(), strict=True):
            if tracer.attributes[id(place[0]), place[1]][1] is not tensor:
                raise Break(f"the forward of what functional_call calls assigns {place[1]}")
    finally:
        for owner, name in places:
            tracer.attributes.pop((id(owner), name), None)
    if {at[0] for at in set(tracer.attributes) - touched} & {id(m) for m in module.modules()}:
        raise Break("the forward of what functional_call calls assigns attributes")
    return result


def _place(tracer: Any, module: Any, path: str) -> tuple[Any, str]:
    """Whose parameter or buffer it is, and its name there. What lies there now is read, and so guarded."""
    *above, name = path.split(".")
    owner = module
    for part in above:
        owner = tracer.getattr(owner, part)
    if not values.is_module(owner) or (id(owner), name) in tracer.attributes or not any(name in held for held in (owner._parameters, owner._buffers)):
        raise Break(f"functional_call: {path} is no parameter or buffer, or was assigned before")
    tracer.getattr(owner, name)
    return owner, name
