"""The HTML report of the digits demo: loss curve, confusion matrix and wrongly read digits, drawn as SVG by hand."""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1c2733; background: #fbfaf8; }
h1 { font-weight: 600; } h2 { font-weight: 600; margin-top: 2.2rem; }
.facts { display: flex; gap: 2.5rem; flex-wrap: wrap; margin: 1.5rem 0; }
.facts b { display: block; font-size: 1.7rem; font-weight: 600; }
.digits { display: flex; flex-wrap: wrap; gap: 1rem; } figure { margin: 0; text-align: center; }
svg text { font: 12px system-ui, sans-serif; fill: #4a5866; }
"""


def loss_curve(losses: list[float], per_epoch: int) -> str:
    """Loss of every step on a logarithmic scale, with the mean of each epoch over it."""
    w, h, left, bottom = 880, 300, 48, 28
    values = np.maximum(np.asarray(losses), 1e-4)
    low, high = np.floor(np.log10(values.min())), np.ceil(np.log10(values.max()))

    def x(i: float) -> float:
        return left + i / max(len(values) - 1, 1) * (w - left - 8)

    def y(v: float) -> float:
        return 8 + (high - np.log10(v)) / max(high - low, 1) * (h - bottom - 8)

    parts = [f'<svg viewBox="0 0 {w} {h}" role="img" aria-label="Loss by step">']
    for power in range(int(low), int(high) + 1):
        at = y(10.0**power)
        parts.append(f'<line x1="{left}" x2="{w - 8}" y1="{at:.1f}" y2="{at:.1f}" stroke="#e2ddd4"/>'
                     f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    line = " ".join(f"{x(i):.1f},{y(v):.1f}" for i, v in enumerate(values))
    parts.append(f'<polyline points="{line}" fill="none" stroke="#b9c4cf" stroke-width="1"/>')
    means = [values[i : i + per_epoch].mean() for i in range(0, len(values), per_epoch)]
    line = " ".join(f"{x((i + 0.5) * per_epoch):.1f},{y(v):.1f}" for i, v in enumerate(means))
    parts.append(f'<polyline points="{line}" fill="none" stroke="#c2410c" stroke-width="2.5"/>')
    for i in range(len(means)):
        parts.append(f'<text x="{x((i + 0.5) * per_epoch):.1f}" y="{h - 8}" text-anchor="middle">{i + 1}</text>')
    return "".join(parts) + "</svg>"


def confusion(labels: np.ndarray, predicted: np.ndarray) -> str:
    """Counts of (digit, reading); the diagonal is right."""
    counts = np.zeros((10, 10), dtype=int)
    np.add.at(counts, (labels, predicted), 1)
    cell, left = 38, 60
    size = left + 10 * cell + 8
    parts = [f'<svg viewBox="0 0 {size} {size}" style="max-width:32rem" role="img" aria-label="Confusion matrix">']
    for i in range(10):
        parts.append(f'<text x="{left - 10}" y="{left + (i + 0.6) * cell:.0f}" text-anchor="end">{i}</text>'
                     f'<text x="{left + (i + 0.5) * cell:.0f}" y="{left - 10}" text-anchor="middle">{i}</text>')
        for j in range(10):
            n = counts[i, j]
            strength = n / max(counts[i].max(), 1)
            color = f"rgba(15,118,110,{0.08 + 0.8 * strength:.2f})" if i == j else f"rgba(194,65,12,{min(0.25 + 0.2 * n, 0.9):.2f})"
            fill = color if n else "#f1ede6"
            parts.append(f'<rect x="{left + j * cell}" y="{left + i * cell}" width="{cell - 2}" height="{cell - 2}" rx="3" fill="{fill}"/>')
            if n:
                ink = "#fff" if strength > 0.5 else "#1c2733"
                parts.append(f'<text x="{left + (j + 0.48) * cell:.0f}" y="{left + (i + 0.6) * cell:.0f}" text-anchor="middle" style="fill:{ink}">{n}</text>')
    parts.append(f'<text x="{left + 5 * cell}" y="14" text-anchor="middle">read as</text><text x="14" y="{left + 5 * cell}">digit</text>')
    return "".join(parts) + "</svg>"


def digit(image: np.ndarray) -> str:
    squares = "".join(f'<rect x="{c}" y="{r}" width="1.02" height="1.02" fill="rgba(28,39,51,{image[r, c]:.2f})"/>'
                      for r in range(8) for c in range(8) if image[r, c] > 0)
    return f'<svg viewBox="0 0 8 8" width="88" height="88" style="background:#fff;border:1px solid #e2ddd4">{squares}</svg>'


def write_report(path: Path, losses: list[float], per_epoch: int, images: np.ndarray, labels: np.ndarray,
                 predicted: np.ndarray, accuracy: float, rate: float, seconds: float) -> None:
    wrong = np.flatnonzero(labels != predicted)
    figures = "".join(f"<figure>{digit(images[i])}<figcaption>{labels[i]} read as {predicted[i]}</figcaption></figure>" for i in wrong)
    page = f"""<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Strata: reading digits</title><style>{STYLE}</style>
<h1>Reading handwritten digits</h1>
<p>A convolutional network with batch norm and dropout, trained on the CPU by Strata on the digits that scikit-learn ships.</p>
<div class="facts"><div><b>{accuracy:.2%}</b>of {len(labels)} held-out images read rightly</div>
<div><b>{rate:,.0f}</b>images a second in training</div><div><b>{seconds:.1f} s</b>of training</div></div>
<h2>Loss</h2><p>Each step in grey, the mean of each epoch in orange; the epochs are numbered below.</p>{loss_curve(losses, per_epoch)}
<h2>What was read as what</h2>{confusion(labels, predicted)}
<h2>{escape(f"{len(wrong)} wrongly read digits" if len(wrong) else "No digit was read wrongly")}</h2><div class="digits">{figures}</div>
</html>"""
    path.write_text(page)


def add_graph(path: Path, speed: dict[str, float], picture: str, compiled) -> None:
    """What the compiled step is: its times, its operators as a picture, its kernels, its memory."""
    texts = {"What became of the operators": compiled.explain(), "Kernels": compiled.source(), "Memory between them": compiled.memory_plan()}
    parts = "".join(f"<details><summary>{name}</summary><pre>{escape(text)}</pre></details>" for name, text in texts.items())
    section = f"""<h2>The training step as a graph</h2>
<p>Compiled, a step takes {speed["compiled"]:.2f} ms, operator by operator {speed["eager"]:.2f} ms, with the same bits.
Its operators are <a href="{picture}">drawn here</a>.</p>{parts}</html>"""
    path.write_text(path.read_text().removesuffix("</html>") + section)
