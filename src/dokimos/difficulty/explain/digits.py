"""Numbers in sentences and tables."""

from __future__ import annotations


def three_digits(value: float) -> str:
    """A measured number, to three digits and without an exponent where that is short.

    >>> three_digits(1000.2), three_digits(8024), three_digits(0.00985), three_digits(1.5e9)
    ('1000', '8020', '0.00985', '1.5e+09')
    """
    return f"{float(f'{value:.3g}'):g}"


def all_digits(value: float) -> str:
    """A knob's value as it was given: two values that differ are not written alike.

    >>> all_digits(0.9999999), all_digits(4096.0), all_digits(1e9), all_digits(1e-5)
    ('0.9999999', '4096', '1e+09', '1e-05')
    """
    return f"{value:g}" if float(f"{value:g}") == value else f"{value:.12g}"
