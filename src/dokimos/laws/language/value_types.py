"""What kinds of values there are in a law, and which kinds an expression may have."""

from __future__ import annotations

from enum import Enum

from dokimos.laws.domain.features import Kind, Slot


class Type(Enum):
    """The kind of a value; ANY where only a run can tell."""

    BOOLEAN = "a truth value"
    NUMBER = "a number"
    STRING = "a string"
    RECORD = "a record"
    NULL = "null"
    ANY = "any value"

    def may_be(self, *others: Type) -> bool:
        """Whether a value of this type can be of one of the others."""
        return self is Type.ANY or self in others


def type_of_slot(slot: Slot | None) -> Type:
    """The type of a feature's values."""
    if slot is None:
        return Type.ANY
    return Type.STRING if slot.feature.kind is Kind.TEXT else Type.NUMBER
