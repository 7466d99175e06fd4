"""strata.load of PyTorch's files: equal to what torch.load gave when they were recorded, and refusals."""

import io
import json
import os
import pickle
import pickletools
import random
import zipfile
from pathlib import Path

import numpy as np
import pt_cases
import pytest
import strata
from strata import _pt_restricted, nn

DATA = Path(__file__).parent.parent / "data" / "io"
RECORDED = json.loads((DATA / "recorded.json").read_text())


@pytest.mark.parametrize("name", [*pt_cases.LOADED])
def test_files_load_as_torch_loads_them(name):
    assert pt_cases.describe(strata.load(DATA / f"{name}.pt")) == RECORDED[name]
    assert pt_cases.describe(strata.load(DATA / f"{name}.pt", mmap=True)) == RECORDED[name]
    with open(DATA / f"{name}.pt", "rb") as file:
        assert pt_cases.describe(strata.load(file, weights_only=False, map_location="cpu")) == RECORDED[name]


def test_repacked_files_load():
    assert pt_cases.describe(strata.load(DATA / "deflated.pt")) == RECORDED["training"]


@pytest.mark.parametrize("name", [*pt_cases.LOADED])
def test_they_survive_our_own_format(name, tmp_path):
    for again in (tmp_path / "again", tmp_path / "again.strata"):
        strata.save(strata.load(DATA / f"{name}.pt"), again)
        assert pt_cases.describe(strata.load(again)) == RECORDED[name]


@pytest.mark.parametrize("name", [*pt_cases.REFUSED])
def test_other_content_is_refused(name):
    with pytest.raises(RuntimeError) as info:
        strata.load(DATA / f"{name}.pt")
    assert pt_cases.REFUSED[name][2].replace("torch.", "strata.") in str(info.value)


def test_states_load_into_modules_and_optimisers():
    state = strata.load(DATA / "training.pt")
    model = pt_cases.net(strata)
    assert str(model.load_state_dict(state["model"])) == "<All keys matched successfully>"
    optimizer = strata.optim.Adam(model.parameters())
    optimizer.load_state_dict(state["optimizer"])
    assert optimizer.param_groups[0]["lr"] == state["optimizer"]["param_groups"][0]["lr"]
    model(strata.ones(2, 1, 4, 4)).sum().backward()
    optimizer.step()


def test_parameters_and_tensors_are_of_their_class():
    loaded = strata.load(DATA / "parameters.pt")
    assert type(loaded["weight"]) is nn.Parameter and loaded["weight"] is loaded["tied"]
    assert type(loaded["leaf"]) is strata.Tensor and loaded["leaf"].requires_grad and loaded["leaf"].is_leaf
    assert loaded["noted"].note == "kept"
    assert type(loaded["buffer"]) is nn.Buffer and loaded["buffer"].persistent
    loaded["weight"].sum().backward()
    assert loaded["weight"].grad is not None


class Evil:
    ran = False

    def __reduce__(self):
        return _run, ()


def _run():
    Evil.ran = True


def archive_of(data):
    """A .pt file around a pickle."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", data)
        archive.writestr("archive/data/0", bytes(8))
    return io.BytesIO(file.getvalue())


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_nothing_of_a_file_is_run():
    for protocol in range(2, 6):
        with pytest.raises(pickle.UnpicklingError, match="_run.*|Unsupported operand"):
            strata.load(archive_of(pickle.dumps({"a": [Evil()]}, protocol=protocol)))
        with pytest.raises(pickle.UnpicklingError):
            strata.load(io.BytesIO(pickle.dumps({"a": [Evil()]}, protocol=protocol)))
    assert not Evil.ran
    strata.load(archive_of(pickle.dumps(Evil())), weights_only=False)
    assert Evil.ran


def test_plain_pickles_are_no_files(tmp_path):
    (tmp_path / "f").write_bytes(pickle.dumps({"a": 1}, protocol=2))
    with pytest.raises(RuntimeError, match="Invalid magic number"):
        strata.load(tmp_path / "f", weights_only=False)
    with pytest.raises(RuntimeError, match="bare pickle"):
        strata.load(tmp_path / "f")


def test_files_before_1_6():
    for weights_only in (True, False):
        loaded = strata.load(DATA / "legacy.pt", weights_only=weights_only)
        assert loaded["a"].tolist() == [1.0, 1.0] and loaded["b"].tolist() == [0, 1, 2]
    data = (DATA / "legacy.pt").read_bytes()
    for cut in range(1, len(data), 7):
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            strata.load(io.BytesIO(data[:cut]))


def test_sparse_tensors_of_pytorch():
    for weights_only in (True, False):
        x = strata.load(DATA / "sparse.pt", weights_only=weights_only)
        assert x.is_sparse and x.is_coalesced() and x.to_dense().tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_whole_objects_of_pytorch_work():
    with pytest.raises(pickle.UnpicklingError, match="strata.nn.modules.container.ModuleDict was not an allowed global"):
        strata.load(DATA / "whole.pt")
    assert pt_cases.run_whole(strata, strata.load(DATA / "whole.pt", weights_only=False)) == RECORDED["whole"]


def test_whole_objects_are_written_under_names_of_pytorch():
    file = io.BytesIO()
    strata.save(pt_cases.whole(strata), file)
    found = pt_cases.run_whole(strata, strata.load(io.BytesIO(file.getvalue()), weights_only=False))
    assert found.keys() == RECORDED["whole"].keys() and found["lr"] == RECORDED["whole"]["lr"]

    def names(data):
        pickled = zipfile.ZipFile(data).read(next(n for n in zipfile.ZipFile(data).namelist() if n.endswith("data.pkl")))
        return {arg for op, arg, _ in pickletools.genops(pickled) if op.name == "GLOBAL"}

    theirs = {name.replace("torch._C._nn gelu", "torch.nn.functional gelu") for name in names(DATA / "whole.pt")}
    assert names(io.BytesIO(file.getvalue())) == theirs


class Plain:
    def __init__(self, value):
        self.value = value


class Loud(strata.Tensor):
    pass


def test_names_that_the_user_declares_safe():
    obj = {"p": Plain(strata.ones(2)), "t": strata.ones(2).as_subclass(Loud), "n": np.arange(3.0)}
    file = io.BytesIO()
    strata.save(obj, file)

    def load():
        return strata.load(io.BytesIO(file.getvalue()))

    with pytest.raises(pickle.UnpicklingError, match=r"add_safe_globals\(\[test_serialization_pt.Plain\]\)"):
        load()
    wanted = strata.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(file.getvalue()))
    assert wanted == [
        "numpy._core.multiarray._reconstruct", "numpy.dtype", "numpy.ndarray", "test_serialization_pt.Loud",
        "test_serialization_pt.Plain",
    ]  # fmt: skip
    arrays = [np._core.multiarray._reconstruct, np.ndarray, np.dtype, type(np.dtype("float64"))]
    with strata.serialization.safe_globals([Plain, Loud, *arrays]):
        found = load()
        assert len(strata.serialization.get_safe_globals()) == 6
    assert found["p"].value.tolist() == [1.0, 1.0] and type(found["t"]) is Loud and found["n"].tolist() == [0.0, 1.0, 2.0]
    assert strata.serialization.get_safe_globals() == []
    strata.serialization.add_safe_globals([(Plain, "some.where")])
    with pytest.raises(pickle.UnpicklingError):
        load()
    strata.serialization.clear_safe_globals()
    file = io.BytesIO()
    strata.save(nn.Linear(1, 1), file)
    with strata.serialization.safe_globals([nn.Linear]):
        assert type(load()) is nn.Linear


# Pickles that try to reach something by what is allowed: each must raise, with Plain declared safe.
PLAIN = b"ctest_serialization_pt\nPlain\n"
HOSTILE = {
    "a name": b"cos\nsystem\n(X\x04\x00\x00\x00truetR.",
    "a name in posix": b"cposix\nsystem\n(X\x04\x00\x00\x00truetR.",
    "getattr": b"c__builtin__\ngetattr\n(ctest_serialization_pt\nPlain\nX\x08\x00\x00\x00__init__tR.",
    "a name with dots": b"ctorch\nserialization.os.system\n)R.",
    "torch.load inside": b"ctorch.storage\n_load_from_bytes\n(X\x01\x00\x00\x00atR.",
    "calls a class's instance": PLAIN + b"(K\x01tR(K\x01tR.",
    "calls a tuple": b"(K\x01K\x02t)R.",
    "calls a dtype": b"ctorch\nfloat32\n)R.",
    "calls a storage": b"ctorch\nFloatStorage\nK\x08\x85R.",
    "arguments that are no tuple": PLAIN + b"]R.",
    "builds a class": PLAIN + b"}X\x01\x00\x00\x00aK\x01sb.",
    "builds a function": b"ctorch._utils\n_rebuild_tensor_v2\n}X\x0c\x00\x00\x00__defaults__K\x01sb.",
    "builds OrderedDict": b"ccollections\nOrderedDict\n}X\x01\x00\x00\x00aK\x01sb.",
    "hides a method": b"ccollections\nOrderedDict\n)R}X\x05\x00\x00\x00itemsK\x01sb.",
    "sets items of a class": PLAIN + b"K\x01K\x01s.",
    "sets items of a module's dict": PLAIN + b"(K\x01tRX\x01\x00\x00\x00aK\x01s.",
    "appends to a tuple": b")K\x01a.",
    "a new tensor": b"ctorch\nTensor\nK\x08\x85\x81.",
    "a new function": b"ctorch._utils\n_rebuild_tensor_v2\n)\x81.",
    "rebuilds by another function": b"ctorch._tensor\n_rebuild_from_type_v2\n(" + PLAIN + b"ctorch\nTensor\n(K\x01t}tR.",
    "another class": b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_tensor\nctorch\nSize\n)}tR.",
    "a great bytearray": b"c__builtin__\nbytearray\n\x8a\x05\x00\x00\x00\x00\x7f\x85R.",
    "codec": b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x05\x00\x00\x00rot13tR.",
    "a module as persistent id": b"(X\x06\x00\x00\x00moduleK\x01tQ.",
    "a persistent id of another class": b"(X\x07\x00\x00\x00storage" + PLAIN + b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x02tQ.",
    "beyond its storage": b"ctorch._utils\n_rebuild_tensor\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
    b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x02tQK\x00K\x09\x85K\x01\x85tR.",
    "another file of the archive": b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x0b\x00\x00\x00../data.pklX\x03\x00\x00\x00cpuK\x02tQ.",
    "protocol 4": b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
    "an extension": b"\x82\x01.",
    "nothing on the stack": b"R.",
    "no mark": b"t.",
    "no end": b"]",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pickles(name):
    with strata.serialization.safe_globals([Plain]), pytest.raises(RuntimeError):
        strata.load(archive_of(b"\x80\x02" + HOSTILE[name]))
    with pytest.raises(RuntimeError):
        strata.load(archive_of(b"\x80\x02" + HOSTILE[name]))


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_the_restricted_reader_alone_refuses_them_too():
    """It sees what the C++ reader refuses; it must not lean on that."""
    for name, data in HOSTILE.items():
        with strata.serialization.safe_globals([Plain]), pytest.raises(Exception) as info:
            _pt_restricted.read_zip(archive_of(b"\x80\x02" + data).getvalue(), None)
        assert not isinstance(info.value, (AttributeError, NameError)), (name, info.value)


def test_which_reader(monkeypatch):
    file = io.BytesIO()
    strata.save(Plain(1), file)

    def load(**options):
        return strata.load(io.BytesIO(file.getvalue()), **options)

    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.warns(UserWarning, match="forcing weights_only=False"):
        assert load().value == 1
    with pytest.raises(pickle.UnpicklingError):
        load(weights_only=True)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="but both were set"):
        load()
    monkeypatch.delenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    with pytest.raises(pickle.UnpicklingError):
        load(weights_only=False)
    monkeypatch.delenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD")
    assert load(pickle_module=pickle).value == 1
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        load(pickle_module=pickle, weights_only=True)


def test_random_pickles_only_raise():
    """Names that are known, names that are not and opcodes in any order: RuntimeError or an object, and nothing else runs."""
    rng = random.Random(int(os.environ.get("STRATA_TEST_SEED", "0")))
    names = [f"c{module}\n{name}\n".encode() for module, name in (full.rsplit(".", 1) for full in _pt_restricted._known()[0])]
    names += [PLAIN, b"ctest_serialization_pt\nEvil\n", b"cos\nsystem\n", b"c__builtin__\neval\n"]
    storage = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x02tQ"
    codes = [*b"()}]tRbsuaeNQ\x81\x85\x86\x87\x88"]
    parts = [bytes([code]) for code in codes] + [b"K\x01", b"q\x00", b"h\x00", b"X\x05\x00\x00\x00items", storage]
    Evil.ran, read = False, 0
    with strata.serialization.safe_globals([Plain]):
        for _ in range(4000 if os.environ.get("STRATA_TEST_ALL") else 400):
            body = b"".join(rng.choice(names if rng.random() < 0.3 else parts) for _ in range(rng.randint(3, 20)))
            try:
                strata.load(archive_of(b"\x80\x02" + body + b"."))
                read += 1
            except RuntimeError:
                continue
    assert not Evil.ran and read


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("name", ["conj", "legacy_conj"])
def test_lazy_conjugates_are_computed_of_what_was_read(name, weights_only):
    lazy, imaginary, ones = strata.load(DATA / f"{name}.pt", weights_only=weights_only)
    assert lazy.tolist() == [1 - 2j, 3 + 1j] and imaginary.tolist() == [-2, 1] and ones.tolist() == [1, 1]


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("name", ["sparse_layouts", "legacy_sparse_layouts"])
def test_sparse_tensors_are_made_of_what_was_read(name, weights_only):
    coo, csr, dense = strata.load(DATA / f"{name}.pt", weights_only=weights_only)
    assert coo.layout is strata.sparse_coo and csr.layout is strata.sparse_csr
    assert coo.to_dense().tolist() == csr.to_dense().tolist() == dense.tolist() == [[0, 2], [3, 0]]


def test_a_legacy_file_is_read_once(tmp_path):
    """What it makes and calls is made when the storages have their numbers, and one time."""
    data = (DATA / "legacy.pt").read_bytes()
    saved = tmp_path / "twice.pt"
    first = b"X\x01\x00\x00\x00a"
    call = b"X\x01\x00\x00\x00zc" + __name__.encode() + b"\ncounted\n)R"
    assert data.count(first) == 1
    saved.write_bytes(data.replace(first, call + first))
    counted.calls = 0
    assert strata.load(saved, weights_only=False)["a"].tolist() == [1, 1] and counted.calls == 1
    asked = []
    strata.load(DATA / "legacy.pt", lambda storage, location: asked.append((storage.nbytes(), location)))
    assert asked == [(8, "cpu"), (24, "cpu")]


def counted():
    counted.calls += 1


def test_what_cannot_be_made_of_a_legacy_file_is_said():
    data = (DATA / "legacy_sparse_layouts.pt").read_bytes()
    with pytest.raises(RuntimeError, match="expected 2|more elements|cut"):
        strata.load(io.BytesIO(data[:-3]))
    with pytest.raises(pickle.UnpicklingError, match="no_such_function was not an allowed global"):
        strata.load(io.BytesIO(data.replace(b"_rebuild_sparse_tensor", b"no_such_function", 1)))


@pytest.mark.parametrize("weights_only", [True, False])
def test_storages_and_types_alone(weights_only, tmp_path):
    untyped, typed, *types = strata.load(DATA / "storages.pt", weights_only=weights_only)
    assert types == [strata.Tensor, strata.float32]
    kind = strata.storage.TypedStorage
    assert isinstance(untyped, kind) and untyped.dtype == strata.uint8 and untyped.tolist() == [0, 0, 128, 63]
    assert isinstance(typed, kind) and typed.dtype == strata.float32 and typed.tolist() == [1, 1]
    strata.save(strata.ones(1).untyped_storage(), tmp_path / "ours.pt")
    again = strata.load(tmp_path / "ours.pt", weights_only=weights_only)
    assert isinstance(again, kind) and again.tolist() == [0, 0, 128, 63]


def test_memory_formats_of_a_file_of_protocol_4():
    found = strata.load(DATA / "formats4.pt", weights_only=False)
    assert found == [strata.strided, strata.contiguous_format, strata.channels_last]


def test_tensors_of_two_dtypes_over_one_storage(tmp_path):
    """PyTorch takes a storage's first dtype for all that name it, so later tensors say theirs beside it."""
    base, wide = strata.arange(3.0), strata.arange(4).to(strata.uint16)
    obj = [base, base.view(strata.int32), base.view(strata.uint32), wide, wide.view(strata.float16), wide.view(strata.uint8)]
    strata.save(obj, tmp_path / "f", _use_new_zipfile_serialization=False)
    with zipfile.ZipFile(tmp_path / "f") as archive:
        pickled = archive.read(next(n for n in archive.namelist() if n.endswith("data.pkl")))
    names = [arg for op, arg, _ in pickletools.genops(pickled) if op.name == "GLOBAL" and arg.endswith("Storage")]
    assert names == ["torch FloatStorage", "torch.storage UntypedStorage", "torch ByteStorage"]
    for weights_only in (True, False):
        found = strata.load(tmp_path / "f", weights_only=weights_only)
        assert all(a.dtype == b.dtype and a.equal(b) for a, b in zip(obj, found, strict=True))
        assert len({t.untyped_storage()._cdata for t in found}) == 2
    for storage in (base.untyped_storage(), base.view(strata.int32).storage()):
        with pytest.raises(RuntimeError, match="same data as different types: expected strata.float32"):
            strata.save([base, storage], tmp_path / "f")


@pytest.mark.parametrize("weights_only", [True, False])
def test_files_of_the_other_byte_order_are_refused(tmp_path, weights_only):
    with zipfile.ZipFile(DATA / "plain.pt") as old, zipfile.ZipFile(tmp_path / "big.pt", "w") as new:
        names = old.namelist()
        for name in names:
            new.writestr(name, b"big" if name.endswith("/byteorder") else old.read(name))
        if not any(name.endswith("/byteorder") for name in names):
            new.writestr(names[0].partition("/")[0] + "/byteorder", b"big")
    with pytest.raises(RuntimeError, match="highest byte first"):
        strata.load(tmp_path / "big.pt", weights_only=weights_only)


def test_storages_have_the_name_that_pytorchs_reader_takes(tmp_path):
    strata.save(strata.arange(3).to(strata.uint16), tmp_path / "wide.pt")
    with zipfile.ZipFile(tmp_path / "wide.pt") as archive:
        assert b"ctorch.storage\nUntypedStorage\n" in archive.read(next(n for n in archive.namelist() if n.endswith("data.pkl")))
    assert strata.load(tmp_path / "wide.pt").tolist() == [0, 1, 2]
