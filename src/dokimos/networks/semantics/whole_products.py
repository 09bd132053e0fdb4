"""Products of rationals by a matrix or by filters of a file: exactly, by float64 products of integers.

Theorem. Where all a_i and b_i are integers and Σ|a_i||b_i| <= 2^53, every product and every partial sum is
an integer of at most 2^53, which float64 has exactly; so Σ a_i·b_i is exact in float64, in any order of
summation, with or without fused multiply-add.

The rationals are brought over one denominator and written in base 2^16: Σ_l digit_l·2^(16l), all digits
between −2^16 and 2^16. The floats are 2^e times integers, and these are Σ_k part_k·2^(ck) with |part_k| <
2^c. With n·2^(16+c) <= 2^53 for sums of n products, the theorem holds for each pair of a digit and a part;
what remains is added up in Python's integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import lcm
from typing import Any

import numpy as np
from flint import fmpq, fmpz
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]
#: A map that is linear in each of two arguments, and the same for each row of the first.
Product = Callable[[Floats, Floats], Floats]

_BASE = 16
#: What `float64` has of an integer.
_EXACT_BITS = 53
#: So many limbs more than digits and parts are room for a sum of integers below 2^53, moved by 15 bits.
_SPARE = 6
#: Rows of longer numbers are left to Flint.
_MOST_BITS = 1 << 13
#: Matrices whose exponents are so far apart that they have more parts are left to Flint.
_MOST_PARTS = 16
#: About so many numbers are multiplied at a time.
_BLOCK = 1 << 22


def whole_product(x: Array, matrix: Array, product: Product, *, terms: int, reads: int) -> Array | None:
    """`product` of rationals x and finite floats, exactly, as `fmpq`; every row of x by itself.

    Each entry of a product is a sum of at most n = `terms` products of an entry of either; `reads` is how
    many numbers one row of x becomes on the way. None where numbers are so long, or of such different
    sizes, that this is no gain.
    """
    width = _EXACT_BITS - _BASE - (terms - 1).bit_length()
    entries = x.reshape(-1).tolist()
    quotients = {entry.q for entry in entries}
    denominator = _shared(quotients)
    scaled = _scaled(matrix, width) if width > 0 and entries else None
    if scaled is None or denominator is None:
        return None
    power, rest, parts = scaled
    shares = {q: denominator // int(q) for q in quotients}
    wholes = [int(entry.p) * shares[entry.q] for entry in entries]
    longest = max(map(abs, wholes)).bit_length()
    if longest > _MOST_BITS:
        return None
    count = longest // _BASE + 1  # one bit is for the sign
    digits = _digits(wholes, count).reshape(-1, *x.shape[1:])
    limbs: NDArray[np.int64] | None = None
    for k, part in _parts(rest, width, parts):
        height = max(1, _BLOCK // reads)
        sums = [product(digits[at : at + height], part) for at in range(0, len(digits), height)]
        found = np.concatenate(sums)
        shape = (len(x), *found.shape[1:])
        if limbs is None:
            limbs = np.zeros((count + (width * parts) // _BASE + _SPARE, *shape), dtype=np.int64)
        _add(limbs, found.reshape(count, *shape), width * k)
    assert limbs is not None
    unit = fmpq(1 << max(power, 0), denominator << max(-power, 0))
    entries = [fmpz(whole) * unit for whole in _wholes(limbs)]
    made = np.empty(len(entries), dtype=object)
    made[:] = entries
    return made.reshape(limbs.shape[1:])


def _shared(denominators: set[Any]) -> int | None:
    """The least common multiple; None if it is long."""
    found = 1
    for each in denominators:
        found = lcm(found, int(each))
        if found.bit_length() > _MOST_BITS:
            return None
    return found


def _scaled(matrix: Array, width: int) -> tuple[int, Floats, int] | None:
    """e, the integers matrix·2^-e, as float64, and how many parts of `width` bits they have."""
    values = matrix.astype(np.float64)
    exponents = np.frexp(values)[1][values != 0]
    if not exponents.size:
        return 0, values, 1
    # A float is an integer of its mantissa's bits times a power of two: 24 of float32, 53 of float64.
    power = int(exponents.min()) - (24 if matrix.dtype == np.float32 else 53)
    parts = -(-(int(exponents.max()) - power) // width)
    return (power, np.ldexp(values, -power), parts) if parts <= _MOST_PARTS else None


def _parts(rest: Floats, width: int, parts: int) -> Iterator[tuple[int, Floats]]:
    """Each k with part_k: what is left of |rest| < 2^(width·(k + 1)), cut off below 2^(width·k); exact."""
    for k in reversed(range(parts)):
        part = np.trunc(np.ldexp(rest, -width * k))
        rest = rest - np.ldexp(part, width * k)
        yield k, part


def _digits(wholes: Sequence[int], count: int) -> Floats:
    """[count, numbers]: the digits of the two's complement, the last of which has the sign."""
    content = b"".join(whole.to_bytes(count * _BASE // 8, "little", signed=True) for whole in wholes)
    found = np.frombuffer(content, dtype="<u2").reshape(-1, count).T.astype(np.float64)
    found[-1] -= 2.0**_BASE * (found[-1] >= 2.0 ** (_BASE - 1))
    return found


def _add(limbs: NDArray[np.int64], sums: Floats, bits: int) -> None:
    """Add Σ_l sums_l·2^(16l + bits) to what the limbs, in base 2^16, are."""
    normal = np.zeros((len(sums) + _SPARE - 1, *sums.shape[1:]), dtype=np.int64)
    normal[: len(sums)] = sums
    _carry(normal)
    at, left = divmod(bits, _BASE)
    limbs[at : at + len(normal)] += normal << left


def _carry(limbs: NDArray[np.int64]) -> None:
    """Leave less than 2^16 in every limb but the last, which keeps the sign."""
    for low, high in pairwise(limbs):
        high += low >> _BASE
        low &= (1 << _BASE) - 1


def _wholes(limbs: NDArray[np.int64]) -> Iterator[int]:
    """The integers that the limbs are, the last of which must have room for the sign."""
    _carry(limbs)
    size = len(limbs) * _BASE // 8
    content = np.ascontiguousarray(limbs.reshape(len(limbs), -1).T.astype("<u2")).tobytes()
    return (
        int.from_bytes(content[at : at + size], "little", signed=True)
        for at in range(0, len(content), size)
    )
