"""What operators of a device compute, beside the CPU: `dump` records every call and runs it again, `report` ranks.

    with strata.debug.dump("d", compare="cpu", level=1):
        train_step(model, batch)
    print(strata.debug.report("d"))

Each call is run again on the CPU from copies of the same operands, taken before the call, so an error is blamed on the
operator that made it and not on those after it. Slow: every operand and result of a device is copied to the CPU. `blocking` raises a
device's errors at their lines.
"""

from __future__ import annotations

from strata import _C
from strata.utils._python_dispatch import TorchDispatchMode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["blocking", "dump", "report"]


class dump(TorchDispatchMode):
    """Records operator calls on this thread, backward's included, in the folder: calls.jsonl, one line a call.

    compare: "cpu" runs each call that a device took part in again on the CPU and notes the differences. level: 0 notes
    names, lines and shapes, 1 (the default) also numbers of each result, 2 also saves operands and results as
    `N_operator.safetensors`. Composite operators are one call. ValueError for another level or comparison.
    """

    def __init__(self, folder: Any, compare: str | None = None, level: int = 1) -> None:
        if compare not in (None, "cpu"):
            raise ValueError(f"debug.dump: compare: expected 'cpu' or None, got {compare!r}")
        if level not in (0, 1, 2):
            raise ValueError(f"debug.dump: level: expected 0, 1 or 2, got {level!r}")
        self.folder, self.compare, self.level = folder, compare, level

    def __enter__(self) -> dump:
        from strata._debug_record import Recorder

        self._recorder = Recorder(self.folder, self.compare is not None, self.level)
        super().__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self._recorder.close()

    def __torch_dispatch__(self, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        return self._recorder.call(func, args, kwargs or {})


def report(folder: Any, limit: int = 30) -> str:
    """The calls that `dump` recorded, the one that differs most from the CPU first; also as report.html in the folder.

    A call is ranked by what is wrong with it: an error or another shape on one side, then NaN where the other has none,
    then its largest difference as units in the last place of the result's largest value. FileNotFoundError where
    nothing was recorded.
    """
    from strata._debug_report import write

    return write(folder, limit)


class blocking:
    """Every operator on a device waits until it is done, so that an error is raised at its own line and not at the next
    synchronisation. `with strata.debug.blocking():` for a while, `strata.debug.blocking(True)` and `(False)` for good;
    for all threads."""

    def __init__(self, mode: bool = True) -> None:
        self._before = _C._device_blocking(bool(mode))

    def __enter__(self) -> blocking:
        return self

    def __exit__(self, *_: object) -> None:
        _C._device_blocking(self._before)
