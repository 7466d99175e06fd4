"""Programs of tools/fuzz_compile.py whose tensors have other sizes at each call (--dynamic): rows differ, columns are 4."""

from __future__ import annotations

import random

ROWS = (0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 12)
EXPRESSIONS = """
{a} + {b}
{a} * {b}
{a} - {k}
{a} * {k}
strata.sin({a})
{a}.tanh() + {b}
strata.relu({a})
{a} * x.shape[0]
{a} + {b}.size(0)
{a} / max(len(x), 1)
{a} * math.sqrt({a}.numel() + 1)
{a} * (x.shape[0] / 3)
{a} + -x.shape[0] ** 2 % 7
{a} * min(x.shape[0], 5)
{a} * int(x.shape[0] * 0.5)
{a} * math.prod(x.shape)
{a}.view(-1, 2, 2).transpose(1, 2).reshape({a}.shape)
{a}.reshape({a}.shape[0] * 4).view(-1, 4)
{a}.reshape({a}.numel()).reshape(x.shape[0], 4)
{a}.t().contiguous().t()
{a}.flatten().unflatten(0, ({a}.shape[0], 4))
{a}.reshape(*{a}.shape)
{a}.reshape({b}.size())
{a}.reshape({a}.shape[:1] + (4,))
{a}.reshape(({a}.shape[0],) + {b}.shape[1:])
strata.cat([{a}[: {a}.shape[0] // 2], {b}[{b}.shape[0] // 2 :]])
strata.cat([{a}, {b}])[: {a}.shape[0]]
strata.cat([{a}, {b}])[-{a}.shape[0] :]
strata.zeros({a}.shape[0], 4) + {a}
{a}.new_ones({a}.shape) * {b}
strata.arange({a}.shape[0]).unsqueeze(1) + {a}
strata.full((x.shape[0], 4), 2.0) * {a}
strata.ones_like({a}) * {b}
strata.linspace(0, 1, x.shape[0] + 1)[1:, None] * {a}
{a}.mean(0, keepdim=True) + {b}
{a}.sum(0) * {b}
{a}.sum(-2) + {b}
F.softmax({a}, dim=0)
{a}.flip(0)
{a}.cumsum(0)
{a} @ NET.lin.weight
{a} @ {b}.t() @ {a}
NET({a})
NET.lin({a})
NET.norm({a})
F.layer_norm({a}, {a}.shape[1:])
F.layer_norm({a}, {a}.shape)
{a}.expand(2, *{a}.shape)[1]
{a}.expand(-1, -1) + 1
{a}.repeat(2, 1)[: {a}.shape[0]]
strata.stack([{a}, {b}]).mean(0)
strata.stack({a}.unbind(0))
strata.cat({a}.split(2))
strata.cat({a}.chunk(2))
sum(r for r in {a}) + {b}
strata.where(strata.arange({a}.shape[0])[:, None] < 2, {a}, {b})
strata.where({a} > {b}, {a}, {b} * 2)
{a}[:, : {a}.shape[1] // 2].repeat(1, 2)
F.pad({a}, (0, 0, 1, 0))[1:]
F.dropout({a}, 0.5)
{a} + strata.rand(x.shape[0], 4)
{a} + strata.randn({a}.shape)
{a} + strata.tensor([1.0, 2.0, 3.0, x.shape[0]])
{a}[strata.arange({a}.shape[0] - 1, -1, -1)]
{a}.narrow(0, 0, {a}.shape[0])
{a}.select(0, -1) + {b}
{a}.squeeze(0).reshape(-1, 4)
{a}.unsqueeze(0).squeeze()
{a}[-1] + {b}
{a}[{s}] + {b}
{a} + len(f"{{x.shape[0]}} {{x.shape}}")
{a} + sum({a}.shape)
{a} + {a}.shape.numel()
{a} + {a}.stride(0)
{a}.as_strided(({a}.shape[0], 4), (4, 1)) + 1
sum([{a} * i for i in range({a}.shape[0] % 3)], {a})
sum([{a}] * ({a}.shape[0] % 3), {b})
helper({a}, x.shape[0], 1, k=n)
chooser({a}, x.shape[0] % 4)
obj.act({a})
obj.t * {a}
{a}.clone()
{a}.detach() + {b}
(lambda q, w=x.shape[0]: q * w + cell)({a})
{a}.to(strata.float64).to(x.dtype)
{a} * [x.shape[0], n, 2][x.shape[0] % 3]
{a} * {{x.shape[0]: 2.0}}.get(n, 0.5)
{a} * divmod(x.shape[0], 3)[1]
{a} * round(x.shape[0] / 2)
{a} * (x.shape[0] if x.shape[0] > n else n)
{a} * (1 if {a}.shape == {b}.shape else 2)
{a} * sorted([x.shape[0], n, 3])[1]
""".strip().split("\n")
CONDITIONS = """
x.shape[0] > 3
x.shape[0] % 2 == 0
x.shape == y.shape
x.numel() > 12
len(x) in (2, 3)
x.size(0) != y.size(0)
v0.shape[0] * 2 < 9
n > x.shape[0]
n == x.shape[0]
n % 2
2 < x.shape[0] <= 6
not x.shape[0]
x.shape[0] and n > 4
v1.is_contiguous()
isinstance(x.shape[0], int)
type(n) is int
obj.n < 4
x.shape[0] // 2 == n // 2
hasattr(obj, 'extra')
G_INT > x.shape[0]
x.dim() == 2
""".strip().split("\n")
WRITES = """
{v}[: {v}.shape[0] // 2] *= 2
{v}[0] = {k}
{v}[-1].mul_(2)
{v}.view(-1)[::2].add_(1)
{v}[:, 1:3] = {v}.shape[0]
{v}.add_(x.shape[0])
{v}.relu_()
{v}[x.shape[0] - 1] += 1
{v}.view(x.shape[0], 2, 2)[:, 0].mul_(n)
""".strip().split("\n")
EFFECTS = """
items.append(x.shape[0])
items.append(x.shape)
d[f"{{n}}"] = x.shape[0]
d["k"] = {v}.numel()
obj.n = x.shape[0]
obj.extra = x.shape[0] * 2
obj.n = n + x.shape[0]
G_INT = x.shape[0]
G_INT = G_INT + n
cell = x.shape[0] + cell
print("rows", x.shape[0], n)
print(x.shape)
items.extend(range(x.shape[0] % 4))
k = x.shape[0] + (k or 0)
n = n * x.shape[0]
""".strip().split("\n")
RESULTS = "v0, x.shape, x.shape[0] * 2|[v0, obj.n, cell, n]|v0, slice(0, x.shape[0]), v2.size()|v2|{'a': v0, n: [v1, k]}|v0 + v1, x.shape[0] / 4|v0.view(-1), v0"


def of_sizes(writer: type) -> type:
    """The writer's kind, for such programs."""

    class Sizes(writer):
        def number(self) -> str:
            return self.r.choice(["n", "k", "2", "1.5", "G_INT", "obj.n", "obj.scale", "cell", "len(items)", "x.shape[0]", "y.shape[0]", "v1.numel()"])

        def small(self) -> str:
            return self.r.choice(["n % 3", "2", "x.shape[0] % 3", "len(G_LIST) % 3", "obj.n % 3", "(x.shape[0] + n) % 2"])

        def expr(self) -> str:
            return self.r.choice(EXPRESSIONS).format(a=self.vec(), b=self.vec(), k=self.number(), s=self.small())

        def condition(self) -> str:
            return self.r.choice(CONDITIONS)

        def statement(self, depth: int, pad: str) -> None:
            chance, v = self.r.random(), self.vec()
            if chance < 0.12:
                self.lines.append(f"{pad}{v} = {v}.clone()")
                self.lines.append(pad + self.r.choice(WRITES).format(v=v, k=self.number()))
            elif chance < 0.24:
                self.lines.append(pad + self.r.choice(EFFECTS).format(v=v))
            else:
                at = len(self.lines)
                super().statement(depth, pad)
                for i in range(at, len(self.lines)):
                    line = self.lines[i]
                    if "obj.t = " in line:
                        self.lines[i] = line.replace(" * 1", ".sum(0) * 0.5")
                    elif "[1:3]" in line or "view(2, 2)" in line:
                        self.lines[i] = line.split("v")[0] + "k = 1"

        def program(self) -> str:
            text = super().program()
            last = [line for line in text.split("\n") if line.startswith("        return ")][-1]
            text = text.replace(last, "        return " + self.r.choice(RESULTS.split("|")))
            return text.replace("self.seen.add_(v.detach())", "self.seen.add_(v.detach().sum(0))").replace("import strata\n", "import math\nimport strata\n", 1)

    return Sizes


def arguments(strata, r: random.Random, grad: bool) -> tuple:
    """x, y and n of a call."""
    rows = r.choice(ROWS)
    x = strata.randn(rows, 4, requires_grad=grad)
    if not grad and r.random() < 0.2:
        x = strata.randn(4, rows).t()
    chance = r.random()
    y = x if chance < 0.05 else strata.randn(rows if chance < 0.85 else r.choice((1, rows, 3)), 4, requires_grad=r.random() < 0.3)
    return x, y, r.choice([1, 2, 3, 4, 5, 7, 9])
