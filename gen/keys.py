"""The keys of the table, declared once: from here come their parsing and checks (gen/rows.py) and the tables of
docs/add-an-operator.md, which `python -m gen.keys` writes."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from .rows import Operand, key, page

DTYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16",
          "float32", "float64", "complex64", "complex128"]
GROUPS = {
    "bool": ["bool"],
    "int": ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"],
    "float": ["float16", "bfloat16", "float32", "float64"],
    "complex": ["complex64", "complex128"],
}
# Elements that are only moved, by their width.
GROUPS["width"] = ["uint8", "uint16", "uint32", "uint64", "complex128"]
GROUPS["all"] = GROUPS["bool"] + GROUPS["int"] + GROUPS["float"] + GROUPS["complex"]
BODIES = ("compute", "rows", "space", "allocate", "plan", "header", "cpu", "composite", "view")
AUTOCAST = "lower fp32 promote cpu:fp32 cpu:promote device:lower device:fp32 device:promote cpu:fp32,device:promote"
PROMOTE = "common float first sum floating"
WITH_NODE = "compute rows space plan header cpu view allocate"


def body(meaning: str):
    return key(meaning, "", group="body")


def placed(meaning: str, default, **more):
    return key(meaning, default, group="space", **{"beside": "space", **more})


@dataclass(frozen=True)
class Said:
    """`said` are the keys that the row has."""

    said: frozenset[str]


@dataclass(frozen=True)
class Bodied(Said):
    @property
    def body(self) -> str:
        """The key that says what the row does."""
        return next((b for b in BODIES if b in self.said), "")

    @property
    def text(self) -> str:
        return getattr(self, self.body)

    @property
    def result_strides(self) -> str:
        """As ResultStrides of run/pointwise.h; of a memory format's argument, or where nothing is said, as the body's results are."""
        word = self.strides if "strides" in self.said else "preserve" if self.body == "compute" else "contiguous"
        return word.capitalize()


def expanded(words: tuple[str, ...]) -> list[str]:
    """The dtypes that words of a `dtypes` key stand for."""
    found: list[str] = []
    for w in words:
        found += [d for d in GROUPS.get(w, [w]) if d not in found]
    return found


def dtype_words(names: list[str]) -> str:
    """The inverse: words for them."""
    words, left = [], list(names)
    for group in ("bool", "int", "float", "complex"):
        if set(GROUPS[group]) <= set(left):
            words.append(group)
            left = [n for n in left if n not in GROUPS[group]]
    return ", ".join(words + left)


@dataclass(frozen=True)
class OpRow(Bodied):
    op: str = key("the schema, with PyTorch's names and types")
    compute: str = body("a scalar expression over the tensor and number arguments: one pointwise kernel")
    rows: str = body("an expression with `sum`, `prod`, `max`, `min`, `any`, `all`, `argmax`, `argmin` over the elements of the reduced "
                     "dims; `n` is their number, `index` the position")
    space: str = body("an expression over named dims, which reads operands at index expressions; see below")
    allocate: str = body("the call of a shape rule alone: memory, whose values nobody promises (`empty`)")
    plan: str = body("a text over tensors, which calls kernels and operators; see below")
    header: str = body("a function that makes another header over the same storage, which autograd takes for no view (`detach`)")
    cpu: str = body("a hand-written function, declared for you in a generated header of the family; with `shape` it only fills what "
                    "the rule prepares")
    view: str = body("a function that makes another header over the same storage; `inverse` names the operator that puts a changed view back")
    composite: str = body("a C++ expression or function over other operators; its derivative is theirs")

    promote: str = key("the dtype of the computation: `common`, `float` (integers become the default float), `first`, `sum` (integers "
                       "become int64), `floating` (others raise); of a composite that of its reference", "common", words=PROMOTE,
                       beside="compute rows composite", shown="`common`")
    dtypes: tuple[str, ...] = key("names of dtypes, `bool`, `int`, `float`, `complex` or `all` of a kind, `width` where elements are only moved; of a plan those of its tests",
                                  (), words=" ".join([*GROUPS, *DTYPES]), beside="compute rows space plan",
                                  shown="`int float`, or `float` with `promote: float`")
    outputs: tuple[Operand, ...] = key("names with marks: `result:bool`, `values:row indices:row:int64` (`row`: one value per row), `:real`, "
                                       "`:complex` (of a float's kernel)", (Operand("result"),), beside="compute rows space", shown="`result`")
    fixed: dict[str, str] = key("operands that keep a dtype: `{mask: bool}`", {}, beside="compute rows")
    bind: dict[str, str] = key("numbers that the expression names and C++ makes from the arguments", {}, beside="compute rows space")
    unpromoted: tuple[str, ...] = key("number arguments that take no part in the result type, as `alpha`", (), beside="compute", shown="all do")
    narrow: tuple[str, ...] = key("number arguments that must fit the operands' dtype; others must fit that of the computation, and those "
                                  "that stand for a tensor (`other`) wrap", (), beside="compute")
    check: str = key("a C++ statement that refuses arguments before a kernel runs (`run/bind.h`)", "", beside="compute rows space cpu")
    dims: str = key("the reduced dims as a C++ expression", "dim", beside="rows", shown="argument `dim`")
    grad: dict[str, str] | str = key(
        "per argument its formula: a scalar expression over `grad`, `result` and the arguments, or a text over tensors (see below; in "
        "entries with `compute` it begins with `tensors:`); `parts`: a plan's derivative is that of what it calls; tensors without one "
        "refuse to require a gradient", {}, beside="compute rows space plan header cpu view", shown="not differentiable")
    straight: bool = key("its derivative does not change with its input but in jumps: the second one is zeros, and not nothing", False,
                         beside="compute", shown="it is nothing where it is zero")
    shape_only: tuple[str, ...] = key("tensors whose values do not matter, so that they may lack a formula", (), beside=WITH_NODE)
    underived: bool = key("without `grad`: there is a derivative that nobody wrote; its results raise in backward. Functions that write are "
                          "so without saying; an in-place form of others gives zeros", False, beside=WITH_NODE, shown="the result is a constant")
    refuses_grad: bool = key("the function itself refuses to write what requires a gradient", False, beside="plan cpu")
    inverse: str = key("the operator that puts a changed view back into a copy of the base", "", beside="view")
    variants: tuple[str, ...] = key("which Python forms there are", ("function", "method"), words="function method", shown="both")
    inplace: bool = key("whether there is an in-place form", False, beside="compute rows space plan composite cpu", shown="of `compute`")
    out: bool | str = key("whether there is an `out=` form, or what its overload is called; a composite has one where this names it", True,
                          shown="as PyTorch names it")
    out_args: tuple[str, ...] = key("the arguments of the `out=` form", (), shown="`out`, or the names of the results")
    out_dtype: str = key("`exact`: `out=` takes the result's dtype alone; `exact if n == 0`: where that C++ condition holds; `own`: the result "
                         "takes the dtype of `out=`, and is computed there (factories); `any`: converted to every dtype", "",
                         shown="it may be converted")
    out_apart: bool = key("`out=` refuses to overlap what is read", False)
    cpu_inplace: str = key("a hand-written function that is the in-place form", "", beside="space plan cpu composite", shown="the result is copied")
    cpu_out: str = key("a hand-written function that is the `out=` form", "", beside="space plan cpu composite", shown="the result is copied")
    direct: tuple[str, ...] = key("forms of a plan that its last kernels write", (), words="inplace out", beside="plan", shown="the result is copied")
    functional: str = key("of an operator that writes: its functional twin, which computes the same and writes nothing; where the table has "
                          "none of that name it is made: the operator over copies. `none`, and after `;` why", "",
                          shown="its name without `_`")
    node: str = key("the name of the autograd node", "", beside=WITH_NODE, shown="as PyTorch names it")
    node_edges: int = key("inputs of the autograd node, where PyTorch counts more than those with a derivative (a number that it wraps into "
                          "a tensor)", 0, beside=WITH_NODE, shown="those")
    constant_outputs: tuple[str, ...] = key("names of results (`result1`) that carry no gradient", (), beside=WITH_NODE, shown="all do")
    aliases: tuple[str, ...] = key("other names in Python", ())
    numbers: bool = key("in Python, numbers may stand for the tensors (`mul(2, x)`)", False, shown="only where an overload takes them")
    python: bool = key("whether Python has it", True, shown="it has")
    tags: tuple[str, ...] = key("`factory`: it makes a tensor from arguments, and takes `requires_grad`", (), words="factory")
    order: str = key("the order in which floating contributions meet: of `space` texts with `over`, `tree` (T) or `sequence` (element after "
                     "element), with `sum_products` `chains` (of 1,024, by fma), of those that scatter `chains` or `sequence`, after "
                     "which `;` may say more; of C++ that no text says a text, or `none` where none meet. Reductions of `rows` are over "
                     "tree T, scans by blocks, and plans have the orders of what they call", "", beside="space plan cpu",
                     shown="required where they meet")
    reads: tuple[str, ...] = key("who reads values of tensors on the host: `value`: the operator's caller gets them; `inside`: its own code "
                                 "alone looks, to refuse or to choose; `gradient`: its derivative does", (), words="value inside gradient",
                                 shown="nobody")
    size: str = key("`data`: the size of a result depends on values; `data if output_size is None`, `data if num_classes == -1`, `data if "
                    "mask in indices`: under that condition on an argument", "", shown="sizes alone")
    autocast: str = key("what mixed precision does with its operands, on all devices, on the CPU or on accelerators", "", words=AUTOCAST,
                        shown="untouched")
    reason: str = key("why it is C++ (since ...); `./run coverage` counts those that say it", "", beside="cpu composite")
    doc: str = key("the documentation")
    samples: str = key("the name of the sample function in `tests/ops/samples_*.py`", "", shown="required by the tests")
    reference: str = key("what it gives, in NumPy: an expression over its arguments, `np` and the functions of `tests/ops/references.py`", "",
                         shown="PyTorch's results, which `tools/record_ops.py` records")

    inputs: tuple[Operand, ...] = placed(
        "operands (of a factory none are read) with their dims; `p..` is the plain group, any number of dims that are only passed through; "
        "other groups, `f..`, have a dim for each that the rule places; `:int64` converts an operand, `:same` to the kernel's dtype. That is "
        "the first result's, or, where this has one of its own (`result[p..]:bool`), the first input's. `outputs` are written so, too", ())
    shape: str = placed("the call of a rule of `src/core/shape`, whose arguments are the operator's, numbers or strings; beside `size` "
                        "it says the size that values decide as a symbol with bounds", "",
                        beside="space cpu plan", shown="required of `space`")
    scalars: tuple[Operand, ...] = placed(
        "numbers that the text names: the operator's (`value`, `offset:int64`), of `bind`, or the rule's; `before[f]` has one for each dim of "
        "a group; `start:widest` is an int64 beside integers, else a float64. Those without a dtype of the operator's must fit the elements",
        (), shown="none")
    outside: str = placed("kind and text of the error where a `checked(index)` or `wrapped(index)` lies outside; `{value}`, `{dim}`, `{size}` "
                         "are numbers", "", shown="for these, required")
    over: str = placed("dims of no output that `sum`, `max`, `argmax` ... of the text run over (`k..` is a group, `j=2` has that extent; the rule gives the extents of "
                      "those that no operand has), in the `order`", "", shown="no reductions")
    starts: str = placed("of a text that scatters: what the result begins as, a tensor argument or `0`", "0", shown="required there")
    fused: bool = placed("of a text beside `cpu`: its kernel is linked, too, since graphs make it a part of others", False, shown="no")
    lines: str = placed("the kernel of the same text for an index of one dim: it runs on the CPU where the index repeats along all others", "",
                        shown="none")
    rank: int = placed("the only number of dims that the entry's groups have; a rule places a dim that the tensors lack at -1", 0, shown="any")
    strides: str = placed("of the result: `contiguous`, `preserve` (as self's), `suggested` (channels last stays so), or an argument: a memory "
                         "format, without one as self's", "contiguous", beside="compute space cpu", shown="`contiguous`, of `compute` `preserve`")

    @property
    def moves(self) -> bool:
        """Whether elements are only moved, so that kernels are keyed by their width."""
        return self.dtypes == ("width",)


@dataclass(frozen=True)
class KernelRow(Bodied):
    kernel: str = key("the name that plans and C++ call it by")
    compute: str = body("a scalar expression over the operands: one pointwise kernel")
    rows: str = body("an expression with reductions over the elements of a row")
    space: str = body("an expression over named dims")
    inputs: tuple[Operand, ...] = key(
        "operands, `:dtype` where it is another; `r:word` (`r:word2`: 64 bits) draws; `weight:held`: often the same for many rows, then read once; `mean:shared`: one row for all rows", ())
    scalars: tuple[Operand, ...] = key("numbers", ())
    outputs: tuple[Operand, ...] = key("results, with the marks of operators' `outputs`", (Operand("result"),), shown="`result`")
    dtypes: tuple[str, ...] = key("as of operators", words=" ".join([*GROUPS, *DTYPES]))
    over: str = key("as of operators over an index space", "", beside="space")
    order: str = key("as of operators over an index space", "", beside="space", words="tree sequence chains")
    rank: int = key("as of operators over an index space", 0, beside="space")
    strides: str = key("as of operators: of results of the operands' shape", "contiguous", words="contiguous preserve suggested",
                       beside="compute rows", shown="`contiguous`, of `compute` `preserve`")
    promote: str = key("the dtype of the computation", "first", words=PROMOTE, shown="`first`", beside="compute rows")
    lie: str = key("how its rows lie: `along` memory, as whole tensors do, and there is no form for rows across it; `across`, many long ones, "
                   "and there is none for short rows; or `anywhere`", "anywhere", words="anywhere along across", beside="rows", shown="`anywhere`")
    operator: str = key("the name in its errors", "", shown="its own")
    doc: str = key("what it computes", "")


@dataclass(frozen=True)
class FormulaRow(Said):
    formula: str = key("the schema")
    text: str = key("the text")


HEAD = re.compile(r"(<!-- keys: (\w+)(?: (\w+))? -->\n)(?:\|.*\n)*")


def pages(text: str) -> str:
    """The text of a page with the tables of keys that its comments name."""
    rows = {"op": OpRow, "kernel": KernelRow}
    return HEAD.sub(lambda m: m[1] + "\n".join(page(rows[m[2]], m[3] or "")) + "\n", text)


if __name__ == "__main__":
    path = Path(__file__).resolve().parent.parent / "docs/add-an-operator.md"
    made = pages(path.read_text())
    if "--check" in sys.argv and made != path.read_text():
        raise SystemExit(f"{path.name}: its tables are not those of gen/keys.py; `python -m gen.keys` writes them")
    path.write_text(made)
