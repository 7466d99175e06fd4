"""The library of products, which captures open on a thread of its own; each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import strata

PRODUCT = """
import os, strata, time
x, w = strata.randn(128, 256), strata.randn(256, 512)
def opened():
    strata._C._finish_ahead()
    with open("/proc/self/maps") as maps:
        return "libstrata_onednn" in maps.read()
"""
CAPTURE = PRODUCT + "g = strata.graph(lambda x: x @ w, x)\n"


def run(code: str, **env: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env={**os.environ, **env})
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module", autouse=True)
def library():
    if not strata.backends.library_report().startswith("oneDNN"):
        pytest.skip("needs the library")


@pytest.mark.parametrize("code", ["g = strata.graph(lambda x: x @ w, x)", "strata.graph(strata.nn.Conv2d(8, 16, 3), strata.randn(4, 8, 32, 32))"])  # fmt: skip
def test_a_capture_of_a_product_opens_it(code):
    assert run(PRODUCT + code + "\nprint(opened())") == "True"


@pytest.mark.parametrize("code", ["", "strata.graph(lambda x: x.sin() @ x, x[:4, :4])", "strata.graph(lambda x: x.double() @ w.double(), x)",
                                  "with strata.backends.library(False):\n    strata.graph(lambda x: x @ w, x)"])  # fmt: skip
def test_what_needs_no_library_opens_none(code):
    assert run(PRODUCT + code + "\nprint(opened())") == "False"


def test_a_process_may_end_meanwhile():
    for wait in range(12):
        assert run(CAPTURE + f"time.sleep({wait} / 400)") == ""


def test_a_process_may_fork_meanwhile():
    fork = """
time.sleep(%d / 400)
child = os.fork()
y = g.compile()(x)
assert strata.equal(y, x @ w)
if child == 0:
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    for wait in range(6):
        assert run(CAPTURE + fork % wait) == "7"
