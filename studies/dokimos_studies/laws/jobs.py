"""Tests the laws of the shipped domains with several seeds, to compare the counts with the paper's.

Every result is saved in one JSON file as soon as it is known, and is not computed again while the law, the
model, the seed and the budget stay the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dokimos.core.errors import InputError
from dokimos.core.readable import unknown_name
from dokimos.laws.domain.definition import Domain, call_domain, load_domain, shipped_domains, shipped_laws
from dokimos.laws.engine.law_plan import make_plan
from dokimos.laws.engine.law_results import LawResult, LawSettings
from dokimos.laws.engine.law_test import test_law
from dokimos.laws.language.parser import read_law
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.lookup import as_domain_model, load_model
from dokimos.laws.models.tested_model import Model
from dokimos_studies.laws.catalogue import find_study
from dokimos_studies.laws.paper import effort, further_seeds
from dokimos_studies.laws.runs import Quality, Run, StudyRecords

#: The name of a domain's only model if the domain names none.
ONLY_MODEL = "network"
#: All draws are tested as well if there are no more than this many and they run in batches.
_ALL_DRAWS = 1_000_000
#: How many violations of each run are confirmed one by one before they count.
_CONFIRMED = 5


@dataclass(frozen=True)
class StudyJob:
    """A run to do."""

    domain: Domain
    model_name: str
    model: Model
    law: Law
    law_name: str
    seed: int | None
    budget: int
    training: int = 0

    @property
    def key(self) -> tuple[Any, ...]:
        """The key of the resulting run."""
        tested = self.domain.name, self.model_name, self.model.sha256, self.law_name, _sha256(self.law)
        return *tested, self.seed, self.budget, self.training

    def run(self) -> tuple[Run | None, bool]:
        """The run, and whether it was interrupted; no run if not all draws can be enumerated."""
        settings = LawSettings(
            budget=self.budget or 1,
            seed=self.seed or 0,
            exhaustive=self.seed is None,
            most_draws=_ALL_DRAWS,
            keep=_CONFIRMED,
            shrink=False,
        )
        try:
            result = test_law(self.law, model=self.model, domain=self.domain, settings=settings)
        except InputError:
            if self.seed is None:
                return None, False
            raise
        return self._counts(result), result.is_interrupted

    def _counts(self, result: LawResult) -> Run:
        domain, model, sha256, law, law_sha256, seed, budget, training = self.key
        return Run(
            domain=domain,
            model=model,
            model_sha256=sha256,
            law=law,
            law_sha256=law_sha256,
            seed=seed,
            budget=budget,
            tested=result.tested,
            passed=result.passed,
            precondition_failed=result.rejected,
            violated=result.violated,
            unique=result.unique,
            inputs=result.inputs,
            failed=result.failed,
            is_violated=result.is_violated,
            is_starved=result.is_starved,
            seconds=round(result.seconds, 3),
            training=training,
        )


def quality_of(job: StudyJob) -> Quality | None:
    """How good the model of a job is; None if its domain has no labels."""
    domain = job.domain
    if domain.inputs is None or domain.labels is None:
        return None
    records, labels = (
        np.asarray(call_domain(function, domain, what))
        for function, what in ((domain.inputs, "inputs"), (domain.labels, "labels"))
    )
    right = float((job.model.predict(records) == labels).mean())
    usual = float(np.unique(labels, return_counts=True)[1].max() / len(labels))
    return Quality(domain.name, job.model_name, job.model.sha256, right, usual)


def _sha256(law: Law) -> str:
    return hashlib.sha256(law.text.encode()).hexdigest()


def domains_with_laws() -> tuple[str, ...]:
    """The shipped domains that have laws."""
    return tuple(name for name in shipped_domains() if shipped_laws(name))


@dataclass(frozen=True)
class StudyPart:
    """The runs of a domain with the models of one training, which are trained and tested together.

    `laws` has their names, and whether all their draws are tested as well.
    """

    domain: Domain
    laws: tuple[tuple[str, Law, bool], ...]
    seeds: int
    budget: int
    training: int

    @property
    def size(self) -> int:
        """How many jobs it has, without training anything."""
        kinds = max(1, len(self.domain.models)) if self.training == 0 else 1
        return kinds * sum(len(self._seeds(in_batches)) for _, _, in_batches in self.laws)

    def jobs(self) -> list[StudyJob]:
        """Its jobs, for each model, law and seed.

        Trains models that are not cached yet. Raises InputError if the data or the models cannot be
        fetched.
        """
        return [
            StudyJob(
                self.domain, kind, model, law, name, seed, 0 if seed is None else self.budget, self.training
            )
            for kind, model in self._models().items()
            for name, law, in_batches in self.laws
            for seed in self._seeds(in_batches)
        ]

    def _seeds(self, in_batches: bool) -> list[int | None]:
        if self.training:
            return [*range(min(self.seeds, further_seeds(self.domain.name)))]
        return [*range(self.seeds), *([None] if in_batches else [])]

    def _models(self) -> dict[str, Model]:
        domain = self.domain
        if self.training:
            path = find_study(domain.name, ONLY_MODEL).model(self.training)
            return {ONLY_MODEL: load_model(path, domain)}
        if domain.inputs is not None:
            call_domain(domain.inputs, domain, "inputs")
        if domain.models:
            return {kind: load_model(kind, domain) for kind in domain.models}
        return {ONLY_MODEL: as_domain_model(None, domain)}


def parts_of(
    name: str, *, seeds: int | None = None, budget: int | None = None, trainings: int = 1
) -> list[StudyPart]:
    """All runs of a domain: first all its models, with all draws if they run in batches.

    Then the network of each further training, tested with fewer seeds. Raises InputError if there is no
    such domain.
    """
    if name not in domains_with_laws():
        raise unknown_name("domain with laws", name, list(domains_with_laws()))
    domain = load_domain(name)
    own_seeds, own_budget = effort(name)
    read = [(path.stem, read_law(path)) for path in (*shipped_laws(name), *domain.printed)]
    laws = tuple((law_name, law, make_plan(law, domain).code is None) for law_name, law in read)
    return [
        StudyPart(domain, laws, seeds or own_seeds, budget or own_budget, training)
        for training in range(trainings)
    ]


def run_jobs(jobs: list[StudyJob], records: StudyRecords, step: Callable[[str], None]) -> None:
    """Run every job whose result is not there already. Raises KeyboardInterrupt if interrupted."""
    for job in jobs:
        quality = records.qualities.get((job.domain.name, job.model_name))
        if job.training == 0 and (quality is None or quality.model_sha256 != job.model.sha256):
            found = quality_of(job)
            if found is not None:
                records.add_quality(found)
        trained = f" (training {job.training})" if job.training else ""
        what = f"{job.domain.name} {job.model_name}{trained} {job.law_name} "
        what += "all draws" if job.seed is None else f"seed {job.seed}"
        known = records.runs.get(job.key)
        if known is None:
            known, interrupted = job.run()
            if interrupted:
                raise KeyboardInterrupt
            if known is not None:
                records.add(known)
        step(what if known is None else f"{what}: {known.violated:,} of {known.tested:,} violated")
