"""Compiled kernels on disk: what is there, where, and how to be rid of it.

A kernel is compiled once for all processes of a user. Its file lies in the folder that STRATA_CACHE_DIR names, else in
XDG_CACHE_HOME/strata, else in ~/.cache/strata; all together take at most STRATA_CACHE_BYTES (1 GiB unless set; 0 keeps
nothing), and what was not used for longest goes first. Files may be removed at any time. Beside kernels lie plans of graphs:
which operators went into which kernel, so that a new process does not decide it again.
"""

from __future__ import annotations

from strata import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from strata._graph import CompiledGraph

__all__ = ["clear", "compiler", "explain", "folder", "stats"]


def stats(device: object = None) -> dict[str, int | float | str]:
    """What the compile service did in this process, and what lies on disk; or where the kernels of a plugin's device came from.

    memory_hits, disk_hits, misses: texts that were there, loaded, compiled. refused: files that were damaged, removed and
    compiled again. evictions: files that this process removed for room. live: programs in memory. files: kernels
    on disk. bytes: of all files there. limit, folder: of the cache on disk. compile_ms, load_ms: milliseconds of all misses, of all loads.

    Of a device: launches: how many there were. replayed: how many of these its graphs gave. compiled, loaded: kernels whose text
    was compiled, that were on disk. modules: texts that were compiled, of one kernel or many. refused: modules that the device did
    not take. kept: whether its kernels are kept on disk.
    """
    return _C._cache_stats() if device is None else _C._device_kernels(device)


def clear() -> None:
    """Removes all compiled kernels and plans from the folder. Programs in use stay as they are."""
    _C._cache_clear()


def folder() -> str:
    """Where compiled kernels are kept; empty where there is no such place."""
    return _C._cache_stats()["folder"]


def compiler() -> str:
    """What compiles kernels in this process ("Clang 19.1.7, in the process", "/usr/bin/gcc"), or why nothing does."""
    return _C._compiler_report()


def explain(compiled: CompiledGraph | Callable) -> str:
    """Of each kernel of a compiled graph, or of the graphs that a function of strata.compile has so far: whether the cache had it,
    and if not, what of its key differed.

    A key is the kernel's text, the compiler and its version, its flags and the CPU's features. Where the same text was there,
    made otherwise, what differs is named; else the first line in which the text differs from the nearest that is there now.
    TypeError for what is neither.
    """
    from strata._graph import CompiledGraph

    if isinstance(compiled, CompiledGraph):
        return compiled._text("cache")
    own = getattr(compiled, "__dict__", {})
    owner = own.get("_strata_compiled")
    if owner is None and not isinstance(own.get("_compiled_forward"), dict):
        raise TypeError(f"explain: expected what strata.compile or a graph's compile() gave, got {type(compiled).__name__}")
    owners = [owner] if owner is not None else [f._strata_compiled for f in own["_compiled_forward"].values()]
    from strata._bytecode.explain import ExplainOutput

    graphs = ExplainOutput(owners).graphs
    if not graphs:
        return "# nothing is compiled yet: call it before"
    fast = any(o.options.numerics == "fast" for o in owners)
    texts = []
    for i, graph in enumerate(graphs):
        handle = _C._compiled_with(graph._compiled, False, True) if fast else graph._compiled
        texts += [f"# graph {i}, {name}\n{text}" for name, text in _C._compiled_text(handle, "cache")]
    return "\n".join(texts)
