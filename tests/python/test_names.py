"""Names that are loaded on first use: what dir() shows can be had, and a name that nobody has is refused in one form."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import pytest
import strata

PUBLIC = ["strata", *sorted(m.name for m in pkgutil.walk_packages(strata.__path__, "strata.")
                            if not any(part.startswith(("_", "lib")) and part != "library" for part in m.name.split(".")))]


@pytest.mark.parametrize("name", PUBLIC)
def test_what_dir_shows_is_there(name):
    module = importlib.import_module(name)
    shown = dir(module)
    assert shown == sorted(set(shown)) and set(getattr(module, "__all__", ())) <= set(shown)
    for attribute in shown:
        getattr(module, attribute)


@pytest.mark.parametrize("name", PUBLIC)
@pytest.mark.parametrize("attribute", ["no_such_name", "__no_such_name__"])
def test_other_names_are_refused(name, attribute):
    if name == "strata.ops" and attribute == "no_such_name":
        assert dir(strata.ops.no_such_name) == []  # operators may be defined there yet
        return
    if name == "strata.classes" and attribute == "no_such_name":
        with pytest.raises(RuntimeError, match="no_such_name.Thing"):  # PyTorch, too, asks when a class is named
            strata.classes.no_such_name.Thing
        return
    with pytest.raises(AttributeError) as error:
        getattr(importlib.import_module(name), attribute)
    assert str(error.value).startswith(f"module {name!r} has no attribute {attribute!r}")


@pytest.mark.parametrize("module, name, home", [
    ("strata", "finfo", "strata._type_info"), ("strata.optim", "SGD", "strata.optim.sgd"),
    ("strata.nn.functional", "dropout", "strata.nn.functional.dropout"), ("strata.nn", "Linear", "strata.nn.modules.linear"),
    ("strata.autograd", "profiler", "strata.profiler"), ("strata.library", "opcheck", "strata._opcheck"),
    ("strata.optim.lr_scheduler", "StepLR", "strata.optim.lr_scheduler.factor")])
def test_a_name_is_loaded_when_it_is_used(module, name, home):
    code = (f"import sys, importlib; module = importlib.import_module({module!r}); assert {home!r} not in sys.modules\n"
            f"value = module.{name}; assert {home!r} in sys.modules and vars(module)[{name!r}] is value is module.{name}")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_a_file_leaves_the_function_of_its_name():
    importlib.import_module("strata.nn.functional.dropout")
    assert strata.nn.functional.dropout1d.__module__ == "strata.nn.functional"
    assert callable(strata.nn.functional.dropout)
