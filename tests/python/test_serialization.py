"""strata.save, strata.load and strata.safetensors: round trips, sharing, refusals, failures."""

import collections
import enum
import io
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import time

import numpy as np
import pt_cases
import pytest
import strata
from strata import nn
from strata.safetensors import load, load_file, load_metadata, save, save_file

DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128",
]  # fmt: skip


def round_trip(obj, **options):
    file = io.BytesIO()
    strata.save(obj, file)
    return strata.load(io.BytesIO(file.getvalue()), **options)


def package(obj):
    """The package that C++ programs write, too."""
    file = io.BytesIO()
    strata._C._save(obj, file.write)
    return file.getvalue()


def sample(name):
    return strata.tensor([0, 1, 3, 2, 0, 5], dtype=strata.float64).to(getattr(strata, name)).reshape(2, 3)


# ---- round trips
@pytest.mark.parametrize("name", ["plain", "dtypes", "views", "parameters", "state_dict", "training"])
def test_objects_come_back_as_they_were(name, tmp_path):
    obj = pt_cases.LOADED[name][0](strata)
    if name == "parameters":
        obj["history"] = obj["history"].detach()  # describe tells leaves and others apart by requires_grad only
    path = tmp_path / "obj.strata"
    strata.save(obj, path)
    assert pt_cases.describe(strata.load(path)) == pt_cases.describe(obj)
    assert pt_cases.describe(strata.load(path, mmap=True)) == pt_cases.describe(obj)
    assert pt_cases.describe(round_trip(obj)) == pt_cases.describe(obj)


def test_a_tensor_with_history_comes_back_as_a_leaf():
    x = strata.ones(2, requires_grad=True) * 2
    y = round_trip(x)
    assert y.is_leaf and y.requires_grad and y.tolist() == [2.0, 2.0]


def test_floats_keep_their_bits():
    values = [struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in (0x7FF8000000000123, 0xFFF0000000000000, 1)]
    again = round_trip(values)
    assert [struct.pack("<d", v) for v in again] == [struct.pack("<d", v) for v in values]


def test_module_and_optimiser_go_on_where_they_were(tmp_path):
    def make():
        strata.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        return model, strata.optim.Adam(model.parameters(), lr=1e-2)

    def steps(model, optimizer, n):
        for i in range(n):
            optimizer.zero_grad()
            model(strata.linspace(-1, 1, 12).reshape(3, 4) * (i + 1)).square().mean().backward()
            optimizer.step()

    model, optimizer = make()
    steps(model, optimizer, 3)
    path = str(tmp_path / "checkpoint.pt")
    strata.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    steps(model, optimizer, 3)
    other, other_optimizer = make()
    state = strata.load(path)
    other.load_state_dict(state["model"])
    other_optimizer.load_state_dict(state["optimizer"])
    steps(other, other_optimizer, 3)
    for a, b in zip(model.parameters(), other.parameters()):
        assert a.tolist() == b.tolist()


def test_views_stay_views_and_only_their_part_is_written(tmp_path):
    base = strata.zeros(1000, 1000)
    strata.save({"a": base[3], "b": base[3, 10:20]}, tmp_path / "part.strata")
    assert (tmp_path / "part.strata").stat().st_size < 6000
    again = strata.load(tmp_path / "part.strata")
    again["a"][12] = 5
    assert again["b"][2] == 5


def test_tied_parameters_stay_tied():
    layer = nn.Linear(3, 3)
    state = collections.OrderedDict(a=layer.weight, b=layer.weight, c=layer.weight.detach())
    again = round_trip(state)
    assert again["a"] is again["b"] and type(again["a"]) is nn.Parameter
    assert again["c"].data_ptr() == again["a"].data_ptr() and not again["c"].requires_grad


def test_state_dict_keeps_its_versions():
    state = nn.BatchNorm1d(2).state_dict()
    again = round_trip(state)
    assert again._metadata == state._metadata and list(again) == list(state)


def test_files_of_the_same_content_are_the_same_bytes(tmp_path):
    for name in "ab":
        strata.manual_seed(1)
        strata.save(pt_cases.training(strata), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_strided_tensors_keep_their_strides():
    x = strata.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1)
    y = round_trip(x)
    assert y.stride() == x.stride() and y.tolist() == x.tolist()


# ---- what files do not hold
class Color(enum.Enum):
    RED = 1


class Named(collections.namedtuple("Named", "a b")):
    pass


class MyTensor(strata.Tensor):
    pass


@pytest.mark.parametrize(
    "value, hint",
    [
        (nn.Linear(1, 1), "state_dict()"),
        (lambda: 0, "files hold no code"),
        (np.zeros(2), "strata.from_numpy"),
        (np.float32(1), ".item()"),
        (np.float64(1), ".item()"),
        (Color.RED, ".value"),
        (Named(1, 2), "tuple(...)"),
        (collections.defaultdict(int), "dict(...)"),
        (pathlib.Path("a"), "str(...)"),
        (object(), "fields"),
        (MyTensor([1.0]), "as_subclass"),
        (strata.Generator(), "get_state()"),
        (int, "files hold no code"),
        (strata.zeros(1).untyped_storage(), "fields"),
    ],
    ids=lambda v: v if isinstance(v, str) else type(v).__name__,
)
def test_other_objects_raise_with_their_place(value, hint, tmp_path):
    path = tmp_path / "f.strata"
    strata.save(1, path)
    with pytest.raises(TypeError, match=r"obj\['model'\]\[1\]\[2\]") as info:
        strata.save({"model": [0, (0, 1, value)]}, path)
    assert hint in str(info.value)
    assert strata.load(path) == 1


def test_odd_containers_raise():
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError, match="contains itself"):
        package(loop)
    deep = None
    for _ in range(64):
        deep = [deep]
    assert strata.load(io.BytesIO(package(deep))) == deep
    with pytest.raises(ValueError, match="deeper than 64"):
        package([deep])
    with pytest.raises(TypeError, match="keys"):
        package({strata.zeros(1): 1})
    with pytest.raises(ValueError, match="surrogates"):
        package(["a\ud800"])
    parameter = nn.Parameter(strata.zeros(1))
    parameter.hook = print
    with pytest.raises(TypeError, match=r"obj\['p'\]\.hook"):
        package({"p": parameter})


# ---- files and file objects
def test_paths_and_file_objects(tmp_path):
    x = strata.arange(5)
    for path in (str(tmp_path / "s"), tmp_path / "p"):
        strata.save(x, path)
        assert strata.load(path).tolist() == x.tolist()
    with open(tmp_path / "f", "wb", buffering=0) as file:
        file.write(b"head")
        strata.save({"x": strata.zeros(3_000_000)}, file)
    with open(tmp_path / "f", "rb") as file:
        file.seek(4)
        assert strata.load(file)["x"].shape == (3_000_000,)
    with pytest.raises(AttributeError, match="write"):
        strata.save(x, 5)
    with pytest.raises(AttributeError, match="read"):
        strata.load(5)
    with pytest.raises(TypeError, match="binary"):
        strata.load(io.StringIO("abc"))
    with pytest.raises(ValueError, match="mmap"):
        strata.load(io.BytesIO(), mmap=True)
    with pytest.raises(FileNotFoundError, match="nothing"):
        strata.load(tmp_path / "nothing")
    with pytest.raises(RuntimeError, match="does not exist"):
        strata.save(x, tmp_path / "no" / "where")


def test_errors_of_file_objects_come_through():
    class Full:
        def write(self, data):
            raise OSError("full")

    class Lazy:
        def __init__(self):
            self.data = b""

        def write(self, data):
            self.data += data[:7]
            return len(data[:7])

    with pytest.raises(OSError, match="full"):
        strata.save(1, Full())
    lazy = Lazy()
    strata.save([1, "two"], lazy)
    assert strata.load(io.BytesIO(lazy.data)) == [1, "two"]


def test_mapped_tensors_do_not_change_the_file(tmp_path):
    path = tmp_path / "f"
    strata.save(strata.zeros(10000), path)
    before = path.read_bytes()
    x = strata.load(path, mmap=True)
    x += 1
    assert x.sum() == 10000 and path.read_bytes() == before
    strata.save(x, path)  # the mapping is of the old file
    assert x.sum() == 10000 and strata.load(path).sum() == 10000


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "f"
    strata.save("old", path)
    # Files of this process may grow to 100,000 bytes only.
    code = (
        "import resource, signal, strata, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "try:\n    strata.save(strata.zeros(100000), sys.argv[1])\n"
        "except RuntimeError as error:\n    print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert "File too large" in run.stdout and "unchanged" in run.stdout, run.stdout + run.stderr
    assert strata.load(path) == "old" and os.listdir(tmp_path) == ["f"]
    if os.path.exists("/dev/full"):
        with pytest.raises(RuntimeError, match="No space left"):
            strata.save("x", "/dev/full")


def test_killed_while_saving(tmp_path):
    path = tmp_path / "f"
    strata.save({"n": 0, "x": strata.zeros(50000)}, path)
    code = (
        "import strata, sys\n"
        "n = 0\n"
        "while True:\n    n += 1\n    strata.save({'n': n, 'x': strata.full((50000,), n)}, sys.argv[1])\n"
    )
    for wait in (0.01, 0.023, 0.037):
        child = subprocess.Popen([sys.executable, "-c", code, str(path)])
        start = path.stat().st_mtime_ns
        while path.stat().st_mtime_ns == start and child.poll() is None:
            time.sleep(0.01)
        time.sleep(wait)
        child.send_signal(signal.SIGKILL)
        child.wait()
        state = strata.load(path)
        assert bool((state["x"] == state["n"]).all()) and state["n"] > 0


# ---- where tensors go
def test_map_location():
    x = {"a": strata.ones(2)}
    for where in (None, "cpu", strata.device("cpu"), {"cpu": "cpu"}, lambda storage, location: storage, lambda *_: None):
        assert round_trip(x, map_location=where)["a"].tolist() == [1.0, 1.0]
    seen = []
    round_trip([x["a"], x["a"][1:]], map_location=lambda storage, location: seen.append((location, len(storage))))
    assert seen == [("cpu", 8)]
    with pytest.raises(TypeError, match="map_location"):
        round_trip(x, map_location=5)
    with pytest.raises(RuntimeError, match="device"):
        round_trip(x, map_location="nowhere")
    with pytest.raises(ZeroDivisionError):
        round_trip(x, map_location=lambda *_: 1 / 0)


def other_tree(data: bytes, was: str, now: str) -> bytes:
    """The package with another text in its tree, and without checksums."""
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    header["__metadata__"] = {"strata": header["__metadata__"]["strata"].replace(was, now)}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + length :]


def test_a_device_that_is_not_here():
    moved = other_tree(package(strata.ones(2)), '"shape"', '"device":"warp:1","shape"')
    with pytest.raises(RuntimeError, match="warp:1.*map_location='cpu'"):
        strata.load(io.BytesIO(moved))
    assert strata.load(io.BytesIO(moved), map_location="cpu").tolist() == [1.0, 1.0]
    assert strata.load(io.BytesIO(moved), map_location={"warp:1": "cpu"}).tolist() == [1.0, 1.0]


def test_files_may_not_hide_names_of_the_class():
    state = collections.OrderedDict(a=1)
    state.quiet = 1
    assert strata.load(io.BytesIO(package(state))).quiet == 1
    hidden = other_tree(package(state), "quiet", "items")
    with pytest.raises(RuntimeError, match="'items'"):
        strata.load(io.BytesIO(hidden))


# ---- safetensors
def test_safetensors_round_trip(tmp_path):
    tensors = {name: sample(name) for name in DTYPES if name != "complex128"}
    tensors["strided"] = sample("float32").t()
    tensors["empty"] = strata.zeros(0, 3)
    tensors["scalar"] = strata.tensor(2.5)
    save_file(tensors, tmp_path / "a.safetensors", metadata={"format": "pt", "ä": "\n"})
    assert load_metadata(tmp_path / "a.safetensors") == {"format": "pt", "ä": "\n"}
    for again in (load_file(tmp_path / "a.safetensors"), load_file(tmp_path / "a.safetensors", mmap=True),
                  load((tmp_path / "a.safetensors").read_bytes()), strata.load(tmp_path / "a.safetensors")):  # fmt: skip
        assert set(again) == set(tensors)
        for name, t in tensors.items():
            assert again[name].dtype == t.dtype and again[name].shape == t.shape and again[name].tolist() == t.tolist()
    assert load_metadata_of(save({"a": strata.ones(1)})) is None


def load_metadata_of(data):
    return strata._C._load_safetensors(data, None, False)[1]


def test_safetensors_refusals(tmp_path):
    x = strata.ones(4)
    with pytest.raises(RuntimeError, match="'a' and 'b' share memory"):
        save({"a": x, "b": x[2:]})
    save({"a": x[:2], "b": x[2:]})
    with pytest.raises(TypeError, match="complex128"):
        save({"a": strata.ones(1, dtype=strata.complex128)})
    with pytest.raises(TypeError, match="expected str to strata.Tensor"):
        save({1: x})
    with pytest.raises(TypeError, match="expected str to strata.Tensor"):
        save({"a": [1]})
    with pytest.raises(TypeError, match="dict"):
        save([x])
    with pytest.raises(TypeError, match="metadata"):
        save({"a": x}, metadata={"a": 1})
    with pytest.raises(RuntimeError, match="valid safetensors"):
        load(save({"a": x})[:-1])
    with pytest.raises(FileNotFoundError):
        load_file(tmp_path / "nothing")


def test_the_suffix_gives_a_plain_file(tmp_path):
    model = nn.Linear(2, 2)
    strata.save(model.state_dict(), tmp_path / "m.safetensors")
    assert load_metadata(tmp_path / "m.safetensors") == {"format": "pt"}
    model.load_state_dict(strata.load(tmp_path / "m.safetensors"))
    strata.save({"a": [model.weight]}, tmp_path / "n.safetensors")
    assert strata.load(tmp_path / "n.safetensors")["a"][0].tolist() == model.weight.tolist()


def test_the_safetensors_library_agrees(tmp_path):
    library = pytest.importorskip("safetensors.numpy", reason="the PyPI package safetensors is not installed")
    plain = [name for name in DTYPES if name not in ("bfloat16", "complex64", "complex128")]
    tensors = {name: sample(name) for name in plain}
    arrays = {name: t.numpy() for name, t in tensors.items()}
    ours, theirs = save(tensors, {"format": "pt"}), library.save(arrays, {"format": "pt"})
    assert ours == theirs
    for name, array in library.load(ours).items():
        assert array.tolist() == tensors[name].tolist()
    for name, t in load(theirs).items():
        assert t.dtype == tensors[name].dtype and t.tolist() == tensors[name].tolist()
    # A package is a safetensors file too.
    strata.save(nn.Linear(2, 3).state_dict(), tmp_path / "package")
    assert library.load_file(tmp_path / "package")["weight"].shape == (3, 2)


@pytest.mark.parametrize("options", [{}, {"weights_only": False}, {"map_location": "meta"}])
def test_an_empty_file_ends_where_it_begins(tmp_path, options):
    path = tmp_path / "empty.pt"
    path.write_bytes(b"")
    with pytest.raises(EOFError, match="empty.pt' is empty"):
        strata.load(path, **options)
    with pytest.raises(EOFError, match="is empty"):
        strata.load(io.BytesIO(b""), **options)
