"""strata.load of PyTorch's files: equal to what torch.load gave when they were recorded, and refusals."""

import io
import json
import pickle
import zipfile
from pathlib import Path

import pt_cases
import pytest
import strata
from strata import nn

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
    strata.save(strata.load(DATA / f"{name}.pt"), tmp_path / "again")
    assert pt_cases.describe(strata.load(tmp_path / "again")) == RECORDED[name]


@pytest.mark.parametrize("name", [*pt_cases.REFUSED])
def test_other_content_is_refused(name):
    with pytest.raises(RuntimeError) as info:
        strata.load(DATA / f"{name}.pt")
    assert pt_cases.REFUSED[name][2] in str(info.value)


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


def test_nothing_of_a_file_is_run():
    for protocol in range(2, 6):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("archive/data.pkl", pickle.dumps({"a": [Evil()]}, protocol=protocol))
        with pytest.raises(RuntimeError, match="_run.*nothing was run"):
            strata.load(io.BytesIO(file.getvalue()), weights_only=False)
    assert not Evil.ran


def test_plain_pickles_name_the_way_out(tmp_path):
    (tmp_path / "f").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(RuntimeError, match="bare pickle.*load it with PyTorch"):
        strata.load(tmp_path / "f")
