"""Small VNN-LIB files, and truths bound to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dokimos.suites.instance import Certificate, Claim, Instance, Label, Semantics, Truth


def question(bounds: Sequence[tuple[Any, Any]], outputs: int, *unsafe: str) -> bytes:
    """The VNN-LIB 1.0 file of a box and of assertions on the outputs, all of which must hold."""
    lines = [f"(declare-const X_{i} Real)" for i in range(len(bounds))]
    lines += [f"(declare-const Y_{j} Real)" for j in range(outputs)]
    for i, (low, high) in enumerate(bounds):
        lines += [f"(assert (>= X_{i} {low}))", f"(assert (<= X_{i} {high}))"]
    return "\n".join([*lines, *(f"(assert {u})" for u in unsafe), ""]).encode()


def instance_of(network: bytes, property_: bytes) -> Instance:
    """The instance of two files."""
    return Instance(name="small", network_file=network, property_file=property_)


def repaired(truth: Truth, instance: Instance) -> Truth:
    """The same statement, bound by its hashes to the files of `instance`."""
    return replace(truth, network_sha256=instance.network_sha256, property_sha256=instance.property_sha256)


def stated(
    instance: Instance,
    kind: str,
    data: Mapping[str, Any] | None = None,
    *,
    label: Label = Label.UNSAT,
    witness: tuple[Fraction, ...] | None = None,
    real: Fraction | None = Fraction(0),
    float32: Fraction | None = None,
) -> Truth:
    """A truth about `instance`, whether it is true or not."""
    margins = {Semantics.REAL: real, Semantics.FLOAT32: float32}
    return Truth(
        label=label,
        claims={s: Claim(proven=m is not None, margin=m) for s, m in margins.items()},
        certificate=Certificate(kind, data or {}),
        network_sha256=instance.network_sha256,
        property_sha256=instance.property_sha256,
        witness=witness,
    )
