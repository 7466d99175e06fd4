"""Programs of tools/fuzz_compile.py that read values of tensors (--values): numbers, and sizes that are data."""

from __future__ import annotations

EXPRESSIONS = """
{a} + {a}[{a} > 0].sum()
{a} + {b}[{a} > 0.3].shape[0]
{a} * ({a} > 0).sum().item()
{a} + (lambda m: m.sum() * m.numel())({a}[{a} > 0.1] * 2)
{a} + strata.arange(int(({a} > 0).sum()) + 1).sum()
{a} + ({a} > 0).nonzero().sum() + len(({a} > 0).nonzero())
strata.cat([{a}[{a} > 0], {a}[~({a} > 0)]]).view({a}.shape)
{a} + strata.unique(({a} > 0).long()).numel()
{a} * float({a}.detach().sum())
{a} + {a}.detach().argmax().item()
{a} + strata.zeros(({a} > 0).sum().item() + 1, 2).sum(0)[0] + {a}.masked_select({b} > 0).exp().sum()
{a} + ({a} > 0).nonzero(as_tuple=True)[0].sum()
{a} + sum({a}.detach().view(-1)[:2].tolist())
{a} + {a}.view(-1)[: ({a} > 0).sum().item()].sum()
{a} + F.dropout({a}, 0.5)[{a} > 0].sum()
""".strip().splitlines()
STATEMENTS = """
k = int(({v} > 0).sum())
k = ({v} > 0).sum().item() + 1
items.append({v}.detach().sum().item())
d['m'] = {v}.detach().max().item() * 2 + 1
obj.n = ({v} > 0).sum().item()
obj.scale += {v}.detach().min().item()
print(({v} > 0).sum().item())
strata._check(({v} > 0).sum().item() >= 0)
strata._check_is_size(({v} > 0).sum().item() - 2, lambda: 'too few')
G_INT = ({v} > 0).sum().item()
cell = {v}.detach().argmax().item()
{v}, k = {v} + 1, {v}.detach().view(-1)[0].item() if {v}.numel() else 0
""".strip().splitlines()
CONDITIONS = ["({v} > 0).sum().item() > 2", "{v}[{v} > 0].shape[0] < 2", "bool(({v} > 9).any().item())", "int(({v} > 0).sum()) % 2"]


def of_values(writer: type) -> type:
    """A writer of programs that read values, too."""

    class Reads(writer):
        def expr(self) -> str:
            if self.r.random() < 0.25:
                return self.r.choice(EXPRESSIONS).format(a=self.vec(), b=self.vec())
            return super().expr()

        def condition(self) -> str:
            if self.r.random() < 0.25:
                return self.r.choice(CONDITIONS).format(v=self.vec())
            return super().condition()

        def statement(self, depth: int, pad: str) -> None:
            if self.r.random() < 0.2:
                self.lines.append(pad + self.r.choice(STATEMENTS).format(v=self.vec()))
            else:
                super().statement(depth, pad)

    return Reads
