"""finfo and iinfo: the limits of dtypes."""

from __future__ import annotations

import strata

# dtype: bits, bits of the mantissa, largest exponent (the smallest normal number is 2^(1 - that)), decimal digits.
_FLOATS = {
    strata.float16: (16, 10, 15, 1e-03),
    strata.bfloat16: (16, 7, 127, 1e-02),
    strata.float32: (32, 23, 127, 1e-06),
    strata.float64: (64, 52, 1023, 1e-15),
}
# Of 8 bits, which no tensor of this version has, and whose numbers programs name: eps, max, smallest normal, min.
_EIGHT_BITS = {
    "float8_e4m3fn": (2.0**-3, 448.0, 2.0**-6, -448.0),
    "float8_e4m3fnuz": (2.0**-3, 240.0, 2.0**-7, -240.0),
    "float8_e5m2": (2.0**-2, 57344.0, 2.0**-14, -57344.0),
    "float8_e5m2fnuz": (2.0**-3, 57344.0, 2.0**-15, -57344.0),
    "float8_e8m0fnu": (1.0, 2.0**127, 2.0**-127, 2.0**-127),
}


def _name(dtype: object) -> str:
    return str(dtype).rpartition(".")[2]


class finfo:
    """Limits of a floating-point dtype (of the parts, for a complex one); the default dtype unless one is given.

    bits, eps (2^-mantissa), max, min, smallest_normal = tiny, resolution. TypeError for integer dtypes.
    """

    def __init__(self, type: strata.dtype | None = None) -> None:
        dtype = strata.get_default_dtype() if type is None else type
        if _name(dtype) in _EIGHT_BITS and not isinstance(dtype, str):
            self.bits, self.resolution, self.dtype = 8, 1.0, _name(dtype)
            self.eps, self.max, self.smallest_normal, self.min = _EIGHT_BITS[self.dtype]
            self.tiny = self.smallest_normal
            return
        if not isinstance(dtype, strata.dtype):
            raise TypeError(f"finfo(): argument 'type' must be strata.dtype, not {dtype.__class__.__name__}")
        part = dtype.to_real()
        if part not in _FLOATS:
            raise TypeError(
                "strata.finfo() requires a floating point input type. Use strata.iinfo to handle 'strata.finfo'"
            )
        self.bits, mantissa, exponent, self.resolution = _FLOATS[part]
        self.eps = 2.0**-mantissa
        self.max = (2.0 - self.eps) * 2.0**exponent
        self.min = -self.max
        self.smallest_normal = self.tiny = 2.0 ** (1 - exponent)
        self.dtype = _name(part)

    def __repr__(self) -> str:
        numbers = ((k, getattr(self, k)) for k in ("resolution", "min", "max", "eps", "smallest_normal", "tiny"))
        return f"finfo({', '.join(f'{k}={v:.6g}' for k, v in numbers)}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


class iinfo:
    """Limits of an integer dtype: bits, min, max. TypeError for others."""

    def __init__(self, type: strata.dtype) -> None:
        if not isinstance(type, strata.dtype):
            raise TypeError(f"iinfo(): argument 'type' must be strata.dtype, not {type.__class__.__name__}")
        if type.is_floating_point or type.is_complex:
            raise TypeError("strata.iinfo() requires an integer input type. Use strata.finfo to handle 'strata.iinfo'")
        if type is strata.bool:
            raise TypeError("strata.bool is not supported by strata.iinfo")
        self.bits = type.itemsize * 8
        self.min = -(2 ** (self.bits - 1)) if type.is_signed else 0
        self.max = 2 ** (self.bits - type.is_signed) - 1
        self.dtype = _name(type)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)
