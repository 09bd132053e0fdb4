"""Which instances of suites fit into a time budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from dokimos.campaigns.plan import CampaignSuite
from dokimos.core.errors import InputError
from dokimos.suites.budget_orders import first_within, in_order
from dokimos.suites.entry import SuiteEntry


def within_budget(
    suites: Sequence[CampaignSuite], seconds: float, *, jobs: int, timeout_seconds: float | None
) -> tuple[list[CampaignSuite], tuple[str, ...]]:
    """The suites with only the instances that fit into a budget, and what was left out of each.

    Raises InputError if not even the first instance of each suite fits: nothing of that suite would be
    tested.
    """
    room = seconds * jobs
    ordered = [in_order(cast("tuple[SuiteEntry, ...]", each.instances), name=each.name) for each in suites]
    limits = [[timeout_seconds or entry.timeout_seconds for entry in entries] for entries in ordered]
    counts = first_within(limits, seconds=room)
    has = f"{seconds:g} s with {jobs} {'job' if jobs == 1 else 'jobs'} at a time"
    if not all(counts):
        least = sum(suite[0] for suite in limits)
        names = ", ".join(suite.name for suite in suites)
        raise InputError(
            f"A budget of {has} is too small for the first instance of each suite ({names}); these may "
            f"take {least:g} s together; give a larger --budget, a smaller --timeout or fewer suites."
        )
    kept, left_out = [], []
    for suite, entries, count in zip(suites, ordered, counts, strict=True):
        kept.append(replace(suite, instances=entries[:count]))
        if count < len(entries):
            left_out.append(
                f"{len(entries) - count} of {len(entries)} instances of {suite.name}: the budget is {has}"
            )
    return kept, tuple(left_out)
