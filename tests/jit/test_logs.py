"""STRATA_LOGS and set_logs: what is told, and names that are none."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import strata

NAMES = ["capture", "passes", "fusion", "output_code", "cache"]
PROGRAM = "import strata; strata.graph(lambda x: x.sin().exp(), strata.ones(3)).compile()(strata.ones(3))"


@pytest.fixture(autouse=True)
def silence():
    yield
    strata._logging.set_logs()


def compiled():
    return strata.graph(lambda x: x.sin().exp() + 1, strata.ones(3)).compile()(strata.ones(3))


@pytest.mark.parametrize(
    ("name", "text"),
    [("capture", "aten::sin(%0)"), ("passes", "dead: 3 -> 3 nodes"), ("fusion", "kernel over [3], reads 1"), ("output_code", "vf32"), ("cache", "kernel 0 (aten::sin")],
)
def test_each_log_by_itself(capfd, name, text):
    strata._logging.set_logs(**{name: True})
    compiled()
    told = capfd.readouterr().err
    assert text in told
    assert all(line.startswith(f"[strata {name}] ") for line in told.splitlines())
    strata._logging.set_logs(**{name: False})
    compiled()
    assert capfd.readouterr().err == ""


OF_COMPILE = {
    "graph_breaks": "Graph break: print of a tensor",
    "recompiles": "triggered by: arg0: dtype mismatch",
    "guards": "arg0 tensor",
    "bytecode": "def stretch(a0):",
}


@pytest.mark.parametrize("name", OF_COMPILE)
def test_each_log_of_compile_by_itself(capfd, name):
    def f(x):
        print("x", x.sum())
        return x + 1

    strata._logging.set_logs(**{name: True})
    compiled = strata.compile(f)
    compiled(strata.ones(3)), compiled(strata.ones(4, dtype=strata.int64))
    told = capfd.readouterr().err
    assert OF_COMPILE[name] in told
    assert all(line.startswith(f"[strata {name}] ") for line in told.splitlines())


def test_names_that_are_none():
    with pytest.raises(ValueError, match=r"set_logs: there is no log 'fusoin'; is it 'fusion'"):
        strata._logging.set_logs(fusoin=True)
    with pytest.raises(ValueError, match=r"no log 'everything'; expected some of capture, passes, fusion, output_code, cache, graph_breaks, recompiles, guards, bytecode, sizes"):
        strata._logging.set_logs(everything=False)
    with pytest.raises(TypeError, match="expected cache=True or False, or a level of logging, got 'yes'"):
        strata._logging.set_logs(cache="yes")


def told_by(logs):
    env = {**os.environ, "STRATA_LOGS": logs}
    return subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True).stderr


def test_the_environment():
    told = told_by("capture, passes,fusion,output_code,cache")
    assert {line.split("]")[0].removeprefix("[strata ") for line in told.splitlines()} == set(NAMES)
    assert told_by("") == ""
    wrong = told_by("cahce,fusion,fusion")
    assert "STRATA_LOGS: there is no log 'cahce'; is it 'cache'" in wrong and "[strata fusion]" in wrong and "[strata cache]" not in wrong
