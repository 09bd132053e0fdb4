"""Files cut off or with bytes changed: refused, or still true; never a traceback, never a false label."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dokimos.checker import check
from dokimos.core.errors import DokimosError
from dokimos.suites.instance import Instance
from dokimos.testing.relu_oracle import ReluOracle
from dokimos.testing.statements import LabelStatement
from tests.checker.files import repaired
from tests.checker.statements import EXACT, base_statements

PARTS = ("network_file", "property_file")


def still_true_or_refused(base: LabelStatement, part: str, content: bytes) -> bool:
    """Whether the damaged instance is accepted, in which case the oracle must confirm it."""
    instance: Instance = replace(base.instance, **{part: content})
    truth = repaired(base.truth, instance)
    try:
        check(instance, truth)
    except DokimosError as error:
        assert str(error)
        return False
    try:
        confirmed = ReluOracle().is_true(instance, truth, margin=True)
    except (LookupError, ValueError):
        return True  # a spelling that the oracle does not read
    assert confirmed
    return True


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("kind", EXACT)
def test_truncated(kind: str, part: str) -> None:
    base = base_statements(kind)[0]
    content: bytes = getattr(base.instance, part)
    cut = {still_true_or_refused(base, part, content[:end].rstrip()) for end in range(0, len(content), 7)}
    assert False in cut


def sweep(kind: str, part: str, count: int, seed: int) -> int:
    rng = np.random.default_rng([EXACT.index(kind), PARTS.index(part), seed])
    refused = 0
    for _ in range(count):
        bases = base_statements(kind)
        base = bases[rng.integers(len(bases))]
        content = bytearray(getattr(base.instance, part))
        for _ in range(rng.integers(1, 4)):
            at, way = int(rng.integers(len(content))), rng.integers(4)
            if way == 0:
                content[at] = int(rng.integers(256))
            elif way == 1:
                content[at] ^= 1 << int(rng.integers(8))
            elif way == 2:
                del content[at : at + int(rng.integers(1, 9))]
            else:
                content[at:at] = content[at : at + int(rng.integers(1, 30))]
        refused += not still_true_or_refused(base, part, bytes(content))
    return refused


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("kind", EXACT)
def test_changed_bytes(kind: str, part: str) -> None:
    assert sweep(kind, part, 60, seed=0) >= 20


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("kind", EXACT)
def test_many_more_changed_bytes(kind: str, part: str) -> None:
    assert sweep(kind, part, 3000, seed=1) >= 1000
