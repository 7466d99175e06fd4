"""Weights from the network, under an older name of strata.hub."""

from __future__ import annotations

import sys

from strata import _lazy
from strata.hub import load_state_dict_from_url as load_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["load_url"]


class _Progress:
    """How far a loop is, on stderr: what there is of a progress bar where the package tqdm is not installed."""

    def __init__(self, total: float | None = None, disable: bool = False, unit: str | None = None, *args: Any, **kwargs: Any) -> None:
        self.total, self.disable, self.n = total, disable, 0

    def update(self, n: float = 1) -> None:
        """n more are done."""
        if not self.disable:
            self.n += n
            print(f"\r{self.n:.1f} bytes" if self.total is None else f"\r{100 * self.n / self.total:.1f}%", end="", file=sys.stderr, flush=True)

    def set_description(self, *args: Any, **kwargs: Any) -> None:
        """Shown by tqdm alone."""

    def write(self, text: str) -> None:
        """A line on stderr."""
        print(text, file=sys.stderr)

    def close(self) -> None:
        """Nothing more is told."""
        self.disable = True

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if not self.disable:
            print(file=sys.stderr)


def _tqdm(name: str) -> Any:
    if name != "tqdm":
        raise KeyError(name)
    try:
        from tqdm import tqdm
    except ImportError:
        return _Progress
    return tqdm


__getattr__, __dir__ = _lazy.of(globals(), otherwise=_tqdm)
