"""Graphs in files: a text, which says how the function is called and what its operators are, and the tensors beside it."""

from __future__ import annotations

import json
import os
import zlib

import strata
from strata import _C
from strata._graph_form import Arguments, Results
from strata.utils._pytree import tree_flatten, tree_unflatten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from strata._graph import Graph

_FIRST = "strata graph 1"  # with a check of what follows, which may be left out: texts are there to be edited, too
_HOLDS = (
    "parameters arguments results forward_nodes outputs tangent_of wanted step gradients gradients_before default_dtype autocast"
).split()


class _Tensor:
    """In a nest: a tensor's number, or that of the input that it is."""

    def __init__(self, number: int, kind: str = "tensor"):
        self.number, self.kind = number, kind

    @property
    def place(self) -> int:
        return self.number if self.kind == "tensor" else -2 - self.number


def _encoded(value: Any, name: str) -> Any:
    kind = type(value)
    if kind is _Tensor:
        return {value.kind: value.number}
    if kind in (tuple, list):
        return {kind.__name__: [_encoded(v, f"{name}[{i}]") for i, v in enumerate(value)]}
    if kind is dict:
        return {"dict": [[_encoded(k, f"a key of {name}"), _encoded(v, f"{name}[{k!r}]")] for k, v in value.items()]}
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is complex:
        return {"complex": [value.real, value.imag]}
    if kind in (strata.dtype, strata.device):
        return {kind.__name__: str(value).rpartition(".")[2]}
    raise TypeError(f"save: {name} is a {kind.__name__}, which a graph's text cannot hold; give it as a tensor, a number or a string")


def _dtype(name: Any) -> strata.dtype:
    found = getattr(strata, name, None) if isinstance(name, str) else None
    _expect(isinstance(found, strata.dtype), f"a dtype, got {name!r}")
    return found


def _decoded(value: Any) -> Any:
    if not isinstance(value, dict):
        _expect(value is None or isinstance(value, (bool, int, float, str)), f"a value, got {value!r:.60}")
        return value
    _expect(len(value) == 1, f"one kind of value, got {list(value)!r:.60}")
    ((kind, inner),) = value.items()
    if kind in ("tensor", "input"):
        _expect(type(inner) is int and inner >= 0, "a tensor's number")
        return _Tensor(inner, kind)
    if kind == "dtype":
        return _dtype(inner)
    if kind == "device":
        _expect(isinstance(inner, str), "a device")
        return strata.device(inner)
    _expect(isinstance(inner, list), f"a list in {kind!r:.60}")
    if kind == "complex":
        _expect(len(inner) == 2 and all(isinstance(part, (int, float)) for part in inner), "two parts of a complex number")
        return complex(*inner)
    if kind in ("tuple", "list"):
        return [_decoded(v) for v in inner] if kind == "list" else tuple(_decoded(v) for v in inner)
    _expect(kind == "dict" and all(isinstance(pair, list) and len(pair) == 2 for pair in inner), f"a known kind of value, got {kind!r:.60}")
    return {_decoded(k): _decoded(v) for k, v in inner}


def _expect(good: bool, what: str) -> None:
    if not good:
        raise RuntimeError(f"load_graph: the file is damaged: expected {what}")


def _nest(places: list[int], constants: list, spec: Any) -> Any:
    return tree_unflatten([c if p == -1 else _Tensor(p) if p >= 0 else _Tensor(-2 - p, "input") for p, c in zip(places, constants, strict=True)], spec)


def _places(nest: Any) -> tuple[list[int], list, Any, int]:
    """Of a decoded nest: the tensor of each leaf or -1, constants, the form, and how many tensors there are."""
    leaves, spec = tree_flatten(nest)
    places = [leaf.place if isinstance(leaf, _Tensor) else -1 for leaf in leaves]
    found = list(dict.fromkeys(p for p in places if p >= 0))
    _expect(found == list(range(len(found))), "tensors numbered in turn")
    return places, [None if isinstance(leaf, _Tensor) else leaf for leaf in leaves], spec, len(found)


def weights_path(path: str | os.PathLike) -> str:
    return os.fspath(path) + ".weights"


def save(graph: Graph, path: str | os.PathLike, weights: bool = True) -> None:
    """Writes the text, and the tensors beside it unless somebody else keeps them."""
    a, r = graph._arguments, graph._results
    args, kwargs = _nest(a.places, a.constants, a.spec)
    named = [*a.parameters[: len(args)], *(f"args[{i}]" for i in range(len(a.parameters), len(args)))]
    held = {
        "parameters": a.parameters,
        "arguments": [
            [_encoded(v, f"argument {n}") for n, v in zip(named, args, strict=True)],
            {k: _encoded(v, f"argument {k}") for k, v in kwargs.items()},
        ],
        "results": _encoded(_nest(r.places, r.constants, r.spec), "the result"),
        "forward_nodes": graph._nodes,
        "outputs": graph._count,
        "tangent_of": graph._tangent_of,
        "wanted": graph._wanted,
        "step": graph._step,
        "gradients": [list(pair) for pair in zip(graph._grads, graph._grad_places, strict=True)],
        "gradients_before": [list(pair) for pair in graph._grads_before],
        "default_dtype": str(graph._defaults[0]).rpartition(".")[2],
        "autocast": graph._defaults[1] and str(graph._defaults[1]).rpartition(".")[2],
    }
    lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in held.items())
    text = f"{{\n{lines}\n}}\n{graph}".encode()
    if weights:
        strata._C._save(graph.captured, weights_path(path))
    new = f"{os.fspath(path)}.new-{os.getpid()}"
    try:
        with open(new, "wb") as file:
            file.write(f"{_FIRST} {zlib.crc32(text):08x}\n".encode() + text)
        os.replace(new, path)
    except BaseException:
        if os.path.exists(new):
            os.unlink(new)
        raise


def _read(path: str | os.PathLike) -> tuple[dict[str, Any], str]:
    """What is said of the function, and the operators' text."""
    with open(path, "rb") as file:
        first, _, rest = file.read().partition(b"\n")
    words = first.decode("utf-8", "replace")
    known = words == _FIRST or words.startswith(_FIRST + " ")
    if not known and words.startswith("strata graph "):
        raise RuntimeError(f"load_graph: {os.fspath(path)} was written by another version: {words!r:.60}; save it again from there")
    _expect(known, f"{_FIRST!r} first in {os.fspath(path)}, got {words!r:.60}")
    if words != _FIRST:
        _expect(
            words == f"{_FIRST} {zlib.crc32(rest):08x}",
            f"a text whose check is {words[len(_FIRST) + 1 :]!r:.20}; if it was changed by hand, leave the check out of the first line",
        )
    try:
        text = rest.decode()
        held, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError) as error:
        raise RuntimeError(f"load_graph: the file is damaged: {error}") from None
    _expect(isinstance(held, dict) and sorted(held) == sorted(_HOLDS), f"{', '.join(_HOLDS)}; got {held!r:.60}")
    return held, text[end:]


def _read_weights(path: str) -> Any:
    try:
        return strata.load(path)
    except OSError:
        raise
    except Exception as error:  # as pickle's, of what is no file of tensors any more
        raise RuntimeError(f"load_graph: {path} is damaged: {error}") from error


def _pairs(value: Any, first: int, second: int, what: str, none: bool = False) -> list[tuple[int, Any]]:
    def below(v: Any, limit: int) -> bool:
        return type(v) is int and 0 <= v < limit

    good = isinstance(value, list) and all(
        isinstance(p, list) and len(p) == 2 and below(p[0], first) and (below(p[1], second) or (none and p[1] is None)) for p in value
    )
    _expect(good, what)
    return [tuple(p) for p in value]


def load(graph: Graph, path: str | os.PathLike, weights: dict[str, Any] | None = None) -> None:
    """Fills the graph from a text. weights: the tensors by name, which lie beside it otherwise."""
    held, text = _read(path)
    for key in ("forward_nodes", "outputs"):
        _expect(type(held[key]) is int and 0 <= held[key] < 1 << 31, f"a count as {key}")
    for key in ("tangent_of", "wanted"):
        _expect(isinstance(held[key], list) and all(type(v) is int and 0 <= v < 1 << 31 for v in held[key]), f"numbers as {key}")
    _expect(type(held["step"]) is bool, "true or false as step")
    parameters, nested = held["parameters"], held["arguments"]
    _expect(isinstance(parameters, list) and all(isinstance(name, str) for name in parameters), "names as parameters")
    _expect(isinstance(nested, list) and len(nested) == 2 and isinstance(nested[0], list) and isinstance(nested[1], dict), "arguments")
    try:
        given = tuple(_decoded(v) for v in nested[0]), {k: _decoded(v) for k, v in nested[1].items()}
        arguments, results = Arguments.__new__(Arguments), Results.__new__(Results)
        arguments.parameters = parameters
        arguments.places, arguments.constants, arguments.spec, arguments.count = _places(given)
        results.places, results.constants, results.spec, results.count = _places(_decoded(held["results"]))
    except (RecursionError, TypeError, OverflowError) as error:
        raise RuntimeError(f"load_graph: the file is damaged: {error}") from None
    arguments.finish()
    results.finish()
    _expect(results.count <= held["outputs"], "as many results as there are outputs")

    if weights is None:
        weights = _read_weights(weights_path(path))
    _expect(isinstance(weights, dict) and all(isinstance(t, strata.Tensor) for t in weights.values()), f"named tensors in {weights_path(path)}")
    dtype, autocast = _dtype(held["default_dtype"]), None if held["autocast"] is None else _dtype(held["autocast"])
    _expect(dtype.is_floating_point and autocast in (None, strata.bfloat16, strata.float16), "floating-point dtypes as default_dtype and autocast")
    graph._graph = _C._graph_parse(text, list(weights.values()))
    graph._arguments, graph._results = arguments, results
    graph._nodes, graph._count, graph._step = held["forward_nodes"], held["outputs"], held["step"]
    graph._tangent_of, graph._wanted, graph._modes = held["tangent_of"], held["wanted"], None
    names = list(graph.captured)
    if names != list(weights):
        raise RuntimeError(f"load_graph: {weights_path(path)} is of another graph: expected tensors {names!r:.200}, got {list(weights)!r:.200}")
    params = len(names) + arguments.count
    _expect(all(p >= -1 for p in arguments.places) and all(-2 - p < params for p in results.places), "results that are inputs")
    pairs = _pairs(held["gradients"], params, held["outputs"], "inputs and results as gradients")
    graph._grads, graph._grad_places = [p[0] for p in pairs], [p[1] for p in pairs]
    graph._grads_before = _pairs(held["gradients_before"], params, params, "inputs as gradients_before", none=True)
    _expect(graph._step == bool(graph._grads), "gradients of a whole step, and of none else")
    graph._defaults = dtype, autocast
    before = strata.get_default_dtype()
    try:
        strata.set_default_dtype(dtype)
        with strata.autocast("cpu", dtype=autocast or strata.bfloat16, enabled=autocast is not None):
            graph._compiled = _C._compiled_restored(graph._graph, graph._nodes, graph._count, graph._tangent_of, graph._wanted, graph._step)
    finally:
        strata.set_default_dtype(before)
    inputs = len(_C._graph_nodes(graph._graph)[0]) - len(names) - len(graph._tangent_of)
    _expect(inputs == arguments.count, f"{inputs} tensors among the arguments, got {arguments.count}")
