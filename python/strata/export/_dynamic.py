"""export with dynamic_shapes."""

from __future__ import annotations

import re

import strata
from strata import _C
from strata.utils._pytree import tree_flatten, tree_unflatten

from . import dynamic_shapes
from ._capture import Captured, capture
from ._symbolic import Sizing, _Patched, differing, for_people, marked, points, shown, written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _children(value: Any) -> list[tuple[Any, Any]] | None:
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, (list, tuple)):
        return list(enumerate(value))
    leaves, spec = tree_flatten(value)
    return None if spec.is_leaf() else list(zip(spec.context, leaves, strict=False))


def _resized(args: tuple, kwargs: dict, entries: list[dict], point: dict[str, int]) -> tuple[tuple, dict]:
    """Inputs of these sizes."""
    leaves, spec = tree_flatten((args, kwargs))
    given = iter(entries)
    made = []
    for leaf in leaves:
        own = next(given) if isinstance(leaf, strata.Tensor) else None
        if own:
            sizes = [own[d].at(point[own[d].symbol.name]) if d in own else n for d, n in enumerate(leaf.shape)]
            like = strata.empty(sizes, dtype=leaf.dtype, device=leaf.device)
            leaf = like.requires_grad_() if leaf.requires_grad else like
        made.append(leaf)
    return tree_unflatten(made, spec)


def _violated(name: str, why: str) -> ValueError:
    return ValueError(f"Constraints violated ({name})! {why}")


def capture_sizes(mod: strata.nn.Module, args: tuple, kwargs: dict[str, Any], spec: Any, names: list[str]) -> Captured:
    """A capture whose graph is a program for the sizes that the spec names."""
    entries = dynamic_shapes.read(spec, names, [*args, *kwargs.values()], _children)
    symbols = {e.symbol.name: e.symbol for own in entries for e in own.values()}
    automatic = [s for s in symbols.values() if s.kind == "AUTO"]
    try:
        return _with_sizes(mod, args, kwargs, entries)
    except ValueError:
        if not automatic:
            raise
        left = [{d: e for d, e in own.items() if e.symbol.kind != "AUTO"} for own in entries]
        return _with_sizes(mod, args, kwargs, left)


def _with_sizes(mod: strata.nn.Module, args: tuple, kwargs: dict, entries: list[dict]) -> Captured:
    symbols = list({e.symbol.name: e.symbol for own in entries for e in own.values()}.values())
    if not symbols:
        found = capture(mod, args, kwargs)
        found.entries, found.ranges = entries, {}
        return found
    name = ", ".join(s.name for s in symbols)
    plain = capture(mod, args, kwargs)
    tensors = [path for path, leaf in zip(plain.paths, plain.leaves, strict=True) if isinstance(leaf, strata.Tensor)]
    text = _C._graph_text(plain.graph)

    def captured(point: dict[str, int]) -> Captured:
        return capture(mod, *_resized(args, kwargs, entries, point))

    for again in (False, True):
        others, tries = [], points(symbols)
        try:
            for point in tries:
                others.append(captured(point))
            break
        except Exception as error:
            if again or not _raise_lows(symbols, captured):
                raise _violated(name, f"With {shown(point)}, within {_ranges(symbols)}, forward raises {type(error).__name__}: {error}") from error
    varying = differing(text, _C._graph_text(others[0].graph))
    for other in others[1:] if varying is not None else ():  # a little larger input may have as many windows
        for value, varies in (differing(text, _C._graph_text(other.graph)) or {}).items():
            varying.setdefault(value, set()).update(varies)
    sizing = Sizing(entries, tensors, varying)
    sizing.outside = {id(t) for t in _C._graph_captured(plain.graph)}
    found = capture(mod, args, kwargs, lambda inputs: _Patched(sizing, inputs))
    program = marked(written(_C._graph_text(found.graph), sizing, _header(entries, tensors, symbols)), varying or {})
    if varying is None:
        _blame(sizing, program, found, args, kwargs, entries, tries, name, tensors)
    found.graph = _C._graph_parse(program, _C._graph_captured(found.graph))
    for point, other in zip(tries, others, strict=True):
        given = [t for t in tree_flatten(_resized(args, kwargs, entries, point))[0] if isinstance(t, strata.Tensor)]
        try:
            now = _C._graph_instantiate(found.graph, given)
        except ValueError as error:
            raise _violated(name, f"With {shown(point)}, within {_ranges(symbols)}: {for_people(str(error), tensors)}") from None
        except RuntimeError as error:  # gradients that forward takes keep the sizes that they had
            raise _violated(name, f"With {shown(point)}, within {_ranges(symbols)}, the program of the example's sizes raises: {error}") from None
        for i, ((kind, value), (_, number)) in enumerate(zip(found.results, other.results, strict=True)):
            if kind == "constant" and value != number and value == value or (kind == "size" and _answer(f"{value} == {number}", given) is False):
                said = for_people(str(value), tensors)
                raise _violated(name, f"With {shown(point)} result {i} is {number}, where the exported program has {said}; a size was used as a number")
        direct = _C._graph_instantiate(other.graph)
        if not _same_results(now, direct, given):
            _compare(_C._graph_text(now), _C._graph_text(direct), point, name)
    found.entries, found.ranges = entries, {s.name: s for s in symbols}
    return found


def _raise_lows(symbols: list, captured: Callable[[dict[str, int]], Captured]) -> bool:
    """The least sizes that forward takes, for ranges that nobody gave; whether one is another than before."""

    def works(symbol: Any, size: int) -> bool:
        try:
            captured({s.name: size if s is symbol else s.value for s in symbols})
        except Exception:
            return False
        return True

    changed = False
    for s in symbols:
        if s.kind not in {"AUTO", "DYNAMIC"} or s.low == s.value or works(s, s.low):
            continue
        too_small, s.low = s.low, s.value
        while too_small + 1 < s.low:
            middle = (too_small + s.low) // 2
            if works(s, middle):
                s.low = middle
            else:
                too_small = middle
        changed = True
    return changed


def _ranges(symbols: list) -> str:
    return ", ".join(f"{s.name} in [{s.low}, {'inf' if s.high is None else s.high}]" for s in symbols)


def _plain(text: str) -> list[str]:
    return [line.partition("  # ")[0] for line in text.splitlines()]


def _same_results(now: Any, direct: Any, given: list) -> bool:
    """Whether two graphs are one, or give and write the same, bit for bit, where Python indexes a whole dim by another operator."""
    left, right = _C._graph_text(now), _C._graph_text(direct)
    if _plain(left) == _plain(right):
        return True
    results = []
    state = strata.get_rng_state()
    filled = [strata.randn(t.shape).to(t.dtype) if t.is_floating_point() else strata.zeros_like(t) for t in given]
    try:
        for text, graph in ((left, now), (right, direct)):
            held = [t.detach().clone() for t in _C._graph_captured(graph)]
            inputs = [t.clone() for t in filled]
            strata.set_rng_state(state)
            made = _C._graph_run(_C._graph_parse(text, held), inputs)
            results.append([*made, *held, *inputs])
    except Exception:
        return False
    finally:
        strata.set_rng_state(state)
    a, b = results
    return len(a) == len(b) and all(x.dtype == y.dtype and strata.equal(x, y) for x, y in zip(a, b))


def _compare(now: str, direct: str, point: dict[str, int], name: str) -> None:
    for a, b, line in zip(_plain(now), _plain(direct), direct.splitlines()):
        if a != b:
            raise _violated(
                name, f"With {shown(point)} the module is another program than the exported one: {b.strip()} where that has {a.strip()} "
                f"({line.partition('  # ')[2]}); a size was used as a number there",
            )  # fmt: skip
    if len(now.splitlines()) != len(direct.splitlines()):
        raise _violated(name, f"With {shown(point)} the module has other operators than the exported program; a size was used as a number")


def _blame(sizing: Any, program: str, found: Any, args: tuple, kwargs: dict, entries: list, tries: list, name: str, tensors: list) -> None:
    """The module takes other ways for other sizes: says at which line it asked."""
    for point in tries:
        given = [t for t in tree_flatten(_resized(args, kwargs, entries, point))[0] if isinstance(t, strata.Tensor)]
        for _, condition, place in sizing.checks:
            holds = _answer(condition, given)
            if holds is False:
                raise _violated(
                    name, f"You marked {name} as dynamic but your code specialized it: for {shown(point)}, {for_people(condition, tensors)} does not hold, which "
                    f"{place} relies on",
                )  # fmt: skip
    raise _violated(name, f"With {shown(tries[0])} the module has other operators than for the example, and where it asked for a size is not known")


def _answer(condition: str, given: list) -> bool | None:
    """Whether a condition of inputs' sizes holds; None where it names other values."""

    def size(match: re.Match) -> str:
        value, dim = int(match.group(1)), int(match.group(2))
        return str(given[value].shape[dim]) if value < len(given) else "None"

    text = re.sub(r"%(\d+)\.size\((\d+)\)", size, condition)
    if "None" in text or not re.fullmatch(r"[\d\s()+\-*/%<>=!]+", text):
        return None
    return bool(eval(text))  # noqa: S307  numbers and signs alone


def _header(entries: list[dict], tensors: list[str], symbols: list) -> list[str]:
    """Checks of the inputs' sizes."""
    first: dict[str, tuple[int, int, Any]] = {}
    lines = []
    for i, own in enumerate(entries):
        for d, e in own.items():
            here = f"%{i}.size({d})"
            said = f"{tensors[i]}.size({d})"
            known = first.get(e.symbol.name)
            if known is None:
                first[e.symbol.name] = i, d, e
                if e.factor != 1:
                    lines.append(f"  check ({here} - {e.offset}) % {e.factor} == 0  # {said} is {e.factor}*{e.symbol.name} + {e.offset}")
                low, high = e.symbol.low, e.symbol.high
                lines.append(f"  check {here} >= {e.at(low)}  # {said}: {e.symbol.name} in {e.symbol!r}")
                if high is not None:
                    lines.append(f"  check {here} <= {e.at(high)}  # {said}: {e.symbol.name} in {e.symbol!r}")
            else:
                j, k, f = known
                lines.append(f"  check ({here} - {e.offset}) * {f.factor} == (%{j}.size({k}) - {f.offset}) * {e.factor}  # {said} and {tensors[j]}.size({k}) share {e.symbol.name}")
    del symbols
    return lines
