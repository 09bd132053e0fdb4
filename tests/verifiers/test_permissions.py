"""Verifiers get an allow-list of the environment; records name what they got, and hold no value."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

import dokimos
from dokimos.campaigns.campaign import run_campaign
from dokimos.campaigns.plan import CampaignSuite
from dokimos.campaigns.settings import RunSettings
from dokimos.core.errors import InputError
from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.verifiers.base import Invocation, Query, Verifier
from dokimos.verifiers.execution.limits import Outcome
from dokimos.verifiers.script_guard import allowed_environment, installing_environment, why_not_isolated
from tests.scripting import at_least, instance

SECRETS = {
    "GITHUB_TOKEN": "t0ken",
    "AWS_SECRET_ACCESS_KEY": "t0ken",
    "NVIDIA_API_KEY": "t0ken",
    "PYTHONPATH": "/t0ken",
    "MY_LICENCE": "t0ken-passed",
    "DECLARED_ONE": "t0ken-declared",
}
USUAL = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/root",
    "LANG": "C",
    "LC_ALL": "C",
    "LD_LIBRARY_PATH": "/opt/lib",
    "CUDA_VISIBLE_DEVICES": "0",
    "NVIDIA_VISIBLE_DEVICES": "all",
    "OMP_NUM_THREADS": "3",
}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (SECRETS | USUAL).items():
        monkeypatch.setenv(name, value)


class Printing(Verifier):
    """Writes down the environment that it gets, and that of its supervisor."""

    name = "printing"
    variables: ClassVar[tuple[str, ...]] = ("DECLARED_ONE", "DECLARED_BUT_UNSET")

    def version(self) -> str | None:
        return "1"

    def how_to_get(self) -> str:
        return ""

    def command(self, query: Query) -> Invocation:
        script = 'env -0 > "$1"; tr "\\0" "\\n" < /proc/$PPID/environ; tr "\\0" "\\n" < "$1"'
        return Invocation(("sh", "-c", script, "-", str(query.result)))

    def read_answer(self, outcome: Outcome, query: Query) -> VerifierAnswer:
        return VerifierAnswer(Answer.UNKNOWN)


@pytest.mark.parametrize("trust", [False, True])
def test_a_verifier_and_its_supervisor_get_what_is_allowed(tmp_path: Path, trust: bool) -> None:
    """An isolated one cannot see its supervisor."""
    suite = CampaignSuite(tmp_path / "s", (instance(tmp_path / "s", "i", asked=at_least("0.5")),))
    [record] = run_campaign(
        [suite],
        [Printing()],
        out=tmp_path / "out",
        settings=RunSettings(timeout_seconds=20, pass_env=("MY_LICENCE",), trust=trust),
    ).records
    log = (tmp_path / "out" / record.log).read_text()
    both = [line.partition("=")[0] for line in log.splitlines()]
    for name in (*USUAL, "MY_LICENCE", "DECLARED_ONE", "TMPDIR", "DOKIMOS_RUN"):
        assert both.count(name) == (2 if trust or why_not_isolated() else 1), name
    for name in ("GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "NVIDIA_API_KEY", "PYTHONPATH"):
        assert name not in both
    assert {*USUAL, "MY_LICENCE", "DECLARED_ONE"} <= set(record.variables)
    assert "GITHUB_TOKEN" not in record.variables
    for path in (tmp_path / "out").glob("*.json*"):
        assert "t0ken" not in path.read_text()


def test_what_is_passed_must_be_a_name_that_is_set() -> None:
    with pytest.raises(InputError, match="takes the name of a variable without a value") as caught:
        RunSettings(pass_env=("GITHUB_TOKEN=s3cr3t",))
    assert "s3cr3t" not in str(caught.value)
    with pytest.raises(InputError, match="`pass_env` NOT_SET_HERE: there is no such variable on worker 3"):
        RunSettings(pass_env=("NOT_SET_HERE",)).require_variables(where="worker 3")
    RunSettings(pass_env=("MY_LICENCE",)).require_variables()


def test_pip_reaches_its_index_and_gets_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("https_proxy", "PIP_INDEX_URL", "SSL_CERT_FILE"):
        monkeypatch.setenv(name, "x")
        assert name in installing_environment()
        assert name not in allowed_environment()
    assert "GITHUB_TOKEN" not in installing_environment()


def test_the_doctor_says_what_it_gets() -> None:
    found = dokimos.diagnose_verifier("scripted", settings=dokimos.RunSettings(pass_env=["MY_LICENCE"]))
    assert {"PATH", "CUDA_VISIBLE_DEVICES", "MY_LICENCE"} <= set(found.variables)
    assert "GITHUB_TOKEN" not in found.variables


def test_solvers_with_licences_declare_where_these_are() -> None:
    for name in ("neuralsat", "vibecheck", "alpha-beta-crown", "nnenum"):
        verifier = dokimos.verifiers.catalogue.VERIFIERS[name]
        assert "GRB_LICENSE_FILE" in verifier.variables
