"""Names that programs import, and what they do: vmap, masks, fused losses, data parallelism, profiling."""

import strata as torch
import strata.nn.functional as F
from strata import nn
from strata.autograd.variable import Variable
from strata.func import functional_call, grad, stack_module_state, vmap
from strata.masked import masked_tensor
from strata.nn.common_types import _size_2_t  # noqa: F401
from strata.nn.modules.activation import MultiheadAttention
from strata.nn.modules.upsampling import Upsample
from strata.nn.parameter import Parameter
from strata.profiler import ProfilerActivity, profile
from strata.utils.data._utils.collate import default_collate

print(MultiheadAttention, Upsample, Parameter, isinstance(Variable(torch.ones(1)), torch.Tensor))
print(list(ProfilerActivity.__members__), default_collate([{"a": 1, "b": torch.ones(2)}, {"a": 2, "b": torch.zeros(2)}]))
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
    torch.ones(2) + 1
print(any("add" in event.key for event in found.key_averages()))

# vmap: gradients of each sample, ensembles, several dims, structures.
x, y = torch.arange(6.0).reshape(3, 2), torch.tensor([1.0, 0.0, 2.0])
w = torch.tensor([0.5, -1.0])
print(vmap(grad(lambda w, x, y: (x @ w - y) ** 2), in_dims=(None, 0, 0))(w, x, y))
print(torch.vmap(torch.dot)(x, x), vmap(lambda a, b: a * b, in_dims=(1, None), out_dims=1)(x, torch.arange(3.0)))
print(vmap(lambda d: {"s": d["a"].sum(), "p": d["b"] + 1})({"a": x, "b": y}))
models = [nn.Linear(2, 1) for _ in range(2)]
with torch.no_grad():
    for i, model in enumerate(models):
        model.weight.fill_(i + 1.0)
        model.bias.fill_(0.5)
params, buffers = stack_module_state(models)
print(vmap(lambda p, b, x: functional_call(models[0], (p, b), (x,)), in_dims=(0, 0, None))(params, buffers, x).detach())
for wrong in (lambda: vmap(torch.dot)(x, torch.ones(2, 2)), lambda: vmap(lambda a: 1)(x), lambda: vmap(lambda: 1)()):
    try:
        print(wrong())
    except (ValueError, RuntimeError) as error:
        print(type(error).__name__)

# A linear layer and its loss in one.
head = nn.LinearCrossEntropyLoss(2, 3, bias=True, label_smoothing=0.1)
with torch.no_grad():
    head.linear.weight.copy_(torch.arange(6.0).reshape(3, 2) / 10)
    head.linear.bias.copy_(torch.tensor([0.1, 0.0, -0.1]))
print(head, list(head.state_dict()))
print(head(x, torch.tensor([0, 2, 1])).item().__format__(".4f"))
print(F.linear_cross_entropy(x, torch.ones(3, 4, 2) / 5, torch.zeros(3, 4, dtype=torch.long)).item().__format__(".4f"))

# Masks.
data, mask = torch.tensor([[1.0, 2, 3], [4, 5, 6]]), torch.tensor([[True, False, True], [False, False, False]])
for name in ("sum", "prod", "amax", "amin", "mean"):
    print(name, getattr(torch.masked, name)(data, 1, mask=mask))
print(torch.masked.softmax(data, 1, mask=mask)[0], torch.masked.var(data[:1], 1, mask=mask[:1]), torch.masked.cumsum(data, 1, mask=mask))
print(torch.masked.norm(data, 2.0, 1, mask=mask), torch.masked.normalize(data, 2.0, 1, mask=mask), torch.masked.mean(data, mask=mask))
m = masked_tensor(data, mask)
print(m, m + 1, m * m, m.sum(), m.sum(1), m.get_mask(), m.to_tensor(0), m.exp(), m[0])

# Data parallelism without devices, and gradients of convolutions.
net = nn.DataParallel(nn.Linear(2, 1))
print(list(net.state_dict()), net(x).shape)
weight, image = torch.ones(1, 1, 2, 2), torch.arange(9.0).reshape(1, 1, 3, 3)
print(torch.nn.grad.conv2d_input(image.shape, weight, torch.ones(1, 1, 2, 2)), torch.nn.grad.conv2d_weight(image, weight.shape, torch.ones(1, 1, 2, 2)))
print(torch.norm_except_dim(x, 2, 0), torch.frobenius_norm(x, 1), torch.get_deterministic_debug_mode(), torch.sym_max(2, 3))
print(x.storage().size(), x.storage()[3], torch.FloatStorage([1, 2]).tolist())

# Futures.
future = torch.futures.Future()
doubled = future.then(lambda f: f.value() * 2)
future.set_result(torch.tensor(3.0))
print(doubled.wait(), doubled.done(), torch.futures.wait_all([future, doubled]))
failed = torch.futures.Future()
failed.set_exception(ValueError("no"))
try:
    failed.wait()
except ValueError as error:
    print(error)
