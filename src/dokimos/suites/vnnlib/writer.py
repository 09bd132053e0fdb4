"""Writes properties in VNN-LIB 1.0 and 2.0: the same property always gives the same text.

Both writers print every number as its exact decimal expansion. Bounds that all cases share come first,
one assert each; then what is unsafe: one assert per constraint if there is a single conjunction, and
otherwise one assert with a disjunction of conjunctions, which contain the bounds in which cases differ.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from fractions import Fraction
from math import prod
from pathlib import Path

from dokimos.core.errors import InputError
from dokimos.core.files import write_whole
from dokimos.core.readable import exact_number
from dokimos.suites.vnnlib.model import Box, Case, Conjunction, Linear, Property, Relation
from dokimos.suites.vnnlib.text import LARGEST, MAX_DIGITS
from dokimos.suites.vnnlib.version2 import NAME, REAL_TYPES, spell_element

# Writes numbers as exact decimals


def exact_decimal(value: Fraction) -> str:
    """The decimal expansion of `value`, all of it, with a point and without an exponent.

    A reduced fraction p/q has a finite expansion iff q = 2^a·5^b, and then max(a, b) digits follow the
    point. Raises InputError for every other fraction.
    """
    denominator = value.denominator
    twos = (denominator & -denominator).bit_length() - 1
    rest, fives = denominator >> twos, 0
    while rest % 5 == 0:
        rest //= 5
        fives += 1
    places = max(twos, fives)
    if rest != 1:
        raise InputError(f"{_described(value)} has no finite decimal expansion.")
    if places > MAX_DIGITS or abs(value) >= LARGEST:
        raise InputError(f"{_described(value)} has too many digits to be written as a decimal.")
    scaled = abs(value.numerator) * (10**places // denominator)
    digits = str(scaled).rjust(places + 1, "0")
    whole, part = digits[: len(digits) - places], digits[len(digits) - places :]
    return f"{'-' if value < 0 else ''}{whole}.{part or '0'}"


def _described(value: Fraction) -> str:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) <= 128:
        return str(value)
    return "a number with a numerator or denominator of more than 128 bits"


#: The name of a variable: input number i is i, output number j is ~j.
_Namer = Callable[[int], str]


class Version(Enum):
    """A version of the VNN-LIB standard."""

    ONE = "1.0"
    TWO = "2.0"


def vnnlib_version(text: str) -> Version:
    """The version that is written as 1, 1.0, 2 or 2.0."""
    for version in Version:
        if text in (version.value, version.value[0]):
            return version
    raise InputError(f"There is no version {text} of VNN-LIB; give 1 or 2.")


def write_vnnlib_file(property: Property, path: Path, *, version: Version = Version.ONE) -> None:
    """Write the property to a file, compressed if its name ends in ``.gz``.

    The same property gives the same bytes. Raises InputError if this version cannot express it.
    """
    text = write_vnnlib1(property) if version is Version.ONE else write_vnnlib2(property)
    content = text.encode()
    folded = gzip.compress(content, mtime=0) if path.suffix == ".gz" else content
    write_whole(path, folded, what="the property")


def write_vnnlib1(property: Property, *, comment: str = "") -> str:
    """The property in VNN-LIB 1.0, in the flat form that tools read: `<=` and `>=` only.

    Raises InputError if 1.0 cannot express it: several networks, products of variables, strict constraints,
    numbers without a finite decimal expansion, or no case in which anything is unsafe.
    """
    if len(property.networks) != 1:
        raise InputError("VNN-LIB 1.0 allows only one network; write VNN-LIB 2.0 instead.")
    if property.products:
        raise InputError("VNN-LIB 1.0 has no products of variables; write VNN-LIB 2.0 instead.")
    if any(c.strict for case in property.cases for conjunction in case.any_of for c in conjunction):
        raise InputError(
            "VNN-LIB 1.0 as tools read it has no strict comparison; write VNN-LIB 2.0 instead."
        )
    inputs, outputs = property.input_size, property.output_size
    lines = _comment(comment)
    lines += [f"(declare-const X_{i} Real)" for i in range(inputs)]
    lines += [f"(declare-const Y_{j} Real)" for j in range(outputs)]
    lines += _asserts(property, lambda v: f"X_{v}" if v >= 0 else f"Y_{~v}")
    return "\n".join(lines) + "\n"


def write_vnnlib2(property: Property, *, comment: str = "", element_type: str = "real") -> str:
    """The property in VNN-LIB 2.0, its tensors declared with one element type for all.

    Raises InputError if 2.0 cannot express it: names it does not allow, numbers without a finite decimal
    expansion, or no case in which anything is unsafe.
    """
    if element_type not in REAL_TYPES:
        raise InputError(f"Unknown element type {element_type!r}; known: {', '.join(sorted(REAL_TYPES))}.")
    lines = [*_comment(comment), "(vnnlib-version <2.0>)"]
    tensors = [name for n in property.networks for name in (n.input_name, n.output_name)]
    for names in (tensors, [n.name for n in property.networks]):
        for name in names:
            if not NAME.fullmatch(name):
                raise InputError(f"{name!r} is not a name in VNN-LIB 2.0: letters, digits and _ only.")
        if len(set(names)) < len(names):
            raise InputError("names in VNN-LIB 2.0 must differ, but two of the property's are the same.")
    for network in property.networks:
        lines.append(f"(declare-network {network.name}")
        if network.relation is not Relation.FREE:
            lines.append(f"    ({network.relation.value} {network.of})")
        for word, name, shape in (
            ("declare-input", network.input_name, network.input_shape),
            ("declare-output", network.output_name, network.output_shape),
        ):
            lines.append(f"    ({word} {name} {element_type} [{','.join(map(str, shape))}])")
        lines.append(")")
    lines += _asserts(property, _element_namer(property))
    return "\n".join(lines) + "\n"


def _element_namer(property: Property) -> _Namer:
    def written(tensors: list[tuple[str, tuple[int, ...]]]) -> list[str]:
        return [spell_element(name, shape, k) for name, shape in tensors for k in range(prod(shape))]

    inputs = written([(n.input_name, n.input_shape) for n in property.networks])
    outputs = written([(n.output_name, n.output_shape) for n in property.networks])
    for product in property.products:
        factors = (inputs[v] if v >= 0 else outputs[~v] for v in product)
        outputs.append(f"(* {' '.join(factors)})")
    return lambda v: inputs[v] if v >= 0 else outputs[~v]


def _comment(text: str) -> list[str]:
    return [f"; {line}".rstrip() for line in text.splitlines()]


def _asserts(property: Property, name: _Namer) -> Iterator[str]:
    cases = [case for case in property.cases if case.any_of]
    if not cases:
        raise InputError("the property calls nothing unsafe in any case, which VNN-LIB cannot express.")
    first = cases[0].box
    shared_lower = [all(c.box.lower[i] == first.lower[i] for c in cases) for i in range(first.size)]
    shared_upper = [all(c.box.upper[i] == first.upper[i] for c in cases) for i in range(first.size)]
    for bound in _bounds(cases[0], name, shared_lower, shared_upper):
        yield f"(assert {bound})"
    own_lower, own_upper = [not s for s in shared_lower], [not s for s in shared_upper]
    conjunctions = [
        [*_bounds(case, name, own_lower, own_upper), *(_constraint(c, name) for c in conjunction)]
        for case in cases
        for conjunction in case.any_of
    ]
    if len(conjunctions) == 1:
        yield from (f"(assert {constraint})" for constraint in conjunctions[0])
        return
    yield "(assert (or"
    for conjunction in conjunctions:
        # A conjunction cannot be empty; a bound that holds anyway says nothing more.
        yield f"    (and {' '.join(conjunction or [f'(<= {name(0)} {exact_decimal(first.upper[0])})'])})"
    yield "))"


def _bounds(case: Case, name: _Namer, lower: list[bool], upper: list[bool]) -> Iterator[str]:
    for i in range(case.box.size):
        if lower[i]:
            yield f"(>= {name(i)} {exact_decimal(case.box.lower[i])})"
        if upper[i]:
            yield f"(<= {name(i)} {exact_decimal(case.box.upper[i])})"


def _constraint(constraint: Linear, name: _Namer) -> str:
    terms = [(name(i), c) for i, c in constraint.inputs] + [(name(~j), d) for j, d in constraint.outputs]
    less, more = ("<", ">") if constraint.strict else ("<=", ">=")
    bound = constraint.bound
    if len(terms) == 1 and abs(terms[0][1]) == 1:
        ((variable, sign),) = terms
        comparison = less if sign == 1 else more
        return f"({comparison} {variable} {exact_decimal(bound * sign)})"
    if len(terms) == 2 and bound == 0 and {c for _, c in terms} == {1, -1}:
        left, right = sorted(terms, key=lambda term: -term[1])
        return f"({less} {left[0]} {right[0]})"
    if len(terms) > 1 and all(c == -1 for _, c in terms):  # some tools read sums, but no factors
        return f"({more} {_sum([(variable, -c) for variable, c in terms])} {exact_decimal(-bound)})"
    return f"({less} {_sum(terms)} {exact_decimal(bound)})"


def _sum(terms: list[tuple[str, Fraction]]) -> str:
    written = [variable if c == 1 else f"(* {exact_decimal(c)} {variable})" for variable, c in terms]
    if len(written) == 1:
        return written[0]
    return f"(+ {' '.join(written)})" if written else "0.0"


# A property in words: boxes, constraints and what they mean together


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
