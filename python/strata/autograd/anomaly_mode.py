"""Anomaly mode: backward errors show the forward call, NaN raises where it is born."""

from __future__ import annotations

from strata import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class set_detect_anomaly:
    """Switches anomaly mode on or off, at once or for a `with` block.

    While it is on, each recorded operator keeps the Python stack of its call. An error in backward shows the stack of
    the forward call that it belongs to. With check_nan, a node whose gradients have NaN raises RuntimeError; so does
    backward from a tensor that holds NaN already, naming the first operator of this thread whose result had one.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.before = _C.is_anomaly_enabled(), _C.is_anomaly_check_nan_enabled()
        _C.set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        _C.set_anomaly_enabled(*self.before)


class detect_anomaly:
    """`with detect_anomaly():` is `with set_detect_anomaly(True):` with a warning that it slows programs down."""

    def __init__(self, check_nan: bool = True) -> None:
        import warnings

        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self.before = _C.is_anomaly_enabled(), _C.is_anomaly_check_nan_enabled()
        _C.set_anomaly_enabled(True, self.check_nan)

    def __exit__(self, *exception: object) -> None:
        _C.set_anomaly_enabled(*self.before)
