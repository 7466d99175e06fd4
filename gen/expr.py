"""Scalar expressions of the table: names, symbolic derivatives, and their composition from tensor operators.

An expression is Python syntax with C's meaning (`where(c, a, b)` chooses). The derivative of a pointwise entry is one
generated kernel; the derivative of that kernel is the symbolic one, composed here from operators, so that gradients of
any order exist.
"""

from __future__ import annotations

import ast
import copy


class NotPointwise(Exception):
    """The text is not a scalar expression over the given names."""


def parse(text: str) -> ast.expr:
    return ast.parse(text.strip(), mode="eval").body


class Bracketed(ast.NodeTransformer):
    """Comparisons of `a & b` keep their brackets, without which C, and the kernel printer, read another expression."""

    def visit_Compare(self, node):
        self.generic_visit(node)
        node.left, *node.comparators = (ast.Call(ast.Name(""), [x], []) if isinstance(x, ast.BinOp) and isinstance(x.op, (ast.BitAnd, ast.BitOr, ast.BitXor))
                                        else x for x in (node.left, *node.comparators))
        return node


def lines(text: str) -> list[tuple[str, str]]:
    """`name = expression` lines; a bare expression is the line `result`."""
    found = []
    for line in text.strip().splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        tree = Bracketed().visit(ast.parse(line).body[0])
        if isinstance(tree, ast.Assign):
            found.append((tree.targets[0].id, ast.unparse(tree.value)))
        else:
            found.append(("result", ast.unparse(tree.value)))
    return found


def inlined(text: str) -> str:
    """The last line's expression with the earlier names put in."""
    names: dict[str, ast.expr] = {}

    class Put(ast.NodeTransformer):
        def visit_Name(self, node):
            return names.get(node.id, node)

    for name, value in lines(text):
        names[name] = Put().visit(parse(value))
    return ast.unparse(Bracketed().visit(names[name]))


def calls(text: str) -> list[ast.Call]:
    """The calls of functions in all lines of a text, in the order of the lines."""
    return [n for _, value in lines(text) for n in ast.walk(parse(value)) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]


def indexed_names(text: str) -> set[str]:
    """What a text reads at indices of its own: `self[i + 1]`."""
    return {n.value.id for _, value in lines(text) for n in ast.walk(parse(value)) if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name)}


def used_names(text: str) -> list[str]:
    calls, names, bound = set(), [], {"pi", "inf", "nan"}
    tree = parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            calls.add(id(node.func))
            if isinstance(node.func, ast.Name) and node.func.id == "repeat":
                bound |= {a.id for a in node.args[2::3] if isinstance(a, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and id(node) not in calls and node.id not in bound and node.id not in names:
            names.append(node.id)
    return names


# d f(a, b...) / d a_i as text over a, b, c and r (the call itself). None: zero.
RULES: dict[str, list[str | None]] = {
    "exp": ["r"], "exp2": ["r * 0.6931471805599453"], "expm1": ["r + 1"],
    "log": ["1 / a"], "log2": ["1 / (a * 0.6931471805599453)"], "log10": ["1 / (a * 2.302585092994046)"],
    "log1p": ["1 / (a + 1)"], "sqrt": ["0.5 / r"], "rsqrt": ["-0.5 * r / a"],
    "sin": ["cos(a)"], "cos": ["-sin(a)"], "tan": ["1 + r * r"],
    "asin": ["rsqrt(1 - a * a)"], "acos": ["-rsqrt(1 - a * a)"], "atan": ["1 / (1 + a * a)"],
    "sinh": ["cosh(a)"], "cosh": ["sinh(a)"], "tanh": ["1 - r * r"],
    "asinh": ["rsqrt(a * a + 1)"], "acosh": ["rsqrt(a * a - 1)"], "atanh": ["1 / (1 - a * a)"],
    "sigmoid": ["r * (1 - r)"],
    "erf": ["1.1283791670955126 * exp(-a * a)"], "erfc": ["-1.1283791670955126 * exp(-a * a)"],
    "erfinv": ["0.8862269254527579 * exp(r * r)"],
    "normcdf": ["0.3989422804014327 * exp(-0.5 * a * a)"],
    "lgamma": ["digamma(a)"], "digamma": ["trigamma(a)"], "trigamma": ["tetragamma(a)"],
    "abs": ["sign(a)"], "sign": [None], "floor": [None], "ceil": [None], "trunc": [None], "rint": [None],
    "pow": ["b * pow(a, b - 1)", "where(r == 0, r, r * log(a))"],
    "atan2": ["b / (a * a + b * b)", "-a / (a * a + b * b)"],
    "maximum": ["where(a > b, 1, where(a == b, 0.5, 0))", "where(a > b, 0, where(a == b, 0.5, 1))"],
    "minimum": ["where(a < b, 1, where(a == b, 0.5, 0))", "where(a < b, 0, where(a == b, 0.5, 1))"],
    "conj": ["1"], "real": ["1"], "isnan": [None],
}

ZERO = ast.Constant(0)
ONE = ast.Constant(1)


def _const(node: ast.expr, value: float) -> bool:
    return isinstance(node, ast.Constant) and not isinstance(node.value, bool) and node.value == value


def _mul(a: ast.expr, b: ast.expr) -> ast.expr:
    if _const(a, 0) or _const(b, 0):
        return ZERO
    if _const(a, 1):
        return b
    if _const(b, 1):
        return a
    return ast.BinOp(a, ast.Mult(), b)


def _add(a: ast.expr, b: ast.expr) -> ast.expr:
    if _const(a, 0):
        return b
    return a if _const(b, 0) else ast.BinOp(a, ast.Add(), b)


def _sub(a: ast.expr, b: ast.expr) -> ast.expr:
    if _const(b, 0):
        return a
    return _neg(b) if _const(a, 0) else ast.BinOp(a, ast.Sub(), b)


def _neg(a: ast.expr) -> ast.expr:
    if isinstance(a, ast.UnaryOp) and isinstance(a.op, ast.USub):
        return a.operand
    return ZERO if _const(a, 0) else ast.UnaryOp(ast.USub(), a)


def _call(name: str, *args: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name), list(args), [])


def slopes(node: ast.expr, by: str, is_complex: bool) -> list[tuple[str, ast.expr]]:
    """What the gradient of `by` is a sum of: a factor (the gradient or its conjugate) and a scalar expression.

    Complex derivatives are Wirtinger's: the gradient times conj(d node / d by), and its conjugate times
    d node / d conj(by).
    """
    if not is_complex:
        parts = [("grad", derivative(node, by))]
    else:
        plain = derivative(node, by, False)
        parts = [("grad", plain if _const(plain, 0) else _conj(plain)), ("_conjugate(grad)", derivative(node, by, True))]
    return [(outer, slope) for outer, slope in parts if not _const(slope, 0)]


def _is_where(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and node.func.id == "where"


def _passes(slope: ast.expr) -> bool:
    """Whether a branch is a number."""
    return isinstance(slope, ast.Constant) or (_is_where(slope) and any(_passes(a) for a in slope.args[1:]))


def scaled(outer: ast.expr, slope: ast.expr) -> ast.expr:
    """outer * slope, where outer goes to what slope passes on as it is: an absent branch stays 0 whatever outer is, and
    factors meet outer before each other, in its dtype."""
    if isinstance(slope, ast.UnaryOp) and isinstance(slope.op, ast.USub):
        return _neg(scaled(outer, slope.operand))
    if isinstance(slope, ast.BinOp) and isinstance(slope.op, ast.Mult):
        return scaled(scaled(outer, slope.left), slope.right)
    if isinstance(slope, ast.BinOp) and isinstance(slope.op, ast.Div):
        return ast.BinOp(scaled(outer, slope.left), slope.op, slope.right)
    if _is_where(slope) and _passes(slope):
        return _call("where", slope.args[0], scaled(outer, slope.args[1]), scaled(outer, slope.args[2]))
    return _mul(outer, slope)


def _conj(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Constant):
        return node
    if isinstance(node, ast.UnaryOp):
        return _neg(_conj(node.operand))
    if isinstance(node, ast.BinOp):
        return ast.BinOp(_conj(node.left), node.op, _conj(node.right))
    if _is_where(node):
        return _call("where", node.args[0], _conj(node.args[1]), _conj(node.args[2]))
    return node.args[0] if isinstance(node, ast.Call) and node.func.id == "conj" else _call("conj", node)


def derivative(node: ast.expr, by: str, barred: bool | None = None) -> ast.expr:
    """d node / d by. Comparisons and integer results have none and count as constants.

    barred: None in real numbers; True is the derivative by conj(by) while `by` stays, False the one by `by`.
    """

    def d(node: ast.expr, by: str) -> ast.expr:
        return derivative(node, by, barred)

    if isinstance(node, ast.Constant):
        return ZERO
    if isinstance(node, ast.Name):
        return ONE if node.id == by and not barred else ZERO
    if isinstance(node, ast.UnaryOp):
        return _neg(d(node.operand, by)) if isinstance(node.op, ast.USub) else ZERO
    if isinstance(node, (ast.Compare, ast.BoolOp)):
        return ZERO
    if isinstance(node, ast.BinOp):
        a, b = node.left, node.right
        da, db = d(a, by), d(b, by)
        if isinstance(node.op, ast.Add):
            return _add(da, db)
        if isinstance(node.op, ast.Sub):
            return _sub(da, db)
        if isinstance(node.op, ast.Mult):
            return _add(_mul(da, b), _mul(a, db))
        if isinstance(node.op, ast.Div):
            if _const(db, 0):
                return ZERO if _const(da, 0) else ast.BinOp(da, ast.Div(), b)
            return ast.BinOp(_sub(da, _mul(node, db)), ast.Div(), b)
        return ZERO
    if isinstance(node, ast.Call):
        name, args = node.func.id, node.args
        if name in ("where", "select", "rare"):
            da, db = d(args[1], by), d(args[2], by)
            if _const(da, 0) and _const(db, 0):
                return ZERO
            return _call("where", args[0], da, db)
        if name == "fma":
            return _add(_add(_mul(d(args[0], by), args[1]), _mul(args[0], d(args[1], by))), d(args[2], by))
        if barred is not None and name == "conj":
            inner = derivative(args[0], by, not barred)
            return inner if isinstance(inner, ast.Constant) else _conj(inner)
        if not any(isinstance(n, ast.Name) and n.id == by for a in args for n in ast.walk(a)):
            return ZERO
        if name not in RULES or (barred is not None and name in ("abs", "real")):
            raise NotPointwise(f"no derivative rule for {name}")
        total: ast.expr = ZERO
        for arg, rule in zip(args, RULES[name], strict=True):
            inner = d(arg, by)
            if rule is None or _const(inner, 0):
                continue
            names = dict(zip("abc", args, strict=False)) | {"r": node}

            class Put(ast.NodeTransformer):
                def visit_Name(self, n, names=names):
                    return names.get(n.id, n)

            total = _add(total, _mul(Put().visit(parse(rule)), inner))
        return total
    raise NotPointwise(ast.dump(node))


# What operators over tensors are called where the functions of numbers have other names.
OPS = {"normcdf": "special_ndtr", "select": "where", "rare": "where", "rint": "round", "trigamma": "special_trigamma",
       "tetragamma": "special_tetragamma"}

def over_tensors(node: ast.expr) -> str:
    """The text of a formula over tensors (gen/formula.py) that computes what a scalar expression does."""

    class Put(ast.NodeTransformer):
        def visit_Call(self, node):
            self.generic_visit(node)
            if node.func.id == "fma":
                a, b, c = node.args
                return ast.BinOp(ast.BinOp(a, ast.Mult(), b), ast.Add(), c)
            return _call(OPS.get(node.func.id, node.func.id), *node.args)

    return ast.unparse(ast.fix_missing_locations(Put().visit(copy.deepcopy(node))))


# What is as exact of integers.
EXACT = {"where", "select", "rare", "conj", "isnan", "sign", "abs"}


def met_apart(node: ast.expr) -> set[str]:
    """Names that meet a number, each other or a function before they meet a gradient, which would give them its dtype."""

    def names(n: ast.expr) -> set[str]:
        return {x.id for x in ast.walk(n) if isinstance(x, ast.Name)}

    if isinstance(node, ast.Compare):
        return set()
    apart = isinstance(node, ast.BinOp) or (isinstance(node, ast.Call) and node.func.id not in EXACT)
    if apart and not names(node) & {"grad", "grad_"}:
        return names(node)
    return set().union(*(met_apart(n) for n in ast.iter_child_nodes(node)))
