"""What every shipped rule set must keep to."""

from __future__ import annotations

from dokimos.judging.rules import RULE_SETS
from dokimos.testing import RuleSetContract


class TestShippedRuleSets(RuleSetContract):
    rule_sets = tuple(RULE_SETS[name] for name in RULE_SETS.shipped)


def test_rule_sets_are_listed_by_their_names() -> None:
    assert all(RULE_SETS[name].name == name for name in RULE_SETS.shipped)
