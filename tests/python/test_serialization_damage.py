"""Damaged files: RuntimeError, or what the sound file holds; never another error, never other values."""

import io
import json
import os
import pickle
import random
import re
import zlib
from pathlib import Path

import pt_cases
import pytest
import strata

DATA = Path(__file__).parent.parent / "data" / "io"
RECORDED = json.loads((DATA / "recorded.json").read_text())
COUNT = 4000 if os.environ.get("STRATA_TEST_ALL") else 400


def damaged(data, rng):
    """The bytes cut, with flipped bits, with a part overwritten, or with a part missing."""
    way, at = rng.randrange(4), rng.randrange(len(data))
    if way == 0:
        return data[:at]
    length = rng.randint(1, 8)
    if way == 1:
        other = bytearray(data)
        for _ in range(length):
            other[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        return bytes(other)
    return data[:at] + (rng.randbytes(length) if way == 2 else b"") + data[at + length :]


def read(data):
    """What the file holds, as text; None where it is refused."""
    try:
        return json.dumps(pt_cases.describe(strata.load(io.BytesIO(data))))
    except (EOFError, RuntimeError):
        return None


def test_damaged_files_of_pytorch():
    rng = random.Random(int(os.environ.get("STRATA_TEST_SEED", "0")))
    sound = {name: (DATA / f"{name}.pt").read_bytes() for name in pt_cases.LOADED}
    refused = 0
    for _ in range(COUNT):
        name = rng.choice(sorted(sound))
        found = read(damaged(sound[name], rng))
        assert found is None or found == json.dumps(RECORDED[name]), name
        refused += found is None
    assert refused > COUNT // 2


def packed(obj):
    file = io.BytesIO()
    strata._C._save(obj, file.write)
    return file.getvalue()


def package():
    model = strata.nn.Linear(3, 2)
    return packed({"model": model.state_dict(), "steps": [1, 2.5, (None, "text")], "shared": [model.weight, model.weight[0]],
                   "ids": strata.arange(5)})  # fmt: skip


def test_damaged_packages():
    rng = random.Random(int(os.environ.get("STRATA_TEST_SEED", "0")))
    data = package()
    sound = read(data)
    for _ in range(COUNT):
        assert read(damaged(data, rng)) in (None, sound)


def test_a_package_whose_names_are_both_damaged():
    data = package().replace(b'"strata"', b'"strataa').replace(b'"strataa:', b'"strat\x7f":')
    data = data.replace(b"strata.crc32", b"straxa.crc32")
    assert b'"strat\x7f"' in data and read(data) is None
    plain = io.BytesIO()
    strata._C._save({"a": strata.arange(2)}, plain.write)
    assert strata.load(io.BytesIO(plain.getvalue()))["a"].tolist() == [0, 1]


def test_damaged_files_of_ours():
    """Those of strata.save, also by the way round for names that the C++ reader does not know."""
    rng = random.Random(int(os.environ.get("STRATA_TEST_SEED", "0")))
    file = io.BytesIO()
    strata.save({"a": strata.arange(5), "b": [1, "text", {"c": strata.ones(2, 2).t()}]}, file)
    sound = read(file.getvalue())
    with strata.serialization.safe_globals([print]):
        for _ in range(COUNT):
            assert read(damaged(file.getvalue(), rng)) in (None, sound)


def test_every_bit_of_a_package():
    """One flipped bit anywhere is an error, or does not matter (a space in the header)."""
    data = package()
    sound = read(data)
    for at in range(len(data)):
        other = bytearray(data)
        other[at] ^= 1 << at % 8
        assert read(bytes(other)) in (None, sound), at


def test_the_name_of_the_checksums():
    with pytest.raises(RuntimeError, match="damaged header: 'strata.crc33' beside its tree"):
        strata.load(io.BytesIO(package().replace(b"strata.crc32", b"strata.crc33")))


def test_the_error_names_the_entry(tmp_path):
    data = bytearray(package())
    data[-1] ^= 1
    path = tmp_path / "package"
    path.write_bytes(data)
    with pytest.raises(RuntimeError, match=r"is damaged: the checksum of '[\w.]+'.*mmap=True"):
        strata.load(path)
    assert set(strata.load(path, mmap=True)) == {"model", "steps", "shared", "ids"}


def test_checksums_are_those_of_zlib():
    large = strata.arange(1 << 20, dtype=strata.int32)  # several pieces
    data = packed([large])
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    checks = json.loads(header["__metadata__"]["strata.crc32"])
    assert checks["tree"] == zlib.crc32(header["__metadata__"]["strata"].encode())
    assert checks["entries"] == {"0": zlib.crc32(large.numpy().tobytes(), zlib.crc32(b"int32 1048576"))}


def test_packages_without_checksums_load():
    data = package()
    length = int.from_bytes(data[:8], "little")
    header = re.sub(rb',"strata.crc32":"(?:[^"\\]|\\.)*"', b"", data[8 : 8 + length])
    assert b"crc32" not in header
    old = len(header).to_bytes(8, "little") + header + data[8 + length :]
    assert read(old) == read(data)


def test_texts_of_damaged_names_are_escaped():
    data = (DATA / "plain.pt").read_bytes().replace(b"/data.pkl", b"/data\xff.kl")
    with pytest.raises(RuntimeError, match=r"data\.pkl"):
        strata.load(io.BytesIO(data))


def test_headers_of_every_length(tmp_path):
    """The first byte of a file is the lowest of its header's length; no length makes it another format."""
    for n in range(0, 264, 4):
        assert strata.load(io.BytesIO(packed(["x" * n]))) == ["x" * n]
        strata.save({"x" * (n + 1): strata.ones(1)}, tmp_path / "one.safetensors")
        assert list(strata.load(tmp_path / "one.safetensors")) == ["x" * (n + 1)]


@pytest.mark.parametrize("data", [b"garbage", b"x" * 1000])
@pytest.mark.parametrize("weights_only", [True, False])
def test_what_is_no_file_of_these_is_no_pickle(data, weights_only):
    with pytest.raises(pickle.UnpicklingError, match="neither a package"):
        strata.load(io.BytesIO(data), weights_only=weights_only)
