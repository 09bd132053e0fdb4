"""Points as people and tools write them: a VNN-COMP witness, or plain numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from numbers import Integral
from pathlib import Path
from typing import Any

from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.files import read_whole
from dokimos.core.gzipped import uncompressed
from dokimos.properties.decimal_text import exact_decimal
from dokimos.properties.decimals import parse_decimal
from dokimos.properties.model import Point
from dokimos.verifiers.results import MOST_BYTES
from dokimos.verifiers.vnncomp_results import flat_witness, tensor_witness

_SEPARATORS = re.compile(r"[\s,;]+")
_FORMS = "a VNN-COMP witness, ((X_0 0.5) …), or numbers separated by commas or spaces"


def exact_point(coordinates: Iterable[Any]) -> Point:
    """The point with these coordinates, numbers of any type, without rounding."""
    try:
        return tuple(
            each
            if isinstance(each, Fraction)
            else Fraction(int(each) if isinstance(each, Integral) else float(each))
            for each in coordinates
        )
    except (ValueError, OverflowError):
        raise InputError(
            "The coordinates of a point must be finite; one of these is infinite, or not a number."
        ) from None


def read_point(words: str | Path | Sequence[str] | Sequence[float | Fraction]) -> Point:
    """The point in the file of that name, or the point that the text or the numbers state.

    A file may be compressed; it holds a witness in VNN-COMP's format (of VNN-LIB 1.0 or 2.0, with or
    without a line `sat` before it), or numbers. Raises InputError, or UnreadableFile for a file, if it is
    neither.
    """
    given = [str(each) for each in ([words] if isinstance(words, str | Path) else words)]
    if not isinstance(words, str | Path) and not any(isinstance(each, str) for each in words):
        return exact_point(words)
    if isinstance(words, Path) or (len(given) == 1 and _is_file(given[0])):
        content = uncompressed(read_whole(Path(given[0]), most_bytes=MOST_BYTES), file=given[0])
        try:
            return _parse(content.decode("utf-8"))
        except (InputError, UnicodeDecodeError) as error:
            why = f": {error}" if isinstance(error, InputError) else ""
            raise UnreadableFile(given[0], f"holds no point, which is {_FORMS}{why}") from None
    try:
        return _parse(" ".join(given))
    except InputError as error:
        raise InputError(
            f"The point {_shortened(' '.join(given))!r} is neither a file nor {_FORMS}: {error}"
        ) from None


def write_witness(point: Point, outputs: Sequence[float]) -> str:
    """A counterexample in VNN-COMP's format: every input exactly, every output in its shortest digits.

    Raises InputError if an input has no finite decimal expansion.
    """
    pairs = [f"(X_{i} {exact_decimal(x)})" for i, x in enumerate(point)]
    pairs += [f"(Y_{j} {y!r})" for j, y in enumerate(outputs)]
    return "({})\n".format("\n ".join(pairs))


def _parse(text: str) -> Point:
    text = text.strip()
    first, _, rest = text.partition("\n")
    if first.strip() == "sat":
        text = rest.strip()
    if text.startswith("("):
        found = flat_witness(text)
        if found is None:
            raise InputError("the witness has not exactly one finite value for each X_0, X_1, ….")
        return found.inputs
    tensors = tensor_witness(text, "X", "Y")
    if tensors is not None:
        return tensors.inputs
    values: list[Fraction] = [parse_decimal(word) for word in _SEPARATORS.split(text) if word]
    if not values:
        raise InputError("it contains no number.")
    return tuple(values)


def _is_file(words: str) -> bool:
    try:
        return bool(words) and Path(words).exists()
    except (OSError, ValueError):  # too long for a name, or none that a file can have
        return False


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
