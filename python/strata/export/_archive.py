"""Exported programs in files: a zip archive of a graph's text, what is said of its inputs and outputs, and the tensors.

    archive_format          "strata pt2"
    archive_version         "1"
    models/model.json       how the program is called, the signature, the modes of the export
    models/model.graph      the operators, as text
    data/weights            parameters, buffers and constants by path: a package of strata.save
    data/example_inputs     the example inputs, where there are any
    extra/NAME              texts of the caller's

C++ (strata::Graph::load, strata_run) reads the modes, the operators and the weights.
"""

from __future__ import annotations

import io
import json
import keyword
import os
import sys
import zipfile

import strata
from strata import _C
from strata._graph_file import _decoded, _encoded, _Tensor
from strata.utils._pytree import LeafSpec, TreeSpec, tree_flatten

from . import _dataclass
from ._held import Held
from ._symbolic import is_size, ranks
from .dynamic_shapes import Symbol
from .exported_program import ExportedProgram

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORMAT, VERSION = "strata pt2", "1"
_MOST = 1 << 40  # bytes that an entry may unpack to


def _expect(good: bool, what: str) -> None:
    if not good:
        raise RuntimeError(f"load: the program is damaged: expected {what}")


# ---- forms of nests


def _spec_json(spec: TreeSpec) -> Any:
    if spec.is_leaf():
        return None
    kind, context = spec.type, spec.context
    inner = [_spec_json(child) for child in spec.children_specs]
    name = _dataclass.name_of(kind)
    if name is not None:
        return ["dataclass", name, inner]
    if hasattr(kind, "_fields"):
        return ["namedtuple", f"{kind.__module__}.{kind.__qualname__}", list(kind._fields), inner]
    if kind in (tuple, list):
        return [kind.__name__, inner]
    if issubclass(kind, dict) and isinstance(context, list):
        return [kind.__name__, [_encoded(k, "a key") for k in context], inner]
    raise TypeError(f"save: a nest of {kind.__name__} has no form in a file; give tuples, lists, dicts, named tuples or registered dataclasses")


def _named_tuple(name: str, fields: list[str]) -> type:
    """The class of that name where it has been imported, else one with these fields."""
    module, _, qualname = name.rpartition(".")
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    if isinstance(found, type) and issubclass(found, tuple) and getattr(found, "_fields", None) == tuple(fields):
        return found
    from collections import namedtuple

    _expect(all(f.isidentifier() and not f.startswith("_") for f in fields), "names as fields")
    return namedtuple(qualname if qualname.isidentifier() else "Fields", fields)


def _spec_of(held: Any) -> TreeSpec:
    if held is None:
        return LeafSpec()
    _expect(isinstance(held, list) and len(held) >= 2 and isinstance(held[0], str) and isinstance(held[-1], list), "the form of a nest")
    kind, inner = held[0], [_spec_of(child) for child in held[-1]]
    if kind in ("tuple", "list"):
        return TreeSpec({"tuple": tuple, "list": list}[kind], None, inner)
    if kind in ("dict", "OrderedDict"):
        keys = [_decoded(k) for k in held[1]] if len(held) == 3 and isinstance(held[1], list) else None
        _expect(keys is not None and len(keys) == len(inner), "as many keys as values")
        made = {} if kind == "dict" else strata._lazy.load("collections").OrderedDict()
        return TreeSpec(type(made), keys, inner)
    if kind == "namedtuple":
        _expect(len(held) == 4 and isinstance(held[1], str) and isinstance(held[2], list) and all(isinstance(f, str) for f in held[2]), "a named tuple's fields")
        _expect(len(held[2]) == len(inner), "as many fields as values")
        cls = _named_tuple(held[1], held[2])
        return TreeSpec(cls, cls, inner)
    _expect(kind == "dataclass" and isinstance(held[1], str), f"a known kind of nest, got {kind!r:.40}")
    cls = _dataclass.class_named(held[1])
    if cls is None:
        raise RuntimeError(f"load: the program's inputs or outputs hold a dataclass {held[1]!r:.200}; call strata.export.register_dataclass with it first")
    return TreeSpec(cls, [f.name for f in strata._lazy.load("dataclasses").fields(cls)], inner)


# ---- writing


def _leaf_json(leaf: Any, name: str) -> Any:
    return {"tensor": 0} if isinstance(leaf, strata.Tensor) else _encoded(leaf, name)


def _model(held: Held) -> dict[str, Any]:
    return {
        "in_spec": _spec_json(held.in_spec),
        "out_spec": _spec_json(held.out_spec),
        "leaves": [_leaf_json(leaf, f"argument {path}") for leaf, path in zip(held.leaves, held.paths, strict=True)],
        "paths": held.paths,
        "results": [[kind, _encoded(value, "a result") if kind == "constant" else value] for kind, value in held.results],
        "parameters": {path: bool(t.requires_grad) for path, t in held.parameters.items()},
        "buffers": {path: held.persistent[path] for path in held.buffers},
        "constants": list(held.constants),
        "same": held.same,
        "captures": [name for _, name, _ in _C._graph_nodes(held.graph)[0][held.count :]],
        "forward_names": held.forward_names,
        "positional": held.positional,
        "functional": held.functional,
        "ranges": [[s.name, s.low, s.high, s.kind] for s in held.ranges.values()],
        "training": held.training,
        "default_dtype": str(held.defaults[0]).rpartition(".")[2],
        "autocast": held.defaults[1] and str(held.defaults[1]).rpartition(".")[2],
    }


def _packed(tensors: Any) -> bytes:
    out = io.BytesIO()
    strata.save(tensors, out)
    return out.getvalue()


def save(
    ep: ExportedProgram, f: Any, *, extra_files: dict[str, Any] | None = None, opset_version: dict[str, int] | None = None, pickle_protocol: int = 2
) -> None:
    """Writes the program to a path or a file opened for writing bytes. strata.export.load and C++ read it.

    TypeError for what is no program, and for constants and nests that have no text (dataclasses that were not registered).
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}' instead.")
    del opset_version, pickle_protocol
    held = ep._held
    same = set(held.same)
    weights = {p: t.detach() for p, t in [*held.parameters.items(), *held.buffers.items(), *held.constants.items()] if p not in same}
    entries = {
        "archive_format": FORMAT.encode(),
        "archive_version": VERSION.encode(),
        "models/model.json": (json.dumps(_model(held), indent=1) + "\n").encode(),
        "models/model.graph": _C._graph_text(held.graph).encode(),
        "data/weights": _packed(weights),
    }
    if held.example_inputs is not None:
        tensors = [t.detach() for t in tree_flatten(held.example_inputs)[0] if isinstance(t, strata.Tensor)]
        entries["data/example_inputs"] = _packed(tensors)
    for name, content in (extra_files or {}).items():
        entries[f"extra/{name}"] = content.encode() if isinstance(content, str) else bytes(content)
    if hasattr(f, "write"):
        _write(f, entries)
        return
    path = os.fspath(f)
    new = f"{path}.new-{os.getpid()}"
    try:
        with open(new, "wb") as file:
            _write(file, entries)
        os.replace(new, path)
    except BaseException:
        if os.path.exists(new):
            os.unlink(new)
        raise


def _write(file: Any, entries: dict[str, bytes]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name), content)


# ---- reading


def _entries(f: Any) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(f) as archive:
            for info in archive.infolist():
                _expect(info.file_size < _MOST and (info.compress_type == zipfile.ZIP_STORED), "stored entries")
            return {info.filename: archive.read(info) for info in archive.infolist()}
    except (zipfile.BadZipFile, EOFError, NotImplementedError, ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise RuntimeError(f"load: the program is damaged: {error}") from None


def _loaded(content: bytes | None, what: str) -> Any:
    _expect(content is not None, what)
    try:
        return strata.load(io.BytesIO(content))
    except Exception as error:
        raise RuntimeError(f"load: the program is damaged: {what}: {error}") from None


def _texts(value: Any, what: str) -> list[str]:
    _expect(isinstance(value, list) and all(isinstance(v, str) for v in value), what)
    return value


def _flags(value: Any, what: str) -> dict[str, bool]:
    _expect(isinstance(value, dict) and all(type(v) is bool for v in value.values()), what)
    return value


def _dtype(name: Any, none: bool) -> Any:
    found = getattr(strata, name, None) if isinstance(name, str) else None
    _expect((none and name is None) or (isinstance(found, strata.dtype) and found.is_floating_point), "a floating-point dtype")
    return found


def load(f: Any, *, extra_files: dict[str, Any] | None = None, expected_opset_version: dict[str, int] | None = None) -> ExportedProgram:
    """A program that was saved. Nothing in the file is run but the operators that it names, when the program runs.

    extra_files: its names are filled with what was saved under them. RuntimeError where the file is damaged, no exported
    program, or of another version, ValueError with line and column where its graph is none, FileNotFoundError.
    """
    del expected_opset_version
    entries = _entries(f)
    kind = entries.get("archive_format", b"")
    if kind != FORMAT.encode():
        raise RuntimeError(
            f"load: expected a program of strata.export.save, got an archive of {kind[:40].decode('utf-8', 'replace')!r}; what "
            "PyTorch's export saved cannot be read: export the module from here"
        )
    version = entries.get("archive_version", b"").decode("utf-8", "replace")
    if version != VERSION:
        raise RuntimeError(f"load: the program was written by another version: {version!r:.20}; export it again")
    try:
        model = json.loads(entries.get("models/model.json", b""))
        text = entries.get("models/model.graph", b"").decode()
    except (ValueError, RecursionError) as error:
        raise RuntimeError(f"load: the program is damaged: {error}") from None
    try:
        held = _held(model, text, entries)
        made = ExportedProgram(held)
    except (KeyError, TypeError, IndexError, AttributeError, RecursionError, StopIteration, AssertionError, OverflowError, SyntaxError) as error:
        raise RuntimeError(f"load: the program is damaged: {type(error).__name__}: {error}") from None
    for name in extra_files or ():
        content = entries.get(f"extra/{name}")
        extra_files[name] = content.decode("utf-8", "replace") if content is not None else ""
    return made


def _held(model: Any, text: str, entries: dict[str, bytes], weights: Any = None) -> Held:
    """weights: the tensors by path, where they are at hand."""
    _expect(isinstance(model, dict), "a dict in models/model.json")
    weights = _loaded(entries.get("data/weights"), "tensors in data/weights") if weights is None else weights
    _expect(isinstance(weights, dict) and all(isinstance(k, str) and isinstance(t, strata.Tensor) for k, t in weights.items()), "named tensors")
    requires, persistent = _flags(model["parameters"], "parameters"), _flags(model["buffers"], "buffers")
    same = model["same"]
    _expect(isinstance(same, dict) and all(isinstance(v, str) and v in weights for v in same.values()), "paths of tensors")
    for path, needs in requires.items():
        if path not in same and not isinstance(weights[path], strata.nn.Parameter):
            weights[path] = strata.nn.Parameter(weights[path], requires_grad=needs)
    for path in [*requires, *persistent, *model["constants"]]:
        _expect(path != "" and not any(c in path for c in "\"\\\n\r") and all(path.split(".")), "paths of attributes")
    found = {path: weights[same.get(path, path)] for path in [*requires, *persistent]}
    constants = {path: weights[path] for path in _texts(model["constants"], "constants")}
    captured = _texts(model["captures"], "names of tensors")
    graph = _C._graph_parse(text, [weights[name] for name in captured])
    in_spec, out_spec = _spec_of(model["in_spec"]), _spec_of(model["out_spec"])
    count = len(_C._graph_nodes(graph)[0]) - len(captured)
    leaves, tensors = [], 0
    params, _ = _C._graph_nodes(graph)
    from strata.fx._from_graph import _tensor_of

    for held in model["leaves"]:
        value = _decoded(held)
        if isinstance(value, _Tensor):
            _expect(tensors < count, "as many inputs as there are tensors among the arguments")
            value = _tensor_of(params[tensors][2].replace("?", ""))
            tensors += 1
        leaves.append(value)
    _expect(tensors == count and len(leaves) == in_spec.num_leaves, "as many inputs as there are tensors among the arguments")
    results = [(kind, _decoded(value) if kind == "constant" else value) for kind, value in model["results"]]
    made, known = len(_C._graph_results(graph)), ranks(_C._graph_text(graph))
    fits = {"constant": lambda v: True, "tensor": lambda v: type(v) is int and 0 <= v < made, "size": lambda v: type(v) is str and is_size(v, known)}
    _expect(all(k in fits and fits[k](v) for k, v in results), "results of the graph")
    _expect(len(results) == out_spec.num_leaves, "as many results as the form of the output has")
    paths, names = _texts(model["paths"], "paths"), _texts(model["forward_names"], "names of arguments")
    positional = model["positional"]
    _expect(len(paths) == len(leaves) and type(positional) is int and 0 <= positional <= len(names), "names of arguments")
    _expect(all(n.isidentifier() and not keyword.iskeyword(n) for n in names) and len(set(names)) == len(names), "names of arguments")
    specs = in_spec.children_specs
    _expect(in_spec.type is tuple and len(specs) == 2 and specs[0].num_children == positional and specs[1].type is dict, "a form of arguments")
    _expect(specs[1].context == names[positional:], "keywords as the form of the arguments has them")
    _expect(type(model["functional"]) is bool and type(model["training"]) is bool, "true or false")
    example = None
    if "data/example_inputs" in entries:
        given = _loaded(entries["data/example_inputs"], "tensors in data/example_inputs")
        _expect(isinstance(given, list) and len(given) == tensors and all(isinstance(t, strata.Tensor) for t in given), "example inputs")
        from strata.utils._pytree import tree_unflatten

        rest = iter(given)
        example = tree_unflatten([next(rest) if isinstance(leaf, strata.Tensor) else leaf for leaf in leaves], in_spec)
    ranges = {}
    for name, low, high, kind in model["ranges"]:
        _expect(isinstance(name, str) and type(low) is int and (high is None or type(high) is int) and isinstance(kind, str), "ranges of sizes")
        ranges[name] = Symbol(name, low, high, kind, low)
    return Held(
        graph=graph, count=count, leaves=leaves, paths=paths, results=results, in_spec=in_spec, out_spec=out_spec,
        parameters={p: found[p] for p in requires}, buffers={p: found[p] for p in persistent}, persistent=persistent, constants=constants,
        same=dict(same), forward_names=names, positional=positional, functional=model["functional"], example_inputs=example,
        defaults=(_dtype(model["default_dtype"], False), _dtype(model["autocast"], True)), training=model["training"],
        ranges=ranges,
    )  # fmt: skip
