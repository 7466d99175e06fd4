"""What programs do with sizes, and what becomes of each: one entry for all sizes, one for each answer, or one for each size.

Expressions of x, a tensor of n rows and 4 columns, and of n, an int argument that is the number of rows.
"""

# The size stays a symbol.
SYMBOL = """
x.sum(-2), x.transpose(-1, -2).reshape(-1), x.size(-2), x.size(dim=0)
x[-2:], x[:-1], x[::2], x[1:-1], x[-x.shape[0] :], x[: n // 2]
(lambda a, b: (a * b, x + a))(*x.shape)
x.reshape(*x.shape[::-1])
x.new_zeros((2,) + x.shape + (1,)), x.new_ones([*x.shape, 2])
x.shape[0] ** 2, 2 ** x.shape[0], (-1) ** x.shape[0], x.shape[0] ** 0.5
n << 2, n >> 1, n & 3, n | 8, n ^ 5, ~n, -n, +n, abs(-n)
len(x) * len(x.shape), [k + 1 for k in x.shape], list(map(lambda k: k * 2, x.shape))
functools.reduce(operator.mul, x.shape, 1), math.prod(x.shape), sum(x.shape), x.shape.numel()
math.ceil(n / 3), math.gcd(n, 6), math.log(n + 1), math.isqrt(n), math.hypot(n, 3), math.factorial(n)
round(n / 3, 1), round(n, -1), int(-n / 2), float(n), divmod(n, 3), max(n, 5), min(n, 5)
slice(0, x.shape[0] // 2), x[(slice(0, x.shape[0] // 2), ...)], {"n": n, "s": x.shape}
x[strata.arange(n).flip(0)], x.split([1, n - 1]), x.unbind(1), x.flatten(), x.squeeze()
x.t().contiguous().is_contiguous(), x.stride(), x.view(-1) if x.is_contiguous() else x
x[None].expand(n, -1, -1), x.repeat(n, 1), x.repeat_interleave(2, 0), strata.eye(n), strata.ones(n, n).tril()
strata.zeros_like(x) + strata.rand_like(x), strata.empty(n).fill_(n), strata.tensor([n, 2]), strata.tensor(n) * 2
strata.arange(n / 2), strata.linspace(0, 1, n), F.pad(x, (0, 0, 0, 20 - n)), F.layer_norm(x, x.shape)
F.scaled_dot_product_attention(x[None], x[None], x[None], is_causal=True), F.dropout(x, 1 / n)
x.topk(min(2, n), 0), x.sort(0), strata.einsum("ij,kj->ik", x, x), x.masked_fill(x > 0, n)
x.clone().mul_(n), x * n, n - x, x / n, x + n * 1.5, x.softmax(0), x.std()
(lambda k=x.shape[0]: k * 2)(), isinstance(n, int), type(n) is int, n is None
[i for i in range(x.shape[1])], x.shape[1] == 4, f"{x.shape[1]} {x.dtype}"
Point(x.shape[0], x * 2).a + 1, Point(n, x)
""".strip().split("\n")

# A comparison's answer splits sizes in two.
ANSWER = """
x + 1 if x.shape[0] > 6 else x
x + 1 if 6 < n <= 100 else x
x * 2 if n % 4 == 1 else x
(n - 5 and 7), not n - 5
5 in x.shape, x
x[:5] if x.shape[0] == 5 else x
any(k > 6 for k in x.shape)
x * [1, 2][n > 6]
x.numel() > 24 and x.shape != (3, 4)
strata.cat(x.chunk(2)[:1]) if n < 6 else x
max(x.shape, key=lambda k: -k if k > 6 else k) + 0
""".strip().split("\n")

# The size itself is asked for.
VALUE = """
[i for i in range(0, n, 2)]
[(i, r.sum()) for i, r in enumerate(x)]
{x.shape[0]: x}.get(4)
len({x.shape[0], 1, 2})
f"{x.shape[0]:>5}", x
f"{x.shape}", x
",".join(str(k) for k in x.shape)
n.bit_length(), n.real, x
n * 1j, complex(n), x
bytes(n), bin(n), hex(n), chr(n + 65), x
strata.tensor([1.0] * n) * x[:, 0]
list(range(20))[n], x
x.unbind(0)[0] + 1
sum(row for row in x)
""".strip().split("\n")
