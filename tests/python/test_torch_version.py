"""strata.__version__ compares as PyTorch's does, and goes through PyTorch's files."""

from __future__ import annotations

import copy
import io
import pickle
from pathlib import Path

import pytest
import strata
import tomllib
from strata.torch_version import TorchVersion


def test_the_version_is_of_the_names_and_then_ones_own():
    version = strata.__version__
    assert version == f"2.13.0+strata.{strata.version.strata}" and isinstance(version, str)
    assert version >= "1.8" and version >= (2, 0) and version < "10" and not version < "2.9"
    assert version.split(".")[0] == "2" and version in {version} and f"{version}" == str(version)
    assert copy.deepcopy(version) == version == pickle.loads(pickle.dumps(version))


# Recorded from PyTorch 2.13: what is smaller than the version, equal to it, greater.
@pytest.mark.parametrize(("other", "order"), [
    ("2.13", -1), ("2.13.0", -1), ("2.9", -1), ("2.13.1", 1), ("3", 1), ("2.13.0a0", -1), ("2.13.0rc1", -1), ("2.13.0.dev20260101", -1),
    ("2.13.0.post1", 1), ("2.13.0+cpu", 0), ("v2.9", -1), ((2, 13), -1), ((2, 13, 0), -1), ((2, 9), -1), ((3,), 1), ("abc", 1), ("", -1)])
def test_order(other, order):
    version = TorchVersion("2.13.0+cpu")
    assert (version > other, version == other, version < other) == (order < 0, order == 0, order > 0)
    assert (version >= other, version != other, version <= other) == (order <= 0, order != 0, order >= 0)


def test_files():
    f = io.BytesIO()
    strata.save({"version": strata.__version__}, f)
    assert b"torch.torch_version" in f.getvalue()
    f.seek(0)
    loaded = strata.load(f, weights_only=False)["version"]
    assert type(loaded) is TorchVersion and loaded == strata.__version__


def test_the_package_says_the_same():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["version"] == strata.version.strata
