"""Every operator over an index space gives the same bits when its kernels are portable C99, compiled by another compiler
without a header of ours. A sample of the families; all of them with STRATA_TEST_ALL=1."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess

from kit import flattened
from strata import _C
from table import ENTRIES, bits, calls, operator, outputs, pytest, strata

compiler = shutil.which("gcc")
DTYPES = ("float32", "bfloat16", "float64", "int64", "bool", "complex64")
MOVED = ("uint8", "uint16", "uint32", "uint64", "complex128")  # widths
TEXTS = [e for e in ENTRIES if e.kind == "space" or (e.by_hand and not e.filled)]  # C++ beside a plan stands back, too
FAMILIES = sorted({e.family for e in TEXTS})
SHARED = ("scatter", "copy", "create")  # kernels that operators of any family run
CHOSEN = FAMILIES if os.environ.get("STRATA_TEST_ALL") else (os.environ.get("STRATA_TEST_FAMILIES") or "scan scatter scatter_view").split()


@pytest.fixture(scope="module")
def portable(tmp_path_factory):
    """Addresses of the tables of the chosen families."""
    if compiler is None:
        pytest.skip("needs gcc")
    folder, made, running = tmp_path_factory.mktemp("portable"), [], []
    wanted = tuple(getattr(strata, d) for d in (*DTYPES, *MOVED))
    for family in sorted({*CHOSEN, *SHARED}):
        text = _C._space_source(family, wanted)
        if not text:
            continue
        (folder / f"{family}.c").write_text(text)
        running.append((family, subprocess.Popen([compiler, "-std=c99", "-O2", "-ffp-contract=off", "-fPIC", "-shared", "-w", "-o",
                                                  f"{family}.so", f"{family}.c", "-lm"], cwd=folder)))
        if len(running) % 2 == 0:
            running[-2][1].wait()
    for family, process in running:
        assert process.wait() == 0, family
        library = ctypes.CDLL(str(folder / f"{family}.so"))
        made.append((library, ctypes.addressof(ctypes.c_char.in_dll(library, f"portable_{family}"))))
    yield tuple(address for _, address in made)
    _C._use_spaces(())


def result(entry, args, kwargs):
    try:
        made = operator(entry.schema)(*args, **kwargs)
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        return type(error).__name__
    return [bits(a) for a in outputs(made)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("entry", [e for e in TEXTS if e.family in CHOSEN], ids=lambda e: e.schema.full)
def test_portable_kernels_give_the_same_bits(entry, dtype, portable):
    ran = 0
    for args, kwargs in calls(entry, dtype):
        if any(isinstance(a, strata.Tensor) and a.is_meta for a in flattened([*args, *kwargs.values()])):
            continue
        want = result(entry, args, kwargs)
        _C._use_spaces(portable)
        try:
            got = result(entry, args, kwargs)
        finally:
            _C._use_spaces(())
        assert got == want, (args, kwargs)
        ran += 1
    if not ran:
        pytest.skip("no sample of this dtype")
