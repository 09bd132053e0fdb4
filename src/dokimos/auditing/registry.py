"""All rules, by their kind of subject; add a new rule here."""

from __future__ import annotations

from dokimos.auditing import file_rules, instance_rules, property_rules
from dokimos.auditing.lint_rule import AnyRule, LintRule
from dokimos.auditing.subjects import (
    BenchmarkTable,
    InstancePair,
    NetworkFile,
    PropertyFile,
    PublishedRuns,
)

BENCHMARK_RULES: tuple[LintRule[BenchmarkTable], ...] = (
    file_rules.BAD_ROW,
    file_rules.MISSING_FILE,
    file_rules.LISTED_TWICE,
    file_rules.SAME_CONTENT,
)
PROPERTY_RULES: tuple[LintRule[PropertyFile], ...] = (
    file_rules.DAMAGED_PROPERTY,
    file_rules.INFIX,
    file_rules.OLD_VERSION,
    file_rules.PRODUCTS,
    property_rules.EMPTY_BOX,
    property_rules.POINT_BOX,
    property_rules.VACUOUS,
    property_rules.DEAD_DISJUNCT,
    property_rules.TRIVIAL,
    property_rules.UNCONSTRAINED_OUTPUT,
    property_rules.REPEATED_DISJUNCT,
    property_rules.FLOAT32_ROUNDING,
    property_rules.FLOAT32_OVERFLOW,
)
NETWORK_RULES: tuple[LintRule[NetworkFile], ...] = (
    file_rules.DAMAGED_NETWORK,
    file_rules.RUNTIME_REFUSES,
    file_rules.UNREAD_OPERATORS,
)
INSTANCE_RULES: tuple[LintRule[InstancePair], ...] = (
    instance_rules.RUNTIME_DIFFERS,
    instance_rules.EASY_SAT,
    instance_rules.EASY_UNSAT,
)
PUBLISHED_RULES: tuple[LintRule[PublishedRuns], ...] = (instance_rules.TIME_NOT_NEEDED,)

#: The rules whose findings on an instance settle whether it is `sat` or `unsat`, by their names.
SETTLING_RULES = frozenset(
    rule.name
    for rule in (
        instance_rules.EASY_SAT,
        instance_rules.EASY_UNSAT,
        property_rules.EMPTY_BOX,
        property_rules.POINT_BOX,
        property_rules.TRIVIAL,
        property_rules.VACUOUS,
    )
)
LINT_RULES: tuple[AnyRule, ...] = (
    *BENCHMARK_RULES,
    *PROPERTY_RULES,
    *NETWORK_RULES,
    *INSTANCE_RULES,
    *PUBLISHED_RULES,
)
