"""Families of instances that nobody here made: by network, or by a pattern."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from dokimos.campaigns.records import RunRecord
from dokimos.core.errors import InputError

BY_NETWORK = "network"

FamilyRule = Callable[[Path, RunRecord], str]
"""The family of a run, from the file of its network and from its record."""


def family_rule(words: str) -> FamilyRule:
    """How to tell families: by `network`, or by a regular expression for the names of instances.

    The family is what the first group of the expression matches, or all of the match where it has no group;
    an instance in which nothing matches keeps its own. Raises InputError if it is no such expression.
    """
    if words == BY_NETWORK:
        return lambda network, _: network.name.removesuffix(".gz").removesuffix(".onnx")
    try:
        pattern = re.compile(words)
    except re.error as error:
        raise InputError(
            f"{words!r} is not a way to name families: {error}; write {BY_NETWORK!r}, or a "
            "regular expression such as 'prop_([0-9]+)'."
        ) from None

    def by_pattern(_: Path, run: RunRecord) -> str:
        found = pattern.search(run.instance)
        if found is None:
            return run.family
        return found[1] or found[0] if pattern.groups else found[0]

    return by_pattern
