"""Traces in files: an archive of the graphs' texts, their tensors once, and what the modules are called."""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile

import strata
from strata import _graph_file, nn
from strata._graph import Graph

from . import _sizes
from ._module import RecursiveScriptModule, ScriptFunction, ScriptModule
from ._trace import Read, Trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

__all__ = ["load", "save"]

_FORMAT = "strata traces 2"


class _Tensors:
    """Each tensor once, by a number."""

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self.tensors: list[strata.Tensor] = []

    def number(self, t: strata.Tensor) -> int:
        if id(t) not in self.numbers:
            self.numbers[id(t)] = len(self.tensors)
            self.tensors.append(t)
        return self.numbers[id(t)]


def _described(module: nn.Module, tensors: _Tensors) -> dict[str, Any]:
    """A module's name, mode, and members."""
    kept = module._non_persistent_buffers_set
    return {
        "name": module.original_name,
        "training": module.training,
        "parameters": {k: p is not None and tensors.number(p) for k, p in module._parameters.items()},
        "buffers": {k: [b is not None and tensors.number(b), k not in kept] for k, b in module._buffers.items()},
        "modules": {k: m and _described(m, tensors) for k, m in module._modules.items()},
    }


def save(m: Any, f: str | os.PathLike | IO[bytes], _extra_files: dict[str, Any] | None = None) -> None:
    """Writes a traced function or module: the graph of each form of inputs that it was called with, its tensors, and where it can
    be exported with sizes that vary, what runs for inputs of other sizes.

    f: a path, or a file to write bytes to. _extra_files: texts or bytes by name, kept beside it. TypeError for other objects, and
    for arguments and results that a graph's text cannot hold.
    """
    if not isinstance(m, (ScriptModule, ScriptFunction)):
        raise TypeError(f"jit.save: expected a traced function or module, got {type(m).__name__}; strata.save writes a state_dict")
    tensors, texts = _Tensors(), []
    traces = {"": m._trace} if isinstance(m, ScriptFunction) else m._traces
    if not traces:
        raise RuntimeError(f"jit.save: {m.original_name} is part of a traced module and was not traced itself; save the whole")
    held: dict[str, Any] = {"format": _FORMAT, "traces": {}}
    with tempfile.TemporaryDirectory() as folder:
        for method, trace in traces.items():
            graphs = []
            for form, graph in trace.forms():
                path = os.path.join(folder, str(len(texts)))
                _graph_file.save(graph, path, weights=False)
                if not _still_fits(graph, path):
                    continue
                with open(path, "rb") as file:
                    texts.append(file.read())
                captured = {name: tensors.number(t) for name, t in graph.captured.items()}
                graphs.append({"form": form, "reads": graph.reads, "captured": captured})
            if not graphs:
                raise RuntimeError(
                    f"jit.save: the tensors of {trace.name} have another dtype, device or size than when it was traced: trace it again, or "
                    "call it once with inputs that fit them now"
                )
            program = _program_of(trace, tensors) if len(graphs) == len(trace.graphs) else None
            held["traces"][method] = {"name": trace.name, "graphs": graphs, "program": program}
    if isinstance(m, ScriptModule):
        held["module"] = _described(m, tensors)
    held["learned"] = [t.requires_grad for t in tensors.tensors]
    weights = io.BytesIO()
    strata.save({str(i): t.detach() for i, t in enumerate(tensors.tensors)}, weights)
    with zipfile.ZipFile(os.fspath(f) if isinstance(f, (str, os.PathLike)) else f, "w") as archive:
        archive.writestr("traces.json", json.dumps(held))
        archive.writestr("weights", weights.getvalue())
        for i, text in enumerate(texts):
            archive.writestr(f"graph {i}", text)
        for name, content in (_extra_files or {}).items():
            archive.writestr(f"extra/{name}", content)


def _still_fits(graph: Graph, path: str) -> bool:
    """Whether the graph's tensors are as they were traced, and not converted since, as by half()."""
    try:
        _graph_file.load(Graph.__new__(Graph), path, graph.captured)
    except ValueError:
        return False
    return True


def _program_of(trace: Trace, tensors: _Tensors) -> dict[str, Any] | None:
    """What there is for inputs of other sizes."""
    program = _sizes.program(trace)
    try:
        return program and _sizes.described(program, tensors.number)
    except (TypeError, ValueError):  # a form of arguments or results that has no text there
        return None


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _module(described: dict[str, Any], tensors: list[strata.Tensor]) -> RecursiveScriptModule:
    made = RecursiveScriptModule(described["name"])
    made.training = described["training"]
    for name, i in described["parameters"].items():
        made.register_parameter(name, None if i is False else tensors[i])
    for name, (i, persistent) in described["buffers"].items():
        made.register_buffer(name, None if i is False else tensors[i], persistent=persistent)
    for name, child in described["modules"].items():
        made.add_module(name, child and _module(child, tensors))
    return made


def load(f: str | os.PathLike | IO[bytes], map_location: Any = None, _extra_files: dict[str, Any] | None = None) -> Any:
    """What jit.save wrote: it runs with the same bits without the Python program, for inputs of the forms that were traced, and of
    other sizes where the file has a program for them.

    _extra_files: its names get what was saved under them. Nothing in the file is run but the operators that its texts name.
    RuntimeError where the file is damaged or is none of jit.save's, FileNotFoundError where there is none.
    """
    if map_location is not None and strata.device(map_location).type != "cpu":
        raise NotImplementedError(f"jit.load: map_location: graphs run where they were traced, got {map_location}; leave it out")
    try:
        with zipfile.ZipFile(os.fspath(f) if isinstance(f, (str, os.PathLike)) else f) as archive:
            contents = {name: archive.read(name) for name in archive.namelist()}
        held = json.loads(contents["traces.json"])
        if held["format"] != _FORMAT:
            raise RuntimeError(f"jit.load: written by another version: {held['format']!r:.60}; save it again from there")
        for name in _extra_files or ():
            _extra_files[name] = contents[f"extra/{name}"]
        return _loaded(held, contents)
    except (zipfile.BadZipFile, KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise RuntimeError(
            f"jit.load: expected a file of strata.jit.save, got one that is damaged or of another kind ({type(error).__name__}: {error}); "
            "files of strata.save are for strata.load"
        ) from error


def _loaded(held: dict[str, Any], contents: dict[str, bytes]) -> Any:
    weights = strata.load(io.BytesIO(contents["weights"]))
    tensors = [weights[str(i)] for i in range(len(weights))]
    described = held.get("module")
    learned = _parameter_numbers(described) if described else set()
    for i, requires_grad in enumerate(held["learned"]):
        tensors[i] = nn.Parameter(tensors[i], requires_grad) if i in learned else tensors[i].requires_grad_(requires_grad)
    module = _module(described, tensors) if described else None
    traces, count = {}, 0
    with tempfile.TemporaryDirectory() as folder:
        for method, saved in held["traces"].items():
            trace = traces[method] = Trace(None, saved["name"])
            for one in saved["graphs"]:
                path = os.path.join(folder, str(count))
                with open(path, "wb") as file:
                    file.write(contents[f"graph {count}"])
                graph = Graph.__new__(Graph)
                _graph_file.load(graph, path, {name: tensors[i] for name, i in one["captured"].items()})
                graph.reads = [Read(*read) for read in one["reads"]]
                trace.add(graph, _tuples(one["form"]))
                count += 1
            if saved["program"] is not None:
                trace.program = _sizes.restored(saved["program"], tensors)
    if module is None:
        return ScriptFunction(traces[""])
    module._traces = traces
    for method, trace in traces.items():
        if method != "forward":
            object.__setattr__(module, method, trace)
    return module


def _parameter_numbers(described: dict[str, Any]) -> set[int]:
    found = {i for i in described["parameters"].values() if i is not False}
    for child in described["modules"].values():
        found |= _parameter_numbers(child) if child else set()
    return found
