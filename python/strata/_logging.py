"""What the compiler tells of its work, on stderr: `set_logs`, or STRATA_LOGS=capture,graph_breaks and so on.

capture: each captured graph. passes: what each pass did, nodes before and after, microseconds. fusion: the kernels, what is
fused in each, and why not more. output_code: the kernels' text. cache: of each kernel whether it was there.
Of strata.compile: graph_breaks: where a graph ends, and why. recompiles: what a call did not meet. guards: what each entry asks.
bytecode: the Python text of each entry. sizes: each size that became a symbol, what was asked of it where, and for which sizes
an entry was made.
"""

from __future__ import annotations

from strata import _C

__all__ = ["set_logs"]


def set_logs(**logs: bool) -> None:
    """The logs that are on from now on; those that are not named are off. ValueError for names that are none.

    set_logs(fusion=True, cache=True); set_logs() turns all off.
    """
    for name, on in logs.items():
        if not isinstance(on, bool):
            raise TypeError(f"set_logs: expected {name}=True or False, got {on!r}")
    _C._set_logs(",".join(logs))  # whatever they say, they must be names
    _C._set_logs(",".join(name for name, on in logs.items() if on))
