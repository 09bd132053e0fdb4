"""VNN-LIB 2.0: named networks with input and output tensors, whose elements have all their indices."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

from dokimos.suites.vnnlib.cases import Assertions, Numbers, read_forms
from dokimos.suites.vnnlib.model import Property, Relation, Signature
from dokimos.suites.vnnlib.text import Atom, Group, Source, excerpt, head

#: Names that the standard accepts; a hyphen is not among their characters.
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
#: Element types whose values are numbers with a point; the property is about their real values.
REAL_TYPES = frozenset(
    {"real", "float", "float16", "float32", "float64", "bfloat16"}
    | {"float8e4m3fn", "float8e5m2", "float8e4m3fnuz", "float8e5m2fnuz", "float4e2m1"}
)
_INDEXED = re.compile(r"([^\[]*)(?:\[([0-9,]*)\])?", re.ASCII)
_DIMENSIONS = re.compile(r"(?:[0-9]{1,9}(?:,[0-9]{1,9})*)?", re.ASCII)
_MAX_ELEMENTS = 2**31
_MAX_DEGREE = 32
_RELATIONS = {"equal-to": Relation.EQUAL, "isomorphic-to": Relation.ISOMORPHIC}


@dataclass(frozen=True)
class _Tensor:
    """The position of a tensor's numbers among all inputs, or all outputs, and in the text."""

    name: str
    shape: tuple[int, ...]
    start: int
    offset: int
    is_input: bool

    @property
    def size(self) -> int:
        return prod(self.shape)

    def spell(self, position: int) -> str:
        """The name of the number at a row-major position."""
        return spell_element(self.name, self.shape, position)


def spell_element(name: str, shape: tuple[int, ...], position: int) -> str:
    """The element of a tensor at a row-major position, as VNN-LIB 2.0 writes it."""
    if not shape:
        return name
    indices = []
    for dimension in reversed(shape):
        position, index = divmod(position, dimension)
        indices.append(str(index))
    return f"{name}[{','.join(reversed(indices))}]"


class _Words(Numbers):
    """The networks declared so far, and what numbers may look like."""

    comparisons = frozenset({"<", "<=", ">", ">=", "==", "!="})

    def __init__(self, source: Source) -> None:
        super().__init__(source, exponent=False)
        self.networks: list[Signature] = []
        self.tensors: dict[str, _Tensor] = {}
        #: The products of variables in formulas, each with its number.
        self.products: dict[tuple[int, ...], int] = {}
        self._factors: dict[int, tuple[int, ...]] = {}
        self._variables: dict[str, int] = {}
        self._sizes = {True: 0, False: 0}

    def variable(self, text: str, offset: int) -> int:
        known = self._variables.get(text)
        if known is None:
            known = self._variables[text] = self._resolve(text, offset)
        return known

    def _resolve(self, text: str, offset: int) -> int:
        match = _INDEXED.fullmatch(text)
        tensor = self.tensors.get(match[1]) if match else None
        if match is None or tensor is None:
            raise self.source.error(offset, f"the variable {excerpt(text)} is not declared")
        indices = match[2].split(",") if match[2] else []
        if len(indices) != len(tensor.shape):
            raise self.source.error(
                offset,
                f"{excerpt(text)} has {len(indices)} indices, "
                f"but {tensor.name} has {len(tensor.shape)} dimensions",
            )
        position = 0
        for index, dimension in zip(indices, tensor.shape, strict=True):
            if not index or len(index) > 10 or int(index) >= dimension:
                raise self.source.error(
                    offset,
                    f"an index of {excerpt(text)} is out of range: "
                    f"{tensor.name} has the shape {list(tensor.shape)}, counted from 0",
                )
            position = position * dimension + int(index)
        position += tensor.start
        return position if tensor.is_input else ~position

    def product(self, left: int, right: int, offset: int) -> int:
        """Products count as outputs that come after those of all networks."""
        factors = tuple(sorted(f for v in (left, right) for f in self._factors.get(v, (v,))))
        if len(factors) > _MAX_DEGREE:
            raise self.source.error(offset, f"this multiplies more than {_MAX_DEGREE} variables")
        number = self.products.setdefault(factors, len(self.products))
        variable = ~(self._sizes[False] + number)
        self._factors[variable] = factors
        return variable

    def refuse_flat(self, letter: str, digits: str, offset: int) -> None:
        raise self.source.error(offset, "VNN-LIB 2.0 has no declare-const; use declare-network")

    def version(self, group: Group) -> None:
        written = "".join(item.text if isinstance(item, Atom) else "()" for item in group.items[1:])
        if written != "<2.0>":
            raise self.source.error(
                group.offset, f"the version {excerpt(written)} is not known; expected <2.0>"
            )

    def declare_network(self, group: Group) -> None:
        """`(declare-network f [(equal-to g)] (declare-input ...) (declare-output ...))`."""
        if self.products:
            raise self.source.error(group.offset, "networks must be declared before the first assert")
        parts = [item for item in group.items[2:] if isinstance(item, Group)]
        if len(group.items) < 2 or len(parts) != len(group.items) - 2:
            raise self.source.error(group.offset, "expected (declare-network NAME (declare-input …) …)")
        name = self._new_name(group.items[1], {network.name for network in self.networks})
        relation, of = Relation.FREE, None
        if parts and head(parts[0]) in _RELATIONS:
            relation, of = _RELATIONS[head(parts[0])], self._known_network(parts[0])
            parts = parts[1:]
        if [head(part) for part in parts] != ["declare-input", "declare-output"]:
            self._explain_parts(group, parts)
        source, target = (self._declare_tensor(part) for part in parts)
        signature = Signature(name, source.name, source.shape, target.name, target.shape, relation, of)
        for other in self.networks:
            if other.name == of and (other.input_shape, other.output_shape) != (source.shape, target.shape):
                raise self.source.error(
                    group.offset, f"{name} is {relation.value} {of}, but its shapes differ"
                )
        self.networks.append(signature)

    def _explain_parts(self, group: Group, parts: list[Group]) -> None:
        wanted = "one declare-input, then one declare-output"
        for part in parts:
            if head(part) not in ("declare-input", "declare-output"):
                found = excerpt(head(part))
                raise self.source.error(part.offset, f"{found} is not supported here; expected {wanted}")
        raise self.source.error(group.offset, f"a network has {wanted}; others are not supported")

    def _known_network(self, group: Group) -> str:
        item = group.items[1] if len(group.items) == 2 else None
        if not isinstance(item, Atom) or item.text not in {network.name for network in self.networks}:
            raise self.source.error(group.offset, f"{head(group)} must name a network declared before")
        return item.text

    def _new_name(self, item: Atom | Group, taken: set[str]) -> str:
        if not isinstance(item, Atom) or not NAME.fullmatch(item.text):
            found = excerpt(item.text) if isinstance(item, Atom) else "'('"
            raise self.source.error(item.offset, f"{found} is not a name: letters, digits and _ only")
        if item.text in taken:
            raise self.source.error(item.offset, f"the name {item.text} is declared twice")
        return item.text

    def _declare_tensor(self, group: Group) -> _Tensor:
        if len(group.items) != 3 or not isinstance(group.items[2], Atom) or "[" not in group.items[2].text:
            raise self.source.error(group.offset, f"expected ({head(group)} NAME TYPE [DIMENSIONS])")
        name = self._new_name(group.items[1], set(self.tensors))
        kind, _, dimensions = group.items[2].text[:-1].partition("[")
        if kind not in REAL_TYPES:
            found = excerpt(kind)
            raise self.source.error(
                group.items[2].offset, f"the element type {found} is not supported; use real or float32"
            )
        if not _DIMENSIONS.fullmatch(dimensions):
            raise self.source.error(group.items[2].offset, f"[{dimensions}] is not a list of dimensions")
        shape = tuple(int(d) for d in dimensions.split(",")) if dimensions else ()
        if not 0 < prod(shape) < _MAX_ELEMENTS:
            raise self.source.error(group.items[2].offset, f"a tensor of shape {list(shape)} is not usable")
        is_input = head(group) == "declare-input"
        tensor = _Tensor(name, shape, self._sizes[is_input], group.items[1].offset, is_input)
        self._sizes[is_input] += tensor.size
        self.tensors[name] = tensor
        return tensor

    def input_tensor(self, index: int) -> _Tensor:
        """The input tensor that holds input number `index`."""
        return next(t for t in self.tensors.values() if t.is_input and t.start <= index < t.start + t.size)

    @property
    def input_size(self) -> int:
        return self._sizes[True]


def parse_vnnlib2(source: Source) -> Property:
    """The property that a VNN-LIB 2.0 text states."""
    words, assertions = _Words(source), Assertions(source)
    other = {"vnnlib-version": words.version, "declare-network": words.declare_network}
    read_forms(words, assertions, declare=words.refuse_flat, other=other)
    if not words.networks:
        raise source.error(0, "no network is declared; expected (declare-network NAME …)")

    def name(index: int) -> str:
        tensor = words.input_tensor(index)
        return tensor.spell(index - tensor.start)

    cases = assertions.cases(
        words.input_size, name=name, place=lambda index: words.input_tensor(index).offset
    )
    return Property(tuple(words.networks), cases, tuple(words.products))
