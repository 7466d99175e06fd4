"""Trains a small GPT on bytes of real text, as one compiled step, and lets it write: the second part of `./run demo`.

Text: the Python files of the interpreter's own standard library. A twentieth of the files is held out.
"""

from __future__ import annotations

import argparse
import math
import sysconfig
import time
from html import escape
from pathlib import Path

import numpy as np
import strata as torch
import strata.nn as nn
from compiled_step import compiled_step
from digits_report import STYLE, add_graph, loss_curve
from strata.nn import functional as F
from tqdm import tqdm

WINDOW = 128  # bytes that the model sees


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.before_attention(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.before_mlp(x))


class GPT(nn.Module):
    """Bytes [B, T] in, scores of the next byte [B, T, 256] out, for T up to WINDOW."""

    def __init__(self, width: int = 128, heads: int = 4, layers: int = 4) -> None:
        super().__init__()
        self.byte, self.place = nn.Embedding(256, width), nn.Embedding(WINDOW, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 256)
        for p in (self.byte.weight, self.place.weight, self.head.weight):
            nn.init.normal_(p, std=0.02)

    def forward(self, tokens):
        x = self.byte(tokens) + self.place(torch.arange(tokens.shape[1]))
        return self.head(self.norm(self.blocks(x)))


def load_text(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Bytes to train on and bytes of other files."""
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    texts = [np.frombuffer(f.read_bytes() + b"\n", dtype=np.uint8) for f in files]
    order = np.random.default_rng(seed).permutation(len(texts))
    held = max(1, len(texts) // 20)
    return tuple(np.concatenate([texts[i] for i in part]) for part in (order[held:], order[:held]))


def batch_of(text: np.ndarray, count: int, rng: np.random.Generator):
    """Windows of bytes and the bytes that follow each."""
    starts = rng.integers(0, len(text) - WINDOW - 1, count)
    windows = np.stack([text[s : s + WINDOW + 1] for s in starts]).astype(np.int64)
    return torch.from_numpy(windows[:, :-1].copy()), torch.from_numpy(windows[:, 1:].copy())


def loss_of(model, x, y):
    return F.cross_entropy(model(x).view(-1, 256), y.view(-1))


def write(model, prompt: bytes, count: int, temperature: float) -> str:
    """What the model goes on with: `count` bytes, drawn one after the other by a compiled graph of one window."""
    text = list(prompt)
    with torch.no_grad():
        forward = torch.graph(model, torch.zeros(1, WINDOW, dtype=torch.int64)).compile()
        for _ in tqdm(range(count), desc="writing", unit="byte", leave=False):
            seen = text[-WINDOW:]
            tokens = torch.tensor([seen + [0] * (WINDOW - len(seen))])  # what comes after the last byte is not looked at
            scores = forward(tokens)[0, len(seen) - 1] / temperature
            text.append(int(torch.multinomial(scores.softmax(0), 1)))
    return bytes(text).decode("utf-8", "replace")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="of training")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out"))
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    train, held = load_text(args.seed)
    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.05)
    optimizer.init_state()
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters; {len(train):,} bytes to train on, {len(held):,} of other files")

    def step(x, y):
        optimizer.zero_grad()
        loss = loss_of(model, x, y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    x, y = batch_of(train, args.batch, rng)
    began = time.perf_counter()
    graph, compiled = compiled_step(step, model, optimizer, x, y)
    print(f"the step as a graph, captured, compiled and compared in {time.perf_counter() - began:.2f} s: loss, weights and state have eager's bits")
    speed = {}
    for form, f in (("eager", step), ("compiled", compiled)):
        f(x, y)
        began = time.perf_counter()
        for _ in range(5):
            f(x, y)
        speed[form] = 200 * (time.perf_counter() - began)
    print(f"a step of {args.batch} windows: {speed['eager']:.1f} ms eager, {speed['compiled']:.1f} ms compiled")

    losses: list[float] = []
    start, done = time.perf_counter(), 0.0
    with tqdm(total=round(args.seconds), desc="training", unit="s", bar_format="{l_bar}{bar}| {n_fmt}/{total_fmt} s{postfix}") as bar:
        while done < 1:
            # The graph reads the rate anew at each call.
            optimizer.param_groups[0]["lr"] = 3e-3 * min(1.0, (len(losses) + 1) / 50) * (0.05 + 0.95 * (1 + math.cos(math.pi * done)) / 2)
            losses.append(compiled(*batch_of(train, args.batch, rng)).item())
            done = (time.perf_counter() - start) / args.seconds
            bar.n = min(round(done * args.seconds), bar.total)
            bar.set_postfix_str(f"loss {losses[-1]:.2f}", refresh=len(losses) % 10 == 0)
    seconds = time.perf_counter() - start

    with torch.no_grad():
        held_loss = float(np.mean([loss_of(model, *batch_of(held, 32, rng)).item() for _ in range(8)]))
    counts = np.bincount(train, minlength=256) / len(train)
    plain = float(-(counts[counts > 0] * np.log(counts[counts > 0])).sum())
    print(f"{len(losses)} steps in {seconds:.0f} s, {len(losses) * args.batch * WINDOW / seconds:,.0f} bytes/s; "
          f"{held_loss / math.log(2):.2f} bits for each byte of other files ({plain / math.log(2):.2f} by how frequent bytes are)")
    sample = write(model, b"def ", 400, 0.7)
    print(f"it writes:\n{sample}")

    args.out.mkdir(parents=True, exist_ok=True)
    report = args.out / "language.html"
    report.write_text(f"""<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Strata: writing Python</title><style>{STYLE} pre {{ white-space: pre-wrap; }}</style>
<h1>Writing Python</h1>
<p>A GPT of {sum(p.numel() for p in model.parameters()):,} parameters, trained on the CPU by Strata on the bytes of Python's standard library.</p>
<div class="facts"><div><b>{held_loss / math.log(2):.2f}</b>bits for each byte of files that it has not seen</div>
<div><b>{len(losses) * args.batch * WINDOW / seconds:,.0f}</b>bytes a second in training</div><div><b>{seconds:.0f} s</b>of training</div></div>
<h2>What it writes</h2><pre>{escape(sample)}</pre>
<h2>Loss</h2><p>Nats for each byte: each step in grey, means of a twentieth of the training in orange.</p>
{loss_curve(losses, max(1, len(losses) // 20))}
</html>""")
    picture = args.out / "language_step.svg"
    graph.draw(str(picture))
    add_graph(report, speed, picture.name, compiled)
    print(f"report: {report}")
    if held_loss >= plain:
        raise SystemExit("the demo did not reach its goal: it predicts bytes no better than their frequencies do")


if __name__ == "__main__":
    main()
