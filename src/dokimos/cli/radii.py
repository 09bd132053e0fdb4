"""Radii, weights and ranges of values, as people write them on the command line."""

from __future__ import annotations


def parse_number(text: str) -> float:
    """Read a number such as 2/255 or 0.03. Raises InputError if it is not a number."""
    from dokimos.core.errors import InputError
    from dokimos.properties.decimals import parse_decimal

    top, slash, bottom = (part.strip() for part in text.partition("/"))
    try:
        return float(parse_decimal(top) / parse_decimal(bottom) if slash else parse_decimal(top))
    except (InputError, ZeroDivisionError, OverflowError):
        raise InputError(f"{text[:40]!r} is not a number; write it like 2/255 or 0.03.") from None


def parse_numbers(text: str) -> tuple[float, ...]:
    """Read numbers such as 1/3,2/3. Raises InputError if one is not a number."""
    return tuple(parse_number(part) for part in text.split(","))


def parse_limits(text: str) -> tuple[float, float] | None:
    """Read a range such as 0,1, or none. Raises InputError if it is not a range."""
    from dokimos.core.errors import InputError

    if text == "none":
        return None
    ends = parse_numbers(text)
    if len(ends) != 2 or not ends[0] < ends[1]:
        raise InputError(f"--limits {text!r} is not a range; write it like 0,1, or none.")
    return ends[0], ends[1]


def show_radius(radius: float) -> str:
    """A radius, and how many steps of 8-bit pixels it is; only the latter if that is a whole number.

    An infinite one, where nothing breaks at any radius, is a dash.
    """
    steps = 255 * radius
    if steps == float("inf"):
        return "-"
    if abs(steps - round(steps)) < 1e-9:
        return f"{round(steps)}/255"
    return f"{radius:.4g} ({steps:.3f}/255)"
