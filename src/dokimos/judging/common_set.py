"""The instances that verifiers are compared on: those that all of them were run on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dokimos.judging.naming import Naming
from dokimos.judging.verdicts import Judgement


@dataclass(frozen=True)
class CommonSet:
    """The judgements that a comparison of verifiers may use, in their order.

    These are all judgements if every verifier was run on the same instances, or if no instance was run by
    all of them. `remark` says so if the verifiers were run on different instances; otherwise it is empty.
    """

    judgements: tuple[Judgement, ...]
    remark: str = ""


def common_set(judgements: Sequence[Judgement], naming: Naming) -> CommonSet:
    """The judgements on instances that every verifier was run on."""
    ran: dict[str, set[tuple[str, str]]] = {}
    for j in judgements:
        ran.setdefault(naming.verifier(j.record), set()).add((j.record.suite, j.record.instance))
    common = set.intersection(*ran.values()) if ran else set()
    if all(keys == common for keys in ran.values()):
        return CommonSet(tuple(judgements))
    counts = ", ".join(f"{verifier} {len(keys)}" for verifier, keys in sorted(ran.items()))
    differ = f"The verifiers were run on different instances ({counts})"
    if not common:
        nothing = "no instance was run by all of them, so the numbers here do not compare them"
        return CommonSet(tuple(judgements), f"{differ}; {nothing}.")
    which = "the 1 instance" if len(common) == 1 else f"the {len(common)} instances"
    compared = f"they are compared on {which} that all of them were run on"
    return CommonSet(
        tuple(j for j in judgements if (j.record.suite, j.record.instance) in common),
        f"{differ}; {compared}, and each verifier's own counts cover all its runs.",
    )
