"""From a certificate that was found to a truth file."""

from __future__ import annotations

from dokimos.checker.check import check, prove
from dokimos.crosscheck.cross_check import require_agreement
from dokimos.properties.model import Point
from dokimos.provers.claims import claims_of
from dokimos.suites.instance import Certificate, Instance, Label, Truth


def accepted_truth(
    instance: Instance, certificate: Certificate, label: Label, witness: Point | None = None
) -> Truth:
    """The truth with everything the certificate proves, if the checker proves it from the files and no
    runtime contradicts it.

    Raises InvalidProof if it does not prove the label, and other DokimosErrors if files cannot be read.
    """
    proven = prove(instance, certificate, label, witness)
    truth = Truth(
        label=label,
        claims=claims_of(proven),
        certificate=certificate,
        network_sha256=instance.network_sha256,
        property_sha256=instance.property_sha256,
        witness=witness,
    )
    check(instance, truth)
    require_agreement(instance, truth)
    return truth
