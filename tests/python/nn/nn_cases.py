"""Layers with their settings, inputs and state, free of any framework: `cases(t)` builds them with `t`'s tensors.

tools/record_nn.py runs them on PyTorch and writes tests/data/nn/layers.json; test_nn_layers.py runs them on strata.
Every number is a sine of a counter, so that nothing depends on a random stream.
"""

from __future__ import annotations

import math


class Case:
    def __init__(self, name, *args, inputs=(), evaluate=False, call=None, same=False, **kwargs):
        self.name = name
        self.args = args
        self.kwargs = kwargs
        self.inputs = inputs
        self.evaluate = evaluate  # run in eval mode
        self.call = call or {}  # keywords of the call
        self.same = same  # inputs of one shape are one tensor


def wave(t, *shape, phase=0.0):
    count = math.prod(shape)
    return (t.arange(count, dtype=t.float32) * 0.7 + phase).sin().reshape(shape)


def classes(t, count, *shape):
    return ((t.arange(math.prod(shape), dtype=t.int64) * 5 + 1) % count).reshape(shape)


def _activations(t):
    x = (wave(t, 2, 4, 3) * 3,)
    names = "ReLU ReLU6 SELU SiLU Mish Hardswish Hardsigmoid LogSigmoid Softsign Tanh Tanhshrink Sigmoid Softplus "
    names += "Softshrink Hardshrink GELU CELU ELU LeakyReLU Hardtanh PReLU Identity Flatten"
    yield from (Case(name, inputs=x) for name in names.split())
    yield Case("GELU", "tanh", inputs=x)
    yield Case("ELU", 0.5, inputs=x)
    yield Case("CELU", 0.5, inputs=x)
    yield Case("LeakyReLU", 0.2, inputs=x)
    yield Case("Softplus", 2.0, 1.0, inputs=x)
    yield Case("Threshold", 0.1, 0.7, inputs=x)
    yield Case("Hardtanh", -0.3, 0.4, inputs=x)
    yield Case("PReLU", 4, inputs=x)
    yield Case("GLU", 1, inputs=x)
    for name in ("Softmax", "LogSoftmax", "Softmin"):
        yield Case(name, 1, inputs=x)
    yield Case("Softmax2d", inputs=(wave(t, 1, 2, 3, 2),))
    yield Case("Unflatten", 1, (2, 2), inputs=x)


def _linear_and_conv(t):
    x = (wave(t, 2, 4, 6),)
    y = (wave(t, 2, 4, 5, 6),)
    yield Case("Linear", 6, 5, inputs=x)
    yield Case("Linear", 6, 5, bias=False, inputs=x)
    yield Case("Bilinear", 4, 3, 2, inputs=(wave(t, 5, 4), wave(t, 5, 3, phase=1.0)))
    yield Case("Conv1d", 4, 3, 3, inputs=x)
    yield Case("Conv1d", 4, 3, 3, padding="same", dilation=2, inputs=x)
    yield Case("Conv1d", 4, 3, 2, padding="same", inputs=x)
    yield Case("Conv1d", 4, 3, 2, padding="valid", inputs=x)
    yield Case("Conv1d", 4, 3, 3, padding=2, padding_mode="circular", stride=2, inputs=x)
    yield Case("Conv2d", 4, 6, 3, stride=2, padding=1, groups=2, bias=False, inputs=y)
    yield Case("Conv2d", 4, 2, (3, 2), padding="same", padding_mode="reflect", inputs=y)
    yield Case("Conv2d", 4, 2, (3, 2), padding="same", dilation=(1, 2), inputs=y)
    yield Case("Conv2d", 4, 2, (4, 2), padding="same", inputs=y)
    yield Case("Conv2d", 4, 2, 3, padding=(1, 2), padding_mode="replicate", inputs=y)
    yield Case("Conv2d", 4, 2, 3, inputs=(y[0][0],))


def _norms(t):
    x = (wave(t, 3, 4, 5),)
    y = (wave(t, 2, 4, 3, 4),)
    for evaluate in (False, True):
        yield Case("BatchNorm1d", 4, inputs=x, evaluate=evaluate)
        yield Case("BatchNorm1d", 5, affine=False, inputs=(wave(t, 4, 5),), evaluate=evaluate)
        yield Case("BatchNorm1d", 4, track_running_stats=False, inputs=x, evaluate=evaluate)
        yield Case("BatchNorm2d", 4, momentum=None, inputs=y, evaluate=evaluate)
        yield Case("BatchNorm3d", 2, bias=False, inputs=(wave(t, 2, 2, 3, 2, 2),), evaluate=evaluate)
        yield Case("InstanceNorm1d", 4, inputs=x, evaluate=evaluate)
        yield Case("InstanceNorm2d", 4, affine=True, track_running_stats=True, inputs=y, evaluate=evaluate)
    yield Case("InstanceNorm2d", 4, inputs=(y[0][0],))
    yield Case("LayerNorm", 5, inputs=x)
    yield Case("LayerNorm", (4, 5), bias=False, inputs=x)
    yield Case("LayerNorm", 5, elementwise_affine=False, eps=1e-3, inputs=x)
    yield Case("RMSNorm", 5, inputs=x)
    yield Case("RMSNorm", 5, eps=1e-3, elementwise_affine=False, inputs=x)
    yield Case("GroupNorm", 2, 4, inputs=x)
    yield Case("GroupNorm", 2, 4, affine=False, inputs=y)
    yield Case("LocalResponseNorm", 2, inputs=y)
    yield Case("LocalResponseNorm", 3, alpha=0.1, k=2.0, inputs=x)
    yield Case("SyncBatchNorm", 3, inputs=(wave(t, 4, 3, 2),))
    for name in ("Dropout", "Dropout1d", "AlphaDropout", "FeatureAlphaDropout"):
        yield Case(name, inputs=x, evaluate=True)
    yield Case("Dropout2d", 0.3, inputs=y, evaluate=True)


def _pools_and_pads(t):
    x = (wave(t, 2, 3, 8),)
    y = (wave(t, 2, 2, 5, 6),)
    yield Case("MaxPool1d", 3, inputs=x)
    yield Case("MaxPool1d", 3, stride=2, padding=1, return_indices=True, inputs=x)
    yield Case("MaxPool2d", 2, inputs=y)
    yield Case("MaxPool2d", (3, 2), stride=(2, 1), padding=1, ceil_mode=True, inputs=y)
    yield Case("MaxPool2d", 2, return_indices=True, inputs=y)
    yield Case("AvgPool1d", 3, inputs=x)
    yield Case("AvgPool1d", 3, stride=2, padding=1, count_include_pad=False, inputs=x)
    yield Case("AvgPool2d", 2, inputs=y)
    yield Case("AvgPool2d", (3, 2), stride=2, padding=1, ceil_mode=True, count_include_pad=False, inputs=y)
    yield Case("AvgPool2d", 2, divisor_override=3, inputs=y)
    yield Case("LPPool1d", 2, 3, inputs=x)
    yield Case("LPPool2d", 2, 2, stride=1, inputs=(y[0].abs(),))
    yield Case("LPPool3d", 3, 2, inputs=(wave(t, 2, 4, 4, 4).abs(),))
    yield Case("AdaptiveAvgPool1d", 3, inputs=x)
    yield Case("AdaptiveAvgPool2d", 3, inputs=y)
    yield Case("AdaptiveAvgPool2d", (None, 2), inputs=y)
    yield Case("AdaptiveMaxPool1d", 3, inputs=x)
    yield Case("AdaptiveMaxPool2d", (3, 2), inputs=y)
    yield Case("AdaptiveMaxPool2d", (3, None), return_indices=True, inputs=y)
    for rank, inputs in ((1, x), (2, y)):
        yield Case(f"ConstantPad{rank}d", 1, 0.5, inputs=inputs)
        for kind in ("Zero", "Reflection", "Replication", "Circular"):
            yield Case(f"{kind}Pad{rank}d", 2, inputs=inputs)
    yield Case("ZeroPad2d", (1, 2, 3, 0), inputs=y)
    yield Case("PixelShuffle", 2, inputs=(wave(t, 1, 8, 2, 3),))
    yield Case("PixelUnshuffle", 2, inputs=(wave(t, 2, 2, 4, 2),))
    yield Case("ChannelShuffle", 2, inputs=(wave(t, 1, 4, 2, 2),))
    pair = (wave(t, 4, 5), wave(t, 4, 5, phase=1.0))
    yield Case("CosineSimilarity", inputs=pair)
    yield Case("PairwiseDistance", inputs=pair)
    yield Case("PairwiseDistance", 1.0, keepdim=True, inputs=pair)


def _losses(t):
    x, y = wave(t, 3, 4), wave(t, 3, 4, phase=1.0)
    z = wave(t, 3, 4, 2) * 2
    half = (wave(t, 3, 4, phase=0.5) + 1.1) / 2.2
    bits = (x > 0).to(t.float32)
    weight = (wave(t, 4, phase=2.0) + 1.5) / 2
    signs = t.tensor([1.0, -1.0, 1.0])
    for reduction in ("mean", "sum", "none"):
        for name in ("L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss"):
            yield Case(name, reduction=reduction, inputs=(x, y))
        yield Case("SmoothL1Loss", beta=0.3, reduction=reduction, inputs=(x, y))
        yield Case("HuberLoss", delta=0.3, reduction=reduction, inputs=(x, y))
        yield Case("CrossEntropyLoss", reduction=reduction, inputs=(x, classes(t, 4, 3)))
        yield Case(
            "CrossEntropyLoss",
            weight=weight,
            label_smoothing=0.1,
            ignore_index=2,
            reduction=reduction,
            inputs=(z, classes(t, 4, 3, 2)),
        )
        yield Case("CrossEntropyLoss", reduction=reduction, inputs=(x, y.softmax(1)))
        yield Case("NLLLoss", reduction=reduction, inputs=(x.log_softmax(1), classes(t, 4, 3)))
        yield Case("NLLLoss", weight=weight, ignore_index=1, reduction=reduction, inputs=(z, classes(t, 4, 3, 2)))
        yield Case("NLLLoss", reduction=reduction, inputs=(x[0], t.tensor(1)))
        yield Case("BCELoss", reduction=reduction, inputs=(half, bits))
        yield Case("BCELoss", weight=weight, reduction=reduction, inputs=(half, bits))
        yield Case("BCEWithLogitsLoss", reduction=reduction, inputs=(y, bits))
        yield Case("BCEWithLogitsLoss", weight=weight, pos_weight=weight + 1, reduction=reduction, inputs=(y, bits))
        yield Case("KLDivLoss", reduction=reduction, inputs=(x.log_softmax(1), half))
        yield Case("KLDivLoss", log_target=True, reduction=reduction, inputs=(x.log_softmax(1), y))
        yield Case("PoissonNLLLoss", reduction=reduction, inputs=(x, half * 4))
        yield Case("PoissonNLLLoss", log_input=False, full=True, reduction=reduction, inputs=(half, half.flip(0) * 4))
        yield Case("GaussianNLLLoss", full=True, reduction=reduction, inputs=(x, y, half))
        yield Case("GaussianNLLLoss", reduction=reduction, inputs=(x, y, half[:, :1]))
        yield Case("HingeEmbeddingLoss", reduction=reduction, inputs=(x[:, 0], signs))
        yield Case("CosineEmbeddingLoss", margin=0.2, reduction=reduction, inputs=(x, y, signs))
        yield Case("MarginRankingLoss", margin=0.1, reduction=reduction, inputs=(x[:, 0], y[:, 0], signs))
        yield Case("TripletMarginLoss", reduction=reduction, inputs=(x, y, half))
        yield Case("TripletMarginLoss", swap=True, p=1.0, margin=0.5, reduction=reduction, inputs=(x, y, half))
        yield Case("TripletMarginWithDistanceLoss", swap=True, reduction=reduction, inputs=(x, y, half))
        yield Case("MultiLabelSoftMarginLoss", weight=weight, reduction=reduction, inputs=(x, bits))
        yield Case("MultiMarginLoss", p=2, margin=0.5, weight=weight, reduction=reduction, inputs=(x, classes(t, 4, 3)))
    yield Case("KLDivLoss", reduction="batchmean", inputs=(x.log_softmax(1), half))


def _sequences(t):
    x = wave(t, 5, 2, 3)
    for name in ("RNN", "LSTM", "GRU"):
        yield Case(name, 3, 4, inputs=(x,))
        yield Case(name, 3, 4, num_layers=2, bidirectional=True, inputs=(x,))
        yield Case(name, 3, 4, batch_first=True, bias=False, inputs=(x,))
        yield Case(name, 3, 4, inputs=(x[:, 0],))
        yield Case(name, 3, 4, 2, dropout=0.5, inputs=(x,), evaluate=True)
    yield Case("RNN", 3, 4, nonlinearity="relu", inputs=(x,))
    yield Case("LSTM", 3, 4, proj_size=2, num_layers=2, bidirectional=True, inputs=(x,))
    h, c = wave(t, 1, 2, 4), wave(t, 1, 2, 4, phase=1.0)
    yield Case("LSTM", 3, 4, inputs=(x, (h, c)))
    yield Case("GRU", 3, 4, inputs=(x, h))
    for name in ("RNNCell", "LSTMCell", "GRUCell"):
        yield Case(name, 3, 4, inputs=(x[0],))
        yield Case(name, 3, 4, False, inputs=(x[0, 0],))
    yield Case("GRUCell", 3, 4, inputs=(x[0], h[0]))
    yield Case("LSTMCell", 3, 4, inputs=(x[0], (h[0], c[0])))
    yield Case("Embedding", 6, 3, inputs=(classes(t, 6, 2, 4),))
    yield Case("Embedding", 6, 3, padding_idx=-5, inputs=(classes(t, 6, 2, 4),))
    yield Case("Embedding", 6, 3, max_norm=0.5, inputs=(classes(t, 6, 2, 4),))


def _attention(t):
    x = wave(t, 4, 2, 8)
    memory = wave(t, 3, 2, 8, phase=1.0)
    upper = t.ones(4, 4).triu(1).to(t.bool)
    causal = t.zeros(4, 4).masked_fill(upper, -math.inf)
    padding = t.tensor([[False, False, False, True], [False, False, False, False]])
    calls = (
        {},
        {"need_weights": False},
        {"attn_mask": causal},
        {"attn_mask": upper, "key_padding_mask": padding},
        {"key_padding_mask": padding, "need_weights": False},
        {"average_attn_weights": False},
        {"attn_mask": causal, "is_causal": True, "need_weights": False},
    )
    for call in calls:
        yield Case("MultiheadAttention", 8, 2, inputs=(x, x, x), same=True, call=call)
    for options in ({"bias": False}, {"add_bias_kv": True, "add_zero_attn": True}):
        for call in calls[:4]:
            yield Case("MultiheadAttention", 8, 2, inputs=(x, x, x), same=True, call=call, **options)
    yield Case("MultiheadAttention", 8, 2, inputs=(x, memory, memory))
    yield Case("MultiheadAttention", 8, 2, kdim=6, vdim=3, inputs=(x, wave(t, 3, 2, 6), wave(t, 3, 2, 3)))
    for options in ({}, {"norm_first": True, "activation": "gelu"}, {"bias": False}):
        options = {"dropout": 0.0, "dim_feedforward": 6, **options}
        yield Case("TransformerEncoderLayer", 8, 2, inputs=(x,), **options)
        yield Case("TransformerEncoderLayer", 8, 2, inputs=(x,), call={"src_mask": causal}, **options)
        call = {"tgt_mask": causal, "tgt_is_causal": True}
        yield Case("TransformerDecoderLayer", 8, 2, inputs=(x, memory), call=call, **options)
    yield Case("Transformer", 8, 2, 1, 1, 6, 0.0, inputs=(x, memory))
    call = {"src_key_padding_mask": padding}
    y, z = wave(t, 2, 4, 8), wave(t, 2, 3, 8, phase=1.0)
    yield Case("Transformer", 8, 2, 1, 1, 6, 0.0, batch_first=True, norm_first=True, inputs=(y, z), call=call)


def _images(t):
    line, image, volume = wave(t, 2, 3, 5), wave(t, 2, 3, 5, 4), wave(t, 1, 2, 5, 4, 3)
    for mode in ("nearest", "nearest-exact"):
        for x in (line, image, volume):
            yield Case("Upsample", scale_factor=1.7, mode=mode, inputs=(x,))
    for align in (True, False):
        yield Case("Upsample", 8, mode="linear", align_corners=align, inputs=(line,))
        yield Case("Upsample", (7, 3), mode="bilinear", align_corners=align, inputs=(image,))
        yield Case("Upsample", (7, 3), mode="bicubic", align_corners=align, inputs=(image,))
        yield Case("Upsample", (3, 6, 5), mode="trilinear", align_corners=align, inputs=(volume,))
    for recompute in (True, False):
        yield Case("Upsample", scale_factor=1.3, mode="bilinear", recompute_scale_factor=recompute, inputs=(image,))
    yield Case("Upsample", (3, 2), mode="area", inputs=(image,))
    yield Case("UpsamplingNearest2d", scale_factor=2, inputs=(image,))
    yield Case("UpsamplingBilinear2d", (9, 6), inputs=(image,))
    yield Case("Unfold", (2, 3), dilation=(2, 1), padding=1, stride=2, inputs=(image,))
    yield Case("Fold", (4, 5), (2, 3), padding=(1, 0), stride=(2, 1), inputs=(wave(t, 2, 12, 9),))
    places = t.tensor([[[1, 2, 7], [0, 4, 5]]])
    yield Case("MaxUnpool1d", 2, stride=3, inputs=(wave(t, 1, 2, 3), places))
    yield Case("MaxUnpool2d", 2, inputs=(wave(t, 1, 2, 1, 3), places[:, :, None]))
    yield Case("MaxUnpool2d", 2, inputs=(wave(t, 1, 2, 1, 3), places[:, :, None]), call={"output_size": [2, 7]})
    yield Case("MaxUnpool3d", (1, 1, 3), inputs=(wave(t, 1, 2, 1, 1, 3), places[:, :, None, None]))
    yield Case("MaxPool3d", 2, stride=1, padding=1, inputs=(volume,))
    yield Case("AvgPool3d", 2, stride=1, padding=1, count_include_pad=False, inputs=(volume,))
    yield Case("AdaptiveAvgPool3d", (3, None, 2), inputs=(volume,))
    yield Case("AdaptiveMaxPool3d", (2, 3, 2), return_indices=True, inputs=(volume,))


def _bags(t):
    words = classes(t, 6, 7)
    begins = t.tensor([0, 3, 3, 5])
    for mode in ("sum", "mean", "max"):
        yield Case("EmbeddingBag", 6, 3, mode=mode, inputs=(classes(t, 6, 2, 4),))
        yield Case("EmbeddingBag", 6, 3, mode=mode, padding_idx=1, inputs=(words, begins))
    yield Case("EmbeddingBag", 6, 3, mode="sum", include_last_offset=True, inputs=(words, begins))
    yield Case("EmbeddingBag", 6, 3, mode="sum", inputs=(words, begins), call={"per_sample_weights": wave(t, 7)})
    rows = wave(t, 6, 8)
    yield Case("AdaptiveLogSoftmaxWithLoss", 8, 12, [4, 7], inputs=(rows, classes(t, 12, 6)))
    yield Case("AdaptiveLogSoftmaxWithLoss", 8, 12, [4], 2.0, True, inputs=(rows[0], classes(t, 4, 6)[0]))


def cases(t):
    """(key, Case) of all: the key is the class's name and how many of it came before."""
    counts = {}
    groups = (_activations, _linear_and_conv, _norms, _pools_and_pads, _losses, _sequences, _attention, _images, _bags)
    for group in groups:
        for case in group(t):
            counts[case.name] = counts.get(case.name, -1) + 1
            yield f"{case.name}-{counts[case.name]}", case


def state(t, module):
    """A state dictionary for `module`: sines, variances made positive, counts as they are."""
    values = {}
    for i, (name, tensor) in enumerate(module.state_dict().items()):
        if not tensor.is_floating_point():
            values[name] = tensor
            continue
        numbers = wave(t, *tensor.shape, phase=0.3 * i) * 0.5
        values[name] = numbers.abs() + 0.5 if name.endswith("running_var") else numbers
    return values


def flat(value, tensor_type):
    """The tensors in a nest of tuples and lists."""
    if isinstance(value, tensor_type):
        return [value]
    return [] if value is None else [tensor for entry in value for tensor in flat(entry, tensor_type)]


def digest(tensor):
    """A tensor as its shape and numbers; of many numbers, 8 of them and the sums of every third."""
    numbers = tensor.detach().reshape(-1).tolist()
    if len(numbers) > 12:
        step = len(numbers) / 8
        parts = [math.fsum(numbers[k::3]) for k in range(3)]
        numbers = [numbers[int(i * step)] for i in range(8)] + parts
    return {"shape": list(tensor.shape), "values": [float(f"{number:.6g}") for number in numbers]}


def run(t, nn, case):
    """What a case gives on framework `t`: outputs, gradients, state and text."""
    module = getattr(nn, case.name)(*case.args, **case.kwargs)
    keys = list(module.state_dict())
    fixed = {name: value for name, value in state(t, module).items() if name not in ("weight", "pos_weight")}
    fixed = fixed if case.name.endswith("Loss") else state(t, module)
    module.load_state_dict({**module.state_dict(), **fixed})
    module.train(not case.evaluate)
    made = {}

    def leaf(value):
        if isinstance(value, tuple):
            return tuple(leaf(entry) for entry in value)
        if case.same and id(value) in made:
            return made[id(value)]
        copy = value.clone()
        made[id(value)] = copy.requires_grad_() if copy.is_floating_point() else copy
        return made[id(value)]

    inputs = [leaf(value) for value in case.inputs]
    outputs = flat(module(*inputs, **case.call), t.Tensor)
    loss = 0
    for output in outputs:
        if output.requires_grad:
            loss = loss + (output * wave(t, *output.shape, phase=0.3)).sum()
    if not isinstance(loss, int):
        loss.backward()
    gradients = [tensor.grad for tensor in flat(inputs, t.Tensor)]
    gradients += [parameter.grad for parameter in module.parameters()]
    return {
        "repr": repr(module),
        "keys": keys,
        "outputs": [digest(output) for output in outputs],
        "gradients": [None if gradient is None else digest(gradient) for gradient in gradients],
        "buffers": [digest(buffer) for buffer in module.buffers()],
    }
