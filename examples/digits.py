"""Trains a small convolutional network on real handwriting and writes a report: `./run demo`.

Data: the 1,797 digits of 8 x 8 pixels that scikit-learn ships (Alpaydin and Kaynak, 1998). A fifth is held out.
examples/cpp_digits is the same program in C++, whose losses have the same bits.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import strata as torch
import strata.nn as nn
from compiled_step import compiled_step
from digits_report import add_graph, write_report
from strata.nn import functional as F
from strata.safetensors import load_file, save_file
from strata.utils.data import DataLoader, TensorDataset
from tqdm import tqdm


class Net(nn.Module):
    """Two convolutions with batch norm, then two linear layers with dropout. Input [N, 1, 8, 8], output [N, 10]."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(64 * 16, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 10))

    def forward(self, x):
        return self.head(self.features(x))


def load_digits() -> tuple[np.ndarray, np.ndarray]:
    """Pixels [1797, 1, 8, 8] in [0, 1] and labels [1797], read from the file inside scikit-learn's package."""
    import importlib.util

    package = Path(importlib.util.find_spec("sklearn").origin).parent
    table = np.loadtxt(package / "datasets/data/digits.csv.gz", delimiter=",", dtype=np.float32)
    return table[:, :-1].reshape(-1, 1, 8, 8) / 16.0, table[:, -1].astype(np.int64)


def evaluate(model, images, labels) -> tuple[float, np.ndarray]:
    """Share of right answers, and the predictions."""
    model.eval()
    with torch.no_grad():
        predicted = model(images).argmax(dim=1)
    model.train()
    return (predicted == labels).float().mean().item(), predicted.numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out"))
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    images, labels = load_digits()
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(args.seed))
    held = len(images) // 5
    test_images, test_labels = (torch.from_numpy(a)[order[:held]] for a in (images, labels))
    train = TensorDataset(*(torch.from_numpy(a)[order[held:]] for a in (images, labels)))
    loader = DataLoader(train, batch_size=args.batch, shuffle=True)

    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    steps = args.epochs * len(loader)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=steps, cycle_momentum=False)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters; {len(train)} images to train on, {held} held out")

    def step(batch, target):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch), target)
        loss.backward()
        optimizer.step()
        return loss

    # The first epochs run operator by operator, the others as one compiled graph; batches of another size stay eager.
    eager_epochs, graph, compiled = max(1, args.epochs // 3), None, None
    losses: list[float] = []
    spent, done = {"eager": 0.0, "compiled": 0.0}, {"eager": 0, "compiled": 0}
    start = time.perf_counter()
    for epoch in range(args.epochs):
        bar = tqdm(loader, desc=f"epoch {epoch + 1:2d}/{args.epochs}", unit="batch", leave=epoch == args.epochs - 1)
        for batch, target in bar:
            if epoch >= eager_epochs and compiled is None and len(batch) == args.batch:
                began = time.perf_counter()
                graph, compiled = compiled_step(step, model, optimizer, batch, target)
                tqdm.write(f"one step as a graph, captured, compiled and compared in {time.perf_counter() - began:.2f} s: loss, weights and state have eager's bits")
            form = "compiled" if compiled and len(batch) == args.batch else "eager"
            began = time.perf_counter()
            losses.append((compiled if form == "compiled" else step)(batch, target).item())
            if len(batch) == args.batch:
                spent[form] += time.perf_counter() - began
                done[form] += 1
            schedule.step()
            bar.set_postfix(loss=f"{losses[-1]:.3f}")
    seconds = time.perf_counter() - start
    accuracy, predicted = evaluate(model, test_images, test_labels)
    rate = args.epochs * len(train) / seconds
    print(f"trained in {seconds:.1f} s: {rate:,.0f} images/s; {accuracy:.2%} of the held-out images are read rightly")

    speed = {form: 1e3 * spent[form] / max(done[form], 1) for form in spent}
    print(f"a step of {args.batch} images: {speed['eager']:.2f} ms eager, {speed['compiled']:.2f} ms compiled")

    args.out.mkdir(parents=True, exist_ok=True)
    weights = args.out / "digits.safetensors"
    save_file(model.state_dict(), weights)
    again = Net()
    again.load_state_dict(load_file(weights))
    _, reread = evaluate(again, test_images, test_labels)
    same = bool((reread == predicted).all())
    print(f"saved {weights} and loaded it again: predictions {'are the same' if same else 'DIFFER'}")
    report = args.out / "digits.html"
    write_report(report, losses, len(loader), test_images.numpy()[:, 0], test_labels.numpy(), predicted, accuracy, rate, seconds)
    if compiled is not None:
        picture = args.out / "digits_step.svg"
        graph.draw(str(picture))
        add_graph(report, speed, picture.name, compiled)
    print(f"report: {report}")
    if not same or accuracy < 0.98:
        raise SystemExit("the demo did not reach its goal of 98 % and equal predictions")


if __name__ == "__main__":
    main()
