"""The names that a device gives Python, and factories that make tensors there; on the null device."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading

import devices
import pytest
import strata

PLUGIN = devices.plugin("null")
DEVICE = devices.null()

LOADS = """
import sys, strata, strata.nn
def state():
    parts = {name: dict(vars(m)) for name, m in list(sys.modules.items()) if name.split(".")[0] == "strata"}
    classes = {(name, k): dict(vars(v)) for name, values in parts.items() for k, v in values.items() if isinstance(v, type)}
    return parts, classes
import strata._device_functions, strata._plugins
assert not hasattr(strata, "null") and not hasattr(strata.Tensor, "null") and not hasattr(strata.nn.Module, "is_null")
words = [m for m in (getattr(strata, n) for n in strata._device_words.device_names()) if m.device_count() == 0]
before, classes = state()
strata.accelerator.load(sys.argv[1])
after, others = state()
assert before.keys() == after.keys(), before.keys() ^ after.keys()
for name, values in before.items():
    assert values.keys() == after[name].keys(), (name, values.keys() ^ after[name].keys())
    assert all(after[name][k] is v for k, v in values.items()), name
added = set()
for place, values in classes.items():
    assert all(others[place][k] is v for k, v in values.items()), place
    added |= {(values["__module__"], place[1], k) for k in others[place].keys() - values.keys()}
print(sorted(k for *_, k in added), sorted({c for _, c, _ in added}))
assert strata.null.device_count() == 2 and not any(m.is_available() for m in words)
"""


def test_a_plugin_replaces_nothing_and_adds_the_names_of_its_device():
    env = {**os.environ, "PYTHONPATH": str(devices.ROOT / "python"), "STRATA_PLUGINS": ""}
    done = subprocess.run([sys.executable, "-c", LOADS, PLUGIN], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0] == "['is_null', 'null', 'null'] ['Module', 'Tensor']"


def test_a_plugin_of_the_environment_has_its_names_from_the_first_use_on():
    program = "import strata; print(strata.null.is_available(), strata.ones(2).null().is_null); import strata.null"
    env = {**os.environ, "STRATA_PLUGINS": str(PLUGIN), "PYTHONPATH": str(devices.ROOT / "python")}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["True", "True"], done.stderr


def test_the_namespace_has_the_names_of_every_device():
    null = strata.null
    assert importlib.import_module("strata.null") is null and "memory_allocated" in dir(null)
    assert null.is_available() and null.is_initialized() and null.device_count() == 2
    assert null.get_device_name(1).startswith("null ") and null.is_bf16_supported()
    assert null.current_device() == 0
    with null.device(1):
        assert null.current_device() == 1 and strata.ones(2).null().device.index == 1
        with null.device(None), null.device(strata.device("null", 0)):
            assert null.current_device() == 0
        with null.device_of(strata.ones(2)):
            assert null.current_device() == 1
    null.set_device("null:1")
    assert null.current_device() == 1
    null.set_device(0)
    null.synchronize()
    null.synchronize(1)
    before = null.memory_allocated()
    x = strata.ones(1000, device=DEVICE)
    assert null.memory_allocated() >= before + 4000 and null.max_memory_allocated() >= null.memory_allocated(0)
    assert null.memory_stats()["allocated_bytes.all.current"] == null.memory_allocated() <= null.memory_reserved()
    del x
    null.reset_peak_memory_stats()
    null.empty_cache()
    assert null.memory_reserved() == null.memory_allocated() == null.max_memory_allocated()
    with pytest.raises(AttributeError, match=r"module 'strata\.null' has no attribute 'nothing'"):
        null.nothing  # noqa: B018
    with pytest.raises(ValueError, match="expected a device of 'null', got 'cpu'"):
        null.synchronize("cpu")


def test_seeds_and_states():
    null = strata.null
    null.manual_seed_all(3)
    assert null.initial_seed() == 3
    states = null.get_rng_state_all()
    first = strata.rand(5, device=DEVICE).tolist()
    null.set_rng_state(states[0])
    assert strata.rand(5, device=DEVICE).tolist() == first
    null.set_rng_state_all(states)
    with strata.random.fork_rng():
        null.seed_all()
        assert strata.rand(5, device=DEVICE).tolist() != first
    assert strata.rand(5, device=DEVICE).tolist() == first
    null.manual_seed(3)
    assert strata.rand(5, device=DEVICE).tolist() == first


def test_tensors_and_modules_move_by_the_devices_name():
    x = strata.ones(2, 3)
    there = x.null()
    assert there.is_null and not x.is_null and there.null() is there and there.device == strata.device("null:0")
    assert x.null(1).device.index == x.null("null:1").device.index == 1
    assert strata.nn.Parameter(x).null(non_blocking=True).is_null
    layer = strata.nn.Linear(3, 2)
    assert layer.null() is layer and layer.weight.is_null and isinstance(layer.weight, strata.nn.Parameter)

    class Mine(strata.nn.Module):
        def null(self, device=None):
            return super().null(device)

    assert isinstance(Mine().null(), Mine)
    with pytest.raises(ValueError, match=r"Tensor\.null: expected a device of 'null', got 'cpu'"):
        x.null("cpu")


def test_factories_make_tensors_on_the_default_device():
    made = {
        "zeros": lambda: strata.zeros(2), "ones": lambda: strata.ones(2), "empty": lambda: strata.empty(2), "full": lambda: strata.full((2,), 3),
        "arange": lambda: strata.arange(3), "eye": lambda: strata.eye(2), "linspace": lambda: strata.linspace(0, 1, 3),
        "rand": lambda: strata.rand(2), "randn": lambda: strata.randn(2), "randint": lambda: strata.randint(4, (2,)), "randperm": lambda: strata.randperm(4),
        "tril_indices": lambda: strata.tril_indices(2, 2), "logspace": lambda: strata.logspace(0, 1, 3), "tensor": lambda: strata.tensor([1.0, 2]),
        "as_tensor": lambda: strata.as_tensor([1]), "asarray": lambda: strata.asarray([1]), "hann_window": lambda: strata.hann_window(4),
        "normal": lambda: strata.normal(0.0, 1.0, (2,)), "empty_strided": lambda: strata.empty_strided((2, 2), (1, 2)), "scalar_tensor": lambda: strata.scalar_tensor(2),
        "layer": lambda: strata.nn.Linear(2, 2).weight,
    }  # fmt: skip
    for name, make in made.items():
        with DEVICE:
            assert make().device == strata.device("null:0"), name
        assert make().is_cpu, name
    with strata.device("null:1"):
        assert strata.get_default_device() == strata.device("null:1") and strata.ones(1).device.index == 1
        with strata.device("cpu"):
            assert strata.ones(1).is_cpu
        with strata.device("meta"):
            assert strata.ones(1).is_meta and strata.tensor([1]).is_meta
        assert strata.ones(1, device="cpu").is_cpu and strata.ones_like(strata.ones(1, device="cpu")).is_cpu
        assert strata.Tensor([1.0]).is_cpu
    strata.set_default_device("null")
    try:
        assert strata.get_default_device() == strata.device("null:0")
        seen = []
        thread = threading.Thread(target=lambda: seen.append(strata.ones(1).is_cpu))
        thread.start()
        thread.join()
        assert seen == [True]
        assert (strata.ones(2) + strata.tensor([1.0, 2.0])).tolist() == [2, 3]
    finally:
        strata.set_default_device(None)
    assert strata.ones(1).is_cpu


def test_a_recording_keeps_the_default_device_that_it_had():
    def f(x):
        return x + strata.arange(3)

    with DEVICE:
        g = strata.graph(f, strata.ones(3))
    there = strata.ones(3, device=DEVICE)
    assert g(there).tolist() == g.compile()(there).tolist() == [1, 2, 3]
