"""`./run bench start`: milliseconds of a whole program that links the core alone, makes a tensor and ends, beside one that is empty;
and the size of the core as it is installed, stripped. Programs alternate; each figure is a median and holds the making of a process."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from pathlib import Path

MILLISECONDS, BYTES = 10, 16_000_000
CMAKE = """cmake_minimum_required(VERSION 3.25)
project(start LANGUAGES CXX)
find_package(Strata REQUIRED)
add_executable(core core.cpp)
target_link_libraries(core PRIVATE Strata::core)
add_executable(empty empty.cpp)
"""
CORE = """#include <strata/tensors.h>
int main() { return strata::ones({2}).numel() == 2 ? 0 : 1; }
"""


def milliseconds(program: Path) -> float:
    begin = time.perf_counter()
    subprocess.run([program], check=True)
    return (time.perf_counter() - begin) * 1e3


def main(build: Path, blocks: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        here, prefix = Path(folder), Path(folder) / "prefix"
        for name, text in {"CMakeLists.txt": CMAKE, "core.cpp": CORE, "empty.cpp": "int main() {}\n"}.items():
            (here / name).write_text(text)
        for command in (
            ["cmake", "--install", build, "--component", "cpp", "--prefix", prefix, "--strip"],
            ["cmake", "-S", here, "-B", here / "build", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release"],
            ["cmake", "--build", here / "build"],
        ):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        size = next(p for p in prefix.rglob("libstrata.so*") if not p.is_symlink()).stat().st_size
        rows = [(milliseconds(here / "build/core"), milliseconds(here / "build/empty")) for _ in range(blocks + 1)][1:]
    core, empty = (statistics.median(times) for times in zip(*rows, strict=True))
    print(f"a program of the core, start to end {core:8.2f} ms, goal {MILLISECONDS} ms, an empty one {empty:.2f} ms: {'met' if core < MILLISECONDS else 'MISSED'}")
    print(f"the core, stripped {size:>15,} bytes, goal {BYTES:,}: {'met' if size < BYTES else 'MISSED'}")
    return int(core >= MILLISECONDS or size >= BYTES)
