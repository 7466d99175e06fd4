"""Workloads of `./run bench ops`: operators that the other suites leave out, as calls without arguments.

Conversions, half types, layouts, gradients and irregular operators, at sizes that take PyTorch about a millisecond. GOAL is the share of
PyTorch's time that is allowed, GOALS those of rows that have another one.
"""

from __future__ import annotations

ROWS, COLUMNS = 4096, 1024
GOAL = 1.1
GOALS = dict.fromkeys(
    ("f32_to_bf16", "f32_to_f16", "bf16_to_f32", "f16_to_f32", "f16_to_bf16", "f64_to_f16", "i64_to_bf16", "f16_to_i32",
     "f32_to_bf16_strided", "f16_to_f32_transposed", "f16_add", "f16_mul_row", "f16_gelu", "f16_softmax", "f16_sum", "bf16_add",
     "bf16_f32_add", "sum_dim0", "mean_dim0", "sum_middle", "bmm_64x32", "bmm_256x16", "bmm_32x64", "bmm_turned",
     "max_pool2d_3x3_last"), 1.3)
HOT_VALUES = 10_000_000
HOT_GOALS = {f"index_add_{rows}": 1.1 for rows in (1, 10, 1_000_000)}


def conversions(torch):
    f32 = torch.randn(ROWS, COLUMNS)
    f16, bf16 = f32.to(torch.float16), f32.to(torch.bfloat16)
    f64, i64 = f32[:1024].double(), torch.randint(-1000, 1000, (1024, 1024))
    row = torch.randn(COLUMNS).to(torch.float16)
    return {
        "f32_to_bf16": lambda: f32.to(torch.bfloat16),
        "f32_to_f16": lambda: f32.to(torch.float16),
        "bf16_to_f32": lambda: bf16.to(torch.float32),
        "f16_to_f32": lambda: f16.to(torch.float32),
        "f16_to_bf16": lambda: f16.to(torch.bfloat16),
        "f64_to_f16": lambda: f64.to(torch.float16),
        "i64_to_bf16": lambda: i64.to(torch.bfloat16),
        "f16_to_i32": lambda: f16.to(torch.int32),
        "f32_to_bf16_strided": lambda: f32[:, ::2].to(torch.bfloat16),
        "f16_to_f32_transposed": lambda: f16.t().to(torch.float32).contiguous(),
        "f16_add": lambda: f16 + f16,
        "f16_mul_row": lambda: f16 * row,
        "f16_gelu": lambda: torch.nn.functional.gelu(f16),
        "f16_softmax": lambda: f16.softmax(-1),
        "f16_sum": lambda: f16.sum(-1),
        "bf16_add": lambda: bf16 + bf16,
        "bf16_f32_add": lambda: bf16 + f32,
    }


def reductions(torch):
    x, cube = torch.randn(ROWS, COLUMNS), torch.randn(64, 256, 256)
    return {
        "sum_dim0": lambda: x.sum(0),
        "mean_dim0": lambda: x.mean(0),
        "sum_middle": lambda: cube.sum(1),
        "amax_dim0": lambda: x.amax(0),
        "argmax": lambda: x.argmax(-1),
        "var": lambda: x.var(-1),
        "norm": lambda: x.norm(dim=-1),
        "logsumexp": lambda: x.logsumexp(-1),
        "softmax_dim0": lambda: x.softmax(0),
        "cumsum": lambda: x.cumsum(-1),
        "cumsum_dim0": lambda: x.cumsum(0),
    }


def columns(torch):
    """Short rows, and rows across memory."""
    x, short, flags = torch.randn(4096, 4, 64), torch.randn(65536, 8), torch.randn(4096, 4, 64) > 0
    pixels, square = torch.randn(64, 16, 1024), torch.randn(2048, 1024)
    narrow, row = torch.randn(32768, 32), torch.randn(32)
    return {
        "softmax_middle": lambda: x.softmax(1),
        "softmax_channels": lambda: pixels.softmax(1),
        "log_softmax_short": lambda: short.log_softmax(-1),
        "logsumexp_middle": lambda: x.logsumexp(1),
        "std_middle": lambda: x.std(1),
        "max_middle": lambda: x.max(1),
        "argmax_channels": lambda: pixels.argmax(1),
        "any_middle": lambda: flags.any(1),
        "sum_turned": lambda: square.t().sum(),
        "add_short_row": lambda: narrow + row,
    }


def products(torch):
    a, b = torch.randn(64, 32, 32), torch.randn(64, 32, 32)
    c, d = torch.randn(256, 16, 16), torch.randn(256, 16, 16)
    e, f = torch.randn(32, 64, 64), torch.randn(32, 64, 64)
    m, v = torch.randn(1024, 1024), torch.randn(1024)
    return {
        "bmm_64x32": lambda: a @ b,
        "bmm_256x16": lambda: c @ d,
        "bmm_32x64": lambda: e @ f,
        "bmm_turned": lambda: e @ f.transpose(1, 2),
        "mv": lambda: m @ v,
        "outer": lambda: torch.outer(v, v),
        "einsum": lambda: torch.einsum("bij,bkj->bik", e, f),
    }


def arrangements(torch):
    x, cube = torch.randn(2048, 1024), torch.randn(64, 128, 256)
    index, labels = torch.randint(0, 2048, (2048,)), torch.randint(0, 1024, (2048,))
    places = torch.randint(0, 1024, (2048, 1024))
    mask = x > 0
    picture = torch.randn(8, 64, 56, 56)
    last = picture.to(memory_format=torch.channels_last)
    return {
        "transpose_copy": lambda: x.t().contiguous(),
        "permute_copy": lambda: cube.permute(2, 0, 1).contiguous(),
        "to_channels_last": lambda: picture.contiguous(memory_format=torch.channels_last),
        "add_channels_last": lambda: last + picture,
        "cat": lambda: torch.cat([x, x], 1),
        "pad": lambda: torch.nn.functional.pad(picture, (1, 1, 1, 1)),
        "flip": lambda: x.flip(1),
        "roll": lambda: x.roll(3, 1),
        "repeat": lambda: x.repeat(1, 2),
        "index_select": lambda: x.index_select(0, index),
        "index_rows": lambda: x[index],
        "gather": lambda: x.gather(1, places),
        "index_add": lambda: x.index_add(0, index, x),
        "scatter_add": lambda: x.scatter_add(1, places, x),
        "masked_select": lambda: x[mask],
        "masked_fill": lambda: x.masked_fill(mask, 0.0),
        "where": lambda: torch.where(mask, x, x),
        "tril": lambda: x.tril(),
        "sort": lambda: x[:256].sort(-1),
        "topk": lambda: x.topk(10, -1),
        "nonzero": lambda: mask.nonzero(),
        "one_hot": lambda: torch.nn.functional.one_hot(labels, 1024),
    }


def pictures(torch):
    F = torch.nn.functional
    x = torch.randn(8, 64, 56, 56)
    last = x.to(memory_format=torch.channels_last)
    weight, norm, groups = torch.randn(64, 64, 3, 3), torch.nn.BatchNorm2d(64), torch.nn.GroupNorm(32, 64)
    grid = torch.rand(8, 56, 56, 2) * 2 - 1
    return {
        "max_pool2d_3x3": lambda: F.max_pool2d(x, 3, 2, 1),
        "max_pool2d_3x3_last": lambda: F.max_pool2d(last, 3, 2, 1),
        "avg_pool2d": lambda: F.avg_pool2d(x, 3, 2, 1),
        "adaptive_avg_pool2d": lambda: F.adaptive_avg_pool2d(x, 7),
        "bilinear": lambda: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
        "nearest": lambda: F.interpolate(x, scale_factor=2.0, mode="nearest"),
        "grid_sample": lambda: F.grid_sample(x, grid, align_corners=False),
        "conv_channels_last": lambda: F.conv2d(last, weight, padding=1),
        "batch_norm": lambda: norm(x),
        "batch_norm_last": lambda: norm(last),
        "group_norm": lambda: groups(x),
        "group_norm_last": lambda: groups(last),
    }


def spectra(torch):
    F = torch.fft
    real, picture, line = torch.randn(1024, 1024), torch.randn(8, 3, 224, 224), torch.randn(2**20)
    x, prime, short = F.fft(real), torch.randn(10007, dtype=torch.complex64), torch.randn(4096, 64)
    half, long, batch = F.rfft(real), F.fft(line), torch.complex(short, short)

    def grad(function, leaf):
        leaf = leaf.clone().requires_grad_()
        seed = torch.ones_like(function(leaf))
        return lambda: torch.autograd.grad(function(leaf), leaf, seed)

    return {
        "fft": lambda: F.fft(x),
        "fft_dim0": lambda: F.fft(x, dim=0),
        "fft_of_real": lambda: F.fft(real),
        "rfft": lambda: F.rfft(real),
        "irfft": lambda: F.irfft(half),
        "fft_long": lambda: F.fft(long),
        "rfft_long": lambda: F.rfft(line),
        "fft_prime": lambda: F.fft(prime),
        "fft_short": lambda: F.fft(batch),
        "rfft_short": lambda: F.rfft(short),
        "fft2": lambda: F.fft2(picture),
        "rfft2": lambda: F.rfft2(picture),
        "fft_grad": grad(F.fft, x),
        "rfft_grad": grad(F.rfft, real),
        "irfft_grad": grad(F.irfft, half),
        "fft2_grad": grad(F.fft2, picture),
    }


def gradients(torch):
    F = torch.nn.functional
    x, cube = torch.randn(2048, 1024, requires_grad=True), torch.randn(4096, 4, 64, requires_grad=True)
    places, labels = torch.randint(0, 1024, (2048, 1024)), torch.randint(0, 1024, (2048,))
    picture = torch.randn(8, 64, 56, 56, requires_grad=True)
    grid = (torch.rand(8, 56, 56, 2) * 2 - 1).requires_grad_()
    table, words = torch.randn(4096, 256, requires_grad=True), torch.randint(0, 4096, (2048,))
    weight, bias = torch.randn(1024, requires_grad=True), torch.randn(1024, requires_grad=True)
    half, *weights = (torch.randn(s).to(torch.bfloat16).requires_grad_() for s in ((2048, 1024), 1024, 1024))
    rows, *short = (torch.randn(s, requires_grad=True) for s in ((100_000, 8), 8, 8))

    def of(forward, *leaves):
        result = forward()
        seed = torch.ones_like(result)
        return lambda: torch.autograd.grad(forward(), leaves, seed)

    return {
        "gather_grad": of(lambda: x.gather(1, places), x),
        "gelu_grad": of(lambda: F.gelu(x), x),
        "softmax_grad": of(lambda: x.softmax(-1), x),
        "softmax_middle_grad": of(lambda: cube.softmax(1), cube),
        "layer_norm_grad": of(lambda: F.layer_norm(x, (1024,), weight, bias), x, weight, bias),
        "layer_norm_grad_bf16": of(lambda: F.layer_norm(half, (1024,), weights[0], weights[1]), half, *weights),
        "layer_norm_grad_short": of(lambda: F.layer_norm(rows, (8,), short[0], short[1]), rows, *short),
        "cross_entropy_grad": of(lambda: F.cross_entropy(x, labels), x),
        "embedding_grad": of(lambda: F.embedding(words, table), table),
        "max_pool2d_grad": of(lambda: F.max_pool2d(picture, 3, 2, 1), picture),
        "add_row_grad": of(lambda: x + bias, x, bias),
        "nearest_grad": of(lambda: F.interpolate(picture, scale_factor=2.0, mode="nearest"), picture),
        "bilinear_grad": of(lambda: F.interpolate(picture, scale_factor=2.0, mode="bilinear"), picture),
        "grid_sample_grad": of(lambda: F.grid_sample(picture, grid, align_corners=False), picture, grid),
    }


GROUPS = (conversions, reductions, columns, products, arrangements, pictures, spectra, gradients)


def hot(torch) -> dict:
    """`--hot`: many values meet in few places, and in many."""
    values = torch.randn(HOT_VALUES)

    def add_into(rows: int):
        places, zeros = torch.randint(0, rows, (HOT_VALUES,)), torch.zeros(rows)
        return lambda: zeros.index_add(0, places, values)

    lines, few, wide = torch.randn(HOT_VALUES // 256, 256), torch.randint(0, 10, (HOT_VALUES // 256,)), torch.zeros(10, 256)
    column, many = torch.randint(0, 10, (HOT_VALUES // 256, 256)), torch.zeros(10, 256)
    return {**{f"index_add_{rows}": add_into(rows) for rows in (1, 10, 1_000_000)},
            "index_add_rows": lambda: wide.index_add(0, few, lines),
            "scatter_add_columns": lambda: many.scatter_add(0, column, lines)}


def work(torch, is_hot: bool = False) -> dict:
    """All of them by name; each is one call."""
    return hot(torch) if is_hot else {name: call for group in GROUPS for name, call in group(torch).items()}
