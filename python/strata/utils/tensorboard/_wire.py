"""The bytes of an events file: messages in protobuf's wire format, in records with check sums."""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import BinaryIO


def _varint(n: int) -> bytes:
    rest = n & 0xFFFFFFFFFFFFFFFF  # negative numbers: two's complement of 64 bits
    out = bytearray()
    while rest > 127:
        out.append(rest & 127 | 128)
        rest = rest >> 7
    out.append(rest)
    return bytes(out)


def _key(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def integer(field: int, value: int) -> bytes:
    """A field of int32, int64, bool or an enum."""
    return _key(field, 0) + _varint(int(value))


def double(field: int, value: float) -> bytes:
    return _key(field, 1) + struct.pack("<d", value)


def single(field: int, value: float) -> bytes:
    return _key(field, 5) + struct.pack("<f", value)


def message(field: int, value: bytes | str) -> bytes:
    """A field of a message, of bytes or of text."""
    data = value.encode() if isinstance(value, str) else value
    return _key(field, 2) + _varint(len(data)) + data


def doubles(field: int, values: Iterable[float]) -> bytes:
    """A packed field."""
    values = list(values)
    return message(field, struct.pack(f"<{len(values)}d", *values))


def singles(field: int, values: Iterable[float]) -> bytes:
    """A packed field."""
    values = list(values)
    return message(field, struct.pack(f"<{len(values)}f", *values))


def _crc_table() -> list[int]:
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


_TABLE = _crc_table()


def crc32c(data: bytes) -> int:
    """Castagnoli's check sum."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def _masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def write_record(file: BinaryIO, data: bytes) -> None:
    """Its length, the check sum of that, the data, the check sum of those."""
    size = struct.pack("<Q", len(data))
    file.write(size + _masked(size) + data + _masked(data))
