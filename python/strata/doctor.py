"""`strata doctor`, or `python -m strata.doctor`: what was found on this machine, what is missing, and the line that mends it.

Ends with 1 where something that was asked for does not work, such as a plugin that is named and does not load. A library
that may be absent is missing, which is no fault.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import strata
from strata import _C, _plugins

__all__ = ["Finding", "findings", "main", "report"]

MEND = "; to mend it: "


class Finding(NamedTuple):
    """One thing that was looked for."""

    what: str
    state: str  #: "ok", "missing" or "fault"
    text: str
    mend: str = ""  #: the line that mends it


def _processor() -> Finding:
    threads, processors = strata.get_num_threads(), len(os.sched_getaffinity(0))
    text = f"kernels for {_C.cpu_capability()!r}, {threads} threads on {processors} processors"
    forced = os.environ.get("STRATA_CPU")
    return Finding("processor", "ok", text + (f"; STRATA_CPU={forced} chose the kernels" if forced else ""))


def _compiler() -> Finding:
    said = strata.cache.compiler()
    if "in the process" in said or os.path.exists(said.split(" ")[0]):
        return Finding("compiler of kernels", "ok", said)
    return Finding(
        "compiler of kernels", "missing", f"{said}; compiled graphs and devices need one", "apt-get install clang-19"
    )


def _cache() -> Finding:
    stats = strata.cache.stats()
    folder = str(stats["folder"])
    if not folder:
        lacking = "no folder: every process compiles anew"
        return Finding("cache of kernels", "missing", lacking, "export STRATA_CACHE_DIR=$HOME/.cache/strata")
    above = next(p for p in [Path(folder), *Path(folder).parents] if p.exists())
    if not os.access(above, os.W_OK):
        lacking = f"{folder} can't be written"
        return Finding("cache of kernels", "fault", lacking, "export STRATA_CACHE_DIR=$HOME/.cache/strata")
    size = f"{int(stats['bytes']) / 2**20:.1f} of {int(stats['limit']) / 2**20:.0f} MiB"
    return Finding("cache of kernels", "ok", f"{folder}: {stats['files']} files, {size}")


def _library(what: str, said: str, name: str, without: str, package: str) -> Finding:
    if said.startswith(name):
        return Finding(what, "ok", said)
    return Finding(what, "missing", f"{said}; {without}", f"apt-get install {package}")


def _named() -> list[tuple[str, str]]:
    """Files of plugins, and who names each."""
    found = [(f, "STRATA_PLUGINS") for f in os.environ.get("STRATA_PLUGINS", "").split(":") if f]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found += [(f, "an installed package") for f in _plugins.files()]
    found += [("", str(w.message)) for w in caught]
    loaded = [(path, "this process") for _, _, path, _ in _C._device_plugins()]
    beside = [(str(f), "the package's folder") for f in sorted(Path(_C.__file__).parent.glob("libstrata_*.so"))]
    known = {os.path.realpath(path) for path, _ in found if path}
    for path, by in loaded + [(p, by) for p, by in beside if b"strata_device_v" in Path(p).read_bytes()]:
        if os.path.realpath(path) not in known:
            known.add(os.path.realpath(path))
            found.append((path, by))
    return found


def _plugin(path: str, by: str) -> Finding:
    if not path:
        return Finding("device", "fault", by, "pip install --force-reinstall that package")
    if not os.path.exists(path):
        mend = "unset STRATA_PLUGINS" if by == "STRATA_PLUGINS" else "pip install --force-reinstall that package"
        return Finding("device", "fault", f"{path}, named by {by}, is not there", mend)
    try:
        name = strata.accelerator.load(path)
    except RuntimeError as error:
        state = "missing" if by == "the package's folder" else "fault"
        absent = re.search(r"(lib[\w.+-]+): cannot open shared object", str(error))
        mend = f"apt-get install the package with {absent[1]}" if absent else "build the plugin against this version's headers"
        return Finding("device", state, f"{path}, of {by}: {error}", mend)
    version, count = next((v, count) for n, v, _, count in _C._device_plugins() if n == name)
    if count == 0:
        why, _, mend = _C._device_reason(name).partition(MEND)
        return Finding(f"device {name}", "missing", f"the plugin {version} of {by} finds none: {why}", mend)
    try:
        assert (strata.ones(3, device=name) + 1).tolist() == [2.0] * 3
    except (RuntimeError, NotImplementedError) as error:
        why, _, mend = str(error).partition(MEND)
        return Finding(f"device {name}", "fault", f"{count} by the plugin {version} ({path}), but 1 + 1 fails: {why}", mend)
    parts = _C._device_parts(name)
    said = "; ".join(
        f"{word} {', '.join(p for p, there in parts.items() if there == have)}"
        for word, have in (("with", True), ("without", False))
        if have in parts.values()
    )
    return Finding(f"device {name}", "ok", f"{count} by the plugin {version} ({path}, of {by}); {said}")


def findings() -> list[Finding]:
    """Everything that is looked for, in the order of the report. Loads the plugins that are found."""
    said, lapack, fourier = strata.backends.library_report(), strata.backends.lapack_report(), strata.backends.fourier_report()
    return [
        Finding("strata", "ok", f"{strata.version.strata} ({Path(_C.__file__).resolve()}), Python {sys.version.split()[0]}"),
        _processor(),
        _compiler(),
        _cache(),
        _library("products", said, "oneDNN", "generated kernels take its place", "libdnnl3"),
        _library("linear algebra", lapack, "OpenBLAS", "decompositions of matrices raise", "libopenblas0-pthread"),
        _library("Fourier transforms", fourier, "FFTW", "generated kernels take its place", "libfftw3-dev, then build again"),
        *(_plugin(path, by) for path, by in _named()),
    ]


def report(found: list[Finding] | None = None) -> str:
    """The findings as text."""
    found = findings() if found is None else found
    wide = max(len(f.what) for f in found)
    lines = []
    for f in found:
        lines.append(f"{f.state:7}  {f.what:{wide}}  {f.text}")
        if f.mend and f.state != "ok":
            lines.append(f"{'':7}  {'':{wide}}  to mend it: {f.mend}")
    return "\n".join(lines)


def main() -> int:
    """Prints the report; 1 where there is a fault."""
    found = findings()
    print(report(found))
    return int(any(f.state == "fault" for f in found))


if __name__ == "__main__":
    sys.exit(main())
