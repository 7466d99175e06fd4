"""From a module and example inputs to a graph: the module runs once over shapes, and the operators that it calls are recorded."""

from __future__ import annotations

import inspect
import re
from contextlib import nullcontext

import strata
from strata import _C, compiler
from strata._bytecode.sizes import Sizes, Sym
from strata._graph_form import leaf_names
from strata._patching import Patches
from strata.utils._pytree import tree_flatten, tree_map

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from strata import Tensor

# Functions that make tensors of Python's data: each call of the program would make a new one.
_MAKERS = ("tensor", "as_tensor", "asarray", "from_numpy", "frombuffer", "scalar_tensor")


class Captured:
    """What a capture gives.

    graph: of ir/, whose inputs are the user's tensors, and whose captured tensors are called by their paths in the module.
    parameters, buffers, constants: by path. in_spec, out_spec: forms of (args, kwargs) and of the result. leaves: of the inputs, a
    tensor or a constant each; names: theirs. results: of the output, ("tensor", place among the graph's results), ("constant", value) or
    ("size", an expression of sizes, as the graph's text has them).
    """

    graph: Any


def combined_names(mod: Any, args: tuple, kwargs: dict[str, Any]) -> list[str]:
    """What each of the leaves of (args, kwargs) is called: "x", "pair[0]", "options['scale']"."""
    try:
        signature = inspect.signature(mod.forward)
        bound = signature.bind(*args, **kwargs)
    except (TypeError, ValueError) as error:
        raise TypeError(f"export: {type(mod).__name__}.forward: {error}; expected the arguments of a call") from None
    names = list(signature.parameters)
    rest = next((p.name for p in signature.parameters.values() if p.kind == p.VAR_POSITIONAL), None)
    del bound
    found: list[str] = []
    for i, arg in enumerate(args):
        plain = i < len(names) and (rest is None or i < names.index(rest))
        name = names[i] if plain else f"{rest}[{i - names.index(rest)}]"
        found += leaf_names(tree_flatten(arg)[1], name)
    for key, value in kwargs.items():
        found += leaf_names(tree_flatten(value)[1], key)
    return found


def node_name(path: str) -> str:
    """ "options['scale']" as an identifier: options_scale."""
    path = re.sub(r"\['?([^\]']*)'?\]", r"_\1", path)
    return re.sub(r"[^a-zA-Z0-9_]", "_", path).lower()


def _tensors_of(module: strata.nn.Module) -> dict[str, tuple[Any, str, Tensor]]:
    """Tensors that are attributes of a module and its submodules without being parameters or buffers: path -> owner, name, tensor."""
    found = {}
    for prefix, inner in module.named_modules():
        for name, value in _own_tensors(inner).items():
            found[f"{prefix}.{name}" if prefix else name] = (inner, name, value)
    return found


def _own_tensors(module: strata.nn.Module) -> dict[str, Tensor]:
    return {name: value for name, value in vars(module).items() if isinstance(value, strata.Tensor)}


class _Module:
    """The module's tensors before the capture, and what became of them."""

    def __init__(self, module: strata.nn.Module) -> None:
        self.module = module
        self.parameters = dict(module.named_parameters(remove_duplicate=False))
        self.buffers = dict(module.named_buffers(remove_duplicate=False))
        self.plain = _tensors_of(module)
        self.required = [(t, t.requires_grad) for t in [*self.parameters.values(), *self.buffers.values()] if t is not None]
        self.before = [
            (inner, dict(inner._parameters), dict(inner._buffers), set(inner._non_persistent_buffers_set), _own_tensors(inner)) for inner in module.modules()
        ]
        self.persistent = {}
        for prefix, inner in module.named_modules(remove_duplicate=False):
            for name in inner._buffers:
                self.persistent[f"{prefix}.{name}" if prefix else name] = name not in inner._non_persistent_buffers_set

    def _put_back(self, path: str, value: Any) -> None:
        *parents, name = path.split(".")
        owner: Any = self.module
        for part in parents:
            owner = owner._modules[part]
        owner._buffers[name] = value

    def write_assigned(self) -> None:
        """Buffers that were assigned are written with what was assigned, by a recorded operator."""
        now = dict(self.module.named_buffers(remove_duplicate=False))
        for path, before in self.buffers.items():
            after = now.get(path)
            if after is before:
                continue
            self._put_back(path, before)
            if after is None or after.shape != before.shape or after.dtype != before.dtype:
                shown = None if after is None else f"{after.dtype}{list(after.shape)}"
                raise RuntimeError(f"export: the buffer {path} was assigned {shown} in forward, where {before.dtype}{list(before.shape)} was; its form must stay")
            before.copy_(after)

    def check_assigned(self) -> None:
        wrong = [path for path, (_, _, value) in _tensors_of(self.module).items() if path not in self.plain or self.plain[path][2] is not value]
        wrong += [path for path, _ in self.module.named_parameters(remove_duplicate=False) if path not in self.parameters]
        wrong += [path for path, _ in self.module.named_buffers(remove_duplicate=False) if path not in self.buffers]
        if wrong:
            shown = ", ".join(f"self.{path}" for path in wrong)
            raise ValueError(
                f"The tensor attribute{'s' if len(wrong) > 1 else ''} {shown} {'were' if len(wrong) > 1 else 'was'} assigned during export. Such "
                "attributes must be registered as buffers using the `register_buffer` API (see strata.nn.Module.register_buffer), before."
            )

    def restore(self) -> None:
        """The module's tensors are those of before, and require gradients as they did."""
        for inner, parameters, buffers, aside, plain in self.before:
            for kept, now in ((parameters, inner._parameters), (buffers, inner._buffers)):
                if [(name, id(t)) for name, t in now.items()] != [(name, id(t)) for name, t in kept.items()]:
                    now.clear()
                    now.update(kept)
            inner._non_persistent_buffers_set = set(aside)
            for name in [name for name, value in vars(inner).items() if isinstance(value, strata.Tensor) and name not in plain]:
                del inner.__dict__[name]
            inner.__dict__.update(plain)
        for t, required in self.required:
            if t.is_leaf and t.requires_grad is not required:
                t.requires_grad_(required)


def _made_anew(make: Any) -> Any:
    """A function that makes a tensor of Python's data: each run of the graph has a copy of it."""

    def made(*args: Any, **kwargs: Any) -> Any:
        if _C._recording() is None:
            return make(*args, **kwargs)
        t = _C._recording_aside(lambda: make(*args, **kwargs))
        return t.clone() if isinstance(t, strata.Tensor) else t

    return made


def _input(t: Tensor) -> Tensor:
    """A tensor in its place, which is an input of its own."""
    return t.detach().requires_grad_(t.requires_grad) if t.is_floating_point() or t.is_complex() else t.detach()


class _Missed(Exception):
    """A backward in the module's forward reads what a composite operator has saved inside of it."""


def capture(mod: strata.nn.Module, args: tuple, kwargs: dict[str, Any], around: Any = None) -> Captured:
    """around: gives a context for the run, of the tensors that stand for the inputs. forward may run twice."""
    held = _Module(mod)
    try:
        return _capture(mod, args, kwargs, around, held, False)
    except _Missed:
        return _capture(mod, args, kwargs, around, held, True)


def _capture(mod: strata.nn.Module, args: tuple, kwargs: dict[str, Any], around: Any, held: _Module, opened: bool) -> Captured:
    """opened: composite operators that a gradient may go through are decomposed."""
    from strata.utils._pytree import tree_unflatten

    found = Captured()
    leaves, found.in_spec = tree_flatten((args, kwargs))
    found.paths = combined_names(mod, args, kwargs)
    found.leaves = leaves
    given = [_input(leaf) if isinstance(leaf, strata.Tensor) else leaf for leaf in leaves]
    tensors = [leaf for leaf in given if isinstance(leaf, strata.Tensor)]
    recording = _C._recording_begin(tensors, True, True, opened)
    try:
        with Patches() as patches:
            for name in _MAKERS:
                patches.put(vars(strata), name, lambda name=name: _made_anew(getattr(strata, name)))
            again, keywords = tree_unflatten(given, found.in_spec)
            with compiler._exports, nullcontext() if around is None else around(tensors):
                returned = mod(*again, **keywords)
            held.write_assigned()
        held.check_assigned()
        plain = tree_map(lambda leaf: tuple(leaf) if isinstance(leaf, (strata.Size, Sizes)) else leaf, returned)
        results, found.out_spec = tree_flatten(plain)
        found.results = []
        outputs = []
        for i, leaf in enumerate(results):
            if isinstance(leaf, strata.Tensor):
                found.results.append(("tensor", len(outputs)))
                outputs.append(leaf)
            elif type(leaf) is Sym:
                found.results.append(("size", leaf.text))
            elif leaf is None or isinstance(leaf, (bool, int, float, str)):
                found.results.append(("constant", leaf))
            else:
                raise TypeError(f"export: result {i} is a {type(leaf).__name__}; expected tensors, numbers, strings and None in nests that pytree knows")
        missed = _C._recording_missed(recording)
        if not missed:
            found.graph = _C._recording_finish(recording, outputs)
    except Exception:
        if _C._recording_missed(recording):
            raise _Missed from None
        raise
    finally:
        held.restore()
        _C._recording_stop(recording)
    if missed:  # and the module caught the error
        raise _Missed
    captured = _C._graph_captured(found.graph)
    names: dict[int, str] = {}
    for path, t in [*held.parameters.items(), *held.buffers.items()]:
        names.setdefault(id(t), path)
    for path, (_, _, t) in held.plain.items():
        names.setdefault(id(t), path)
    lifted = 0
    found.constants = {}
    called = []
    for t in captured:
        name = names.get(id(t))
        if name is None and t.is_meta:
            raise RuntimeError(
                f"export: forward uses a tensor {list(t.shape)} that an earlier run of it has kept, which has a shape alone; expected what forward "
                "makes to stay in that run (a list or a dict outside of it keeps it)"
            )
        if name is None:
            name, lifted = f"lifted_tensor_{lifted}", lifted + 1
        if name not in held.parameters and name not in held.buffers:
            found.constants[name] = t
        called.append(name)
    user = [path for path, leaf in zip(found.paths, leaves, strict=True) if isinstance(leaf, strata.Tensor)]
    _C._graph_name(found.graph, [*user, *called])
    found.parameters, found.buffers, found.persistent = held.parameters, held.buffers, held.persistent
    found.same = {}  # paths that are one tensor under another one
    for path, t in [*held.parameters.items(), *held.buffers.items()]:
        if names[id(t)] != path:
            found.same[path] = names[id(t)]
    autocast = strata.get_autocast_dtype("cpu") if strata.is_autocast_enabled("cpu") else None
    found.defaults = strata.get_default_dtype(), autocast
    return found
