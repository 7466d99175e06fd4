"""The reader of PyTorch's zip files under PyTorch's name, for programs that take a file apart themselves."""

from __future__ import annotations

import zipfile

import strata
from strata import _C
from strata._pt_read import root_of, untyped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any


class PyTorchFileReader:
    """A file that save wrote, by its records: "data.pkl", "data/0" and others. file: its path, or an open one.

    RuntimeError for what is no such file.
    """

    def __init__(self, file: str | IO[bytes]) -> None:
        try:
            self._archive = zipfile.ZipFile(file)
        except zipfile.BadZipFile as error:
            raise RuntimeError(f"PyTorchFileReader: {error}: expected a file that strata.save wrote") from None
        self._root = root_of(self._archive)

    def _full(self, name: str) -> str:
        full = self._root + name
        if full not in self._archive.NameToInfo:
            raise RuntimeError(f"PyTorchFileReader: file not found: {full}")
        return full

    def get_all_records(self) -> list[str]:
        """The names of all records."""
        return [n.removeprefix(self._root) for n in self._archive.namelist()]

    def has_record(self, name: str) -> bool:
        """Whether there is one of that name."""
        return self._root + name in self._archive.NameToInfo

    def get_record(self, name: str) -> bytes:
        """The bytes of a record. RuntimeError where there is none of that name."""
        return self._archive.read(self._full(name))

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> strata.Tensor:
        """A tensor of no elements of the dtype (of uint8, where it is none) over the storage that holds a record's bytes: its
        `untyped_storage()` is what is meant. RuntimeError for no record, or one of less than `numel` bytes."""
        data = self.get_record(name)
        if len(data) < numel:
            raise RuntimeError(f"PyTorchFileReader: the record {name} has {len(data)} bytes, expected {numel}")
        kind = dtype if isinstance(dtype, strata.dtype) else strata.uint8
        return _C._tensor_over_storage(untyped(data), kind, 0, (0,), (1,))
