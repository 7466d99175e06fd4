"""What a function may use, and what it changes beside tensors' values while it is captured: a call of the graph would not, so that
it is refused.

What it changed is put back before the error, and also where the function itself raises.
"""

from __future__ import annotations

import sys

import strata
from strata import _C, _capture
from strata._graph_form import same_constant
from strata._patching import Patches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


REGISTRIES = ("_parameters", "_buffers", "_modules")
FunctionType, CodeType = type(lambda: None), type((lambda: None).__code__)  # without the module types
MethodType = type((lambda self: None).__get__(0))
_MOST_FUNCTIONS = 100  # that are followed


def held_by(f: Any, leaves: list) -> list[tuple[str, Any]]:
    """What a function may use, by name: itself, what it is bound to or closes over, globals that it names, its arguments; what
    functions of the program that it so finds use, too, and what lists, tuples and dicts among them hold."""
    own = getattr(f, "__self__", None)
    held: list[tuple[str, Any]] = [("", f), ("self", own)]
    todo, seen = [(f, own)], set()
    while todo and len(seen) < _MOST_FUNCTIONS:
        function, own = todo.pop(0)
        code = getattr(function, "__code__", None)
        if (id(code), id(own)) in seen:
            continue
        seen.add((id(code), id(own)))
        found = []
        for name, cell in zip(getattr(code, "co_freevars", ()), getattr(function, "__closure__", None) or (), strict=False):
            try:
                found.append((name, cell.cell_contents))
            except ValueError:  # not filled yet
                continue
        variables, names = getattr(function, "__globals__", {}), _names_in(code)
        found += [(name, variables[name]) for name in names if name in variables]
        if own is not None and code is not None and not _is_module(own):
            attributes = getattr(own, "__dict__", {})
            found += [(f"self.{name}", attributes[name]) for name in names if name in attributes]
            todo += [(getattr(type(own), name), own) for name in names if isinstance(getattr(type(own), name, None), FunctionType)]
        held += found
        for name, value in found:
            kind = type(value)
            if kind in (list, tuple, dict):
                items = value.items() if kind is dict else enumerate(value)
                held += [(f"{name}[{key!r}]", item) for key, item in items if _is_module(item)]
            elif kind in (FunctionType, MethodType) and not (value.__module__ or "").startswith("strata."):
                todo.append((value, getattr(value, "__self__", None)))
                held += [(name, value.__self__)] if kind is MethodType else []
    return held + [("", leaf) for leaf in leaves]


def _names_in(code: Any) -> list[str]:
    """What its text, and that of functions within, calls globals and attributes."""
    names = list(getattr(code, "co_names", ()))
    for constant in getattr(code, "co_consts", ()):
        if isinstance(constant, CodeType):
            names += _names_in(constant)
    return list(dict.fromkeys(names))


def _is_module(value: Any) -> bool:
    return "strata.nn" in sys.modules and isinstance(value, strata.nn.Module)


def modules_of(held: list[tuple[str, Any]]) -> list[tuple[str, strata.nn.Module]]:
    """The modules among them, and theirs, each once, with what it is called: "model.0 (Linear)"."""
    found: dict[int, tuple[str, strata.nn.Module]] = {}
    for name, value in held:
        if _is_module(value):
            for path, module in value.named_modules(prefix=name):
                kind = type(module).__name__
                found.setdefault(id(module), (f"{path} ({kind})" if path else kind, module))
    return list(found.values())


def plain(value: Any) -> bool:
    """Whether it is a constant that operators may have been given."""
    return type(value) in (int, float, bool, str, complex) or (type(value) is tuple and all(plain(v) for v in value))


_EMPTY = object()
_NEW = 624  # the place of a generator that nobody has drawn from


def say_where(error: Exception) -> None:
    """Puts the program's lines into the text of what is refused while operators are recorded, where it does not have them."""
    text, words, rest = str(error).partition("operators are recorded")
    own, lines = strata.__file__.rpartition("/")[0], []
    at = error.__traceback__
    while at is not None:
        code = at.tb_frame.f_code
        if not code.co_filename.startswith((own, "<frozen")):
            lines.append((f"{code.co_filename}:{at.tb_lineno}", code.co_name))
        at = at.tb_next
    if not words or not lines or lines[-1][0] in rest:
        return
    already = " on this thread already"
    if rest == already:
        words, rest = words + already, "; a graph is captured within another's capture: capture them one after the other"
    error.args = (f"{text}{words} ({' < '.join(f'{line} in {name}' for line, name in reversed(lines))}){rest}",)


def _draws() -> dict[str, Any]:
    """The states of generators that are not strata's, the place of the next word first."""
    found = {}
    if "random" in sys.modules:
        version, words, gauss = sys.modules["random"].getstate()
        found["random"] = (words[-1], words[:-1], version, gauss)
    if "numpy.random" in sys.modules:
        kind, words, *rest = sys.modules["numpy.random"].get_state()
        found["numpy.random"] = (rest[0], words.tobytes(), kind, *rest[1:])
    return found


_IS_ANOTHER = (
    "{} is another tensor behind the function, and calls of the graph would not assign it; write it in place (copy_(), mul_(), ...), which is "
    "recorded, or return it; where it is made once, call the function before"
)


def _made_by_hooks(module: Any) -> set[Any]:
    """Attributes that hooks before forward compute anew each time, as those of weight_norm and pruning do."""
    hooks = module._forward_pre_hooks.values()
    return {getattr(hook, "name", None) or getattr(hook, "_tensor_name", None) for hook in hooks}


class _Owner:
    """An object's attributes, and a module's members."""

    def __init__(self, where: str, owner: Any, registries: tuple[str, ...] = ()):
        self.where, self.owner = where, owner
        own = owner.__dict__
        self.dicts = [(d, dict(d)) for d in (own, *(own[name] for name in registries))]

    def put_back(self) -> str:
        changed = ""
        for own, before in self.dicts:
            if len(own) == len(before) and all(a is b for a, b in zip(own.values(), before.values())):
                continue
            for name in {**before, **own}:
                a, b = before.get(name), own.get(name)
                tensors = isinstance(a, strata.Tensor) or isinstance(b, strata.Tensor)
                numbers = name in before and name != "training" and plain(a) and plain(b)
                if a is b or not (tensors or numbers) or (numbers and same_constant(a, b)):
                    continue
                if name in before:
                    own[name] = a
                else:
                    del own[name]
                if not changed and not (len(self.dicts) > 1 and name in _made_by_hooks(self.owner)):
                    changed = _IS_ANOTHER.format(f"{self.where}.{name}") if tensors else (
                        f"{self.where}.{name} is {a!r} before and {b!r} behind the function, and calls of the graph would not change it; keep it "
                        "in a tensor that is written in place, or give it as an argument; where it is set once, call the function before"
                    )
        return changed


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return _EMPTY


class Before:
    """How it was before the function ran."""

    def __init__(self, f: Any, held: list[tuple[str, Any]], capture: _capture.Capture):
        self.capture = capture
        self.groups, self.schedules = {}, []
        if "strata.optim" in sys.modules:
            kind = strata.optim.Optimizer
            for _, value in held:
                owner = value if isinstance(value, kind) else getattr(value, "__dict__", {}).get("optimizer")
                if isinstance(owner, kind):
                    self.groups[owner] = _capture.groups_of(owner)
                    if owner is not value:
                        self.schedules.append((value, dict(value.__dict__)))

        modules = modules_of(held)
        self.owners = [_Owner(where, m, REGISTRIES) for where, m in modules]
        own = getattr(f, "__self__", None)
        if hasattr(own, "__dict__") and not any(own is m for _, m in modules) and not isinstance(own, type(sys)):
            self.owners.append(_Owner(type(own).__name__, own))
        names, cells = getattr(getattr(f, "__code__", None), "co_freevars", ()), getattr(f, "__closure__", None) or ()
        self.cells = [(name, cell, value) for name, cell in zip(names, cells) if (value := _content(cell)) is not _EMPTY]
        variables = getattr(f, "__globals__", {})
        self.variables = {name: (variables, value) for name, value in held if isinstance(value, strata.Tensor) and variables.get(name) is value}
        self.draws, self.dtype = _draws(), strata.get_default_dtype()

    def put_back(self) -> str:
        """What was changed, in words; empty where nothing was."""
        changed = [self._put_back_dtype(), self._put_back_groups(), *(owner.put_back() for owner in self.owners), *self._put_back_variables()]
        return next(filter(None, changed), "")

    def check(self) -> None:
        changed = self.put_back() or self._drawn()
        if changed:
            raise RuntimeError(f"graph: {changed}")

    def _put_back_dtype(self) -> str:
        now = strata.get_default_dtype()
        _C.set_default_dtype(self.dtype)
        return "" if now is self.dtype else f"the default dtype is {now} behind the function, which calls of the graph would not set; give dtype="

    def _put_back_groups(self) -> str:
        changed = ""
        for optimizer, before in {**self.capture.groups, **self.groups}.items():
            for i, (group, then) in enumerate(zip(optimizer.param_groups, before)):
                for name in {**then, **group}:
                    a, b = then.get(name), group.get(name)
                    if a is b or (not isinstance(a, strata.Tensor) and not isinstance(b, strata.Tensor) and a == b):
                        continue
                    changed = changed or (
                        f"{type(optimizer).__name__}.param_groups[{i}][{name!r}] is {a!r} before and {b!r} behind the function, and calls of the "
                        "graph would not change it; call the scheduler, or what else changes it, outside of what is captured: each call reads "
                        "the numbers anew"
                    )
                if changed:
                    group.clear()
                    group.update(then)
        for schedule, then in self.schedules:
            now = schedule.__dict__
            if any(plain(a) and plain(now.get(name)) and a != now[name] for name, a in then.items()):
                changed = changed or f"{type(schedule).__name__} was stepped, and calls of the graph would not step it; call it outside of what is captured"
        if changed:
            for schedule, then in self.schedules:
                schedule.__dict__.clear()
                schedule.__dict__.update(then)
        return changed

    def _put_back_variables(self) -> Iterator[str]:
        for name, cell, then in self.cells:
            if cell.cell_contents is not then and isinstance(cell.cell_contents, strata.Tensor):
                cell.cell_contents = then
                yield _IS_ANOTHER.format(name)
        for name, (variables, then) in self.variables.items():
            if variables.get(name) is not then:
                variables[name] = then
                yield _IS_ANOTHER.format(name)

    def _drawn(self) -> str:
        """That stays as it is: numbers were drawn."""
        for name, now in _draws().items():
            if now != self.draws[name] if name in self.draws else now[0] != _NEW:
                return (
                    f"the function draws from {name}, whose number would be the same in all calls; draw with strata (strata.rand(()), "
                    "strata.randint), or give the number as a tensor argument"
                )
        return ""


_MODES = ("is_grad_enabled", "is_inference_mode_enabled", "are_deterministic_algorithms_enabled")


class Asked(Patches):
    """Around a capture: notes which modes the program asks for, by these functions of strata; strict: refuses another default dtype."""

    def __init__(self, strict: bool):
        super().__init__()
        self.strict = strict

    def __enter__(self) -> Asked:
        self.settings = "strata._settings" in sys.modules
        for name in _MODES if self.settings else _MODES[:-1]:
            self.put(strata, name, lambda name=name: _noting(name, getattr(strata, name)))
        if self.strict:
            self.put(strata, "set_default_dtype", lambda: _set_default_dtype(strata.set_default_dtype))
        return self

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        capture = _capture.current()
        if not self.settings and "strata._settings" in sys.modules and capture is not None:  # which was not worth loading for this
            function = strata.are_deterministic_algorithms_enabled
            capture.asked[_MODES[-1]] = function, function()


def _set_default_dtype(function: Callable[[Any], None]) -> Callable[[Any], None]:
    def set_default_dtype(d: Any) -> None:
        if _capture.current() is not None and d is not strata.get_default_dtype():
            raise RuntimeError(
                "set_default_dtype: cannot be called while operators are recorded: the graph would not, and what makes tensors reads the "
                "default at each call; give dtype=, or set it before"
            )
        function(d)

    return set_default_dtype


def _noting(name: str, function: Callable[[], bool]) -> Callable[[], bool]:
    def asked() -> bool:
        value, capture = function(), _capture.current()
        if capture is not None and not sys._getframe(1).f_globals.get("__name__", "").startswith("strata."):
            capture.asked.setdefault(name, (function, value))
        return value

    return asked
