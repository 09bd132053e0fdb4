"""What every shipped kind of proof must keep to."""

from __future__ import annotations

from dokimos.checker import CERTIFICATES
from dokimos.suites.instance import Label
from dokimos.testing import CertificateContract
from tests.checker.statements import SWEEPS


class TestShippedKinds(CertificateContract):
    sweeps = tuple(SWEEPS.values())


def test_every_kind_is_swept() -> None:
    assert {sweep.kind.name for sweep in SWEEPS.values()} == set(CERTIFICATES)
    assert all(sweep.kind.name == form.split()[0] for form, sweep in SWEEPS.items())


def test_kinds_are_listed_by_their_names() -> None:
    assert all(CERTIFICATES[name].name == name for name in CERTIFICATES)


def test_each_label_has_a_kind() -> None:
    assert {CERTIFICATES[name].proves for name in CERTIFICATES} == set(Label)
