"""A small domain with a model that breaks laws in known places."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.laws import Feature, choice, flag, integer, real
from dokimos.laws.domain.definition import Domain, read_domain
from dokimos.laws.domain.functions import DomainFunction
from dokimos.laws.engine.law_results import LawResult, LawSettings
from dokimos.laws.engine.law_test import test_law as run_law
from dokimos.laws.language.parser import parse_law
from dokimos.laws.language.syntax import Law

FEATURES: list[Feature] = [
    integer("age", 18, 90),
    integer("felonies", 0, 20, words="felonies"),
    real("income", 0, 10),
    flag("recid"),
    choice("sex", "Female", "Male"),
]
BLOCK = "output d1; output d2; { d1 = predict(x1)\n  d2 = predict(x2) }"


def inputs(count: int = 40) -> NDArray[np.float64]:
    rng = np.random.default_rng(7)
    columns = [rng.integers(18, 90, count), rng.integers(0, 20, count), rng.integers(0, 10, count)]
    return np.column_stack([*columns, rng.integers(0, 2, count), np.eye(2)[rng.integers(0, 2, count)]])


NAMED = ("INDICES", "FEATURES", "GROUPS", "MODELS", "CLASSES")


def domain(**more: Any) -> Domain:
    """The domain; functions given in `more` are the domain's own."""
    functions = {
        name: DomainFunction(
            name.removesuffix("_batch"), *((None, f) if name.endswith("_batch") else (f, None))
        )
        for name, f in more.items()
        if name not in ("labels", "model", "decide", "inputs", *NAMED)
    }
    merged: dict[str, DomainFunction] = {}
    for each in functions.values():
        old = merged.get(each.name, DomainFunction(each.name))
        merged[each.name] = DomainFunction(each.name, each.single or old.single, each.batch or old.batch)
    parts: dict[str, Any] = {"FEATURES": FEATURES, "inputs": inputs, "CLASSES": ["low", "medium", "high"]}
    parts |= {name: value for name, value in more.items() if name not in functions}
    parts = {name: value for name, value in parts.items() if value is not None}
    base = read_domain(SimpleNamespace(DECISION="risk", **parts), name="toy")
    return Domain("other", functions=merged).with_functions_of(base) if merged else base


def risk(records: NDArray[np.float64]) -> NDArray[np.int64]:
    """More felonies are more risk, but for a dip at 13 and 14."""
    felonies = records[:, 1]
    dip = (felonies == 13) | (felonies == 14)
    return np.where(felonies > 15, 2, np.where(dip, 0, (felonies > 5).astype(np.int64)))


risk.batched = True  # type: ignore[attr-defined]


def law(text: str) -> Law:
    """A law on x1 and x2 whose block is there already."""
    head, _, tail = text.partition("ENSURES")
    return parse_law(f"{head} {BLOCK} ensures {tail or 'd1 <= d2'};")


MORE_FELONIES = (
    "input x1; var v := x1.felonies + randInt(1, 10); requires v <= 20; var x2 := x1[felonies := v];"
)


def run(text: str, *, model: Any = risk, of: Any = None, **settings: Any) -> LawResult:
    parsed = law(text) if "{" not in text else parse_law(text)
    return run_law(parsed, model=model, domain=of or domain(), settings=LawSettings(**settings))


def brute_force() -> tuple[int, int, set[int]]:
    """Draws, violations and rows of the law on felonies, by loops."""
    draws, violations, rows = 0, 0, set()
    for row, record in enumerate(inputs()):
        for more in range(1, 11):
            draws += 1
            changed = record.copy()
            changed[1] += more
            if changed[1] <= 20 and risk(record[None])[0] > risk(changed[None])[0]:
                violations += 1
                rows.add(row)
    return draws, violations, rows
