"""strata.cache.explain: hits, and which part of a kernel's key differed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
import strata

PROGRAM = """
import strata
x = strata.ones(3)
cf = strata.graph(lambda x: {}, x).compile()
cf(x)
print(strata.cache.explain(cf))
"""


def explained(folder, text="x.sin().exp()", **env):
    env = {**os.environ, "STRATA_CACHE_DIR": str(folder), **env}
    return subprocess.run([sys.executable, "-c", PROGRAM.format(text)], env=env, capture_output=True, text=True, check=True).stdout


def test_a_miss_then_a_hit(tmp_path):
    first = explained(tmp_path)
    assert "kernel 0 (aten::sin, aten::exp): miss: compiled by " in first and "text: nothing that this compiler made was there" in first
    assert "kernel 0 (aten::sin, aten::exp): hit: loaded from disk in " in explained(tmp_path)
    explained(tmp_path, "x.sqrt() * 2")
    other = explained(tmp_path, "x.sqrt() - 2")
    assert "miss" in other and "text: none was there; the nearest differs first in line " in other and "'//   aten::sqrt, aten::mul.Scalar' there, '//   aten::sqrt, aten::sub.Scalar' wanted" in other


def test_what_of_the_key_differed(tmp_path):
    if "compiled by Clang " not in explained(tmp_path) or not shutil.which("gcc"):
        pytest.skip("needs the Clang plugin and gcc")
    told = explained(tmp_path, STRATA_COMPILER="system")
    assert "made otherwise: compiler: 'clang' there, 'system' wanted; the compiler's file: '" in told
    clang = shutil.which("clang-19")
    if clang:
        told = explained(tmp_path, STRATA_COMPILER="system", STRATA_CC="clang-19")
        assert "the compiler's file: '" in told and "clang" in told


def test_cpu_features(tmp_path):
    try:
        explained(tmp_path, "x.sqrt() * 2", STRATA_CPU="v4")
    except subprocess.CalledProcessError:
        pytest.skip("needs AVX-512")
    assert "made otherwise: CPU features: 'v4' there, 'v3' wanted" in explained(tmp_path, "x.sqrt() * 2", STRATA_CPU="v3")


def test_without_kernels(tmp_path):
    assert "no kernels: nothing is fused" in explained(tmp_path, "x.sort()[0]")
    assert "no kernels: " in explained(tmp_path, STRATA_COMPILER="none")
    assert "the cache is off" in explained(tmp_path, STRATA_CACHE_BYTES="0")


def test_within_a_process():
    x = strata.ones(3)
    one, two = (strata.graph(lambda x: x.sin().exp() * 3, x).compile() for _ in range(2))
    one(x), two(x)
    assert "hit: this process had it" in strata.cache.explain(two)


def test_damaged_files_are_passed_over(tmp_path):
    explained(tmp_path)
    for file in tmp_path.glob("*.kernel"):
        file.write_bytes(file.read_bytes()[:-5])
    assert "text: nothing that this compiler made was there" in explained(tmp_path, "x.cos().exp()")
