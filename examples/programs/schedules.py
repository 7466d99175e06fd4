"""Learning rates over time: warm-up, cosine, one cycle, plateau; averaged weights; clipping; accumulation."""

import math

import strata as torch
from strata import nn
from strata.optim import lr_scheduler, swa_utils


def model():
    made = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    with torch.no_grad():
        for k, parameter in enumerate(made.parameters()):
            values = [0.5 * math.cos(0.8 * i + k) for i in range(parameter.numel())]
            parameter.copy_(torch.tensor(values).reshape(parameter.shape))
    return made


def trace(make, steps=8, lr=0.1):
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=lr)
    schedule, rates = make(optimizer), []
    for _ in range(steps):
        rates.append(round(optimizer.param_groups[0]["lr"], 5))
        optimizer.step()
        schedule.step()
    return rates


print("step", trace(lambda o: lr_scheduler.StepLR(o, 3, 0.5)))
print("multi", trace(lambda o: lr_scheduler.MultiStepLR(o, [2, 5], 0.1)))
print("cosine", trace(lambda o: lr_scheduler.CosineAnnealingLR(o, 8)))
print("restarts", trace(lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3, 2)))
print("cycle", trace(lambda o: lr_scheduler.OneCycleLR(o, 0.4, total_steps=9)))
print("lambda", trace(lambda o: lr_scheduler.LambdaLR(o, lambda epoch: 0.9**epoch)))
print(
    "warm-up",
    trace(
        lambda o: lr_scheduler.SequentialLR(
            o, [lr_scheduler.LinearLR(o, 0.1, total_iters=3), lr_scheduler.ExponentialLR(o, 0.8)], milestones=[3]
        )
    ),
)

x = torch.linspace(-1, 1, 36).reshape(12, 3)
y = x.sum(1, keepdim=True) ** 2
net = model()
optimizer = torch.optim.AdamW(net.parameters(), lr=0.05, weight_decay=0.01)
plateau = lr_scheduler.ReduceLROnPlateau(optimizer, patience=2, factor=0.5)
average = swa_utils.AveragedModel(net)
for epoch in range(1, 31):
    optimizer.zero_grad()
    for part in range(3):  # three pieces make one step
        piece = slice(4 * part, 4 * part + 4)
        (nn.functional.smooth_l1_loss(net(x[piece]), y[piece]) / 3).backward()
    norm = nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    optimizer.step()
    with torch.no_grad():
        loss = nn.functional.smooth_l1_loss(net(x), y)
    plateau.step(loss)
    if epoch > 20:
        average.update_parameters(net)
    if epoch in (1, 5, 10):
        print(f"epoch {epoch}: loss {loss.item():.3f} norm {norm.item():.3f} lr {plateau.get_last_lr()}")
swa_utils.update_bn(torch.utils.data.DataLoader(x, batch_size=4), average)
print(int(average.n_averaged), "averaged,", sum(p.numel() for p in average.parameters()), "parameters")
