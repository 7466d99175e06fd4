"""Memory that cannot be had: an error that can be caught, after which everything works as before. Each case runs in a child
process, since what it guards against ends one."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import strata

TESTS = Path(__file__).resolve().parent.parent
SHIM = next(Path(strata._C.__file__).resolve().parent.glob("tests/libfailing_memory.so"), None)


def in_child(code: str, **environment: str) -> str:
    """What a program prints; it must end well."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONFAULTHANDLER": "1", **environment})
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def test_a_caught_failure_leaves_the_process_sound():
    out = in_child("""
        import strata as torch
        caught = 0
        makers = [lambda: torch.UntypedStorage(2**44), lambda: torch.empty(2**42), lambda: torch.ones(2**20, 2**22),
                  lambda: torch.UntypedStorage(8).resize_(2**45), lambda: torch.zeros(1).expand(2**43).clone(),
                  lambda: torch.Generator("meta"), lambda: torch.Generator("no_such_device"),
                  lambda: torch.empty(3).resize_(2**43)]
        for make in makers * 20:
            try:
                make()
            except RuntimeError:
                caught += 1
            a = [torch.ones(2, 3).to(torch.float64) for _ in range(10)]
            assert all(t.sum().item() == 6 for t in a)
        print(caught)
        """)
    assert int(out) >= 120


def test_an_array_that_cannot_be_taken_over_is_given_back_once():
    out = in_child("""
        import ctypes as c, strata as torch

        class Array(c.Structure):
            _fields_ = [("data", c.c_void_p), ("device", c.c_int * 2), ("ndim", c.c_int), ("code", c.c_uint8),
                        ("bits", c.c_uint8), ("lanes", c.c_uint16), ("shape", c.POINTER(c.c_int64)),
                        ("strides", c.c_void_p), ("byte_offset", c.c_uint64)]

        class Managed(c.Structure):
            pass

        Deleter = c.CFUNCTYPE(None, c.POINTER(Managed))
        Managed._fields_ = [("array", Array), ("context", c.c_void_p), ("deleter", Deleter)]
        deleted = []
        deleter = Deleter(lambda m: deleted.append(1))
        make = c.pythonapi.PyCapsule_New
        make.restype, make.argtypes = c.py_object, [c.c_void_p, c.c_char_p, c.c_void_p]
        memory = c.create_string_buffer(64)
        for ndim in (1, 64, 65, 200):
            shape = (c.c_int64 * ndim)(*[1] * ndim)
            m = Managed(Array(c.addressof(memory), (c.c_int * 2)(1, 0), ndim, 2, 32, 1, shape, None, 0), None, deleter)
            capsule = make(c.addressof(m), b"dltensor", None)
            try:
                torch.from_dlpack(capsule)
                assert ndim <= 64
            except RuntimeError:
                assert ndim > 64
            try:
                torch.from_dlpack(capsule)
                raise SystemExit("consumed twice")
            except RuntimeError as error:
                assert "consumed already" in str(error), error
        print(len(deleted))
        """)
    assert int(out) == 4


# Fails every allocation of operators' calls in turn: the error can be caught, and what follows is as if nothing had been.
FAILING = """
    import ctypes, sys
    sys.path.insert(0, sys.argv[1] + "/ops")
    from table import ENTRIES, calls, operator, strata, outputs, bits

    shim = ctypes.CDLL(None)
    shim.fail_after.argtypes = [ctypes.c_long, ctypes.c_long]
    shim.allocations.restype = shim.failures_left.restype = ctypes.c_long
    held = []

    def drain():
        # Small objects come from lists of freed ones; with these empty each of them is an allocation.
        for size in (1, 40, 200, 900):
            for _ in range(3000):
                before = shim.allocations()
                held.append(strata.empty(size))
                if shim.allocations() - before >= 3:
                    break

    def call(entry):
        args, kwargs = next(calls(entry, "float32"))
        return args, kwargs

    errors = calls_made = 0
    for entry in ENTRIES:
        op = operator(entry.schema)
        try:
            args, kwargs = call(entry)
            strata.manual_seed(1)
            expected = [bits(a) for a in outputs(op(*args, **kwargs))]
        except Exception:
            continue
        print(entry.schema.full, flush=True)
        for many in (2, 1000):
            for n in range(40):
                args, kwargs = call(entry)
                for a in args:
                    if isinstance(a, strata.Tensor) and a.is_floating_point() and n % 2:
                        a.requires_grad_()
                drain()
                strata.manual_seed(1)
                shim.fail_after(n, many)
                try:
                    op(*args, **kwargs)
                except (RuntimeError, MemoryError, NotImplementedError) as error:
                    shim.fail_after(-1, 0)
                    errors += 1
                    del error
                left = shim.failures_left()
                shim.fail_after(-1, 0)
                assert strata.ones(2, 3).to(strata.float64).sum().item() == 6
                args, kwargs = call(entry)
                strata.manual_seed(1)
                assert [bits(a) for a in outputs(op(*args, **kwargs))] == expected, (entry.schema.full, many, n)
                calls_made += 1
                if left == many:
                    break
    print("errors", errors, "calls", calls_made)
    assert errors > 5 * len(ENTRIES)
"""


@pytest.mark.skipif(SHIM is None, reason="sanitizers have an allocator of their own")
def test_every_allocation_may_fail():
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(FAILING), str(TESTS)], capture_output=True, text=True, timeout=900,
                          env={**os.environ, "LD_PRELOAD": str(SHIM), "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"})
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout[-500:]}\n{done.stderr[-4000:]}"


def test_a_view_of_nothing_points_nowhere():
    x = strata.empty([5, 2, 0], dtype=strata.complex128)[1:]
    assert x.storage_offset() > 0 or x.stride(0) == 0
    assert x.data_ptr() == 0
    assert strata.sinh(x, out=strata.empty(4, 2, 0, dtype=strata.complex128)).shape == (4, 2, 0)
    assert strata.empty([5, 0], dtype=strata.int64)[1:].unique_consecutive().shape == (0,)


def test_threads_that_end_leave_no_memory():
    import threading

    def resident() -> int:
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * 4096

    def work() -> None:
        kept = [strata.ones(n, requires_grad=True).sin() for n in (8, 60, 250, 1000) for _ in range(900)]
        del kept

    def rounds(count: int) -> None:
        for _ in range(count):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()

    rounds(20)
    before = resident()
    rounds(100)
    assert resident() - before < 20 << 20
