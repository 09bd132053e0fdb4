"""VNN-LIB 1.0: flat variables X_0, X_1, ... and Y_0, Y_1, ... of SMT-LIB's sort Real."""

from __future__ import annotations

import re

from dokimos.properties.cases import Assertions
from dokimos.properties.forms import Numbers, read_forms
from dokimos.properties.model import Property, Signature
from dokimos.properties.sexpr import Atom, Group, Source, excerpt

_FLAT = re.compile(r"([XY])_(0|[1-9][0-9]*)", re.ASCII)
_IGNORED = ("get-model", "set-info", "set-logic", "set-option")
_ENDING = ("check-sat", "exit")
#: Commands that may follow the constraints.
_REST = re.compile(rf"(?:\s++|\(\s*+(?:{'|'.join(_IGNORED + _ENDING)})\b[^()]*+\))*+\Z", re.ASCII)


class _Words(Numbers):
    """The variables declared so far, and what numbers may look like."""

    comparisons = frozenset({"<", "<=", ">", ">=", "==", "="})

    def __init__(self, source: Source) -> None:
        super().__init__(source, exponent=True)
        #: Where each input, and each output, is declared.
        self.places: dict[str, dict[int, int]] = {"X": {}, "Y": {}}
        self._variables: dict[str, int] = {}
        self._is_asked = False

    def declare(self, letter: str, digits: str, offset: int) -> None:
        name = f"{letter}_{digits}"
        match = _FLAT.fullmatch(name)
        if match is None or len(digits) > 8:
            raise self.source.error(offset, f"the variable {excerpt(name)} has a malformed number")
        if name in self._variables:
            raise self.source.error(offset, f"the variable {name} is declared twice")
        index = int(digits)
        self.places[letter][index] = offset
        self._variables[name] = index if letter == "X" else ~index

    def declare_group(self, group: Group) -> None:
        """`(declare-const X_0 Real)` or `(declare-fun X_0 () Real)`, with any whitespace."""
        items = [item.text if isinstance(item, Atom) else "()" * (not item.items) for item in group.items]
        if items[0] == "declare-fun" and items[2:3] == ["()"]:
            del items[2]
        if len(items) != 3 or items[2] != "Real":
            raise self.source.error(group.offset, "a declaration must read (declare-const X_0 Real)")
        match = _FLAT.fullmatch(items[1])
        if match is None:
            name = excerpt(items[1])
            raise self.source.error(
                group.items[1].offset, f"the variable {name} is neither X_i (an input) nor Y_j (an output)"
            )
        self.declare(match[1], match[2], group.items[1].offset)

    def ask(self, group: Group) -> None:
        """`(check-sat)` or `(exit)`: solvers stop here, other readers continue with what follows."""
        if not self._is_asked and _REST.match(self.source.text, group.offset) is None:
            word = group.items[0].text if isinstance(group.items[0], Atom) else ""
            raise self.source.error(group.offset, f"readers disagree on what follows ({word}); put it last")
        self._is_asked = True

    def variable(self, text: str, offset: int) -> int:
        known = self._variables.get(text)
        if known is None:
            raise self.source.error(offset, f"the variable {excerpt(text)} is not declared")
        return known

    def product(self, left: int, right: int, offset: int) -> int:
        raise self.source.error(
            offset, "this multiplies variables with each other; VNN-LIB 1.0 has only linear constraints"
        )

    def count(self, letter: str) -> int:
        """How many variables `letter` has. Raises UnreadableFile if their numbering has a gap."""
        places, what = self.places[letter], "input" if letter == "X" else "output"
        if not places:
            raise self.source.error(0, f"no {what} is declared; expected (declare-const {letter}_0 Real)")
        if len(places) <= max(places):
            gap = next(i for i in range(len(places)) if i not in places)
            after = min(i for i in places if i > gap)
            raise self.source.error(
                places[after], f"{letter}_{after} is declared, but {letter}_{gap} is not"
            )
        return len(places)


def parse_vnnlib1(source: Source) -> Property:
    """The property that a VNN-LIB 1.0 text states. Its one network is called `f`."""
    words, assertions = _Words(source), Assertions(source)
    declaring = dict.fromkeys(("declare-const", "declare-fun"), words.declare_group)
    ignoring = dict.fromkeys(_IGNORED, lambda group: None)
    asking = dict.fromkeys(_ENDING, words.ask)
    read_forms(words, assertions, declare=words.declare, other={**declaring, **ignoring, **asking})
    inputs, outputs = words.count("X"), words.count("Y")
    cases = assertions.cases(inputs, name=lambda i: f"X_{i}", place=words.places["X"].__getitem__)
    return Property((Signature("f", "X", (inputs,), "Y", (outputs,)),), cases)
