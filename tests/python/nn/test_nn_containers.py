"""Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict."""

from collections import OrderedDict

import pytest
import strata
from strata import nn


def named(*kinds):
    return [type(module).__name__ for module in kinds]


def test_sequential_runs_in_order():
    module = nn.Sequential(nn.Flatten(), nn.ReLU())
    assert module(strata.tensor([[[1.0, -1.0]]])).tolist() == [[1.0, 0.0]]
    assert nn.Sequential()(3) == 3
    pairs = OrderedDict(first=nn.ReLU(), second=nn.Tanh())
    assert repr(nn.Sequential(pairs)) == "Sequential(\n  (first): ReLU()\n  (second): Tanh()\n)"


def test_sequential_is_a_list():
    module = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Sigmoid())
    assert len(module) == 3 and named(*module) == ["ReLU", "Tanh", "Sigmoid"]
    assert isinstance(module[-1], nn.Sigmoid) and named(*module[1:]) == ["Tanh", "Sigmoid"]
    module[0] = nn.ELU()
    del module[1]
    assert named(*module) == ["ELU", "Sigmoid"] and list(module._modules) == ["0", "1"]
    module.append(nn.ReLU()).extend([nn.Tanh()]).insert(0, nn.GELU())
    assert named(*module) == ["GELU", "ELU", "Sigmoid", "ReLU", "Tanh"]
    assert isinstance(module.pop(1), nn.ELU)
    del module[1:3]
    assert named(*module) == ["GELU", "Tanh"] and list(module._modules) == ["0", "1"]
    assert len(module + nn.Sequential(nn.ReLU())) == 3 and len(module * 2) == 4 and len(2 * module) == 4
    module += nn.Sequential(nn.ReLU())
    module *= 2
    assert len(module) == 6


def test_sequential_errors():
    module = nn.Sequential(nn.ReLU())
    with pytest.raises(IndexError, match="index 1 is out of range"):
        module[1]
    with pytest.raises(ValueError, match="add operator supports only objects of Sequential class"):
        module + 3
    with pytest.raises(TypeError, match="unsupported operand"):
        module * 1.5
    with pytest.raises(ValueError, match="Non-positive multiplication factor 0"):
        module * 0
    with pytest.raises(IndexError, match="Index out of range: 5"):
        module.insert(5, nn.ReLU())


def test_module_list():
    modules = nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh()])
    assert repr(modules) == "ModuleList(\n  (0-1): 2 x ReLU()\n  (2): Tanh()\n)"
    modules.insert(1, nn.ELU())
    assert named(*modules) == ["ReLU", "ELU", "ReLU", "Tanh"]
    assert isinstance(modules[1:], nn.ModuleList) and len([*modules, nn.ReLU()]) == 5
    del modules[-1]
    modules += [nn.GELU()]
    assert named(*modules) == ["ReLU", "ELU", "ReLU", "GELU"] and isinstance(modules.pop(0), nn.ReLU)
    with pytest.raises(TypeError, match=r"ModuleList.extend should be called with an iterable"):
        modules.extend(3)
    with pytest.raises(NotImplementedError):
        modules(1)
    assert repr(nn.ModuleList()) == "ModuleList()"


def test_module_dict():
    modules = nn.ModuleDict({"b": nn.ReLU(), "a": nn.Tanh()})
    assert list(modules) == ["b", "a"] and "a" in modules and len(modules) == 2
    modules.update([["c", nn.ELU()]])
    modules["b"] = nn.GELU()
    assert named(*modules.values()) == ["GELU", "Tanh", "ELU"] and list(modules.keys()) == ["b", "a", "c"]
    assert isinstance(modules.pop("a"), nn.Tanh) and [k for k, _ in modules.items()] == ["b", "c"]
    del modules["b"]
    modules.clear()
    assert len(modules) == 0
    with pytest.raises(ValueError, match="element #0 has length 1; 2 is required"):
        modules.update([["c"]])


def test_parameter_list():
    values = nn.ParameterList([strata.ones(2), nn.Parameter(strata.zeros(1, 3)), "x"])
    assert isinstance(values[0], nn.Parameter) and values[-1] == "x" and len(values) == 3
    assert [name for name, _ in values.named_parameters()] == ["0", "1"]
    values.append(strata.ones(1))
    values += [strata.ones(1)]
    values[0] = strata.zeros(2)
    assert len(values) == 5 and isinstance(values[1:3], nn.ParameterList) and float(values[0].sum()) == 0.0
    text = repr(nn.ParameterList([strata.ones(2, 3), 4]))
    assert "(0): Parameter containing: [" in text and "float32 of size 2x3]" in text
    assert "(1): Object of type: int" in text
    with pytest.raises(RuntimeError, match="ParameterList should not be called"):
        values(1)
    with pytest.raises(TypeError, match=r"ParameterList.extend should be called with an iterable"):
        values.extend(strata.ones(2))


def test_parameter_dict():
    values = nn.ParameterDict({"b": strata.ones(1), "a": strata.ones(2)})
    assert list(values) == ["a", "b"]  # a plain mapping is taken in sorted order
    ordered = nn.ParameterDict(OrderedDict(b=strata.ones(1), a=strata.ones(2)))
    assert list(ordered) == ["b", "a"] and list(reversed(ordered)) == ["a", "b"]
    assert isinstance(ordered["b"], nn.Parameter) and "b" in ordered and ordered.get("z", 3) == 3
    assert ordered.setdefault("c", 5) == 5 and ordered.popitem() == ("c", 5)
    assert len(ordered | {"d": strata.ones(1)}) == 3 and len(ordered) == 2
    ordered |= {"e": strata.ones(1)}
    assert list(ordered.keys()) == ["b", "a", "e"]
    ordered.pop("e")
    del ordered["b"]
    assert [name for name, _ in ordered.named_parameters()] == ["a"]
    assert list(ordered.fromkeys(["x"], 1).items()) == [("x", 1)]
    assert len(ordered.copy()) == 1
    ordered.clear()
    assert len(ordered) == 0
    with pytest.raises(TypeError, match="it is not a string"):
        values[3]
    with pytest.raises(RuntimeError, match="ParameterDict should not be called"):
        values(1)
