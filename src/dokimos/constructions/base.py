"""The contract of a family: its author writes the draw, the base class proves the labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, ClassVar, Generic, TypeVar, cast, final

import numpy as np

from dokimos.checker.base import CertificateKind
from dokimos.checker.check import prove
from dokimos.constructions.disguise import disguise_drafts
from dokimos.constructions.draft import Draft
from dokimos.constructions.knobs import make_knobs
from dokimos.constructions.mixing import mixed
from dokimos.constructions.parts.hiding import is_easily_found
from dokimos.constructions.parts.locked_drafts import LEAST_INPUTS, lock_draft, shape_of
from dokimos.core.errors import ConstructionFailed, InputError, InvalidProof
from dokimos.core.registry import Registry
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.writing.builder import NotFloat32
from dokimos.properties.writing import write_vnnlib1
from dokimos.provers.base import NoProof
from dokimos.provers.claims import claims_of
from dokimos.provers.plugin_kinds import trusted_kinds, why_not_trusted
from dokimos.suites.instance import Instance, LabelledInstance, Truth, sha256

P = TypeVar("P")

#: With at least this many bits in a lock, 10,000 samples should not find its cell.
HIDDEN_BITS = 20
#: How many unusable draws there may be before the family gives up on these knobs.
ATTEMPTS = 20
#: Classes are mixed by a separate generator, so that no other draw depends on mixing.
MIXING = 1


class Unusable(Exception):
    """This draw gives no instance (its counterexample cannot be hidden, say); another draw may."""


@dataclass(frozen=True)
class DrawnInstances:
    """Siblings, the robust one first, and why each earlier draw was discarded."""

    instances: tuple[LabelledInstance, ...]
    given_up: tuple[str, ...]


class Construction(ABC, Generic[P]):
    """One family of instances, in one file.

    A subclass names the family, gives its knobs as a frozen dataclass `knobs_class` (each field made by
    `knob`), and writes `construct`: from knobs and a generator, the `unsat` draft and its `sat` twin. The
    twin has the same shape and size and differs in as little as possible. Weights and bounds must be
    exact in float32; every random choice comes from `rng`; `construct` may raise `Unusable` to ask for
    another draw.

    Every label is proven: `__call__` is final; it writes the two files of each draft, has the checker prove
    the label from those files, and makes sure that neither the centre of the box nor 10,000 uniform samples
    give the twin away (unless the family says that its twins are not `hidden`). Write `construct` as if
    class 0 should win: classes and disjuncts are mixed afterwards (see `mixing`), unless the family says
    that their order matters (`mixes`).
    """

    family: ClassVar[str]
    summary: ClassVar[str]
    hidden: ClassVar[bool] = True
    mixes: ClassVar[bool] = True
    knobs_class: type[P]

    @abstractmethod
    def construct(self, knobs: P, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """One robust draft and its violated twin."""

    def hides(self, knobs: P) -> bool:
        """Whether twins with these knobs must be hidden from samples; a family may have easy settings."""
        return self.hidden

    @final
    def __call__(
        self, *, seed: int, timeout_seconds: float = 60.0, disguise: Sequence[str] = (), **knobs: Any
    ) -> tuple[LabelledInstance, LabelledInstance]:
        """One `unsat` instance and its `sat` twin, proven. The same arguments give the same bytes.

        `disguise` names the ways in which the networks are rewritten, see `DISGUISES`.

        Raises InputError for knobs that do not exist or are out of range, ConstructionFailed if no
        draw can be proven or hidden.
        """
        drawn = self.draw(
            seed=seed, timeout_seconds=timeout_seconds, disguise=disguise, with_twin=True, knobs=knobs
        )
        robust, twin = drawn.instances
        return robust, twin

    @final
    def draw(
        self,
        *,
        seed: int,
        timeout_seconds: float,
        disguise: Sequence[str],
        with_twin: bool,
        knobs: Mapping[str, Any],
        lock: int | None = None,
        plugin_proofs: bool = False,
        mix: bool = True,
    ) -> DrawnInstances:
        """The same, with the reasons why draws were discarded.

        With `lock`, the pair is made of the robust instance alone, by a parity lock of that many bits: one
        instance with a lock that no input opens, and one with a lock that opens in one cell (see
        `parts.locked_drafts`).

        Unless `with_twin`, the twin is neither proven nor hidden. So if a draw would have been discarded
        because of its twin alone, the `unsat` instance differs from the one that comes with a twin. Kinds
        of proof that plug-ins add count only with `plugin_proofs`. Without `mix`, classes and disjuncts are
        in the order in which the family writes them.
        """
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise InputError(f"The seed must be a whole number, 0 or more, not {seed!r}.")
        chosen = make_knobs(self.knobs_class, knobs, family=self.family)
        origin = asdict(cast(Any, chosen)) | ({"disguise": list(disguise)} if disguise else {})
        origin |= {} if lock is None else {"lock": lock}
        kinds = trusted_kinds(plugin_proofs=plugin_proofs)
        given_up: list[str] = []
        while len(given_up) < ATTEMPTS:
            rng = np.random.default_rng([seed, len(given_up)])
            try:
                drafts: Sequence[Draft] = self.construct(chosen, rng)
                order = np.random.default_rng([seed, len(given_up), MIXING])
                if mix and self.mixes:
                    drafts = mixed(drafts, order)
                if lock is not None:
                    drafts, origin = _locked(drafts[0], lock, rng, origin)
                    if mix and self.mixes:  # a lock opens the first disjunct
                        drafts = mixed(drafts, order)
                drafts = disguise_drafts(drafts if with_twin else drafts[:1], disguise, rng)
                made = tuple(self._prove(draft, origin, seed, timeout_seconds, kinds) for draft in drafts)
                if (
                    with_twin
                    and (self.hides(chosen) if lock is None else lock >= HIDDEN_BITS)
                    and is_easily_found(drafts[1].network, drafts[1].question, rng)
                ):
                    raise Unusable("uniform samples find the twin's counterexample")
            except (Unusable, NoProof, InvalidProof, NotFloat32) as error:
                given_up.append(str(error))
            else:
                return DrawnInstances(made, tuple(given_up))
        raise ConstructionFailed(
            f"{self.family}: none of {ATTEMPTS} draws gave an instance ({given_up[-1]}); "
            f"run `dokimos families {self.family}` for the knobs, and move them closer to their defaults."
        )

    def _prove(
        self,
        draft: Draft,
        origin: dict[str, Any],
        seed: int,
        timeout_seconds: float,
        kinds: Registry[CertificateKind],
    ) -> LabelledInstance:
        kind = draft.certificate.kind
        if kind not in kinds and (problem := why_not_trusted(kind)):
            raise InputError(f"{self.family}: its labels are not proven: {problem}.")
        text = write_vnnlib1(draft.question).encode("ascii")
        instance = Instance(
            name=f"{self.family}-{sha256(draft.network + text)[:10]}",
            network_file=draft.network,
            property_file=text,
            timeout_seconds=timeout_seconds,
            family=self.family,
            parameters=origin,
            seed=seed,
        )
        proven = prove(instance, draft.certificate, draft.label, draft.witness, kinds=kinds)
        truth = Truth(
            label=draft.label,
            claims=claims_of(proven),
            certificate=draft.certificate,
            network_sha256=instance.network_sha256,
            property_sha256=instance.property_sha256,
            witness=draft.witness,
        )
        return LabelledInstance(instance, truth)


def _locked(
    robust: Draft, bits: int, rng: np.random.Generator, origin: dict[str, Any]
) -> tuple[Sequence[Draft], dict[str, Any]]:
    """The pair that a lock makes of a robust draft, and how it was made."""
    if robust.certificate.kind == "parity-lock":
        raise ConstructionFailed("This family has its own parity lock; set its size with the knob --bits.")
    inputs = read_onnx(robust.network).input_size
    if inputs < LEAST_INPUTS:
        raise ConstructionFailed(f"A lock needs at least {LEAST_INPUTS} inputs; this network has {inputs}.")
    shape = shape_of(bits, inputs)
    pair = lock_draft(robust, shape, rng)
    return (pair.shut, pair.opened), origin | {"proven_enlarged": pair.is_proven_enlarged}


def dyadic(value: float | Fraction, bits: int) -> Fraction:
    """The multiple of 2^-bits nearest to `value`."""
    return Fraction(round(Fraction(value) * 2**bits), 2**bits)
