"""A verifier's own attack is switched off where it has a switch, and only there."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from dokimos.core.errors import InputError, VerifierUnavailable
from dokimos.suites.answers import Answer
from dokimos.verifiers.base import NO_ATTACK, Query
from dokimos.verifiers.catalogue import VERIFIERS, find, installed
from tests.verifiers.recording import recording
from tests.verifiers.test_placed import run, tool

SWITCHES = {"neuralsat": "--disable_attack", "vibecheck": "--no-attack"}


def words(name: str, folder: Path) -> tuple[str, ...]:
    """The command of a verifier on some query."""
    (folder / "p.vnnlib").write_text("")
    query = Query(
        name="n",
        network_file=folder / "n.onnx",
        property_file=folder / "p.vnnlib",
        folder=folder,
        wall_seconds=60,
        memory_bytes=1 << 30,
    )
    return find(name).command(query).command


@pytest.mark.parametrize(("name", "switch"), SWITCHES.items())
def test_the_switch_is_given_and_nothing_else_changes(name: str, switch: str, tmp_path: Path) -> None:
    loud, quiet = words(name, tmp_path), words(name + NO_ATTACK, tmp_path)
    assert switch in quiet
    assert switch not in loud
    for same in ("--timeout", "60", str(tmp_path / "n.onnx"), str(tmp_path / "p.vnnlib")):
        assert any(same in word for word in quiet)
    assert find(name).name == name
    assert find(name + NO_ATTACK).name == f"{name}:no-attack"


def test_the_recorded_runs_had_no_attack() -> None:
    def log(name: str) -> str:
        return (recording(name, "sat") / "log").read_text()

    assert "MIP presolving" in log("neuralsat:no-attack")
    assert "MIP presolving" not in log("neuralsat")
    assert "pgd" not in log("vibecheck:no-attack").lower()
    assert "pgd" in log("vibecheck").lower()


def test_who_has_no_switch_says_so() -> None:
    quiet = {name for name in VERIFIERS if VERIFIERS[name].without_attack() is not None}
    assert quiet == {*SWITCHES, "alpha-beta-crown"}
    with pytest.raises(InputError, match="marabou has no switch for an attack of its own"):
        find("marabou:no-attack")
    with pytest.raises(InputError, match="neuralsat:no-attack has no switch"):
        find("neuralsat:no-attack:no-attack")


def test_a_verifier_without_attack_can_be_sent_to_a_worker() -> None:
    quiet = pickle.loads(pickle.dumps(find("neuralsat:no-attack")))
    assert not quiet.attacks
    assert quiet.switches == ("--disable_attack",)


def test_a_folder_may_hold_a_second_script(tmp_path: Path) -> None:
    given = tool(tmp_path / "tool", 'echo sat > "$5"\n')
    assert find(given).without_attack() is None
    before = find(given).version()
    (tmp_path / "tool" / "run_instance_without_attack.sh").write_text('echo unsat > "$5"\n')
    assert find(given).version() != before
    (tmp_path / "loud").mkdir()
    assert run(installed(given), tmp_path / "loud").answer is Answer.SAT
    (tmp_path / "quiet").mkdir()
    assert run(installed(given + NO_ATTACK), tmp_path / "quiet").answer is Answer.UNSAT


def test_the_attack_of_a_planted_attacker_is_switched_off(tmp_path: Path) -> None:
    assert "--no-attack" in words(f"planted=attacking-bounds{NO_ATTACK}", tmp_path)
    assert "--no-attack" not in words("planted=attacking-bounds", tmp_path)
    with pytest.raises(InputError, match="no switch for an attack"):
        find(f"planted=bounds{NO_ATTACK}")


def test_a_command_says_what_switches_its_attack_off(tmp_path: Path) -> None:
    given = "mine=python3 tool.py,no_attack=--no-pgd --seed 1"
    quiet = find(given + NO_ATTACK)
    assert quiet.name == f"mine{NO_ATTACK}"
    (tmp_path / "p.vnnlib").write_text("")
    loud, without = words(given, tmp_path), words(given + NO_ATTACK, tmp_path)
    assert without == (*loud, "--no-pgd", "--seed", "1")
    with pytest.raises(InputError, match="no switch for an attack"):
        find(f"mine=python3 tool.py{NO_ATTACK}")
    with pytest.raises(VerifierUnavailable, match="is not a list of arguments"):
        installed("vnnlib2=python3 tool.py,no_attack='")
