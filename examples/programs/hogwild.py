"""Hogwild: two processes train one model in shared memory, without locks."""

import strata as torch
import strata.multiprocessing as mp
from strata import nn, optim
from strata.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 16)
        self.fc2 = nn.Linear(16, 2)

    def forward(self, x):
        return F.log_softmax(self.fc2(F.relu(self.fc1(x))), dim=1)


def data(rank, n=64):
    generator = torch.Generator().manual_seed(100 + rank)
    x = torch.randn(n, 4, generator=generator)
    return x, (x.sum(1) > 0).long()


def train(rank, model, steps):
    torch.manual_seed(rank)
    x, y = data(rank)
    optimizer = optim.SGD(model.parameters(), lr=0.2, momentum=0.5)
    for _ in range(steps):
        optimizer.zero_grad()
        F.nll_loss(model(x), y).backward()
        optimizer.step()


def test(model):
    x, y = data(7, 256)
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(1)
    mp.set_start_method("spawn", force=True)
    model = Net()
    model.share_memory()
    print("shared:", all(p.is_shared() for p in model.parameters()))
    before = model.fc1.weight.detach().clone()
    processes = []
    for rank in range(2):
        process = mp.Process(target=train, args=(rank, model, 60))
        process.start()
        processes.append(process)
    for process in processes:
        process.join()
        print("exit code", process.exitcode)
    print("changed:", not torch.equal(before, model.fc1.weight))
    print("accuracy above 0.9:", test(model) > 0.9)
