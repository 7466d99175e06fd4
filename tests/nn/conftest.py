"""What tests of programs in C++ share: an installed prefix, and building a folder against it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from strata import _C

BUILD = Path(os.path.realpath(_C.__file__)).parent


def run_program(*words: object, **more: object) -> str:
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, f"{words}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="session")
def run() -> Callable[..., str]:
    """Runs a program and gives what it printed."""
    return run_program


@pytest.fixture(scope="session")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("cmake") is None:
        pytest.skip("needs cmake")
    if not (BUILD / "CMakeCache.txt").exists():
        pytest.skip("needs a build folder to install from")
    there = tmp_path_factory.mktemp("prefix")
    run_program("cmake", "--install", BUILD, "--component", "cpp", "--prefix", there, "--strip")
    return there


@pytest.fixture(scope="session")
def built(prefix: Path) -> Callable[..., Path]:
    """Builds a target of a folder of sources and gives its path."""

    def build(source: Path, folder: Path, target: str, kind: str = "Release") -> Path:
        run_program("cmake", "-S", source, "-B", folder, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_BUILD_TYPE={kind}")
        run_program("cmake", "--build", folder, "-j2")
        return folder / target

    return build
