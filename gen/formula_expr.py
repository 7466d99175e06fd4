"""Expressions of formulas: their types and their C++. gen/formula.py has the lines around them and says what the language is."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from .emit import cstring
from .formula_types import ELEMENTS, FormulaError, Function, Value, choose, fit, joined, parts_of, stored
from .schema import safe

# Functions of numbers and lists, spelled by `number_call`.
NUMBERS = {"len", "range", "zip", "float", "int", "min", "max", "log", "sqrt", "conj", "isinf", "pow"}
# Attributes of tensors, which a node can keep without the tensor.
FACTS = {"shape": ("int[]", "sizes"), "strides": ("int[]", "strides"), "dtype": ("ScalarType", "dtype"), "device": ("Device", "device"),
         "ndim": ("int", "dim"), "numel": ("int", "numel"), "storage_offset": ("int", "storage_offset"),
         "is_complex": ("bool", "is_complex")}
# Of tensors that are at hand, of dtypes and of numbers: the type and the C++ around the value.
LAYOUT_FACTS = {"overlaps_itself": ("bool", "overlaps_itself({})")}  # whether two elements lie at one place
DTYPE_FACTS = {"is_complex": ("bool", "is_complex({})"), "is_floating_point": ("bool", "is_float({})"),
               "is_differentiable": ("bool", "is_differentiable({})"), "is_integral": ("bool", "is_integral({}, true)"),
               "name": ("str", "scalar_type_name({})"), "word": ("str", "dtype_name({})"),
               # Bounds of numbers: of a complex dtype those of its parts. The last integer below which it has all.
               "least": ("float", "formulas::least({})"), "largest": ("float", "formulas::largest({})"),
               "last_integer": ("Scalar", "formulas::last_integer({})")}
NUMBER_FACTS = {"is_complex": ("bool", "({}).is_complex()"), "is_integral": ("bool", "({}).is_integral(true)"),
                "is_float": ("bool", "({}).is_float()"), "is_bool": ("bool", "({}).is_bool()")}
# Of lists of tensors: the type and the function that makes it.
LIST_FACTS = {"shapes": ("int[][]", "sizes_of"), "dtypes": ("ScalarType[]", "dtypes_of")}
CONSTANTS = {"contiguous_format": Value("MemoryFormat::Contiguous", "MemoryFormat"), "channels_last": Value("MemoryFormat::ChannelsLast", "MemoryFormat"),
             "channels_last_3d": Value("MemoryFormat::ChannelsLast3d", "MemoryFormat"), "inf": Value("INFINITY", "float"), "nan": Value("NAN", "float"), "pi": Value("M_PI", "float")} | {
    name: Value(f"DType::{code}", "ScalarType") for name, code in (
        ("bool", "Bool"), ("uint8", "U8"), ("int32", "I32"), ("int64", "I64"), ("float16", "F16"), ("bfloat16", "BF16"), ("float32", "F32"), ("float64", "F64"), ("complex64", "C64"), ("complex128", "C128"))}
CHECKED = {"+": "plus", "-": "minus", "*": "times"}  # of integers
BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
COMPARE = {ast.Gt: (">", "gt"), ast.Lt: ("<", "lt"), ast.GtE: (">=", "ge"), ast.LtE: ("<=", "le"), ast.Eq: ("==", "eq"),
           ast.NotEq: ("!=", "ne")}
LOGICAL = {ast.BitAnd: "logical_and", ast.BitOr: "logical_or", ast.BitXor: "logical_xor"}
NUMERIC = ("int", "float", "Scalar")


@dataclass
class Scope:
    """The names that a text starts with. `saved`: tensors that a node would have to keep, whose attributes are facts."""

    names: dict[str, Value]
    saved: set[str] = field(default_factory=set)
    results: list[str] = field(default_factory=list)  # whose gradients `grads.NAME` are
    wanted: dict[str, str] = field(default_factory=dict)  # `wanted.NAME`: whether a gradient is asked for
    taken: set[str] = field(default_factory=set)  # names that the text gives nothing


class Expressions:
    """Checks expressions over the names that are known at a place, and writes them as C++."""

    def __init__(self, functions: dict[str, list[Function]], scope: Scope):
        self.functions, self.scope = functions, scope
        self.names = dict(scope.names)
        self.known: frozenset[str] = frozenset()  # texts that are not None here
        self.uses: set[str] = set()
        self.facts: dict[str, tuple[str, str]] = {}
        self.calls: set[Function] = set()
        self.kernels: set[str] = set()  # the C++ functions of kernels that it calls
        self.line = 1

    def condition(self, node: ast.expr) -> str:
        value = self.expr(node)
        if value.type != "bool":
            self.fail(f"{ast.unparse(node)}: expected a condition, got {value.type}" +
                      ("; any_true(...) reads it" if value.type == "Tensor" else ""))
        return value.code

    def learnt(self, node: ast.expr, truth: bool) -> frozenset[str]:
        """The texts that a condition of this truth shows to be not None."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.learnt(node.operand, not truth)
        if isinstance(node, ast.BoolOp):
            if isinstance(node.op, ast.And) == truth:
                return frozenset().union(*(self.learnt(v, truth) for v in node.values))
            return frozenset()
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.IsNot if truth else ast.Is):
            return frozenset([ast.unparse(node.left)])
        return frozenset()

    def fail(self, what: str):
        raise FormulaError(f"line {self.line}: {what}")

    def expr(self, node: ast.expr) -> Value:
        made = getattr(self, "on_" + type(node).__name__, None)
        if made is None:
            self.fail(f"{ast.unparse(node)}: {type(node).__name__} is not part of the language")
        value = made(node)
        if value.type.endswith("?") and self.known and ast.unparse(node) in self.known:
            return Value(value.code if value.type == "Tensor?" else f"(*{value.code})", value.type[:-1])
        return value

    def on_Constant(self, node: ast.Constant) -> Value:
        v = node.value
        if v is None:
            return Value("std::nullopt", "None")
        if isinstance(v, bool):
            return Value(str(v).lower(), "bool", v)
        if isinstance(v, (int, float)):
            return Value(repr(v), type(v).__name__, v)
        if isinstance(v, complex):
            return Value(f"Scalar(std::complex<double>({v.real!r}, {v.imag!r}))", "Scalar")
        if isinstance(v, str):
            return Value(cstring(v), "str", v)
        self.fail(f"{v!r} is no value of the language")

    def on_JoinedStr(self, node: ast.JoinedStr) -> Value:
        codes = [self.expr(p.value if isinstance(p, ast.FormattedValue) else p).code for p in node.values]
        return Value(f"str_cat({', '.join(codes)})", "str")

    def on_Name(self, node: ast.Name) -> Value:
        if node.id in self.names:
            self.uses.add(node.id)
            return self.names[node.id]
        if node.id in CONSTANTS:
            return CONSTANTS[node.id]
        if node.id == "wanted" and self.scope.wanted:
            return Value("BoolVec{" + ", ".join(self.scope.wanted.values()) + "}", "bool[]")
        if node.id == "grads" and self.scope.results:
            return Value("grads", "grads")
        known = sorted({*self.names, *(["grads"] if self.scope.results else []), *(["wanted"] if self.scope.wanted else [])})
        self.fail(f"unknown name {node.id!r}, or one that not every way here gives a value; known: {', '.join(known)}")

    def on_Attribute(self, node: ast.Attribute) -> Value:
        base = node.value
        if isinstance(base, ast.Name) and base.id in ("grads", "wanted") and base.id not in self.names:
            known = self.scope.results if base.id == "grads" else list(self.scope.wanted)
            if node.attr not in known:
                self.fail(f"{base.id} has no {node.attr!r}, but {', '.join(known) or 'nothing'}")
            return Value(f"grads[{known.index(node.attr)}]", "Tensor?") if base.id == "grads" else Value(self.scope.wanted[node.attr], "bool")
        if isinstance(base, ast.Name) and base.id in self.scope.saved and self.names[base.id].type in ("Tensor", "Tensor?", "Tensor[]"):
            return self.fact(base, node.attr)
        value = self.expr(base)
        facts = {"ScalarType": DTYPE_FACTS, "Scalar": NUMBER_FACTS, "Tensor": LAYOUT_FACTS}.get(value.type, {})
        if node.attr in facts:
            type_, code = facts[node.attr]
            return Value(code.format(value.code), type_)
        if value.type not in ("Tensor", "Tensor?") or node.attr not in FACTS:
            self.fail(f"{ast.unparse(base)} ({value.type}) has no attribute {node.attr!r}")
        if value.type == "Tensor?":
            self.fail(f"{ast.unparse(base)} may be None: test it before .{node.attr}")
        type_, method = FACTS[node.attr]
        code = f"{value.code}.{method}()"
        return Value(f"DimVec({code})" if type_ == "int[]" and not isinstance(base, ast.Name) else code, type_)

    def fact(self, base: ast.Name, attr: str) -> Value:
        """An attribute of an operand or a result: kept in place of it."""
        type_ = self.names[base.id].type
        if type_ == "Tensor?" and base.id not in self.known:
            self.fail(f"{base.id} may be None: test it before .{attr}")
        facts = LIST_FACTS if type_ == "Tensor[]" else FACTS
        if attr not in facts:
            self.fail(f"{base.id} ({type_}) has no attribute {attr!r}; known: {', '.join(facts)}")
        name = f"{base.id}_{attr if type_ == 'Tensor[]' else facts[attr][1]}"
        self.facts[name] = (base.id, attr)
        return Value(name, facts[attr][0])

    def on_Subscript(self, node: ast.Subscript) -> Value:
        value, index = self.expr(node.value), node.slice
        if value.type.startswith("("):
            if not isinstance(index, ast.Constant) or not 0 <= index.value < len(parts_of(value.type)):
                self.fail(f"{ast.unparse(node)}: expected a number below {len(parts_of(value.type))}")
            return Value(f"std::get<{index.value}>({value.code})", parts_of(value.type)[index.value])
        if value.type not in ELEMENTS:
            self.fail(f"{ast.unparse(node.value)} ({value.type}) is no list")
        if isinstance(index, ast.Slice):
            if value.type != "int[]" or index.step is not None:
                self.fail(f"{ast.unparse(node)}: expected numbers, as in shape[1:-1]")
            lower = self.number(index.lower, "int") if index.lower else "0"
            upper = self.number(index.upper, "int") if index.upper else "INT64_MAX"
            return Value(f"formulas::part({value.code}, {lower}, {upper})", "int[]")
        at = self.expr(index)
        if at.type != "int":
            self.fail(f"{ast.unparse(node)}: expected an int, got {at.type}")
        if value.type == "int[]" and not (isinstance(at.literal, int) and at.literal >= 0):
            return Value(f"formulas::at({value.code}, {at.code})", "int")
        return Value(f"{value.code}[{at.code}]", ELEMENTS[value.type])

    def number(self, node: ast.expr, want: str) -> str:
        value = self.expr(node)
        found = fit(value, want)
        if found is None:
            self.fail(f"{ast.unparse(node)}: expected {want}, got {value.type}")
        return found[1]

    def on_UnaryOp(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            return Value(f"!({self.condition(node.operand)})", "bool")
        value = self.expr(node.operand)
        if isinstance(node.op, ast.USub):
            if value.type == "Tensor":
                return self.operator("neg", [value])
            if value.type in NUMERIC:
                literal = -value.literal if isinstance(value.literal, (int, float)) else None
                if literal is None and value.type == "int":
                    return Value(f"formulas::minus(0, {value.code})", "int")
                return Value(f"(-{value.code})" if literal is None else repr(literal), value.type, literal)
        if isinstance(node.op, ast.Invert) and value.type == "Tensor":
            return self.operator("logical_not", [value])
        self.fail(f"{ast.unparse(node)}: no such operation on {value.type}")

    def on_BinOp(self, node: ast.BinOp) -> Value:
        a, b = self.expr(node.left), self.expr(node.right)
        types = {a.type, b.type}
        op = BINARY.get(type(node.op))
        if "Tensor" in types and types <= {"Tensor", *NUMERIC}:
            if op:
                a, b = (x if x.type in ("Tensor", "Scalar") else Value(f"Scalar({x.code})", "Scalar") for x in (a, b))
                return Value(f"({a.code} {op} {b.code})", "Tensor")
            if type(node.op) in LOGICAL:
                return self.operator(LOGICAL[type(node.op)], [a, b])
        if types <= set(NUMERIC):
            type_ = joined(a.type, b.type)
            if isinstance(node.op, ast.FloorDiv) and type_ == "int":
                return Value(f"formulas::floor_divided({a.code}, {b.code})", "int")
            if op == "/" and type_ == "int":
                type_ = "float"
            if op:
                a, b = (fit(x, type_)[1] for x in (a, b))
                if type_ == "int":
                    return Value(f"formulas::{CHECKED[op]}({a}, {b})", "int")
                return Value(f"({a} {op} {b})", type_)
        if op == "+" and types <= {"int[]", "[]"}:
            return Value(f"formulas::joined({fit(a, 'int[]')[1]}, {fit(b, 'int[]')[1]})", "int[]")
        if op == "*" and isinstance(node.left, ast.List) and len(node.left.elts) == 1 and a.type == "int[]" and b.type == "int":
            return Value(f"DimVec(size_t({b.code}), {self.expr(node.left.elts[0]).code})", "int[]")
        self.fail(f"{ast.unparse(node)}: no such operation on {a.type} and {b.type}")

    def on_BoolOp(self, node: ast.BoolOp) -> Value:
        known, codes = self.known, []
        for each in node.values:
            codes.append(self.condition(each))
            self.known |= self.learnt(each, isinstance(node.op, ast.And))
        self.known = known
        return Value("(" + (" && " if isinstance(node.op, ast.And) else " || ").join(codes) + ")", "bool")

    def on_Compare(self, node: ast.Compare) -> Value:
        if len(node.ops) != 1:
            self.fail(f"{ast.unparse(node)}: compare two values at a time")
        op, left, right = node.ops[0], node.left, node.comparators[0]
        if isinstance(op, (ast.Is, ast.IsNot)):
            return self.is_none(left, right, isinstance(op, ast.Is))
        a, b = self.expr(left), self.expr(right)
        if isinstance(op, (ast.In, ast.NotIn)) and a.type == "int" and b.type == "int[]":
            return Value(f"{'!' if isinstance(op, ast.NotIn) else ''}formulas::contains({b.code}, {a.code})", "bool")
        if type(op) not in COMPARE:
            self.fail(f"{ast.unparse(node)}: no such comparison")
        sign, name = COMPARE[type(op)]
        if a.type == "Tensor":
            return self.operator(name, [a, b])
        if b.type == "Tensor":
            return self.operator({"gt": "lt", "lt": "gt", "ge": "le", "le": "ge"}.get(name, name), [b, a])
        if {a.type, b.type} <= set(NUMERIC) and "Scalar" in (a.type, b.type):
            if a.type == "Scalar" and sign in ("==", "!=") and isinstance(b.literal, (int, float)):
                return Value(f"{'!' if sign == '!=' else ''}({a.code}).equals({b.code})", "bool")
            return Value(f"formulas::{name}({fit(a, 'Scalar')[1]}, {fit(b, 'Scalar')[1]})", "bool")
        order = {a.type, b.type} <= {"int", "float"}
        if order or (a.type == b.type and a.type in ("str", "ScalarType", "bool", "int[]", "Device", "MemoryFormat") and sign in ("==", "!=")):
            if a.type == "int[]":
                return Value(f"({'!' if sign == '!=' else ''}(IntArrayRef({a.code}) == IntArrayRef({b.code})))", "bool")
            return Value(f"({a.code} {sign} {b.code})", "bool")
        self.fail(f"{ast.unparse(node)}: no such comparison of {a.type} and {b.type}")

    def is_none(self, left: ast.expr, right: ast.expr, absent: bool) -> Value:
        if not isinstance(right, ast.Constant) or right.value is not None:
            self.fail("`is` compares with None alone")
        if isinstance(left, ast.Name) and left.id in self.scope.saved and self.names[left.id].type == "Tensor?":
            self.facts[f"{left.id}_defined"] = (left.id, "defined")
            return Value(f"{'!' if absent else ''}{left.id}_defined", "bool")
        known, self.known = self.known, frozenset()
        value, self.known = self.expr(left), known
        if not value.type.endswith("?"):
            self.fail(f"{ast.unparse(left)} ({value.type}) is never None")
        return Value(f"{'!' if absent else ''}{value.code}" + (".defined()" if value.type == "Tensor?" else ".has_value()"), "bool")

    def on_IfExp(self, node: ast.IfExp) -> Value:
        test, known = self.condition(node.test), self.known
        self.known = known | self.learnt(node.test, True)
        a = self.expr(node.body)
        self.known = known | self.learnt(node.test, False)
        b = self.expr(node.orelse)
        self.known = known
        type_ = joined(a.type, b.type)
        if type_ is None:
            self.fail(f"{ast.unparse(node)}: one of {a.type} and {b.type}")
        codes = [fit(x, type_)[1] for x in (a, b)]
        if type_ not in ("Tensor", "Tensor?", "int", "float", "bool"):
            codes = [f"{stored(type_)}({c})" for c in codes]
        return Value(f"({test} ? {codes[0]} : {codes[1]})", type_)

    def on_Tuple(self, node: ast.Tuple) -> Value:
        values = [self.expr(e) for e in node.elts]
        type_ = f"({', '.join(v.type for v in values)})"
        return Value(f"{stored(type_)}({', '.join(v.code for v in values)})", type_)

    def on_List(self, node: ast.List) -> Value:
        values = [self.expr(e) for e in node.elts]
        if not values:
            return Value("{}", "[]")
        if all(v.type == "int" for v in values):
            return Value("DimVec{" + ", ".join(v.code for v in values) + "}", "int[]")
        if all(v.type in ("Tensor", "Tensor?", "None") for v in values):
            type_ = "Tensor[]" if all(v.type == "Tensor" for v in values) else "Tensor?[]"
            codes = ["Tensor()" if v.type == "None" else v.code for v in values]
            return Value("std::vector<Tensor>{" + ", ".join(codes) + "}", type_)
        self.fail(f"{ast.unparse(node)}: expected numbers or tensors, got {', '.join(v.type for v in values)}")

    def on_ListComp(self, node: ast.ListComp) -> Value:
        if len(node.generators) != 1:
            self.fail("one `for` at a time")
        loop, before = node.generators[0], dict(self.names)
        head = " ".join(self.loop_head(loop.target, loop.iter))
        tests = " && ".join(self.condition(c) for c in loop.ifs)
        value = self.expr(node.elt)
        self.names = before
        type_ = value.type + "[]"
        if type_ not in ("int[]", "Tensor[]", "Tensor?[]"):
            self.fail(f"{ast.unparse(node)}: expected numbers or tensors, got {value.type}")
        push = f"made_.push_back({value.code});"
        return Value(f"[&] {{ {stored(type_)} made_; {head} {f'if ({tests}) ' if tests else ''}{push} }} return made_; }}()", type_)

    def loop_head(self, target: ast.expr, over: ast.expr) -> list[str]:
        """`for target in over`, the names that it gives a value, and the line that opens the block."""
        targets = [target] if isinstance(target, ast.Name) else target.elts
        call = over if isinstance(over, ast.Call) and isinstance(over.func, ast.Name) else None
        if call and call.func.id == "range":
            ends = [self.number(x, "int") for x in call.args]
            first, last = ends if len(ends) == 2 else ("0", ends[0])
            name = safe(targets[0].id)
            self.names[targets[0].id] = Value(name, "int")
            return [f"for (int64_t {name} = {first}, end_ = {last}; {name} < end_; ++{name}) {{"]
        lists = [self.expr(x) for x in (call.args if call and call.func.id == "zip" else [over])]
        if len(lists) != len(targets) or any(v.type not in ELEMENTS for v in lists):
            self.fail(f"{ast.unparse(over)}: expected {len(targets)} lists, got {', '.join(v.type for v in lists)}")
        made = [f"const auto& list{i}_ = {v.code};" for i, v in enumerate(lists)]
        for t, v in zip(targets, lists, strict=True):
            self.names[t.id] = Value(safe(t.id), ELEMENTS[v.type])
        each = [f"const auto& {safe(t.id)} = list{i}_[i_];" for i, t in enumerate(targets)]
        return [*made, "for (size_t i_ = 0; i_ < list0_.size(); ++i_) {", *each]

    # ---- calls

    def on_Call(self, node: ast.Call) -> Value:
        func, overload = node.func, None
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
            func, overload = func.value, func.attr
        if not isinstance(func, ast.Name):
            self.fail(f"{ast.unparse(node.func)} cannot be called")
        args = [self.expr(a) for a in node.args]
        into = next((k.value for k in node.keywords if k.arg == "into"), None)
        named = {k.arg: self.expr(k.value) for k in node.keywords if k.value is not into}
        if into is not None:
            return self.written(func.id, args, named, into)
        if any(f.draws for f in self.functions.get(func.id, [])):
            self.fail(f"{func.id} draws numbers into a tensor that there is: say into=")
        if overload is None and not named and func.id in NUMBERS:
            if (value := self.number_call(func.id, args)) is not None:
                return value
        return self.operator(func.id, args, named, overload)

    def number_call(self, name: str, args: list[Value]) -> Value | None:
        """A function of numbers or lists; None where an operator over tensors is meant."""
        types = [a.type for a in args]
        if name == "len" and len(args) == 1 and types[0] in (*ELEMENTS, "grads"):
            return Value(f"int64_t({args[0].code}.size())", "int")
        if name == "float" and types in (["int"], ["float"]):
            return Value(f"double({args[0].code})", "float")
        if name == "int" and types in (["int"], ["float"], ["Scalar"]):
            return Value(f"Scalar({args[0].code}).to_int()", "int")
        if name == "float" and types == ["Scalar"]:
            return Value(f"({args[0].code}).to_double()", "float")
        if name == "sqrt" and types == ["float"]:
            return Value(f"std::sqrt({args[0].code})", "float")
        if name == "pow" and set(types) <= {"int", "float"} and len(args) == 2:
            return Value(f"math::pow({args[0].code}, {args[1].code})", "float")
        if name in ("min", "max") and len(args) == 2 and set(types) <= {"int", "float"}:
            type_ = joined(*types)
            return Value(f"std::{name}<{stored(type_)}>({args[0].code}, {args[1].code})", type_)
        if name == "isinf" and types == ["float"]:
            return Value(f"std::isinf({args[0].code})", "bool")
        if name in ("log", "sqrt", "conj") and len(args) == 1 and types[0] in NUMERIC:
            return Value(f"formulas::{name}({fit(args[0], 'Scalar')[1]})", "Scalar")
        return None

    def operator(self, name: str, args: list[Value], named: dict[str, Value] | None = None, overload: str | None = None) -> Value:
        f, codes = self.chosen(name, args, named, overload)
        while f.kind == "kernel" and codes[-1] in ("std::optional<DType>()", "std::optional<int64_t>()"):
            codes = codes[:-1]
        if f.kind == "kernel":
            self.kernels.add(f.name)
        return Value(f"{f.code}({', '.join(codes)})", f.result)

    def chosen(self, name: str, args: list[Value], named: dict[str, Value] | None, overload: str | None) -> tuple[Function, list[str]]:
        found = self.functions.get(name, [])
        if overload is not None:
            found = [f for f in found if f.overload == overload.replace("default", "")]
        called = f"{name}{f'.{overload}' if overload else ''}({', '.join([a.type for a in args] + [f'{k}={v.type}' for k, v in (named or {}).items()])})"
        if not found:
            self.fail(f"{called}: there is no operator, formula or function of that name")
        try:
            f, codes = choose(found, args, named or {})
        except FormulaError as error:
            self.fail(f"{called}: {error}")
        self.calls.add(f)
        return f, codes

    def written(self, name: str, args: list[Value], named: dict[str, Value], into: ast.expr) -> Value:
        """A kernel whose results go to tensors that there are."""
        if any(x.draws for x in self.functions.get(name, [])):
            made, out = self.operator(name, args, named), self.expr(into)
            if out.type != "Tensor":
                self.fail(f"{name}: into: expected Tensor, got {out.type}")
            return Value(made.code.replace("(", f"({out.code}, ", 1), "()")
        f, outs, codes = self.written_parts(name, args, named, into)
        outs = ", ".join("&" + o for o in outs)
        self.kernels.add(f"{f.name}_into")
        operands = codes[:-3] + ([codes[-1]] if "along" in named else [])
        return Value(f"{f.code}_into({{{outs}}}, {', '.join(operands)})", "()")

    def written_parts(self, name: str, args: list[Value], named: dict[str, Value], into: ast.expr) -> tuple[Function, list[str], list[str]]:
        """The kernel, and the codes of the tensors that it writes and of its arguments."""
        f, codes = self.chosen(name, args, named, None)
        if f.kind != "kernel" or f.rows or "dtype" in named or "stored" in named:
            self.fail(f"{name}: what writes into tensors is a pointwise kernel, which computes in the dtype of its operands")
        outs = [self.expr(t) for t in (into.elts if isinstance(into, ast.Tuple) else [into])]
        if [o.type for o in outs] != parts_of(f.result):
            self.fail(f"{name}: into: expected {f.result}, got ({', '.join(o.type for o in outs)})")
        return f, [o.code for o in outs], codes
