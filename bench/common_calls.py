"""Calls as models make them, beside PyTorch on one thread: forward, the gradient that a layer gets, and that of a sum, which is one
number for all elements.

`./run bench calls [--only PART ...] [--blocks N]` prints the worst ratios; the whole takes half a minute. sweep.py goes through the
table, with ones for what an operator needs beside tensors; here stand what it cannot know: powers, sizes, reductions of thin
dims, layers. Names are of leaves: x 1024 x 1024, i indices below 3, b bools, c complex, r 64 x 128 x 256 (rows), p 8 x 16 x 64 x 64 (planes),
q 4 x 8 x 128 x 32 (heads), s 32 x 16 x 64 (a sequence).
"""

from __future__ import annotations

import importlib
import json
import math
import sys
from collections.abc import Iterator

from sweep import beside, least, show

CALLS = """
x**3; x.abs()**-1; (x.abs() + 1)**-0.5; x**2; x.abs()**1.5; c**3; 2**x; x.sqrt(); x.lgamma(); c.abs(); c.angle(); c * c
b.sum(); b.sum(1); T.count_nonzero(b); T.bincount(i.view(-1)); (i == 1).sum(); x.long(); x.bfloat16(); i.unique(); b.nonzero(); x[b]; T.where(b, x, 0.)
x.sum(); x.sum(0); x.t().sum(); x.t().amax(); c.sum(1); c.prod(1); x.std(1); x.var(0); x.norm(dim=1); x.logsumexp(1); x.max(1)[0]; x.cummax(0)[0]
r.view(64, 2, 64, 256).sum(1); r.view(64, 2, 64, 256).amax(1); r.view(-1, 2).sum(1); r.view(-1, 32).amax(1); p.sum(1); p.mean((2, 3)); r.prod(-1)
x.cumsum(1); x.cumsum(0); x.sort(1)[0]; x.topk(5, 1)[0]; x.kthvalue(5, 1)[0]; x.median(1)[0]; x.gather(1, i); x.index_select(1, i[0]); x.take(i); x[i[0]]
T.zeros_like(x).scatter_add(1, i, x); T.zeros_like(x).index_add(0, i[0], x); x.repeat(1, 2); x.repeat_interleave(2, 1); x.flip(0); x.roll(1, 1); x.tril()
T.einsum('ij,ij->i', x, x); T.einsum('ij,ij->j', x, x); T.einsum('bij,bkj->bik', r, r); T.bmm(x[:, None], x[:, :, None]); T.kron(x[:32, :32], x[:32, :32]); T.cdist(x[:256], x[:256])
x @ x[0]; T.outer(x[0], x[1]); F.linear(r, x[:256, :256]); T.cat([r, r], -1); T.stack([r, r]); r.chunk(4, -1)[1]; r.transpose(1, 2).contiguous(); r.clamp(-1, 1)
F.softmax(r, -1); F.softmax(r, 1); F.log_softmax(r, -1); F.layer_norm(r, (256,)); F.layer_norm(r.view(-1, 64), (64,)); F.rms_norm(r, (256,)); F.normalize(r, dim=-1); F.cosine_similarity(r, r + 1, -1)
F.batch_norm(p, None, None, training=True); F.group_norm(p, 4); F.instance_norm(p); F.local_response_norm(p, 5); F.gelu(r); F.gelu(r, approximate='tanh'); F.silu(r); F.mish(r); F.elu(r); F.glu(r); F.softplus(r)
F.cross_entropy(r.view(-1, 256), k); F.mse_loss(r, r * 2); F.smooth_l1_loss(r, r * 2); F.binary_cross_entropy_with_logits(x, b.float()); F.kl_div(r.log_softmax(-1), r.softmax(-1).detach())
F.max_pool1d(r, 2); F.max_pool1d(r, 3, 2, 1); F.max_pool2d(p, 2); F.max_pool2d(p, 3, 2, 1); F.avg_pool2d(p, 2); F.avg_pool2d(p, 3, 1, 1); F.adaptive_avg_pool2d(p, 7); F.adaptive_avg_pool2d(p, 1); F.adaptive_max_pool2d(p, 7)
F.interpolate(p, scale_factor=2); F.interpolate(p, scale_factor=2, mode='bilinear'); F.interpolate(p, scale_factor=0.5, mode='bilinear'); F.interpolate(p[:2], scale_factor=2, mode='bicubic'); F.interpolate(r, scale_factor=2, mode='linear')
F.pad(p, (1, 1, 1, 1)); F.pad(p, (1, 1, 1, 1), mode='reflect'); F.pad(p, (1, 1, 1, 1), mode='replicate'); F.grid_sample(p, g); F.grid_sample(p, g, mode='nearest'); F.pixel_shuffle(p, 2); F.unfold(p, 3); F.fold(F.unfold(p[:2], 3), (64, 64), 3)
F.conv2d(p, w, padding=1); F.conv2d(p, w, dilation=2); F.conv2d(p, w[:, :1], padding=1, groups=16); F.conv_transpose2d(p, w); F.conv1d(r[:, :16], w[:, :, 0], padding=1)
F.scaled_dot_product_attention(q, q + 1, q + 2); F.scaled_dot_product_attention(q, q + 1, q + 2, is_causal=True); F.scaled_dot_product_attention(q[:, :, :32], q[:, :, :32], q[:, :, :32])
F.multi_head_attention_forward(s, s, s, 64, 4, x[:192, :64], x[:192, 0], None, None, False, 0.0, x[:64, :64], x[:64, 0])[0]; F.embedding(k, r[0]); F.embedding_bag(k.view(-1, 8), r[0])
T.fft.rfft(r); T.fft.fft2(p); T.linalg.inv(x[:64, :64] + 9 * eye); T.linalg.cholesky(x[:64, :64] @ x[:64, :64].mT + eye); T.linalg.solve(x[:64, :64] + 9 * eye, x[:64, :8]); T.linalg.svdvals(x[:64, :64])
"""
NAMES = [call.strip() for line in CALLS.strip().splitlines() for call in line.split("; ")]


def scene(T) -> dict:
    """The leaves, of the same values in both libraries."""

    def made(*sizes):
        n = math.prod(sizes)
        at = T.arange(n, dtype=T.float64)
        return ((at * 0.618033988749895) % 1 * 4 - 2 + (at * 7919 % 977) / 977).float().reshape(sizes)

    x = made(1024, 1024)
    found = {
        "x": x, "i": (T.arange(1 << 20) * 7919 % 997 % 3).reshape(1024, 1024), "b": x > 0, "c": T.complex(x[:512], x[512:]), "r": made(64, 128, 256),
        "p": made(8, 16, 64, 64), "q": made(4, 8, 128, 32), "s": made(32, 16, 64), "w": made(16, 16, 3, 3), "g": made(8, 64, 64, 2) / 2, "eye": T.eye(64),
        "k": T.arange(64 * 128) * 7919 % 128,
    }  # fmt: skip
    return {**found, "T": T, "F": T.nn.functional}


def cases(T, text: str, names: dict) -> Iterator[tuple[str, float]]:
    call = compile(text, text, "eval")
    yield "forward", least(lambda: eval(call, names))  # noqa: S307 - the texts above
    leaves = {n: t.detach().clone().requires_grad_() for n, t in names.items() if n in "xrpqsw" and t.is_floating_point()}
    try:
        made = eval(call, {**names, **leaves})  # noqa: S307
    except RuntimeError:  # a form without a gradient
        return
    if not made.requires_grad:
        return
    asked = [t for n, t in leaves.items() if n in call.co_names]
    one = T.ones((), dtype=made.dtype)
    for case, grad in (("gradient", one.expand(made.shape).contiguous()), ("gradient of a sum", one.expand(made.shape))):
        yield case, least(lambda grad=grad: T.autograd.grad(made, asked, grad, retain_graph=True, allow_unused=True))


def work(library: str) -> None:
    T = importlib.import_module(library)
    T.set_num_threads(1)
    names = scene(T)
    for line in sys.stdin:
        try:
            found = dict(cases(T, line.rstrip("\n"), names))
        except Exception as error:  # noqa: BLE001 - told where one side alone lacks it
            found = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(found), flush=True)


def main(torch: str | None, only: list[str] | None, blocks: int) -> None:
    names = [n for n in NAMES if not only or any(part in n for part in only)]
    show(beside(__file__, torch, names, blocks), 72)


if __name__ == "__main__":
    work(sys.argv[1])
