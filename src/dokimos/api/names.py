"""The names that options take, for completion in a shell; the named objects are not loaded."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum


class NameKind(Enum):
    """What a name stands for."""

    SUITE = "suite"
    FAMILY = "family"
    VERIFIER = "verifier"
    ATTACK = "attack"
    RULE_SET = "rule set"
    DATA_SET = "data set"


def known_names(kind: NameKind) -> tuple[str, ...]:
    """The names of one kind that this installation knows, including those of plug-ins."""
    return _NAMES[kind]()


def _suites() -> tuple[str, ...]:
    from dokimos.suites.folder import shipped_names

    return tuple(shipped_names())


def _families() -> tuple[str, ...]:
    from dokimos.constructions import CONSTRUCTIONS

    return tuple(CONSTRUCTIONS)


def _verifiers() -> tuple[str, ...]:
    from dokimos.verifiers.catalogue import VERIFIERS

    return tuple(VERIFIERS)


def _attacks() -> tuple[str, ...]:
    from dokimos.engine.attacks import ATTACKS

    return tuple(ATTACKS)


def _rule_sets() -> tuple[str, ...]:
    from dokimos.judging.rules import RULE_SETS

    return tuple(RULE_SETS)


def _data_sets() -> tuple[str, ...]:
    from dokimos.constructions.data.catalogue import NAMES

    return tuple(NAMES)


_NAMES: dict[NameKind, Callable[[], tuple[str, ...]]] = {
    NameKind.SUITE: _suites,
    NameKind.FAMILY: _families,
    NameKind.VERIFIER: _verifiers,
    NameKind.ATTACK: _attacks,
    NameKind.RULE_SET: _rule_sets,
    NameKind.DATA_SET: _data_sets,
}
