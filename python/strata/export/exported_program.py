"""ExportedProgram: a graph of operators with what its inputs and outputs are, the tensors that it uses, and how it is called."""

from __future__ import annotations

import re
from dataclasses import dataclass

import strata
from strata import _C
from strata._graph_form import same_constant
from strata.fx._codegen import _PyTreeCodeGen
from strata.fx.graph import Graph
from strata.fx.graph_module import GraphModule
from strata.utils._pytree import TreeSpec, tree_flatten

from ._capture import node_name
from ._decompose import decomposed
from ._to_fx import Builder, GuardError, guard_modes, placeholder, read_blocks, value_types
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from strata import Tensor

__all__ = ["ExportedProgram", "ModuleCallEntry", "ModuleCallSignature", "default_decompositions"]

_PREFIXES = {InputKind.PARAMETER: "p_", InputKind.BUFFER: "b_", InputKind.CONSTANT_TENSOR: "c_"}


@dataclass
class ModuleCallSignature:
    """How a module is called: its inputs and outputs, and the forms of these."""

    inputs: list
    outputs: list
    in_spec: Any
    out_spec: Any
    forward_arg_names: list[str] | None = None


@dataclass
class ModuleCallEntry:
    """A module's path, and how it is called where that is known."""

    fqn: str
    signature: ModuleCallSignature | None = None


def default_decompositions() -> dict:
    """An empty table: run_decompositions takes composite operators apart by the operators' own definitions."""
    return {}


def _type_text(t: Any) -> str:
    return _C._type_text(t).removesuffix("@meta") if isinstance(t, strata.Tensor) else repr(t)


class _Checks(strata.nn.Module):
    """Compares the inputs of a call with those of the export."""

    def __init__(self, checks: list) -> None:
        super().__init__()
        self._checks = checks  # of each input: its name, its path, and the value or the tensor without memory that was there

    def forward(self, *given: Any) -> None:
        for value, (name, path, expected, open_sizes) in zip(given, self._checks, strict=True):
            if not isinstance(expected, strata.Tensor):
                if isinstance(value, strata.Tensor) or not same_constant(value, expected):
                    raise GuardError(f"Guard failed: {name} == {expected!r}\nexported program: argument {path}: expected {expected!r}, got {value!r:.80}")
                continue
            wrong = _difference(value, expected, name, open_sizes)
            if wrong:
                raise GuardError(f"Guard failed: {wrong}\nexported program: argument {path}: expected {_type_text(expected)}, got {_type_text(value):.80}")


def _difference(value: Any, expected: Tensor, name: str, open_sizes: set[int]) -> str:
    """What of a tensor is another thing than was exported, or nothing. (Strides may differ.)"""
    if not isinstance(value, strata.Tensor):
        return f"isinstance({name}, strata.Tensor)"
    if value.dtype != expected.dtype:
        return f"{name}.dtype == {expected.dtype}"
    if value.dim() != expected.dim():
        return f"{name}.dim() == {expected.dim()}"
    for d, (now, then) in enumerate(zip(value.shape, expected.shape, strict=True)):
        if now != then and d not in open_sizes:
            return f"{name}.size()[{d}] == {then}"
    return ""


class _CallCodeGen(_PyTreeCodeGen):
    """For a module that is called as the exported one was, with keywords."""

    def __init__(self, positional: list[str], keywords: list[str], in_spec: CallSpec, out_spec: Any) -> None:
        super().__init__(["self", *positional, *keywords], in_spec, out_spec)
        self.positional, self.keywords = positional, keywords

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        head = f"def {self._func_name}({', '.join(self.orig_args)}){maybe_return_annotation}:"
        if not free_vars:
            return head
        bare = ", ".join(name.split(":")[0] for name in free_vars)
        keywords = ", ".join(f"{name!r}:{name}" for name in self.keywords)
        given = f"([{', '.join(self.positional)}], {{{keywords}}})"
        return f"{head}\n    {bare}, = fx_pytree.tree_flatten_spec({given}, self._in_spec)"

    def process_inputs(self, *args: Any) -> Any:
        return self.in_spec.flatten_call((args[: len(self.positional)], dict(zip(self.keywords, args[len(self.positional) :], strict=True))))


def _form(spec: Any) -> str:
    if spec.is_leaf():
        return "*"
    inner = [_form(child) for child in spec.children_specs]
    if isinstance(spec.context, list) and issubclass(spec.type, dict):
        return "{" + ", ".join(f"{k!r}: {v}" for k, v in zip(spec.context, inner, strict=True)) + "}"
    text = ", ".join(inner)
    return {tuple: f"({text}{',' * (len(inner) == 1)})", list: f"[{text}]"}.get(spec.type, f"{spec.type.__name__}({text})")


class CallSpec(TreeSpec):
    """The form of a call's (args, kwargs)."""

    def __init__(self, spec: TreeSpec) -> None:
        super().__init__(spec.type, spec.context, spec.children_specs)

    def flatten_call(self, given: Any) -> list:
        """The leaves of (args, kwargs), keywords and other dicts in any order. ValueError where their form is another one."""
        given = tuple(given[0]), given[1]
        ordered = _by_keys(given, self)
        leaves, real = tree_flatten(given if ordered is None else ordered)
        if real.children_specs == self.children_specs and real.context == self.context:
            return leaves
        wanted, got = (", ".join(map(_form, s.children_specs)) for s in (self, real))
        raise ValueError(
            f"Trying to flatten user inputs with exported input tree spec: \n{wanted}\nbut actually got inputs with tree spec of: \n{got}\n"
            "Please check that the inputs have the same number and type of args and kwargs as the ones you used when tracing."
        )


def _by_keys(value: Any, spec: Any) -> Any:
    """The nest with its dicts in the order of the form's keys; None where it has others."""
    if spec.is_leaf():
        return value
    if type(value) is not spec.type:
        return None
    if spec.type is dict:
        if set(value) != set(spec.context):
            return None
        parts = [_by_keys(value[k], child) for k, child in zip(spec.context, spec.children_specs, strict=True)]
        return dict(zip(spec.context, parts, strict=True))
    if spec.type in (tuple, list):
        if len(value) != spec.num_children:
            return None
        return spec.type(_by_keys(v, child) for v, child in zip(value, spec.children_specs, strict=True))
    return value


class ExportedProgram:
    """A module's computation as a graph. `export` makes one; `module()` gives a module that computes the same.

    graph_module, graph: the graph with parameters, buffers and constants as inputs, in the order of graph_signature. state_dict:
    parameters and persistent buffers. constants: other tensors, by path. example_inputs: (args, kwargs) of the export, or None.
    """

    def __init__(self, held: Any) -> None:
        self._held = held
        self._graph_module, self._signature = _lifted(held)

    # ---- what it is

    @property
    def graph_module(self) -> GraphModule:
        return self._graph_module

    @property
    def graph(self) -> Graph:
        return self._graph_module.graph

    @property
    def graph_signature(self) -> ExportGraphSignature:
        return self._signature

    @property
    def state_dict(self) -> dict[str, Tensor]:
        held = self._held
        kept = {k: t for k, t in held.buffers.items() if held.persistent[k]}
        return {**held.parameters, **kept}

    @property
    def constants(self) -> dict[str, Tensor]:
        held = self._held
        return {**{k: t for k, t in held.buffers.items() if not held.persistent[k]}, **held.constants}

    @property
    def tensor_constants(self) -> dict[str, Tensor]:
        return self.constants

    @property
    def example_inputs(self) -> tuple[tuple, dict] | None:
        return self._held.example_inputs

    @property
    def range_constraints(self) -> dict:
        return dict(getattr(self._held, "ranges", {}))

    @property
    def call_spec(self) -> Any:
        return ModuleCallSignature([], [], self._held.in_spec, self._held.out_spec)

    @property
    def module_call_graph(self) -> list[ModuleCallEntry]:
        signature = ModuleCallSignature(
            [s.arg for s in self._signature.input_specs if s.kind == InputKind.USER_INPUT],
            [s.arg for s in self._signature.output_specs if s.kind == OutputKind.USER_OUTPUT],
            self._held.in_spec, self._held.out_spec, self._held.forward_names,
        )  # fmt: skip
        return [ModuleCallEntry("", signature)]

    @property
    def dialect(self) -> str:
        return "TRAINING" if not self._held.functional else "ATEN"

    @property
    def verifier(self) -> None:
        return None

    def parameters(self) -> Any:
        return iter(self._held.parameters.values())

    def named_parameters(self) -> Any:
        return iter(self._held.parameters.items())

    def buffers(self) -> Any:
        return iter(self._held.buffers.values())

    def named_buffers(self) -> Any:
        return iter(self._held.buffers.items())

    def text(self) -> str:
        """The graph as a saved program holds it, in the text of strata.graph."""
        return _C._graph_text(self._held.graph)

    def __str__(self) -> str:
        code = self._graph_module.print_readable(print_output=False).replace("\n", "\n    ")
        signature = str(self._signature).replace("\n", "\n    ")
        return f"ExportedProgram:\n    {code}\nGraph signature: {signature}\nRange constraints: {self.range_constraints}\n"

    # ---- what it does

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Unable to call ExportedProgram directly. You should use `exported_program.module()` instead.")

    def module(self, check_guards: bool = True) -> GraphModule:
        """A module that is called as the exported one was, with its parameters and buffers at their paths; these are shared.

        It writes buffers where the exported one did, and is differentiable. Its calls raise ValueError for arguments of another form, and
        AssertionError (a ValueError, too), naming argument, expected and got, for tensors and constants that differ from the exported
        ones; check_guards=False leaves the latter out.
        """
        return _unlifted(self._held, self._signature, check_guards)

    def run_decompositions(self, decomp_table: Any = None, decompose_custom_triton_ops: bool = False) -> ExportedProgram:
        """The program with composite operators taken apart and writes replaced: what is written to buffers and inputs is an output.

        NotImplementedError for a table of decompositions of one's own, and where an operator's write has no other form.
        """
        if decomp_table:
            raise NotImplementedError("run_decompositions: expected no table of decompositions: operators fall apart by their own definitions")
        del decompose_custom_triton_ops
        held = self._held.copy()
        if any("?" in kind for _, _, kind in value_types(held.graph)):
            raise NotImplementedError("run_decompositions: of a program whose sizes vary: composites fall apart by the sizes of a call; export it for given sizes")
        held.graph = decomposed(held.graph)
        held.functional = True
        return ExportedProgram(held)

    def _update(self, graph_module: GraphModule, graph_signature: ExportGraphSignature, **_: Any) -> ExportedProgram:
        made = ExportedProgram.__new__(ExportedProgram)
        made._held, made._graph_module, made._signature = self._held, graph_module, graph_signature
        return made


def _results(held: Any, builder: Builder, yielded: list[str]) -> list:
    values = builder.values
    return [values[yielded[v]] if kind == "tensor" else builder.expression(v) if kind == "size" else v for kind, v in held.results]


def _wanted(held: Any, yielded: list[str]) -> set[str]:
    """Values of the graph that the program's results are made of."""
    return set(yielded).union(*(re.findall(r"%\d+", value) for kind, value in held.results if kind == "size"))


def _last_copies(statements: list, params: set[str]) -> int:
    """How many of the last statements copy into parameters of the graph."""
    n = 0
    while n < len(statements) and statements[-1 - n].right.startswith("aten::copy_("):
        if statements[-1 - n].uses()[0] not in params:
            break
        n += 1
    return n


def _lifted(held: Any) -> tuple[GraphModule, ExportGraphSignature]:
    """The graph whose inputs are all that it uses, with its signature."""
    statements, yielded = read_blocks(_C._graph_text(held.graph))
    while statements and statements[0].right.startswith("check "):  # of inputs: range_constraints tells them
        del statements[0]
    params = value_types(held.graph)
    user = params[: held.count]
    by_path = {name: value for value, name, _ in params[held.count :]}
    kinds = {value: kind for value, _, kind in params}
    graph, root, values, inputs = Graph(), {}, {}, []
    used: set[str] = set()
    # Names of user inputs come first, so that nobody else takes them.
    user_names = [graph._graph_namespace.create_name(node_name(path), None) for path in held.paths]
    lifted = [
        *((InputKind.PARAMETER, path, t, None) for path, t in held.parameters.items()),
        *((InputKind.BUFFER, path, t, held.persistent[path]) for path, t in held.buffers.items()),
        *((InputKind.CONSTANT_TENSOR, path, t, None) for path, t in held.constants.items()),
    ]
    for kind, path, t, persistent in lifted:
        value = by_path.get(held.same.get(path, path))
        node = placeholder(graph, node_name(_PREFIXES[kind] + path.replace(".", "_")), kinds.get(value, ""))
        node.meta["val"] = strata.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")
        if value is not None and value not in values:
            values[value] = node
        inputs.append(InputSpec(kind, TensorArgument(node.name), path, persistent))
    tensors = iter(user)
    for name, leaf in zip(user_names, held.leaves, strict=True):
        graph._graph_namespace._used.discard(name)
        last = graph._graph_namespace._last.copy()
        node = placeholder(graph, name, "")
        graph._graph_namespace._last = {**graph._graph_namespace._last, **last}
        if isinstance(leaf, strata.Tensor):
            value, _, kind = next(tensors)
            node.meta["val"] = _meta(kind)
            values[value] = node
            inputs.append(InputSpec(InputKind.USER_INPUT, TensorArgument(node.name), None))
        else:
            inputs.append(InputSpec(InputKind.USER_INPUT, ConstantArgument(node.name, leaf), None))
    builder = Builder(graph, values, root)
    builder.wanted = _wanted(held, yielded)
    outputs: list = []
    specs: list[OutputSpec] = []
    copies = _last_copies(statements, set(kinds)) if held.functional else 0
    written = [s.uses()[:2] for s in statements[len(statements) - copies :]]
    builder.wanted |= {v for _, v in written}
    builder.run(statements[: len(statements) - copies])
    targets = {value: path for path, value in by_path.items()}
    for to, value in written:
        node = builder.values[value]
        path = targets.get(to)
        kind = OutputKind.USER_INPUT_MUTATION if path is None else OutputKind.BUFFER_MUTATION if path in held.buffers else OutputKind.PARAMETER_MUTATION
        outputs.append(node)
        specs.append(OutputSpec(kind, TensorArgument(node.name), values[to].name if path is None else path))
    for (kind, _), result in zip(held.results, _results(held, builder, yielded), strict=True):
        outputs.append(result)
        node = SymIntArgument if kind == "size" else TensorArgument
        specs.append(OutputSpec(OutputKind.USER_OUTPUT, node(result.name) if hasattr(result, "op") else ConstantArgument("", result), None))
    graph.output(tuple(outputs))
    del used
    return GraphModule(root, graph), ExportGraphSignature(inputs, specs)


def _meta(kind: str) -> Any:
    from strata.fx._from_graph import _tensor_of

    return _tensor_of(kind.replace("?", ""))


def _open(kind: str) -> set[int]:
    """The dims of a printed type whose sizes vary."""
    sizes = kind.partition("[")[2].partition("]")[0].partition(";")[0].split(",")
    return {d for d, size in enumerate(sizes) if "?" in size}


def _unlifted(held: Any, signature: ExportGraphSignature, check: bool) -> GraphModule:
    """The module that is called as the exported one was."""
    statements, yielded = read_blocks(_C._graph_text(held.graph))
    params = value_types(held.graph)
    by_path = {name: value for value, name, _ in params[held.count :]}
    graph, values, checks = Graph(), {}, []
    root: dict[str, Any] = {**held.parameters, **held.buffers, **held.constants}
    tensors = iter(params[: held.count])
    nodes = []
    user = [s.arg for s in signature.input_specs if s.kind == InputKind.USER_INPUT]
    for argument, path, leaf in zip(user, held.paths, held.leaves, strict=True):
        node = placeholder(graph, argument.name, "")
        nodes.append(node)
        if isinstance(leaf, strata.Tensor):
            value, _, kind = next(tensors)
            node.meta["val"] = _meta(kind)
            values[value] = node
            checks.append((node.name, path, node.meta["val"], _open(kind)))
        else:
            checks.append((node.name, path, leaf, set()))
    for path in [*held.parameters, *held.buffers, *held.constants]:
        value = by_path.get(held.same.get(path, path))
        if value is not None and value not in values:
            values[value] = graph.create_node("get_attr", path, name=node_name(path))
    if check:
        root["_guards_fn"] = _Checks(checks)
        graph.create_node("call_module", "_guards_fn", tuple(nodes), {}, name="_guards_fn")
    builder = Builder(graph, values, root)
    builder.wanted = _wanted(held, yielded)
    builder.run(statements)
    graph.output(tuple(_results(held, builder, yielded)))
    guard_modes(graph)
    positional, keywords = held.forward_names[: held.positional], held.forward_names[held.positional :]
    graph.set_codegen(_CallCodeGen(positional, keywords, CallSpec(held.in_spec), held.out_spec))
    top = _rooted(root, held)
    made = GraphModule(top, graph)
    _complete(made, top)
    made.train(held.training)
    return made


def _complete(made: strata.nn.Module, top: strata.nn.Module) -> None:
    """Gives a module what another one has and it lacks: what the graph does not name belongs to the state_dict, too."""
    for kind in ("_parameters", "_buffers"):
        for name, t in getattr(top, kind).items():
            getattr(made, kind).setdefault(name, t)
    made._non_persistent_buffers_set.update(top._non_persistent_buffers_set)
    for name, inner in top._modules.items():
        if name in made._modules:
            _complete(made._modules[name], inner)
        else:
            made.add_module(name, inner)


def _rooted(root: dict[str, Any], held: Any) -> strata.nn.Module:
    """A module with all parameters and buffers at their paths, used or not."""
    top = strata.nn.Module()

    def owner(path: str) -> tuple[Any, str]:
        *parents, name = path.split(".")
        at = top
        for part in parents:
            if part not in at._modules:
                at.add_module(part, strata.nn.Module())
            at = at._modules[part]
        return at, name

    for path, t in held.parameters.items():
        at, name = owner(path)
        at.register_parameter(name, t)
    for path, t in held.buffers.items():
        at, name = owner(path)
        at.register_buffer(name, t, persistent=held.persistent[path])
    for path, value in root.items():
        if path in held.parameters or path in held.buffers:
            continue
        at, name = owner(path)
        if isinstance(value, strata.nn.Module):
            at.add_module(name, value)
        else:
            setattr(at, name, value)
    return top

