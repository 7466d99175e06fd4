"""Versions that compare by their numbers, as PyTorch's programs expect of `__version__`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _key(version: Any) -> tuple:
    """What orders versions (PEP 440, without epochs): the release without zeros at its end, whether it is final, what was before
    or came after it, and the parts behind a +."""
    if isinstance(version, (tuple, list)):
        numbers, rest, local = [int(part) for part in version], "", ""
    else:
        public, _, local = str(version).strip().lower().removeprefix("v").partition("+")
        numbers, rest = [], ""
        for part in public.split("."):
            digits = part[: len(part) - len(part.lstrip("0123456789"))]
            if digits and not rest:
                numbers.append(int(digits))
                rest = part[len(digits) :]
            else:
                rest += part
        if not numbers:
            raise ValueError(f"expected a version such as '2.13.0', got {version!r}")
    while numbers and numbers[-1] == 0:
        numbers.pop()
    parts = tuple((True, int(p), "") if p.isdigit() else (False, 0, p) for p in local.split(".") if p)
    return tuple(numbers), not rest or rest.startswith(("post", "-")), rest, parts


class TorchVersion(str):
    """A version's text that compares with versions, texts and tuples of numbers by number: TorchVersion("2.13.0") > "2.9",
    > (2, 9). With texts that are no versions it compares as a text."""

    __slots__ = ()

    def _ordered(self, other: Any) -> tuple[Any, Any]:
        try:
            return _key(self), _key(other)
        except ValueError:
            return str(self), str(other)

    def __lt__(self, other: Any) -> bool:
        mine, its = self._ordered(other)
        return mine < its

    def __le__(self, other: Any) -> bool:
        mine, its = self._ordered(other)
        return mine <= its

    def __gt__(self, other: Any) -> bool:
        mine, its = self._ordered(other)
        return mine > its

    def __ge__(self, other: Any) -> bool:
        mine, its = self._ordered(other)
        return mine >= its

    def __eq__(self, other: object) -> bool:
        mine, its = self._ordered(other)
        return mine == its

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__
