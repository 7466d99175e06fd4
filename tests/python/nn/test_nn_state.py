"""State dictionaries: keys, sharing, strictness, messages, hooks, versions."""

import pytest
import strata
from strata import nn


def net():
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))


KEYS = ["0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var", "1.num_batches_tracked"]


def test_keys_and_sharing():
    module = net()
    state = module.state_dict()
    assert list(state) == KEYS
    assert not state["0.weight"].requires_grad
    assert state["0.weight"].data_ptr() == module[0].weight.data_ptr()
    assert module.state_dict(keep_vars=True)["0.weight"] is module[0].weight
    assert next(iter(module.state_dict(prefix="m."))) == "m.0.weight"
    assert state._metadata["1"] == {"version": 2} and state._metadata[""] == {"version": 1}


def test_load_copies():
    source, target = net(), net()
    weight = target[0].weight
    result = target.load_state_dict(source.state_dict())
    assert str(result) == "<All keys matched successfully>"
    assert target[0].weight is weight and bool((weight == source[0].weight).all())


def test_load_assign_takes_tensors():
    source, target = net(), net()
    state = source.state_dict()
    target.load_state_dict(state, assign=True)
    assert target[0].weight.data_ptr() == source[0].weight.data_ptr()
    assert type(target[0].weight) is nn.Parameter and target[0].weight.requires_grad
    assert not hasattr(state, "assign_to_params_buffers")


def test_strict_names_what_is_wrong():
    module = net()
    state = dict(module.state_dict())
    del state["0.bias"]
    state["0.extra"] = strata.ones(1)
    state["2.weight"] = strata.ones(1)
    with pytest.raises(RuntimeError) as caught:
        module.load_state_dict(state)
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Sequential:\n"
        '\tMissing key(s) in state_dict: "0.bias". \n'
        '\tUnexpected key(s) in state_dict: "2.weight", "0.extra". '
    )
    result = module.load_state_dict(state, strict=False)
    assert result.missing_keys == ["0.bias"] and result.unexpected_keys == ["2.weight", "0.extra"]
    assert repr(result) == "IncompatibleKeys(missing_keys=['0.bias'], unexpected_keys=['2.weight', '0.extra'])" or (
        repr(result) == "_IncompatibleKeys(missing_keys=['0.bias'], unexpected_keys=['2.weight', '0.extra'])"
    )


def test_shape_mismatch():
    module = net()
    state = dict(module.state_dict())
    state["0.weight"] = strata.ones(3, 4)
    with pytest.raises(RuntimeError, match=r"size mismatch for 0.weight: copying a param with shape .*\[3, 4\].*"):
        module.load_state_dict(state, strict=False)
    with pytest.raises(RuntimeError, match="but received <class 'int'>"):
        module.load_state_dict({**module.state_dict(), "0.bias": 3})
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like"):
        module.load_state_dict(3)


def test_old_batch_norm_state():
    module = net()
    state = {k: v + 1 for k, v in module.state_dict().items()}
    del state["1.num_batches_tracked"]
    module.load_state_dict(state)  # no metadata: from before the count was saved
    loaded = module.state_dict()
    assert loaded["1.num_batches_tracked"].item() == 0
    assert all(strata.equal(loaded[k], v) for k, v in state.items())


def test_one_element_vector_loads_into_a_scalar():
    module = nn.Module()
    module.p = nn.Parameter(strata.tensor(2.0))
    module.load_state_dict({"p": strata.tensor([5.0])})
    assert float(module.p) == 5.0


def test_extra_state():
    class Extra(nn.Module):
        value = 1

        def get_extra_state(self):
            return {"value": self.value}

        def set_extra_state(self, state):
            self.value = state["value"]

    source, target = Extra(), Extra()
    source.value = 7
    assert source.state_dict() == {"_extra_state": {"value": 7}}
    target.load_state_dict(source.state_dict())
    assert target.value == 7
    with pytest.raises(RuntimeError, match=r'Missing key.*"_extra_state"'):
        target.load_state_dict({})
    with pytest.raises(RuntimeError, match=r'Unexpected key.*"_extra_state"'):
        nn.Module().load_state_dict(source.state_dict())


def test_save_hooks():
    module, log = nn.Linear(1, 1), []
    module.register_state_dict_pre_hook(lambda m, prefix, keep: log.append(prefix))
    module.register_state_dict_post_hook(lambda m, state, prefix, meta: state.pop(prefix + "bias") and None)
    assert list(nn.Sequential(module).state_dict()) == ["0.weight"] and log == ["0."]
    module._register_state_dict_hook(lambda m, state, prefix, meta: {"only": 1})
    assert module.state_dict() == {"only": 1}


def test_load_hooks():
    module, log = nn.Linear(1, 1), []

    def rename(owner, state, prefix, *rest):
        log.append(owner is module)
        state[prefix + "weight"] = state.pop(prefix + "old")

    def forgive(owner, keys):
        keys.missing_keys.clear()

    module.register_load_state_dict_pre_hook(rename)
    module.register_load_state_dict_post_hook(forgive)
    result = module.load_state_dict({"old": strata.full((1, 1), 4.0)})
    assert float(module.weight) == 4.0 and log == [True] and result.missing_keys == []


def test_positional_arguments_warn():
    with pytest.warns(FutureWarning, match="Positional args are being deprecated"):
        assert list(nn.Linear(1, 1).state_dict({}, "p.")) == ["p.weight", "p.bias"]
