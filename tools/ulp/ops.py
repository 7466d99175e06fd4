"""Checks the shared mathematics text against its grammar and types, and counts operations.

Usage: ops.py [function...]. For each function and type: the operations of the main path after inlining and merging
common subexpressions, how many of them divide or take a root, and what a rare branch adds. Exit status 1 on an error.
"""

import re
import sys
from pathlib import Path

MATH = Path(__file__).resolve().parents[2] / "src" / "lower" / "math"
ORDER = "exp log trig trig64 invtrig hyperbolic erf normal pow gamma special bessel oscillating incomplete root remainder sample philox".split()
FLOATS, INTS = ("f32", "f64"), ("i32", "i64", "u32", "u64")
TYPES = (*FLOATS, *INTS, "bool")
WORD = re.compile(
    r"\s*(?://[^\n]*\n\s*)*"
    r"(0x[0-9a-fA-F.]+p[+-]?\d+f?|0x[0-9a-fA-F]+(?:ul|u|l)?|\d+\.\d*(?:e[+-]?\d+)?f?|\d+(?:ul|u|l)?"
    r"|\w+|<<|>>|<=|>=|==|!=|&&|\|\||\S)"
)
LEVELS = [w.split() for w in ("||", "&&", "|", "^", "&", "== !=", "< <= > >=", "<< >>", "+ -", "* / %")]


OPERANDS = {op: FLOATS + INTS for op in "+ - * / < <= > >=".split()}
OPERANDS.update({"&&": ("bool",), "||": ("bool",), "==": TYPES, "!=": TYPES})


class Text:
    """One function: its signature and the tokens of its statements."""

    def __init__(self, result, name, params, statements, where):
        self.result, self.name, self.params, self.statements, self.where = result, name, params, statements, where


class Graph:
    """Hash-consed operations: the key is (operator, type, operands...)."""

    def __init__(self, functions):
        self.functions, self.nodes, self.types = functions, {}, []

    def make(self, kind, kind_type, *args):
        key = (kind, kind_type, *args)
        if key not in self.nodes:
            self.nodes[key] = len(self.types)
            self.types.append(kind_type)
        return self.nodes[key]


def tokens(text):
    out, at = [], 0
    text = re.sub(r"//[^\n]*", "", text)
    while match := WORD.match(text, at):
        out.append(match[1])
        at = match.end()
    return out


def parse_file(path, functions):
    words, at = tokens(path.read_text()), 0
    while at < len(words):
        result, name = words[at], words[at + 1]
        close = words.index(")", at)
        params = [(words[i], words[i + 1]) for i in range(at + 3, close, 3)]
        end = words.index("}", close)
        statements, one = [], []
        for word in words[close + 2 : end]:
            if word == ";":
                statements.append(one)
                one = []
            else:
                one.append(word)
        if one or statements[-1][0] != "return" or any(s[0] == "return" for s in statements[:-1]):
            raise SyntaxError(f"{path.name}: {name}: expected statements that end in one return")
        signature = (name, tuple(t for t, _ in params))
        if signature in functions:
            raise SyntaxError(f"{path.name}: {name} is defined twice for {signature[1]}")
        functions[signature] = Text(result, name, params, statements, path.name)
        Call(functions, Graph(functions)).run(signature, None)
        at = end + 1


class Call:
    """Evaluates one function's statements into the graph, checking types."""

    def __init__(self, functions, graph):
        self.functions, self.graph = functions, graph

    def run(self, signature, args):
        text, graph = self.functions[signature], self.graph
        self.text = text
        args = args or [graph.make("input", t, n) for t, n in text.params]
        self.names = {name: arg for (_, name), arg in zip(text.params, args)}
        for statement in text.statements:
            if statement[0] == "return":
                return self.expression(statement[1:], text.result)
            kind, name, equals = statement[:3]
            if kind not in TYPES or equals != "=" or name in self.names:
                raise SyntaxError(f"{text.where}: {text.name}: bad or second assignment: {' '.join(statement[:3])}")
            self.names[name] = self.expression(statement[3:], kind)
        raise AssertionError

    def expression(self, words, want):
        self.words, self.at = words, 0
        node = self.binary(0)
        if self.at != len(words):
            self.fail(f"unexpected {words[self.at]}")
        if self.graph.types[node] != want:
            self.fail(f"expected {want}, got {self.graph.types[node]}")
        return node

    def fail(self, why):
        raise SyntaxError(f"{self.text.where}: {self.text.name}: {why} in: {' '.join(self.words)}")

    def next(self):
        self.at += 1
        return self.words[self.at - 1] if self.at <= len(self.words) else ""

    def binary(self, level):
        if level == len(LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.at < len(self.words) and self.words[self.at] in LEVELS[level]:
            op = self.next()
            right = self.binary(level + 1)
            a, b = self.graph.types[left], self.graph.types[right]
            if a != b:
                self.fail(f"{a} {op} {b}")
            if a not in OPERANDS.get(op, INTS):
                self.fail(f"{op} on {a}")
            left = self.graph.make(op, "bool" if level in (0, 1, 5, 6) else a, left, right)
        return left

    def unary(self):
        word = self.next()
        if word in ("-", "!"):
            node = self.unary()
            kind = self.graph.types[node]
            if (word == "!") != (kind == "bool") or kind in ("u32", "u64"):
                self.fail(f"{word} on {kind}")
            return self.graph.make(word + "x", kind, node)
        if word == "(":
            node = self.binary(0)
            if self.next() != ")":
                self.fail("missing )")
            return node
        if word[:1].isdigit():
            if "." in word or "p" in word:
                digits = word.removesuffix("f")
                value = float.fromhex(digits) if digits.startswith("0x") else float(digits)
                return self.graph.make("const", "f32" if word.endswith("f") else "f64", value)
            suffix = re.search(r"(ul|u|l)?$", word)[0]
            kind = {"": "i32", "l": "i64", "u": "u32", "ul": "u64"}[suffix]
            return self.graph.make("const", kind, int(word.removesuffix(suffix), 0))
        if self.at < len(self.words) and self.words[self.at] == "(":
            self.next()
            args = []
            while True:
                args.append(self.binary(0))
                end = self.next()
                if end == ")":
                    break
                if end != ",":
                    self.fail("missing , or )")
            return self.call(word, args)
        if word not in self.names:
            self.fail(f"unknown name {word}")
        return self.names[word]

    def call(self, name, args):
        make, kinds = self.graph.make, tuple(self.graph.types[a] for a in args)
        if name in TYPES and len(args) == 1 and name != "bool":
            return make("to_" + name, name, *args)
        if name in ("select", "rare") and len(args) == 3 and kinds[0] == "bool" and kinds[1] == kinds[2]:
            return make(name, kinds[1], *args)
        same = len(set(kinds)) == 1 and kinds[0] in FLOATS
        arity = {"fma": 3, "copysign": 2, "sqrt": 1, "floor": 1, "ceil": 1, "trunc": 1, "rint": 1, "abs": 1}.get(name)
        if arity == len(args) and same:
            return make(name, kinds[0], *args)
        if name == "bits" and kinds in (("f32",), ("f64",)):
            return make(name, {"f32": "i32", "f64": "i64"}[kinds[0]], *args)
        if name == "from_bits" and kinds in (("i32",), ("i64",)):
            return make(name, {"i32": "f32", "i64": "f64"}[kinds[0]], *args)
        if (name, kinds) not in self.functions:
            self.fail(f"no function {name}{kinds}")
        return Call(self.functions, self.graph).run((name, kinds), args)


FREE = ("const", "input", "bits", "from_bits", "-x")


def cost(graph, root):
    """(operations, divisions and roots) of the main path, and the operations with the rare branches."""
    keys = {number: key for key, number in graph.nodes.items()}

    def reach(rare):
        seen, todo = set(), [root]
        while todo:
            node = todo.pop()
            if node in seen:
                continue
            seen.add(node)
            kind, _, *args = keys[node]
            if kind in ("const", "input"):
                continue
            todo += [args[0], args[2]] if kind == "rare" and not rare else args
        return seen

    main, whole = reach(False), reach(True)
    heavy = sum(keys[n][0] in ("/", "sqrt") for n in main)
    count = sum(keys[n][0] not in (*FREE, "rare") for n in main)
    wide = {keys[n][1] for n in main} & {"f64", "i64", "u64"}
    extra = sum(keys[n][0] not in (*FREE, "rare") for n in whole) - count
    return count, heavy, extra, wide


def main(wanted):
    functions = {}
    for name in ORDER:
        if (MATH / f"{name}.expr").exists():
            parse_file(MATH / f"{name}.expr", functions)
    missing = {p.stem for p in MATH.glob("*.expr")} - set(ORDER)
    if missing:
        raise SyntaxError(f"not in the order of tools/ulp/ops.py: {sorted(missing)}")
    for signature in functions:
        if wanted and signature[0] not in wanted:
            continue
        graph = Graph(functions)
        count, heavy, extra, wide = cost(graph, Call(functions, graph).run(signature, None))
        note = " uses " + " ".join(sorted(wide)) if wide and signature[1][0] == "f32" else ""
        name = f"{signature[0]:<22}{','.join(signature[1]):<9}"
        print(f"{name} {count:4} ops, {heavy} div/sqrt, {extra:4} more when rare{note}")


if __name__ == "__main__":
    try:
        main(set(sys.argv[1:]))
    except SyntaxError as error:
        sys.exit(f"error: {error}")
