"""Operands as source text. What a call is given is written as Python, so that a finding prints as a program."""

from __future__ import annotations

import random
from collections.abc import Sequence

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
          "float64", "complex64", "complex128"]
FLOATS = ("float16", "bfloat16", "float32", "float64")
COMMON = ["float32", "float32", "float64", "float16", "bfloat16", "int64", "int64", "int32", "uint8", "bool", "complex64", "complex128"]
RANGES = {"uint8": (0, 255), "int8": (-128, 127), "int16": (-(2**15), 2**15 - 1), "uint16": (0, 2**16 - 1), "int32": (-(2**31), 2**31 - 1),
          "uint32": (0, 2**32 - 1), "int64": (-(2**63), 2**63 - 1), "uint64": (0, 2**64 - 1)}
LAYOUTS = ["plain", "plain", "transposed", "stepped", "offset", "expanded", "overlapping", "channels_last"]
# Above this many elements a tensor is written as a formula, not as a list.
LITERAL = 48
# Large enough that threads share the work.
LARGE = [[40000], [300, 257], [7, 65, 129], [2, 3, 70, 100]]

# Definitions that hostile values need, one line each.
HELPERS = {
    "Long": "class Long: __len__ = lambda s: 2**40; __getitem__ = lambda s, i: [1, 2, 3][i]",
    "Minus": "class Minus: __len__ = lambda s: -1; __getitem__ = lambda s, i: 1",
    "Raises": "class Raises: __len__ = __getitem__ = __iter__ = __index__ = __float__ = __bool__ = __complex__ = __eq__ = property(lambda s: 1 / 0)",
    "Halfway": "class Halfway: __len__ = lambda s: 3; __getitem__ = lambda s, i: 1 // (1 - i)",
    "Named": "class Named: __index__ = __int__ = __float__ = __bool__ = __complex__ = lambda s: 'x'",
    "Big": "class Big: __index__ = __int__ = lambda s: 2**70",
    "Two": "class Two: __index__ = __int__ = lambda s: 2",
    "Longer": "class Longer(list): __len__ = lambda s: 7; __iter__ = lambda s: iter([1])",
    "Shorter": "class Shorter(tuple): __len__ = lambda s: 0; __getitem__ = lambda s, i: None",
    "Cut": "Cut = [0, 1, 2]; Cut[0] = type('C', (), {'__index__': lambda s: Cut.clear() or 0, '__float__': lambda s: Cut.clear() or 0.})()",
    "Grow": "Grow = [0]; Grow[0] = type('G', (), {'__index__': lambda s: Grow.extend([1] * 99) or 0})()",
    "Gone": "Gone = [strata.ones(2, 3)]; Gone.append(type('G', (), {'__torch_function__': classmethod(lambda *a, **k: Gone.clear()), '__index__': lambda s: Gone.clear() or 0})())",
    "Cycle": "Cycle = []; Cycle.append(Cycle)",
    "Deep": "import functools; Deep = functools.reduce(lambda a, _: [a], range(50000), 1)",
    "Str": "class Str(str): __eq__ = lambda s, o: 1 / 0; __hash__ = str.__hash__; __len__ = lambda s: 10**9",
    "Int": "class Int(int): __index__ = __int__ = __float__ = lambda s: 1 / 0",
    "Float": "class Float(float): __float__ = lambda s: 'x'",
    "Sub": "class Sub(strata.Tensor): pass",
    "Refuse": "class Refuse: __torch_function__ = classmethod(lambda *a, **k: 1 / 0)",
    "Modal": "class Modal(strata.Tensor): __torch_function__ = classmethod(lambda *a, **k: NotImplemented)",
    "Array": "class Array: __array__ = lambda s, *a, **k: 5",
    "Pack": "class Pack: __dlpack__ = lambda s, **k: None; __dlpack_device__ = lambda s: (99, 0)",
    "Freed": "Freed = strata.ones(2, 3); Freed.untyped_storage().resize_(0)",
    "Frozen": "with strata.inference_mode(): Frozen = strata.ones(2, 3)",
    "Kept": "Kept = strata.ones(2, 3, requires_grad=True)",
}
NUMBERS = ["0", "1", "-1", "2", "3", "7", "-7", "True", "2**31 - 1", "2**31", "-2**31", "2**32", "2**53 + 1", "2**62", "2**63 - 1", "-2**63", "2**63",
           "2**64 - 1", "-2**80", "10**400", "nan", "inf", "-inf", "-0.0", "0.5", "1e300", "5e-324", "3.4e38", "1j", "complex(nan, inf)",
           "np.float32(2)", "np.int64(3)", "np.uint8(200)", "np.bool_(True)", "np.longdouble(1)", "Big()", "Two()", "Named()", "Raises()", "Int(3)", "Float(2)"]
SIZES = ["0", "1", "2", "3", "5", "-1", "-2", "2**31", "2**31 - 1", "2**62", "2**63 - 1", "-2**63", "2**63", "2**40", "100", "True", "None", "0.5", "nan", "Two()", "Big()"]
WORDS = ["''", "'x'", "'mean'", "'sum'", "'none'", "'\\ud800'", "'a\\0b'", "'{}%s%n'", "'x' * 100000", "b'x'", "Str('mean')", "'floor'", "'reflect'", "'cpu'", "'cpu:7'", "'float32'", "'i,j->'", "'ij,jk->ik'"]
LISTS = ["()", "[]", "[[]]", "[None]", "[1, [2]]", "[0, 0]", "[1] * 70", "[2**62] * 3", "[2**63]", "[-1, -1]", "[nan]", "['x']", "(1, 'x')", "range(3)",
         "range(2**62)", "iter([1, 2])", "(i for i in [1, 2])", "Long()", "Minus()", "Halfway()", "Longer([1, 2])", "Shorter((1, 2))", "Cut", "Grow", "Gone",
         "Cycle", "Deep", "strata.Size([2, 3])", "np.arange(3)", "np.arange(6)[::-2]", "strata.tensor([1, 2])", "[strata.ones(2), None]",
         "[strata.ones(2, 3), strata.ones(3)]", "[True, 1j]", "{0, 1}", "{'a': 1}", "[Raises()]", "[Named(), 1]", "[Two(), True]", "[strata.tensor(2), 1]", "[Kept, Frozen]"]
ODD = ["None", "{}", "set()", "slice(None)", "slice(0, 2**63)", "slice('x')", "...", "NotImplemented", "object()", "object", "int", "lambda *a: None",
       "lambda *a, **k: 1 / 0", "strata", "strata.float32", "strata.complex128", "strata.bool", "strata.int64", "strata.device('cpu')", "strata.strided", "strata.preserve_format",
       "strata.channels_last", "strata.Generator()", "np.float64", "np.array([1, 'x'], dtype=object)", "np.zeros(3, '>f4')", "np.array(None)",
       "np.datetime64('2020')", "np.ones((2, 3), order='F')", "np.zeros((0, 3))", "np.zeros(2, 'f4,i4')", "memoryview(b'abcd')", "bytearray(3)", "Refuse()", "Array()", "Pack()",
       "Exception()", "type('T', (), {})", "strata.nn.Linear(3, 2)", "strata.optim.SGD([strata.ones(2, requires_grad=True)], lr=0.1)", "strata.no_grad()"]
TENSORS = ["Freed", "Frozen", "Kept", "Kept * 2", "Kept[0]", "Kept.detach()", "strata.ones(2, 3).as_subclass(Sub)", "strata.ones(2, 3).as_subclass(Modal)",
           "strata.nn.Parameter(strata.ones(2, 3))", "strata.ones(2, 3, device='meta')", "strata.frombuffer(bytearray(12), dtype=strata.float32)",
           "strata.tensor([0, -1, 2**40])", "strata.tensor([nan, inf, -inf, 0.0, -0.0])", "strata.tensor([-2**63, 2**63 - 1])", "strata.tensor(nan)",
           "strata.tensor(2**62)", "strata.tensor([2**31, -2**31 - 1])", "strata.tensor([1e30, -1e30, 3.4e38])", "strata.tensor([[[]]])", "strata.from_numpy(np.ones((2, 3))[::-1].copy())",
           "strata.ones(2, 3).expand(4, 2, 3)", "strata.zeros(5).as_strided((3, 3), (1, 1))", "strata.ones(3, 3).triu()", "strata.ones(1, dtype=strata.int64).expand(6)"]


class Draw:
    """Draws operands of one call: `lines` are the definitions made so far, the methods return expressions."""

    def __init__(self, key: str):
        self.random = random.Random(key)
        self.large: list[int] | None = None  # the shape of most operands, where threads share the work
        self.lines: list[str] = []
        self.operands: list[str] = []

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def pick(self, items: Sequence):
        return items[int(self.random.random() * len(items))]

    def named(self, expression: str) -> str:
        """A variable for the operand, so that it can be looked at after the call."""
        name = f"x{len(self.operands)}"
        self.lines.append(f"{name} = {expression}")
        self.operands.append(name)
        return name

    def helped(self, expression: str) -> str:
        """The expression, after the definitions it needs."""
        for name, line in HELPERS.items():
            if name in expression and line not in self.lines:
                self.lines.append(line)
                if name in ("Freed", "Frozen", "Kept"):
                    self.operands.append(name)
        return expression

    # ---- tensors
    def shape(self) -> list[int]:
        if self.large and self.chance(0.8):
            return self.large
        rank = self.pick([0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6, 9])
        return [self.pick([0, 1, 1, 2, 2, 3, 3, 4, 5] if rank < 5 else [0, 1, 1, 1, 1, 2, 2, 3]) for _ in range(rank)]

    def element(self, dtype: str, tame: bool = False) -> str:
        if dtype == "bool":
            return str(self.chance(0.5))
        if dtype in RANGES:
            low, high = RANGES[dtype]
            if not tame and self.chance(0.1):
                return str(self.pick([low, high, 0]))
            return str(self.random.randint(max(low, -4), 4))
        if not tame and self.chance(0.06):
            value = self.pick(["nan", "inf", "-inf", "-0.0", "1e-40", "6e4", "1e30"])
        else:
            value = str(self.random.randint(-32, 32) / 8)
        return f"complex({value}, {self.random.randint(-8, 8) / 4})" if dtype.startswith("complex") else value

    def filled(self, shape: list[int], dtype: str, tame: bool = False) -> str:
        count = 1
        for n in shape:
            count *= n
        if count == 0:
            return f"strata.empty({shape}, dtype=strata.{dtype})"
        if count > LITERAL:
            low, scale = (0, "") if dtype.startswith(("u", "b")) else (6, " / 4" if dtype in FLOATS or dtype.startswith("complex") else "")
            return f"((strata.arange({count}) * {self.pick([5, 7, 11])} % 13 - {low}){scale}).to(strata.{dtype}).reshape({shape})"
        values = [self.element(dtype, tame) for _ in range(count)]
        if len(shape) == 0:
            return f"strata.tensor({values[0]}, dtype=strata.{dtype})"
        reshaped = f".reshape({shape})" if len(shape) > 1 else ""
        return f"strata.tensor([{', '.join(values)}], dtype=strata.{dtype}){reshaped}"

    def laid(self, shape: list[int], dtype: str, layout: str, fill=None) -> str:
        """A tensor of the shape under the named strides; `fill(shape)` writes the memory it looks at."""
        fill = fill or (lambda s: self.filled(s, dtype))
        rank = len(shape)
        if layout == "transposed" and rank > 1:
            dims = list(range(rank))
            self.random.shuffle(dims)
            source = [0] * rank
            for i, d in enumerate(dims):
                source[d] = shape[i]
            return f"{fill(source)}.permute({dims})"
        if layout == "stepped" and rank > 0:
            return f"{fill([*shape[:-1], max(2 * shape[-1] - 1, 0)])}[..., ::2]"
        if layout == "offset" and rank > 0:
            return f"{fill([shape[0] + 1, *shape[1:]])}[1:]"
        if layout == "expanded" and rank > 0:
            return f"{fill([1 if self.chance(0.5) else n for n in shape])}.expand({shape})"
        if layout == "overlapping" and rank > 0 and 0 not in shape:
            strides = [self.pick([0, 1, 1, 2]) for _ in shape]
            need = 1 + sum((n - 1) * s for n, s in zip(shape, strides))
            return f"{fill([need])}.as_strided({shape}, {strides})"
        if layout == "channels_last" and rank == 4:
            return f"{fill(shape)}.to(memory_format=strata.channels_last)"
        return fill(shape)

    def tensor(self, dtype: str | None = None, shape: list[int] | None = None, grad: bool | None = None) -> str:
        """The name of a tensor of any kind."""
        d = dtype or self.pick(COMMON if self.chance(0.9) else DTYPES)
        s = self.shape() if shape is None else shape
        text = self.laid(s, d, self.pick(LAYOUTS))
        if (d in FLOATS or d.startswith("complex")) and (self.chance(0.2) if grad is None else grad):
            text += ".requires_grad_()"
        return self.named(text)

    # ---- hostile values
    def anything(self) -> str:
        kind = self.random.random()
        if kind < 0.25:
            return self.odd_tensor()
        pool = NUMBERS if kind < 0.45 else LISTS if kind < 0.7 else WORDS if kind < 0.8 else ODD
        return self.helped(self.pick(pool))

    def odd_tensor(self) -> str:
        if self.chance(0.6):
            return self.tensor()
        if self.chance(0.2):
            shape = [1] * self.pick([7, 9, 12, 25, 64, 65])
            shape[self.random.randrange(len(shape))] = self.pick([0, 2, 3])
            return self.tensor(shape=shape)
        expression = self.helped(self.pick(TENSORS))
        return expression if expression in HELPERS else self.named(expression)

    def number(self) -> str:
        return self.helped(self.pick(NUMBERS))

    def size(self) -> str:
        return self.helped(self.pick(SIZES))

    def sizes(self) -> str:
        if self.chance(0.4):
            return self.helped(self.pick(LISTS))
        return self.helped("[" + ", ".join(self.pick(SIZES) for _ in range(self.pick([0, 1, 1, 2, 2, 3, 4, 6, 9]))) + "]")

    def word(self) -> str:
        return self.helped(self.pick(WORDS))
