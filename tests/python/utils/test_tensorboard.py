"""Events files: records and messages are taken apart here; TensorBoard 2.20 has read such files."""

from __future__ import annotations

import struct
import zlib

import pytest
import strata
from strata.utils.tensorboard import SummaryWriter
from strata.utils.tensorboard._wire import crc32c


def fields(data):
    """{field: [values]} of a message: ints, 4 or 8 bytes, or the bytes of what is inside."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            value = varint()
        else:
            size = {1: 8, 5: 4}.get(key & 7) or varint()
            value, at = data[at : at + size], at + size
        found.setdefault(key >> 3, []).append(value)
    return found


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def events(folder):
    (path,) = [p for p in folder.iterdir() if p.name.startswith("events.out.tfevents.")]
    data, found = path.read_bytes(), []
    while data:
        (size,) = struct.unpack("<Q", data[:8])
        body = data[12 : 12 + size]
        assert struct.unpack("<I", data[8:12])[0] == masked(data[:8])
        assert struct.unpack("<I", data[12 + size : 16 + size])[0] == masked(body)
        found.append(fields(body))
        data = data[16 + size :]
    assert found[0][3] == [b"brain.Event:2"]
    return found[1:]


def values(folder):
    """{tag: (step, fields of the value)}."""
    found = {}
    for event in events(folder):
        for value in fields(event[5][0])[1]:
            one = fields(value)
            found[one[1][0].decode()] = (event.get(2, [0])[0], one)
    return found


def test_the_check_sum_is_castagnolis():
    assert crc32c(b"123456789") == 0xE3069283


def test_numbers(tmp_path):
    with SummaryWriter(tmp_path) as w:
        w.add_scalar("loss", strata.tensor([0.5], requires_grad=True), 7, walltime=3.0)
        w.add_scalar("new", 0.25, 8, new_style=True)
        w.add_scalars("both/x", {"a": 1, "b": 2.0}, 1)
        with pytest.raises(ValueError, match="expected one number"):
            w.add_scalar("two", strata.ones(2))
        assert w.get_logdir() == str(tmp_path)
    (first, *_) = events(tmp_path)
    assert struct.unpack("<d", first[1][0]) == (3.0,)
    found = values(tmp_path)
    assert found["loss"][0] == 7 and struct.unpack("<f", found["loss"][1][2][0]) == (0.5,)
    assert fields(found["new"][1][8][0])[5] == [struct.pack("<f", 0.25)]
    assert struct.unpack("<f", values(tmp_path / "both_x_b")["both/x"][1][2][0]) == (2.0,)


def test_histograms(tmp_path):
    w = SummaryWriter(str(tmp_path))
    w.add_histogram("tf", strata.tensor([-1.0, 0.0, 0.5, 2.0, 2.1]), 1)
    w.add_histogram("five", strata.arange(10.0), bins=5)
    w.add_histogram_raw("raw", 0, 2, 3, 4, 5, [1, 2], [1, 2])
    with pytest.raises(ValueError, match="expected values, got none"):
        w.add_histogram("none", [])
    w.close()
    found = {tag: fields(one[5][0]) for tag, (_, one) in values(tmp_path).items()}
    assert [struct.unpack("<d", found["five"][i][0])[0] for i in range(1, 6)] == [0.0, 9.0, 10.0, 45.0, 285.0]
    assert struct.unpack("<6d", found["five"][7][0]) == (0, 2, 2, 2, 2, 2)
    assert struct.unpack("<6d", found["five"][6][0]) == pytest.approx([0, 1.8, 3.6, 5.4, 7.2, 9])
    limits, counts = (struct.unpack(f"<{len(found['tf'][i][0]) // 8}d", found["tf"][i][0]) for i in (6, 7))
    assert len(limits) == len(counts) and counts[0] == 0 and counts[1] == 1 and sum(counts) == 5
    assert limits[0] <= -1.0 <= limits[1] and limits[-2] <= 2.1 <= limits[-1]
    assert struct.unpack("<2d", found["raw"][7][0]) == (1, 2)


def unpacked_png(data):
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height, depth, color = struct.unpack(">IIBB", data[16:26])
    at, rows = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0] == zlib.crc32(kind + body)
        rows += body if kind == b"IDAT" else b""
        at += 12 + size
    lines = zlib.decompress(rows)
    assert depth == 8 and color == 2
    return width, height, [list(lines[y * (3 * width + 1) + 1 : (y + 1) * (3 * width + 1)]) for y in range(height)]


def test_images(tmp_path):
    with SummaryWriter(tmp_path) as w:
        w.add_image("float", strata.tensor([[[0.0, 1.0]], [[0.5, 2.0]], [[0.25, -1.0]]]))
        w.add_image("int", strata.tensor([[1, 2], [3, 4]], dtype=strata.uint8), dataformats="HW")
        w.add_images("grid", strata.arange(10).view(10, 1, 1, 1))
        with pytest.raises(ValueError, match="input tensor and input format are different"):
            w.add_image("bad", strata.ones(2, 2))
    found = {tag: unpacked_png(fields(one[4][0])[4][0]) for tag, (_, one) in values(tmp_path).items()}
    assert found["float"] == (2, 1, [[0, 127, 63, 255, 255, 0]])
    assert found["int"] == (2, 2, [[1, 1, 1, 2, 2, 2], [3, 3, 3, 4, 4, 4]])
    width, height, rows = found["grid"]
    assert (width, height) == (8, 2) and [r[::3] for r in rows] == [[0, 1, 2, 3, 4, 5, 6, 7], [8, 9, 0, 0, 0, 0, 0, 0]]


def test_text_and_curves(tmp_path):
    with SummaryWriter(tmp_path) as w:
        w.add_text("note", "hello *you*", 3)
        w.add_pr_curve("pr", strata.tensor([0, 1, 1, 0]), strata.tensor([0.1, 0.8, 0.4, 0.6]), num_thresholds=11)
    found = values(tmp_path)
    assert fields(found["note/text_summary"][1][8][0])[8] == [b"hello *you*"]
    curve = strata.tensor(struct.unpack("<66f", fields(found["pr"][1][8][0])[5][0])).view(6, 11)
    assert curve[:4, 5].tolist() == [1.0, 1.0, 1.0, 1.0]  # at a threshold of 0.5
    assert curve[4, 0].item() == 0.5 and curve[5, 0].item() == 1.0 and curve[0, 10].item() == 0.0


def test_hyperparameters_graphs_and_points(tmp_path):
    with SummaryWriter(tmp_path) as w:
        w.add_hparams({"lr": 0.1, "opt": "sgd", "big": True}, {"acc": 0.5}, run_name="run")
        w.add_graph(strata.nn.Sequential(strata.nn.Linear(3, 2), strata.nn.ReLU()), strata.ones(1, 3))
        w.add_embedding(strata.ones(3, 2), metadata=["a", "b", "c"], label_img=strata.ones(3, 1, 2, 2), global_step=4)
        with pytest.raises(ValueError, match="#labels should equal"):
            w.add_embedding(strata.ones(3, 2), metadata=["a"])
        with pytest.raises(NotImplementedError, match="add_video is not provided"):
            w.add_video("v", None)
    (event,) = events(tmp_path)
    nodes = [fields(node) for node in fields(event[4][0])[1]]
    assert nodes[-2][2] == [b"aten.relu.default"] and nodes[-2][3] == [b"linear"] and nodes[-1][2] == [b"output"]
    found = values(tmp_path / "run")
    assert set(found) == {"_hparams_/experiment", "_hparams_/session_start_info", "_hparams_/session_end_info", "acc"}
    content = fields(fields(found["_hparams_/experiment"][1][9][0])[1][0])[2][0]
    infos = [fields(info) for info in fields(fields(content)[2][0])[4]]
    assert [(i[1][0], i[4][0]) for i in infos] == [(b"lr", 3), (b"opt", 1), (b"big", 2)]
    assert (tmp_path / "00004/default/tensors.tsv").read_text() == "1.0\t1.0\n" * 3
    assert (tmp_path / "00004/default/metadata.tsv").read_text() == "a\nb\nc\n"
    assert 'sprite {\nimage_path: "00004/default/sprite.png"' in (tmp_path / "projector_config.pbtxt").read_text()


def test_a_writer_makes_its_folder_and_writes_at_flush(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    w = SummaryWriter(comment="_here")
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.endswith("_here")
    w.add_scalar("a", 1.0)
    w.flush()
    assert "a" in values(folder)
    w.close()
