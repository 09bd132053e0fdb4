"""A property in words: boxes, constraints and what they mean together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import prod

from dokimos.core.readable import exact_number
from dokimos.properties.model import Box, Conjunction, Linear, Property
from dokimos.properties.vnnlib2 import spell_element

#: The name of a variable: input number i is i, output number j is ~j.
Namer = Callable[[int], str]


def namer(asked: Property) -> Namer:
    """The names of variables as in the property's file; a product is its factors with dots."""
    inputs = [n for net in asked.networks for n in _elements(net.input_name, net.input_shape)]
    outputs = [n for net in asked.networks for n in _elements(net.output_name, net.output_shape)]
    for product in asked.products:
        outputs.append("·".join(inputs[v] if v >= 0 else outputs[~v] for v in product))
    return lambda v: inputs[v] if v >= 0 else outputs[~v]


def _elements(name: str, shape: tuple[int, ...]) -> list[str]:
    flat = len(shape) == 1 and name in ("X", "Y")  # as VNN-LIB 1.0 has it
    return [f"{name}_{k}" if flat else spell_element(name, shape, k) for k in range(prod(shape))]


def constraint_in_words(one: Linear, name: Namer) -> str:
    """A constraint with its negative terms moved to the other side: `Y_1 + 0.5 <= Y_0`.

    Both sides have positive terms only; an empty side is 0, and a constraint that bounds terms from below
    is reversed: `Y_0 >= 2`.
    """
    terms = [(name(i), c) for i, c in one.inputs] + [(name(~j), d) for j, d in one.outputs]
    left = [_term(variable, c) for variable, c in terms if c > 0]
    right = [_term(variable, -c) for variable, c in terms if c < 0]
    number = exact_number(abs(one.bound)).short
    if not left:  # -t <= bound is t >= -bound
        bound = number if one.bound <= 0 else f"-{number}"
        return f"{' + '.join(right) or '0'} {'>' if one.strict else '>='} {bound}"
    less = "<" if one.strict else "<="
    if not right:
        return f"{' + '.join(left)} {less} {exact_number(one.bound).short}"
    if one.bound:
        (right if one.bound > 0 else left).append(number)
    return f"{' + '.join(left)} {less} {' + '.join(right)}"


def _term(variable: str, factor: Fraction) -> str:
    return variable if factor == 1 else f"{exact_number(factor).short}·{variable}"


def unsafe_in_words(any_of: Sequence[Conjunction], asked: Property) -> tuple[str, ...]:
    """What makes an output unsafe: their joint meaning, if known, then one line for each conjunction."""
    name = namer(asked)
    if not any_of:
        return ("nothing is unsafe",)
    lines = [" and ".join(_conjunction_in_words(part, name)) or "every output" for part in any_of]
    return (*_meaning(any_of, asked, name), *dict.fromkeys(lines))


def _conjunction_in_words(part: Conjunction, name: Namer) -> list[str]:
    """Its constraints, each once; two that bound the same terms from both sides are one equality."""
    equal = {one for one in part if not one.strict and _turned(one) in part}
    words: dict[str, None] = {}
    for one in part:
        if one not in equal:
            words.setdefault(constraint_in_words(one, name))
        elif part.index(one) < part.index(_turned(one)):
            words.setdefault(constraint_in_words(one, name).replace("<=", "=").replace(">=", "="))
    return list(words)


def _turned(one: Linear) -> Linear:
    """The constraint that bounds the same terms from the other side."""
    inputs, outputs = (tuple((i, -c) for i, c in terms) for terms in (one.inputs, one.outputs))
    return Linear(inputs, outputs, -one.bound, one.strict)


def _meaning(any_of: Sequence[Conjunction], asked: Property, name: Namer) -> tuple[str, ...]:
    """The usual patterns: one output against all others of its network."""
    if len(asked.networks) != 1 or asked.products or asked.output_size < 2:
        return ()
    count = asked.output_size
    if all(len(part) == 1 for part in any_of):
        pairs = [_compared(part[0]) for part in any_of]
        lows = {pair[0] for pair in pairs if pair is not None}
        if None not in pairs and len(lows) == 1 and len(set(pairs)) == count - 1:
            return (f"another output reaches {name(~lows.pop())}:",)
    if len(any_of) == 1:
        pairs = [_compared(one) for one in any_of[0]]
        if None in pairs or len(set(pairs)) != count - 1:
            return ()
        lows = {pair[0] for pair in pairs if pair is not None}
        highs = {pair[1] for pair in pairs if pair is not None}
        if len(lows) == 1:
            return (f"{name(~lows.pop())} is the least output:",)
        if len(highs) == 1:
            return (f"{name(~highs.pop())} is the greatest output:",)
    return ()


def _compared(one: Linear) -> tuple[int, int] | None:
    """(j, k) where the constraint says Y_j <= Y_k, or < ; None for any other."""
    if one.inputs or one.bound or len(one.outputs) != 2:
        return None
    (a, c), (b, d) = one.outputs
    if c != -d:
        return None
    return (a, b) if c > 0 else (b, a)


def box_in_words(box: Box, asked: Property, *, most: int) -> tuple[str, ...]:
    """A line for each of the first `most` inputs, and one for the rest."""
    name = namer(asked)
    lines = []
    for i, (low, high) in enumerate(zip(box.lower[:most], box.upper[:most], strict=True)):
        a, b = exact_number(low).short, exact_number(high).short
        lines.append(f"{name(i)} = {a}" if low == high else f"{a} <= {name(i)} <= {b}")
    if box.size > most:
        widths = [high - low for low, high in zip(box.lower, box.upper, strict=True)]
        narrow, wide = exact_number(min(widths)).short, exact_number(max(widths)).short
        sizes = f"of width {wide}" if narrow == wide else f"of widths {narrow} to {wide}"
        lines.append(f"… and {box.size - most} more inputs; the {box.size} intervals are {sizes}")
    return tuple(lines)
