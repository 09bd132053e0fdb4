"""Sweeping a kind of proof: statements that it proves, changed in small ways, each judged by an oracle.

Most changes make a statement false. The checker may reject what is true, but whatever it accepts must be
true; the false statements that it rejects are counted.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from dokimos.checker.base import CertificateKind
from dokimos.checker.check import check, prove
from dokimos.core.errors import DokimosError, InvalidProof
from dokimos.core.registry import Registry
from dokimos.suites.instance import Claim, Instance, Semantics, Truth
from dokimos.testing.files import repaired
from dokimos.testing.mutants import MUTATORS, Mutator
from dokimos.testing.statements import LabelStatement, kinds_with

#: Mutants claim nothing in float32. One in this many that are accepted is proven there, too: by at most as
#: much as over the reals.
FLOAT32_EVERY = 4
FALSE, ACCEPTED, HASH = "false, rejected", "accepted", "refused by hash"


class Oracle(ABC):
    """An independent judge of truth, which shares nothing with the checker."""

    @abstractmethod
    def is_true(self, instance: Instance, truth: Truth, *, margin: bool) -> bool | None:
        """Whether the label is true and, if asked, its margin too; None if it cannot tell."""


@dataclass(frozen=True)
class Sweep:
    """One kind of proof, tiny statements that it proves, and what judges the changed ones.

    `others` are statements of other kinds, whose proofs and networks the mutators may borrow.
    """

    kind: CertificateKind
    statements: Callable[[], Sequence[LabelStatement]]
    oracle: Oracle
    mutators: tuple[Mutator, ...] = MUTATORS
    others: Callable[[], Sequence[LabelStatement]] = tuple

    @property
    def kinds(self) -> Registry[CertificateKind]:
        """The kinds to check by: the shipped ones and, if it is none of them, this one."""
        return kinds_with(self.kind)

    def run(self, count: int, *, seed: int, least_false: int = 0) -> Counter[str]:
        """Judge `count` mutants; returns how many were false and rejected, accepted, and refused by a hash.

        It continues, up to four times as far, until `least_false` of them were false. After that, no more
        are counted: the oracle is asked only about accepted ones.
        """
        rng = np.random.default_rng([zlib.crc32(self.kind.name.encode()), seed])
        bases = self.statements()
        everything = [*bases, *self.others()]
        tally: Counter[str] = Counter()
        for number in range(4 * count):
            if number >= count and tally[FALSE] >= least_false:
                break
            base = bases[int(rng.integers(len(bases)))]
            mutant = self.mutators[number % len(self.mutators)](base, rng, everything)
            if rng.random() < 0.25:
                mutant = self.mutators[rng.integers(len(self.mutators))](mutant, rng, everything)
            enough = 0 < least_false <= tally[FALSE]
            self.judge(base, mutant, tally, count_false=not enough)
        return tally

    def judge(
        self, base: LabelStatement, mutant: LabelStatement, tally: Counter[str], *, count_false: bool = True
    ) -> None:
        """Fail if the mutant is false and accepted; else count what happened to it.

        Without `count_false` the oracle is not asked whether a rejected one was false.
        """
        instance = mutant.instance
        files = (base.instance.network_sha256, base.instance.property_sha256)
        if (instance.network_sha256, instance.property_sha256) != files:
            with pytest.raises(InvalidProof, match="sha256"):
                check(instance, mutant.truth, kinds=self.kinds)
            tally[HASH] += 1
        truth = repaired(mutant.truth, instance)
        try:
            proven = check(instance, truth, kinds=self.kinds)
        except DokimosError:
            is_false = count_false and self.oracle.is_true(instance, truth, margin=False) is False
            tally[FALSE if is_false else "rejected"] += 1
            return
        claimed = truth.claims[Semantics.REAL].margin or Fraction(0)
        assert proven.real >= claimed
        believed = self.oracle.is_true(instance, with_margin(truth, proven.real), margin=True)
        assert believed is not False, (mutant, "is false and was accepted")
        tally[ACCEPTED] += 1
        if tally[ACCEPTED] % FLOAT32_EVERY == 0:
            most = prove(instance, truth.certificate, truth.label, truth.witness, kinds=self.kinds)
            assert most.float32 is None or most.float32 <= most.real, (mutant, "is more than real")


def with_margin(truth: Truth, margin: Fraction) -> Truth:
    """The same, claiming this margin for the reals and nothing for float32."""
    return replace(truth, claims={Semantics.REAL: Claim(proven=True, margin=margin)})
