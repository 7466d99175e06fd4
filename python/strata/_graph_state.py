"""What a captured graph assumes of modules and optimisers, and how each call finds out whether it is still so.

Most calls find all as it was: `_C._Guards` compares the versions of the dicts that attributes and states lie in. What has
changed then is looked up by name.
"""

from __future__ import annotations

import sys

import strata
from strata import _C
from strata._capture import Numbers
from strata._graph_before import REGISTRIES, modules_of, plain
from strata._graph_form import same_constant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from strata import Tensor, _capture


class _Watch:
    """Dicts, by their versions, lists, by what they hold, and tensors, by facts of them, as _C._Guards looks at them."""

    classes: list = []

    def __init__(self, dicts: list[Any], lists: list[Any]):
        self.tensors: list[tuple[Tensor, tuple]] = []
        self.dicts = [(d,) for d in dicts if isinstance(d, dict)]
        self.lists = [(values, list(values)) for values in lists if isinstance(values, list)]
        self._fresh = True

    def same(self) -> bool:
        """Asked where versions are others. The first time they are unknown."""
        fresh, self._fresh = self._fresh, False
        return fresh

    def guards(self) -> Callable[[], bool]:
        """Whether all is as it is now, once and for all: what says no goes on to say no."""
        guards = _C._Guards(((23, 0, -1, self, 0),), 0, None, ())  # 23: guards.py's "watch"
        guards()
        return guards


class _Groups(_Watch):
    """The groups of optimisers: where one has changed, its numbers are read anew."""

    def __init__(self, numbers: Numbers):
        self.numbers = numbers
        super().__init__([*(slot.group for slot in numbers.slots), *(o.param_groups[i] for o, i, _, _ in numbers.numbers)], [])

    def same(self) -> bool:
        try:
            Numbers.check(self.numbers)
        except Exception:  # raised again by who asks then
            return False
        return not any(isinstance(slot.group[slot.key], strata.Tensor) for slot in self.numbers.slots)  # one may be written in place


class _Stepped:
    """An optimiser that the graph steps: its groups, and the tensors of its state that are the graph's own.

    Where load_state_dict, or the program, has put others in their places, the graph's take their values and the places.
    """

    def __init__(self, optimizer: Any, slots: list, captured: set[int]):
        self.optimizer, self.params = optimizer, [list(group["params"]) for group in optimizer.param_groups]
        self.name = type(optimizer).__name__
        self.hooks = [list(hooks.values()) for hooks in self._hooks()]
        at = {id(group): i for i, group in enumerate(optimizer.param_groups)}
        self.slots = [(slot, at[id(slot.group)]) for slot in slots if id(slot.group) in at]
        self.rates = [
            (i, name, t)
            for i, group in enumerate(optimizer.param_groups)
            for name, t in group.items()
            if isinstance(t, strata.Tensor) and id(t) in captured
        ]
        self.state = [
            (p, [(name, v) for name, v in state.items() if (id(v) in captured if isinstance(v, strata.Tensor) else plain(v))])
            for p, state in optimizer.state.items()
        ]

    def dicts(self) -> list[Any]:
        optimizer = self.optimizer
        groups = [optimizer.param_groups[i] for i, _, _ in self.rates]
        return [optimizer.__dict__, optimizer.state, *(optimizer.state[p] for p, named in self.state if named), *groups, *self._hooks()]

    def _hooks(self) -> list[dict]:
        home, own = sys.modules["strata.optim.optimizer"], self.optimizer.__dict__
        found = [home._global_pre_hooks, home._global_post_hooks, own.get("_optimizer_step_pre_hooks"), own.get("_optimizer_step_post_hooks")]
        return [hooks for hooks in found if hooks is not None]

    def settle(self) -> None:
        """Puts the graph's tensors back, with what is in their places now. RuntimeError where that cannot be."""
        groups, own = self.optimizer.param_groups, self.optimizer.state
        if len(groups) != len(self.params) or any(
            len(group["params"]) != len(then) or any(a is not b for a, b in zip(group["params"], then, strict=True))
            for group, then in zip(groups, self.params, strict=True)
        ):
            raise RuntimeError(f"graph: {self.name}'s groups had other parameters when the graph was captured; capture it again")
        if [list(hooks.values()) for hooks in self._hooks()] != self.hooks:
            raise RuntimeError(f"graph: {self.name} had other hooks when the graph was captured; capture it again")
        taken = []
        for i, name, t in self.rates:
            self._take(taken, groups[i], name, t, name)
        for n, (p, named) in enumerate(self.state):
            state = own.get(p)
            if state is None and named:
                raise RuntimeError(f"graph: {self.name} has no state of its parameter {n} any more; call init_state() and capture it again")
            for name, then in named:
                where = f"state {name!r} of parameter {n}"
                if isinstance(then, strata.Tensor):
                    self._take(taken, state, name, then, where)
                elif state.get(name) is not then and state.get(name) != then:
                    raise RuntimeError(
                        f"graph: {self.name}'s {where} was {then!r} when the graph was captured, and is {state.get(name)!r}; capture it again"
                    )
        with strata.no_grad():
            for place, name, t, now in taken:
                t.copy_(now) if isinstance(now, strata.Tensor) else t.fill_(now)
                place[name] = t
        for slot, i in self.slots:
            slot.group = groups[i]

    def _take(self, taken: list, place: dict, name: Any, t: Tensor, where: str) -> None:
        now = place.get(name)
        if now is t:
            return
        number = isinstance(now, (int, float)) and t.dim() == 0 and where != name
        if not number and not (isinstance(now, strata.Tensor) and (now.shape, now.dtype, now.device) == (t.shape, t.dtype, t.device)):
            raise RuntimeError(
                f"graph: {self.name}'s {where} was replaced: the graph has {_kind(t)} there, and now there is {_kind(now)}; write it in place "
                "(copy_(), fill_()), or capture it again"
            )
        taken.append((place, name, t, now))


def _sets(kind: type, known: dict[type, frozenset]) -> frozenset:
    """Attributes that a class's forward, and the methods that it names, assign: they are its results, and nothing that it is given."""
    if kind not in known:
        from opcode import EXTENDED_ARG, opmap

        names, todo, seen = set(), ["forward"], set()
        while todo:
            method = todo.pop()
            code = getattr(getattr(kind, method, None), "__code__", None)
            if method in seen or code is None:
                continue
            seen.add(method)
            todo += code.co_names
            text, extended = code.co_code, 0
            for op, arg in zip(text[::2], text[1::2]):
                if op == opmap["STORE_ATTR"]:
                    names.add(code.co_names[extended | arg])
                extended = (extended | arg) << 8 if op == EXTENDED_ARG else 0
        known[kind] = frozenset(names)
    return known[kind]


_HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")


class _Used:
    """A module that the function may use: its mode, its numbers, members and hooks, and tensors of the graph among its attributes."""

    def __init__(self, where: str, module: strata.nn.Module, known: dict[type, frozenset], captured: set[int]):
        self.where, self.module = where, module
        sets = _sets(type(module), known)
        self.numbers = {name: value for name, value in module.__dict__.items() if plain(value) and (name not in sets or name == "training")}
        own = module.__dict__
        self.members = [(of, name, m) for of in REGISTRIES for name, m in own[of].items() if not _is_tensor(m) or id(m) in captured]
        self.members += [("__dict__", name, t) for name, t in own.items() if _is_tensor(t) and id(t) in captured]
        self.hooks = [(name, list(own[name].values())) for name in _HOOKS]
        lists = isinstance(module, (strata.nn.Sequential, strata.nn.ModuleList, strata.nn.ModuleDict))  # whose forward asks for all of them
        self.keys = list(own["_modules"]) if lists else None

    def dicts(self) -> list[Any]:
        own = self.module.__dict__
        return [own, *(own[name] for name in (*REGISTRIES, *_HOOKS))]

    def check(self) -> None:
        self._check_numbers()
        own = self.module.__dict__
        for of, name, then in self.members:
            now = (own if of == "__dict__" else own[of]).get(name)
            if now is not then:
                raise RuntimeError(
                    f"graph: {self.where}.{name} was {_named(then)} when the graph was captured, and is {_named(now, then)}; "
                    + ("write it in place (copy_()), or capture it again" if _is_tensor(then) and _is_tensor(now) else "capture it again")
                )
        if self.keys is not None and self.keys != list(own["_modules"]):
            raise RuntimeError(f"graph: {self.where} had other modules when the graph was captured; capture it again")
        for name, then in self.hooks:
            now = list(own[name].values())
            if len(now) != len(then) or any(a is not b for a, b in zip(now, then, strict=True)):
                raise RuntimeError(f"graph: {self.where} had other hooks ({name[1:]}) when the graph was captured; capture it again")

    def _check_numbers(self) -> None:
        own = self.module.__dict__
        for name, then in self.numbers.items():
            now = own.get(name)
            if now is not then and not same_constant(now, then):
                again = "capture a graph for each mode" if name == "training" else "capture it again"
                raise RuntimeError(f"graph: {self.where}.{name} was {then!r} when the graph was captured, and is {now!r}; {again}")


class _Learned:
    """A captured tensor of a whole step, whose backward is part of the graph: whether it learns, and its hooks."""

    def __init__(self, name: str, t: Tensor):
        self.name, self.tensor, self.learns = name, t, t.requires_grad
        self.hooks = list((t._backward_hooks or {}).values())

    def facts(self) -> tuple:
        """As guards.tensor_spec gives them."""
        t = self.tensor
        return (type(t), tuple(t.shape), t.stride(), t.dtype, t.device, self.learns, t.is_leaf, t.is_inference())

    def check(self) -> None:
        if self.tensor.requires_grad != self.learns:
            then, now = ("a", "none") if self.learns else ("no", "one")
            raise RuntimeError(f"graph: {self.name} required {then} gradient when the graph was captured, and requires {now} now; capture it again")
        now = list((self.tensor._backward_hooks or {}).values())
        if len(now) != len(self.hooks) or any(a is not b for a, b in zip(now, self.hooks, strict=True)):
            raise RuntimeError(f"graph: {self.name} had other hooks when the graph was captured; capture it again")


def _is_tensor(value: Any) -> bool:
    return isinstance(value, strata.Tensor)


def _named(value: Any, then: Any = None) -> str:
    what = "a tensor" if _is_tensor(value) else "None" if value is None else type(value).__name__
    return f"another {what.removeprefix('a ')}" if value is not None and type(value) is type(then) else what


def _kind(value: Any) -> str:
    if isinstance(value, strata.Tensor):
        return f"a tensor of shape {tuple(value.shape)}, {value.dtype}, on {value.device}"
    return "nothing" if value is None else repr(value)


class State(Numbers):
    """The same, with the optimisers' states, the modules, and the modes that the function asked for."""

    def __init__(self, held: list[tuple[str, Any]], capture: _capture.Capture, captured: dict[str, Tensor], step: bool):
        super().__init__(capture)
        known: dict[type, frozenset] = {}
        ids = {id(t) for t in captured.values()}
        self.used = [_Used(where, m, known, ids) for where, m in modules_of(held)]
        kept = {id(t) for o in capture.optimizers for state in o.state.values() for t in state.values()} | {id(s.tensor) for s in self.slots}
        self.learned = [_Learned(name, t) for name, t in captured.items() if id(t) not in kept] if step else []
        self.hooked = [learned for learned in self.learned if learned.hooks]
        self.stepped = [_Stepped(optimizer, self.slots, ids) for optimizer in capture.optimizers]
        self.modes = [(name, function, value) for name, (function, value) in capture.asked.items()]
        self._watch()

    @property
    def any(self) -> bool:
        return bool(self.used or self.stepped or self.modes)

    def let_go_of_modules(self) -> list[tuple[strata.nn.Module, bool]]:
        """Calls ask for them no more. The modes that they were captured in."""
        training, self.used = [(used.module, used.numbers["training"]) for used in self.used], []
        self._watch()
        return training

    def _watch(self) -> None:
        """Begins anew: all is as it should be now."""
        dicts = [d for owner in (*self.used, *self.stepped) for d in owner.dicts()]
        lists = [stepped.optimizer.param_groups for stepped in self.stepped]
        watch = _Watch(dicts, lists)
        watch.tensors = [(learned.tensor, learned.facts()) for learned in self.learned if not learned.hooks]
        self._unchanged = watch.guards()
        self._read = _Groups(self).guards()

    def check(self) -> None:
        if not self._unchanged():
            for owner in (*self.used, *self.learned):
                owner.check()
            for stepped in self.stepped:
                stepped.settle()
            self._watch()
        for learned in self.hooked:
            learned.check()
        for name, function, value in self.modes:
            if function() != value:
                raise RuntimeError(
                    f"graph: the function asked for {name}(), which was {value} when the graph was captured, and is {not value}; "
                    "capture a graph for each mode"
                )
        if not self._read():
            super().check()
