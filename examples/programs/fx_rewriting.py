"""A model as a graph: batch norm folded into convolutions, activations replaced, observers put in, calls counted."""

import copy
import math
import random
from collections import Counter

import strata as torch
from strata import fx, nn
from strata.fx.passes.shape_prop import ShapeProp
from strata.nn import functional as F

random.seed(5)


def normal(*shape):
    return torch.tensor([random.gauss(0, 0.5) for _ in range(math.prod(shape))]).reshape(shape)


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x))) + x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.blocks = nn.Conv2d(1, 4, 3), nn.Sequential(Block(4), Block(4))
        self.drop, self.head = nn.Dropout(0.5), nn.Linear(4, 3)

    def forward(self, x, scale=1.0):
        x = self.blocks(torch.relu(self.stem(x)))
        x = x.mean(dim=(2, 3)) * scale
        return F.log_softmax(self.head(self.drop(x)), dim=1)


def fold(conv, norm):
    factor = norm.weight / torch.sqrt(norm.running_var + norm.eps)
    made = copy.deepcopy(conv)
    made.weight = nn.Parameter(conv.weight * factor.view(-1, 1, 1, 1))
    made.bias = nn.Parameter((conv.bias - norm.running_mean) * factor + norm.bias)
    return made


def fold_norms(model):
    gm = fx.symbolic_trace(model)
    modules = dict(gm.named_modules())
    for node in gm.graph.nodes:
        if node.op != "call_module" or not isinstance(modules[node.target], nn.BatchNorm2d):
            continue
        before = node.args[0]
        if before.op == "call_module" and isinstance(modules[before.target], nn.Conv2d) and len(before.users) == 1:
            parent, _, name = before.target.rpartition(".")
            setattr(modules[parent], name, fold(modules[before.target], modules[node.target]))
            node.replace_all_uses_with(before)
            gm.graph.erase_node(node)
    gm.delete_all_unused_submodules()
    gm.graph.lint()
    gm.recompile()
    return gm


class Largest(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        self.seen = torch.maximum(self.seen, x.detach().abs().max())
        return x


def observe(gm):
    for i, node in enumerate(list(gm.graph.nodes)):
        if node.op == "call_module":
            gm.add_submodule(f"observer_{i}", Largest())
            with gm.graph.inserting_after(node):
                observed = gm.graph.call_module(f"observer_{i}", (node,))
            node.replace_all_uses_with(observed)
            observed.args = (node,)
    gm.recompile()
    return gm


class Counting(fx.Interpreter):
    def __init__(self, gm):
        super().__init__(gm)
        self.counts = Counter()

    def run_node(self, n):
        self.counts[n.op] += 1
        return super().run_node(n)


class Smooth(fx.Transformer):
    def call_function(self, target, args, kwargs):
        return super().call_function(F.silu, args[:1], {}) if target in (F.relu, torch.relu) else super().call_function(target, args, kwargs)


model = Net()
with torch.no_grad():
    for p in model.parameters():
        p.copy_(normal(*p.shape))
    for block in model.blocks:
        block.norm.running_mean.copy_(normal(4))
        block.norm.running_var.copy_(normal(4).abs() + 0.5)
model.eval()
x = normal(2, 1, 8, 8)
folded = fold_norms(model)
print(folded.graph)
print(folded.code)
print(torch.allclose(folded(x), model(x), atol=1e-5), len(list(folded.modules())), len(list(model.modules())))
counting = Counting(folded)
print(torch.equal(counting.run(x), folded(x)), sorted(counting.counts.items()))
ShapeProp(folded).propagate(x)
print([tuple(n.meta["tensor_meta"].shape) for n in folded.graph.nodes if "tensor_meta" in n.meta])
smooth = Smooth(folded).transform()
print(smooth.code)
print([f"{v:.3f}" for v in smooth(x).exp().flatten().tolist()])
observed = observe(copy.deepcopy(folded))
observed(x)
print({k: round(v.item(), 3) for k, v in observed.state_dict().items() if k.endswith("seen")})
matches = fx.replace_pattern(folded, lambda a, b: F.relu(a) + b, lambda a, b: torch.maximum(a + b, b))
print(len(matches), torch.allclose(folded(x), model(x), atol=1e-5))
print(folded.code)
