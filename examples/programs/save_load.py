"""Whole models, states and checkpoints in files: a training that stops and goes on."""

import math
import os
import pickle

import strata as torch
from strata import nn


class Net(nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.hidden = hidden
        self.layers = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        self.register_buffer("scale", torch.tensor(2.0))

    def forward(self, x):
        return self.layers(x) * self.scale


def initialise(model):
    with torch.no_grad():
        for k, parameter in enumerate(model.parameters()):
            n = parameter.numel()
            values = [0.5 * math.sin(1.3 * i + k) for i in range(n)]
            parameter.copy_(torch.tensor(values).reshape(parameter.shape))


def train(model, optimizer, scheduler, epochs):
    x = torch.linspace(-1, 1, 20).reshape(10, 2)
    y = (x[:, :1] * x[:, 1:]) + 0.3
    for _ in range(epochs):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
    return loss.item()


def main():
    model = Net()
    initialise(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10, gamma=0.5)
    print(f"loss after 15 epochs: {train(model, optimizer, scheduler, 15):.4f}")

    checkpoint = {"epoch": 15, "model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}
    torch.save(checkpoint, "checkpoint.pt")
    torch.save(model, "model.pt")
    print(f"loss after 30 epochs: {train(model, optimizer, scheduler, 15):.4f}")

    resumed = Net()
    optimizer = torch.optim.Adam(resumed.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1)
    checkpoint = torch.load("checkpoint.pt", weights_only=True)
    print(resumed.load_state_dict(checkpoint["model"]))
    optimizer.load_state_dict(checkpoint["optimizer"])
    scheduler.load_state_dict(checkpoint["scheduler"])
    print(f"resumed at epoch {checkpoint['epoch']}, lr {scheduler.get_last_lr()}")
    print(f"loss after 30 epochs: {train(resumed, optimizer, scheduler, 15):.4f}")

    try:
        torch.load("model.pt")
    except pickle.UnpicklingError as error:
        print(str(error).splitlines()[0][:90])
    whole = torch.load("model.pt", weights_only=False)
    print(type(whole).__name__, whole.hidden, sum(p.numel() for p in whole.parameters()))
    with torch.serialization.safe_globals([Net, nn.Sequential, nn.Linear, nn.Tanh, set]):
        print(torch.equal(torch.load("model.pt")(torch.ones(1, 2)), whole(torch.ones(1, 2))))
    for name in ("checkpoint.pt", "model.pt"):
        os.remove(name)


if __name__ == "__main__":
    main()
