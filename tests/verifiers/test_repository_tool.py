"""nnenum and α,β-CROWN by the folders of their repositories, which fakes stand in for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import dokimos
from dokimos.campaigns.settings import RunSettings
from dokimos.core.errors import VerifierUnavailable
from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.verifiers.base import Verifier
from dokimos.verifiers.catalogue import find, installed
from tests.verifiers.recording import SMALL, Question, ask, at_least

QUESTION = Question(SMALL, at_least("8.0", inputs=2), wall_seconds=60, told_seconds=20)

NNENUM = """
import sys
class Found:
    cinput, coutput = [1.0, -0.1], [8.5]
def enumerate_network():
    return Found()
def main():
    network, asked, seconds, outfile, processes = sys.argv[1:]
    assert (float(seconds), processes) == (20.0, "1")
    WHAT
    open(outfile, "w").write(WORD)
"""
CROWN = """
import sys
class ABCROWN:
    def __init__(self, args):
        self.given = {word: args[k + 1] for k, word in enumerate(args[:-1]) if word.startswith("--")}
        assert self.given["--device"] == "cpu" and "--save_adv_example" in args
    def main(self):
        given = self.given
        print(open(given["--config"]).read(), "skip" if "--pgd_order" in given else "attack")
        open(given["--vnnlib_path"] + ".compiled", "w").write("what it makes of the property")
        found = "sat\\n((X_0 1.0) (X_1 -0.1) (Y_0 8.5))"
        open(given["--results_file"], "w").write("unsat" if "--pgd_order" in given else found)
if __name__ == "__main__":
    ABCROWN(args=sys.argv[1:]).main()
"""


def nnenum(folder: Path, word: str, what: str = "enumerate_network()") -> Verifier:
    package = folder / "repository" / "src" / "nnenum"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "nnenum.py").write_text(NNENUM.replace("WORD", repr(word)).replace("WHAT", what))
    return installed(f"nnenum={folder / 'repository'},python={sys.executable}")


def crown(folder: Path) -> str:
    repository = folder / "repository"
    (repository / "complete_verifier" / "exp_configs" / "lab").mkdir(parents=True)
    (repository / "complete_verifier" / "abcrown.py").write_text(CROWN)
    (repository / "complete_verifier" / "exp_configs" / "lab" / "mine.yaml").write_text("general: lab")
    return f"alpha-beta-crown={repository},python={sys.executable}"


def run(verifier: Verifier, folder: Path) -> VerifierAnswer:
    query, outcome, log = ask(verifier, QUESTION, folder)
    return verifier.answer(outcome, query, log)


@pytest.mark.parametrize(
    ("word", "answer"),
    [("holds", Answer.UNSAT), ("timeout", Answer.TIMEOUT), ("none", Answer.ERROR)],
)
def test_the_words_of_nnenum(tmp_path: Path, word: str, answer: Answer) -> None:
    given = run(nnenum(tmp_path, word), tmp_path)
    assert given.answer is answer
    assert given.witness is None


def test_the_counterexample_of_nnenum_is_kept(tmp_path: Path) -> None:
    given = run(nnenum(tmp_path, "violated"), tmp_path)
    assert given.answer is Answer.SAT
    assert [str(x) for x in given.witness or ()] == ["1", "-1/10"]
    assert given.outputs is not None


def test_nnenum_may_find_no_counterexample_for_what_it_calls_violated(tmp_path: Path) -> None:
    given = run(nnenum(tmp_path, "violated", "pass"), tmp_path)
    assert (given.answer, given.witness) == (Answer.SAT, None)


def test_what_nnenum_cannot_read(tmp_path: Path) -> None:
    what = (
        "raise AssertionError('Onnx model contains node with op Pow, which may not be linear. Update it')"
    )
    given = run(nnenum(tmp_path, "holds", what), tmp_path)
    assert (given.answer, given.detail) == (Answer.UNSUPPORTED, "operator Pow")


def test_alpha_beta_crown_runs_with_its_defaults(tmp_path: Path) -> None:
    given = run(installed(crown(tmp_path)), tmp_path)
    assert given.answer is Answer.SAT
    assert given.witness is not None
    log = (tmp_path / "log").read_text()
    assert "device: cpu" in log
    assert "attack" in log


def test_alpha_beta_crown_without_its_attack_and_with_a_configuration(tmp_path: Path) -> None:
    given = run(installed(f"{crown(tmp_path)},config=lab/mine:no-attack"), tmp_path)
    assert given.answer is Answer.UNSAT
    log = (tmp_path / "log").read_text()
    assert "general: lab" in log
    assert "skip" in log


@pytest.mark.parametrize("tool", ["nnenum", "alpha-beta-crown"])
def test_they_stay_warm_and_write_beside_the_property(
    tmp_path: Path, tool: str, copy_of_tiny: Callable[[Path], Path]
) -> None:
    cold = nnenum(tmp_path, "holds") if tool == "nnenum" else installed(crown(tmp_path))
    warm = cold.warm()
    assert warm is not None
    suite = copy_of_tiny(tmp_path / "suite")
    found = dokimos.run(suite, [cold, warm], out=tmp_path / "run", settings=RunSettings(timeout_seconds=20))
    answers = {(record.verifier, record.answer, record.detail) for record in found.records}
    said = Answer.UNSAT if tool == "nnenum" else Answer.SAT
    detail = "nnenum says holds" if tool == "nnenum" else ""
    assert answers == {(each.name, said, detail) for each in (cold, warm)}
    assert {record.warm for record in found.records if record.verifier == cold.name} == {0}
    assert {record.warm for record in found.records if record.verifier == warm.name} >= {1, 2}


def test_the_place_may_be_that_of_its_scripts(tmp_path: Path) -> None:
    named = crown(tmp_path)
    (tmp_path / "repository" / "vnncomp_scripts").mkdir()
    (tmp_path / "repository" / "vnncomp_scripts" / "prepare_instance.sh").write_text("exit 1\n")
    scripts = named.replace("repository,", "repository/vnncomp_scripts,")
    assert find(scripts).version() == find(named).version() is not None


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    named = crown(tmp_path)
    for given, said in (
        (f"nnenum={tmp_path}", r"there is no file .*src/nnenum/nnenum\.py"),
        (f"{named},config=lab/other", "there is no configuration lab/other"),
        (named.replace(sys.executable, "/no/python"), "there is no interpreter /no/python"),
    ):
        with pytest.raises(VerifierUnavailable, match=said):
            installed(given)


def test_the_version_follows_sources_and_settings(tmp_path: Path) -> None:
    named = crown(tmp_path)
    versions = [find(named).version(), find(f"{named},config=lab/mine").version()]
    main = tmp_path / "repository" / "complete_verifier" / "abcrown.py"
    main.write_text(CROWN + "\n# edited\n")
    versions.append(find(named).version())
    assert len({*versions, None}) == 4
