"""The types of values in a law, and which of them an expression may have."""

from __future__ import annotations

from enum import Enum

from dokimos.laws.domain.features import Slot


class Type(Enum):
    """The type of a value; ANY if only a run can tell."""

    BOOLEAN = "a truth value"
    NUMBER = "a number"
    STRING = "a string"
    RECORD = "a record"
    #: An input of a domain that names no features: its records may be strings.
    PLAIN_RECORD = "a record or a text"
    NULL = "null"
    ANY = "any value"

    def may_be(self, *others: Type) -> bool:
        """Whether a value of this type can be of one of the others."""
        if self is Type.PLAIN_RECORD and (Type.RECORD in others or Type.STRING in others):
            return True
        return self is Type.ANY or self in others


def type_of_slot(slot: Slot | None) -> Type:
    """The type of a feature's values."""
    if slot is None:
        return Type.ANY
    return Type.STRING if slot.feature.holds_strings else Type.NUMBER
