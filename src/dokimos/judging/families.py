"""Families for published instances: by network, or by a pattern."""

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
    """How to group instances into families: by `network`, or by a regular expression on their names.

    The family is what the first group of the expression matches, or the whole match if it has no group; an
    instance that does not match keeps its own family. Raises InputError if the expression is invalid.
    """
    if words == BY_NETWORK:
        return lambda network, _: network.name.removesuffix(".gz").removesuffix(".onnx")
    try:
        pattern = re.compile(words)
    except re.error as error:
        raise InputError(
            f"{words!r} does not define families: {error}; write {BY_NETWORK!r}, or a "
            "regular expression such as 'prop_([0-9]+)'."
        ) from None

    def by_pattern(_: Path, run: RunRecord) -> str:
        found = pattern.search(run.instance)
        if found is None:
            return run.family
        return found[1] or found[0] if pattern.groups else found[0]

    return by_pattern
