"""Objects whose .pt files are recorded from PyTorch, and `describe`: what an object is, as JSON, whichever library made it.

tools/record_pt.py writes tests/data/io/<name>.pt and what `describe` says of torch.load's result; the tests ask the same
of strata.load's result.
"""

from __future__ import annotations

import collections
import math


def _number(value):
    if isinstance(value, complex):
        return [_number(value.real), _number(value.imag)]
    if isinstance(value, float):
        return value.hex() if math.isfinite(value) else str(value)
    return value


def _flat(value):
    return [item for part in value for item in _flat(part)] if isinstance(value, list) else [_number(value)]


def describe(obj):
    """A JSON value: exact numbers, types, shapes, strides, order, and which objects and storages are one."""
    return _Describer().run(obj)


class _Describer:
    def __init__(self):
        self.objects, self.storages, self.kept = {}, {}, []

    def run(self, o):
        kind = type(o).__name__
        if o is None or isinstance(o, (bool, str)):
            return o
        if isinstance(o, int):
            return {kind: str(o)}
        if isinstance(o, (float, complex)):
            return {kind: _number(o)}
        if isinstance(o, (bytes, bytearray)):
            return {kind: bytes(o).hex()}
        if kind in ("dtype", "layout", "device"):
            return {kind: str(o).split(".")[-1]}
        if id(o) in self.objects:
            return {"again": self.objects[id(o)]}
        if kind != "tuple":  # which equal tuples are one object is the business of neither library
            self.objects[id(o)] = len(self.objects)
        self.kept.append(o)
        if isinstance(o, (set, frozenset)):
            return {kind: sorted((self.run(item) for item in o), key=str)}
        if isinstance(o, (list, tuple)):
            return {kind: [self.run(item) for item in o]}
        if isinstance(o, dict):
            found = {kind: [[self.run(key), self.run(item)] for key, item in o.items()]}
            if getattr(o, "__dict__", None) and kind == "OrderedDict":
                found["attributes"] = self.run(dict(o.__dict__))
            return found
        return self.tensor(o, kind)

    def tensor(self, t, kind):
        storage = t.untyped_storage().data_ptr()
        if t.numel():
            storage = self.storages.setdefault(storage, len(self.storages))
        else:
            storage = None
        buffer = getattr(t, "_is_buffer", False) or kind == "Buffer"
        attributes = {k: v for k, v in vars(t).items() if k not in ("_is_buffer", "persistent")}
        return {
            "Buffer" if buffer else kind: str(t.dtype).split(".")[-1],
            "shape": list(t.shape),
            "stride": list(t.stride()),
            "requires_grad": t.requires_grad,
            "storage": storage,
            "values": _flat(t.detach().tolist()),
            "attributes": self.run(attributes),
        }


def net(torch):
    torch.manual_seed(3)
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3))


def state_dict(torch):
    return net(torch).state_dict()


def training(torch):
    model = net(torch)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, betas=(0.8, 0.99))
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2, 5, 5])
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(2):
        model(torch.linspace(-1, 1, 32).reshape(2, 1, 4, 4)).square().sum().backward()
        optimizer.step()
        sgd.step()
    schedule.step()
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "sgd": sgd.state_dict(),
        "schedule": schedule.state_dict(),
        "epoch": 7,
        "best": math.inf,
    }


def dtypes(torch):
    names = "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128"
    values = {}
    for name in names.split():
        kind = getattr(torch, name)
        values[name] = torch.tensor([0, 1, 3, 2], dtype=torch.float64).to(kind).reshape(2, 2)
        values[name + "_scalar"] = torch.ones((), dtype=kind)
        values[name + "_empty"] = torch.zeros((2, 0, 3), dtype=kind)
    values["special"] = torch.tensor([math.nan, math.inf, -math.inf, -0.0, 1e-45])
    return values


def views(torch):
    base = torch.arange(12.0).reshape(3, 4)
    pair = torch.arange(4.0)
    return {
        "base": base,
        "transposed": base.t(),
        "row": base[1],
        "column": base[:, 2],
        "steps": base[::2, 1::2],
        "expanded": base[0, 0].expand(2, 3),
        "same": base,
        "list": [pair, pair[1:], pair],
    }


def parameters(torch):
    weight = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3))
    frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    noted = torch.nn.Parameter(torch.zeros(2))
    noted.note = "kept"
    return {
        "weight": weight,
        "tied": weight,
        "frozen": frozen,
        "noted": noted,
        "leaf": torch.ones(3, requires_grad=True),
        "history": torch.ones(2, requires_grad=True) * 2,
        "buffer": torch.nn.Buffer(torch.ones(2)),
    }


def plain(torch):
    shared = [1, 2]
    return {
        "none": None,
        "bools": [True, False],
        "ints": [0, 1, -1, 255, 256, 65535, 65536, -(2**31), 2**31, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 2**200, -(2**71)],
        "floats": [0.0, -0.0, 1.5, math.inf, -math.inf, math.nan, 5e-324, 1.7976931348623157e308, 0.1],
        "complex": [1j, complex(math.inf, -0.0)],
        "text": ["", "a", "ä€𝄞", "line\nline\0end", "x" * 300],
        "bytes": [b"", b"ab\xff\x00", bytearray(b"\x01\x80")],
        "nested": {"a": ({"b": [(), [], {}, ((1,),)]}, 2)},
        "keys": {1: "int", (1, "a"): "tuple", None: "none", 2.5: "float", True: "bool-and-one", "": "empty"},  # noqa: F601
        "sets": [{1, 2, 3}, set(), {"a", (1, 2)}],
        "ordered": collections.OrderedDict([("z", 1), ("a", 2)]),
        "counter": collections.Counter("abca"),
        "size": torch.Size([1, 2, 3]),
        "device": torch.device("cpu"),
        "dtypes": [torch.float32, torch.bfloat16, torch.int64, torch.bool],
        "layout": torch.strided,
        "shared": [shared, shared, (shared,)],
    }


# name: (maker, keyword arguments of torch.save)
LOADED = {
    "state_dict": (state_dict, {}),
    "training": (training, {}),
    "dtypes": (dtypes, {}),
    "views": (views, {}),
    "parameters": (parameters, {}),
    "plain": (plain, {}),
    "plain3": (plain, {"pickle_protocol": 3}),
    "plain4": (plain, {"pickle_protocol": 4}),
    "plain5": (plain, {"pickle_protocol": 5}),
    "state_dict4": (state_dict, {"pickle_protocol": 4}),
    "views5": (views, {"pickle_protocol": 5}),
}


class Custom:
    pass


def whole(torch):
    """Whole objects, which are unpickled: layers that PyTorch has in other files than we, an optimiser with its schedule."""
    nn = torch.nn
    torch.manual_seed(0)
    layers = {
        "attention": nn.MultiheadAttention(4, 2),
        "encoder": nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.0, "gelu", batch_first=True), 1),
        "lstm": nn.LSTM(4, 3, 2, bidirectional=True, proj_size=2),
        "gru_cell": nn.GRUCell(4, 3),
        "conv": nn.Sequential(nn.Conv1d(1, 4, 3), nn.ChannelShuffle(2), nn.Upsample(scale_factor=2), nn.BatchNorm1d(4)),
        "list": nn.ParameterList([torch.ones(2), torch.zeros(1)]),
    }
    net = nn.ModuleDict(layers)
    optimizer = torch.optim.SGD(net["gru_cell"].parameters(), lr=0.1, momentum=0.9)
    net["gru_cell"](torch.ones(2, 4)).sum().backward()
    optimizer.step()
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    return {"net": net, "optimizer": optimizer, "schedule": schedule, "custom": Custom(), "relu": nn.functional.relu}


def run_whole(torch, obj):
    """What the loaded objects compute, as numbers."""
    net, found = obj["net"].eval(), {}
    x = torch.linspace(-1, 1, 12).reshape(1, 3, 4)
    found["attention"] = net["attention"](x, x, x)[0]
    found["encoder"] = net["encoder"](x)
    found["lstm"] = net["lstm"](x)[0]
    found["conv"] = net["conv"](x.reshape(1, 1, 12))
    found["list"] = obj["relu"](net["list"][0] - 0.5)
    net["gru_cell"](x[0]).sum().backward()
    obj["optimizer"].step()
    obj["schedule"].step()
    found["gru_cell"] = net["gru_cell"].weight_ih
    result = {name: [round(v, 5) for v in value.flatten().tolist()] for name, value in found.items()}
    return {**result, "lr": obj["schedule"].get_last_lr(), "custom": type(obj["custom"]).__name__}


# Files that must raise, and a part of the message.
REFUSED = {
    "module": (lambda torch: torch.nn.Linear(1, 1), {}, "torch.nn.modules.linear.Linear"),
    "custom": (lambda torch: {"a": Custom()}, {}, "pt_cases.Custom"),
}
