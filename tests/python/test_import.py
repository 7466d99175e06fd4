"""What importing the package needs and does, each in a process of its own."""

import subprocess
import sys

import pytest


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("other", ["numpy", "sklearn.linear_model, scipy.sparse"])
def test_other_libraries_may_come_first(other):
    """Thread-local data of the core must fit what others leave of the loader's static room."""
    assert run(f"import {other}, strata; print((strata.ones(2) + 1).tolist())") == "[2.0, 2.0]\n"


def test_little_static_room_is_needed():
    """The core's thread-local data stays far below the 1,664 bytes that glibc keeps for all libraries loaded late."""
    text = run(
        "import struct, strata, os\n"
        "path = os.path.join(os.path.dirname(strata.__file__), 'libstrata.so')\n"
        "data = open(path, 'rb').read(4096)\n"
        "at, size, count = struct.unpack_from('<Q', data, 32)[0], *struct.unpack_from('<HH', data, 54)\n"
        "print(sum(struct.unpack_from('<Q', data, at + i * size + 40)[0] for i in range(count)\n"
        "          if struct.unpack_from('<I', data, at + i * size)[0] == 7))\n"
    )
    assert 0 < int(text) <= 800


def test_import_loads_little():
    names = run("import sys; before = {*sys.modules}; import strata; print(' '.join({*sys.modules} - before))").split()
    heavy = {"numpy", "strata.nn", "strata.optim", "inspect", "dataclasses", "json", "re", "enum", "functools", "collections",
             "importlib", "typing", "types", "warnings"}
    assert not heavy & set(names)


def test_the_core_needs_little():
    """No library beyond C, C++, mathematics and OpenMP: the others are plugins, opened when first used."""
    core = run("import os, strata; print(os.path.join(os.path.dirname(strata.__file__), 'libstrata.so'))").strip()
    text = subprocess.run(["readelf", "-d", core], capture_output=True, text=True, check=True).stdout
    needed = {line.split("[")[1].split(".so")[0] for line in text.splitlines() if "(NEEDED)" in line}
    assert "libc" in needed
    assert needed <= {"libc", "libm", "libstdc++", "libgcc_s", "libomp", "libgomp", "ld-linux-x86-64", "libdl"}
