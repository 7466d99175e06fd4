"""What is called: every operator of the table in all its forms, and every public callable of the Python face."""

from __future__ import annotations

import importlib
import inspect
import keyword
import pkgutil
import sys
import types
from dataclasses import dataclass, field
from pathlib import Path

import strata

ROOT = Path(__file__).resolve().parent.parent.parent
for folder in (str(ROOT), str(ROOT / "tests/ops")):
    if folder not in sys.path:
        sys.path.append(folder)
from kit import SAMPLES, D, Maker, T, load_samples  # noqa: E402

from gen import model, schema  # noqa: E402

# What reaches beyond the process (other processes, the net, one's own interpreter), or takes the time that it is told to.
LEFT_OUT = ("strata.hub", "strata.multiprocessing", "strata.onnx", "strata.distributed.", "strata.utils.model_zoo", "strata.doctor", "strata.backend_test", "strata.warm",
            "strata.jit", "strata.fx", "strata.library.missing", "strata.testing.default_tolerances", "strata.Tensor.share_memory_", "strata.Tensor.__subclasshook__",
            "strata.Tensor.__init_subclass__", "strata.Tensor.__getattribute__", "strata.Tensor.__class__", "strata.utils.benchmark.Timer",
            "strata.futures.Future", "strata.nn.ParameterList")
# What changes the process for the calls after it: its child ends with it.
LASTING = ("set_", "register", "use_", "manual_seed", "seed", "_enter", "__enter__", "__exit__", "install", "start", "impl", "define", "fork_rng", "override",
           "add_hook", "allow_in_graph", "wrap", "step", "push", "pop", "fallthrough", "reset", "Library", "custom_op", "detect_anomaly", "profile", "handle")
DUNDERS = ("__init__", "__new__", "__class__", "__doc__", "__dict__", "__dir__", "__module__", "__subclasshook__", "__init_subclass__",
           "__getattribute__", "__getattr__", "__del__", "__weakref__", "__slots__", "__annotations__", "__class_getitem__", "__abstractmethods__")


@dataclass
class Param:
    name: str
    kind: str = ""  # a schema type or an annotation, as text
    default: str | None = None
    kwonly: bool = False
    many: bool = False  # *args


@dataclass
class Subject:
    """One thing to call. `how` is op, function, method or class; a class has the names of its instances' methods."""

    path: str
    how: str
    params: list[Param] | None = None
    entry: model.Entry | None = None
    schema: schema.Schema | None = None
    methods: list[tuple[str, list[Param] | None]] = field(default_factory=list)
    owner: str = ""  # the class of a method

    @property
    def lasting(self) -> bool:
        return any(part.lstrip("_").startswith(LASTING) or part.startswith(("__enter", "__exit")) for part in self.path.split(".")[1:])


def literal(value: object) -> str | None:
    """The source of a default value, where it has one."""
    if isinstance(value, (int, float, str, bool, type(None))):
        return repr(value)
    if isinstance(value, (tuple, list)) and all(literal(v) is not None for v in value):
        return repr(value)
    if isinstance(value, (strata.dtype, strata.device)):
        return f"strata.{value}".replace("strata.strata.", "strata.") if isinstance(value, strata.dtype) else repr(str(value))
    return None


def parameters(function: object) -> list[Param] | None:
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return None
    found = []
    for p in signature.parameters.values():
        if p.kind == p.VAR_KEYWORD:
            continue
        default = None if p.default is p.empty else literal(p.default) or "None"
        found.append(Param(p.name, "" if p.annotation is p.empty else str(p.annotation), default, p.kind == p.KEYWORD_ONLY, p.kind == p.VAR_POSITIONAL))
    return found


def of_schema(s: schema.Schema) -> list[Param]:
    return [Param(a.name, a.type, a.default, a.kwonly) for a in s.args]


def table() -> list[Subject]:
    """The operators of the table, as strata.ops has them."""
    load_samples()
    found = []
    for entry in model.load(ROOT / "ops")[0]:
        if entry.derived:
            continue
        for _, s in entry.forms():
            path, overload = f"strata.ops.{s.ns}.{s.name}", s.overload or "default"
            path = f"getattr({path}, {overload!r})" if keyword.iskeyword(overload) else f"{path}.{overload}"
            found.append(Subject(path, "op", of_schema(s), entry, s))
            name = f"strata.{s.name}"
            if hasattr(strata, s.name) and callable(getattr(strata, s.name)):
                found.append(Subject(name, "function", of_schema(s), entry, s))
            if s.args and s.args[0].name == "self" and hasattr(strata.Tensor, s.name):
                found.append(Subject(f"strata.Tensor.{s.name}", "method", of_schema(s)[1:], entry, s, owner="strata.Tensor"))
    return found


def modules() -> list[types.ModuleType]:
    found = [strata]
    for m in pkgutil.walk_packages([str(Path(strata.__file__).parent)], "strata."):
        if any(part.startswith(("_", "libstrata")) for part in m.name.split(".")[1:]) or m.name.startswith(LEFT_OUT):
            continue
        found.append(importlib.import_module(m.name))
    return found


def methods(cls: type) -> list[tuple[str, list[Param] | None]]:
    found = []
    for name in sorted(dir(cls)):
        if name in DUNDERS or (name.startswith("_") and not name.startswith("__")):
            continue
        value = inspect.getattr_static(cls, name, None)
        if not callable(getattr(cls, name, None)) or isinstance(value, type) or getattr(object, name, 0) is getattr(cls, name, 1):
            continue
        params = parameters(getattr(cls, name))
        if params and params[0].name in ("self", "$self"):
            params = params[1:]
        found.append((name, params))
    return found


def walk(covered: set[str]) -> list[Subject]:
    """Public callables by the shortest path that leads to them; those of the table are there already."""
    paths: dict[int, tuple[str, object]] = {}
    for m in modules():
        for name in sorted(n for n in dir(m) if not n.startswith("_")):
            value = getattr(m, name, None)
            path = f"{m.__name__}.{name}"
            if not callable(value) or path.startswith(LEFT_OUT) or "missing_" in name or isinstance(value, types.ModuleType):
                continue
            if not str(getattr(value, "__module__", None) or "strata").startswith(("strata", "builtins")):
                continue
            if id(value) not in paths or len(path) < len(paths[id(value)][0]):
                paths[id(value)] = (path, value)
    found = []
    for path, value in sorted(paths.values(), key=lambda p: p[0]):
        if path in covered:
            continue
        if not isinstance(value, type):
            found.append(Subject(path, "function", parameters(value)))
        elif issubclass(value, BaseException):
            continue
        elif value is strata.Tensor:
            found += [Subject(f"{path}.{n}", "method", p, owner=path) for n, p in methods(value)
                      if f"{path}.{n}" not in covered | set(LEFT_OUT)]
        else:
            found.append(Subject(path, "class", parameters(value), methods=methods(value)))
    return found


def attributes() -> list[Subject]:
    """Properties of tensors, read and written."""
    return [Subject(f"strata.Tensor.{n}", "attribute", owner="strata.Tensor") for n in sorted(dir(strata.Tensor))
            if n not in (*DUNDERS, "_cdata") and not n.startswith("__") and not callable(getattr(strata.Tensor, n, None))]


def subjects(only: str | None = None) -> list[Subject]:
    found = table()
    found += walk({s.path for s in found}) + attributes()
    return [s for s in found if not only or only in s.path]


__all__ = ["ROOT", "SAMPLES", "D", "Maker", "T", "Param", "Subject", "model", "subjects"]
