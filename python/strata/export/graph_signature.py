"""What the inputs and outputs of an exported graph are: parameters, buffers, constants, the user's."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = [
    "ConstantArgument",
    "CustomObjArgument",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "InputKind",
    "InputSpec",
    "OutputKind",
    "OutputSpec",
    "SymBoolArgument",
    "SymFloatArgument",
    "SymIntArgument",
    "TensorArgument",
    "TokenArgument",
]


@dataclass
class TensorArgument:
    """A tensor: the node of that name."""

    name: str


@dataclass
class TokenArgument:
    name: str


@dataclass
class SymIntArgument:
    """An int that hangs on sizes: the node of that name."""

    name: str


@dataclass
class SymFloatArgument:
    name: str


@dataclass
class SymBoolArgument:
    name: str


@dataclass
class CustomObjArgument:
    name: str
    class_fqn: str
    fake_val: Any = None


@dataclass
class ConstantArgument:
    """What is no tensor: as an input, each call must give this value."""

    name: str
    value: Any


_ARGUMENTS = (TensorArgument, SymIntArgument, SymFloatArgument, SymBoolArgument, ConstantArgument, CustomObjArgument, TokenArgument)
_NAMED = (TensorArgument, SymIntArgument, SymFloatArgument, SymBoolArgument, CustomObjArgument)


class InputKind(Enum):
    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()
    CUSTOM_OBJ = auto()
    TOKEN = auto()


class OutputKind(Enum):
    USER_OUTPUT = auto()
    LOSS_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    GRADIENT_TO_PARAMETER = auto()
    GRADIENT_TO_USER_INPUT = auto()
    USER_INPUT_MUTATION = auto()
    TOKEN = auto()


def _line(spec: Any) -> str:
    target = "" if spec.target is None else f" target='{spec.target}'"
    return f"{spec.arg.name}: {spec.kind.name}{target}"


@dataclass
class InputSpec:
    """One input of the graph. target: the parameter's, buffer's or constant's path in the module.

    AssertionError for an argument of another type, and for a buffer that does not say whether it is persistent.
    """

    kind: InputKind
    arg: Any
    target: str | None
    persistent: bool | None = None

    def __post_init__(self) -> None:
        if self.kind == InputKind.BUFFER and self.persistent is None:
            raise AssertionError("Failed to specify persistent flag on BUFFER.")
        if not isinstance(self.arg, _ARGUMENTS):
            raise AssertionError(f"expected valid arg type, got {type(self.arg)}")

    def __str__(self) -> str:
        return _line(self) + ("" if self.persistent is None else f" persistent={self.persistent}")


@dataclass
class OutputSpec:
    """One output of the graph. target: of a mutation, what is written."""

    kind: OutputKind
    arg: Any
    target: str | None

    def __post_init__(self) -> None:
        if not isinstance(self.arg, _ARGUMENTS):
            raise AssertionError(f"expected valid arg type, got {self.arg}")

    def __str__(self) -> str:
        return _line(self)


@dataclass
class ExportBackwardSignature:
    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


@dataclass
class ExportGraphSignature:
    """The inputs of an exported graph (parameters, buffers, constants, then the user's) and its outputs (mutations, then the user's)."""

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    def _targets(self, kind: InputKind) -> tuple[str, ...]:
        return tuple(s.target for s in self.input_specs if s.kind == kind and isinstance(s.target, str))

    def _named(self, specs: list, kind: Any) -> Mapping[str, str]:
        found = {s.arg.name: s.target for s in specs if s.kind == kind and isinstance(s.arg, TensorArgument) and isinstance(s.target, str)}
        return MappingProxyType(found)

    @property
    def parameters(self) -> tuple[str, ...]:
        return self._targets(InputKind.PARAMETER)

    @property
    def buffers(self) -> tuple[str, ...]:
        return self._targets(InputKind.BUFFER)

    @property
    def non_persistent_buffers(self) -> tuple[str, ...]:
        return tuple(s.target for s in self.input_specs if s.kind == InputKind.BUFFER and s.persistent is False)

    @property
    def lifted_tensor_constants(self) -> tuple[str, ...]:
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def lifted_custom_objs(self) -> tuple[str, ...]:
        return self._targets(InputKind.CUSTOM_OBJ)

    @property
    def user_inputs(self) -> tuple[Any, ...]:
        """Names of nodes, and the values of what is no tensor."""
        given = [s.arg for s in self.input_specs if s.kind == InputKind.USER_INPUT]
        return tuple(a.name if isinstance(a, _NAMED) else a.value for a in given)

    @property
    def user_outputs(self) -> tuple[Any, ...]:
        """Names of nodes, and the values of what is no tensor."""
        made = [s.arg for s in self.output_specs if s.kind in (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)]
        return tuple(a.name if isinstance(a, _NAMED) else a.value for a in made)

    @property
    def inputs_to_parameters(self) -> Mapping[str, str]:
        return self._named(self.input_specs, InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> Mapping[str, str]:
        return self._named(self.input_specs, InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> Mapping[str, str]:
        return self._named(self.input_specs, InputKind.CONSTANT_TENSOR)

    @property
    def buffers_to_mutate(self) -> Mapping[str, str]:
        return self._named(self.output_specs, OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self) -> Mapping[str, str]:
        return self._named(self.output_specs, OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> Mapping[str, str]:
        return self._named(self.output_specs, OutputKind.USER_INPUT_MUTATION)

    @property
    def backward_signature(self) -> ExportBackwardSignature | None:
        return None

    @property
    def assertion_dep_token(self) -> None:
        return None

    def replace_all_uses(self, old: str, new: str) -> None:
        """The arguments of that name are called otherwise from now on."""
        if not isinstance(old, str) or not isinstance(new, str):
            raise AssertionError(f"expected names, got {type(old)} and {type(new)}")
        for spec in [*self.output_specs, *self.input_specs]:
            if isinstance(spec.arg, TensorArgument) and spec.arg.name == old:
                spec.arg.name = new

    def __str__(self) -> str:
        inputs, outputs = ("\n".join(map(str, specs)) for specs in (self.input_specs, self.output_specs))
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"
