"""What the tests of devices share: the plugin, and samples of operators on a device beside the CPU."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/ops"))

import strata  # noqa: E402
from strata import _C  # noqa: E402


def plugin(name: str) -> Path:
    """The plugin of this build, wherever the library that Python has loaded lies."""
    build = Path(os.path.realpath(_C.__file__)).parent
    return build / f"plugins/{name}/libstrata_{name}.so"


def null() -> strata.device:
    return strata.device(strata.accelerator.load(plugin("null")))


def present() -> list[strata.device]:
    """The devices of this build that are there; or the one of the plugin that STRATA_TEST_DEVICE names."""
    named = os.environ.get("STRATA_TEST_DEVICE")
    files = [Path(named)] if named else [plugin(n) for n in ("null", "opencl") if plugin(n).exists()]
    loaded = [strata.accelerator.load(f) for f in files]
    there = {name for name, _, _, count in _C._device_plugins() if count}
    return [strata.device(name) for name in loaded if name in there]
