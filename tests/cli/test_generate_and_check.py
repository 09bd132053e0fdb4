from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Dokimos


def one_pair(dokimos: Dokimos, out: Path, *more: object) -> None:
    ran = dokimos(
        "generate", "exclusive-pairs", "--inputs", 20, "--pairs", 2, "--seed", 1, "--out", out, *more
    )
    assert ran.code == 0, ran.err


def test_a_family_with_knobs_gives_an_instance_and_its_twin(dokimos: Dokimos, tmp_path: Path) -> None:
    one_pair(dokimos, tmp_path / "one", "--gamma=0.002", "--timeout", 7)
    labels = {json.loads(f.read_text())["label"] for f in (tmp_path / "one" / "truth").iterdir()}
    assert labels == {"sat", "unsat"}
    rows = (tmp_path / "one" / "instances.csv").read_text().splitlines()
    assert len(rows) == 2
    assert all(row.endswith(",7") for row in rows)
    ran = dokimos("check", tmp_path / "one")
    assert ran.code == 0
    assert "2 of 2 labels proven" in ran.out


@pytest.mark.parametrize("labels", ["unsat", "sat"])
def test_one_of_the_two_labels_may_be_left_out(dokimos: Dokimos, tmp_path: Path, labels: str) -> None:
    one_pair(dokimos, tmp_path / "one", "--labels", labels)
    (truth,) = (tmp_path / "one" / "truth").iterdir()
    assert json.loads(truth.read_text())["label"] == labels


def test_what_a_twin_refuses_can_be_drawn_without_it(dokimos: Dokimos, tmp_path: Path) -> None:
    words = ["generate", "paired-bias", "--depth", 4, "--gap", 0.2, "--seed", 1, "--out", tmp_path / "x"]
    refused = dokimos(*words)
    assert (refused.code, "samples find" in refused.err) == (2, True)
    assert dokimos(*words, "--labels", "unsat").code == 0
    assert "1 of 1 labels proven" in dokimos("check", tmp_path / "x").out


def test_the_same_seed_gives_the_same_files(dokimos: Dokimos, tmp_path: Path) -> None:
    one_pair(dokimos, tmp_path / "a")
    one_pair(dokimos, tmp_path / "b")
    files = [f.relative_to(tmp_path / "a") for f in (tmp_path / "a").rglob("*") if f.is_file()]
    assert len(files) == 9
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_a_recipe_is_generated_once(dokimos: Dokimos, tiny_recipe: Path, tmp_path: Path) -> None:
    first = dokimos("generate", "--suite", tiny_recipe, "--out", tmp_path / "suite")
    assert "4 instances, written, each label proven" in first.out
    again = dokimos("generate", "--suite", tiny_recipe, "--out", tmp_path / "suite")
    assert again.code == 0
    assert "already there" in again.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["generate", "exclusive-pears", "--out", "x"], "did you mean 'exclusive-pairs'"),
        (["generate", "exclusive-pairs", "--pears", "3", "--out", "x"], "did you mean 'pairs'"),
        (["generate", "exclusive-pairs", "--pairs", "three", "--out", "x"], "a whole number"),
        (["generate", "exclusive-pairs", "--pairs", "2.5", "--out", "x"], "a whole number"),
        (["generate", "exclusive-pairs", "--pairs", "0", "--out", "x"], "it must be in"),
        (["generate", "exclusive-pairs", "--gamma", "nan", "--out", "x"], "takes a number"),
        (["generate", "exclusive-pairs", "--gamma", "0.3", "--out", "x"], "does not fit epsilon"),
        (["generate", "exclusive-pairs", "--labels", "unsafe", "--out", "x"], "unsat or sat"),
        (["generate", "exclusive-pairs", "--labels", "", "--out", "x"], "unsat or sat"),
        (["generate", "--suite", "quick", "--labels", "unsat", "--out", "x"], "takes no `labels`"),
        (["generate", "exclusive-pairs", "--gamma", "--out", "x"], "needs a value"),
        (["generate", "exclusive-pairs", "--out", "x", "--gamma"], "needs a value"),
        (["generate", "exclusive-pairs", "--out", "x", "stray"], "Unexpected 'stray'"),
        (["generate", "exclusive-pairs", "--pairs", "2", "--pairs", "3", "--out", "x"], "given twice"),
        (["generate", "exclusive-pairs"], "--out FOLDER"),
        (["generate", "--out", "x"], "either a family or --suite"),
        (["generate", "--suite", "quik", "--out", "x"], "did you mean 'quick'"),
        (["generate", "--suite", "absent.toml", "--out", "x"], "there is no such file"),
        (
            ["generate", "--suite", "quick", "--pairs", "3", "--out", "x"],
            "takes no knob pairs; change its recipe",
        ),
        (["generate", "--suite", "quick", "--seed", "-3", "--out", "x"], "-3 is not in the range x>=0"),
        (["generate", "--suite", "quick", "--count", "3", "--out", "x"], "takes no --count"),
        (["generate", "--suite", "quick", "--disguise", "scale", "--out", "x"], "takes no --disguise"),
        (["generate", "--suite", "quick", "--timeout", "3", "--out", "x"], "takes no --timeout"),
        (["generate", "exclusive-pairs", "--out", "/dev/null/x"], "cannot be written"),
        (["check", "nowhere"], "no shipped suite of that name"),
        (["check", "no/where"], "no such suite folder"),
        (["check", __file__], "it is a file, not a suite's folder; unpack an archive first"),
    ],
)
def test_bad_input_gets_one_sentence(
    dokimos: Dokimos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = dokimos(*words)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.strip().count("\n") == 0
    assert not (tmp_path / "x").exists()


def test_a_timeout_without_end_is_refused(dokimos: Dokimos, tmp_path: Path) -> None:
    ran = dokimos("generate", "exclusive-pairs", "--timeout", "inf", "--out", tmp_path / "x")
    assert ran.code == 2
    assert "Invalid value for '--timeout'" in ran.err
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("problem", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (PermissionError(13, "Permission denied", "there/it.json"), 2, "there/it.json: Permission denied"),
    ],
)
def test_what_no_command_foresees_gets_one_sentence(
    dokimos: Dokimos, monkeypatch: pytest.MonkeyPatch, problem: BaseException, code: int, said: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise problem

    monkeypatch.setattr("dokimos.api.suites.find_suite", fail)
    ran = dokimos("check", "quick")
    assert ran.code == code
    assert said in ran.err
    assert ran.err.strip().count("\n") == 0


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("check", ["check", "quick"]),
        ("release", ["release", "edge", "--out", "x"]),
    ],
)
def test_interrupted_what_keeps_nothing_says_so(
    dokimos: Dokimos,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    function: str,
    words: list[str],
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(f"dokimos.{function}", interrupted)
    ran = dokimos(*words)
    assert (ran.code, ran.err) == (
        130,
        "dokimos: interrupted; the same command starts from the beginning.\n",
    )


def test_a_folder_in_the_way_is_left_alone(dokimos: Dokimos, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    ran = dokimos("generate", "exclusive-pairs", "--out", tmp_path / "mine")
    assert ran.code == 2
    assert "holds something else" in ran.err
    assert [f.name for f in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


class TestCheck:
    @pytest.fixture
    def suite(self, dokimos: Dokimos, tmp_path: Path) -> Path:
        one_pair(dokimos, tmp_path / "one")
        return tmp_path / "one"

    def truth(self, suite: Path, label: str) -> Path:
        return next(f for f in (suite / "truth").iterdir() if json.loads(f.read_text())["label"] == label)

    def test_a_swapped_label_is_not_proven(self, dokimos: Dokimos, suite: Path) -> None:
        path = self.truth(suite, "unsat")
        path.write_text(path.read_text().replace('"unsat"', '"sat"'))
        ran = dokimos("check", suite)
        assert ran.code == 1
        assert f"{path.stem}: not proven" in ran.err
        assert "1 of 2 labels proven" in ran.out

    def test_a_changed_network_is_not_proven(self, dokimos: Dokimos, suite: Path) -> None:
        sat, unsat = self.truth(suite, "sat").stem, self.truth(suite, "unsat").stem
        shutil.copy(suite / "onnx" / f"{sat}.onnx", suite / "onnx" / f"{unsat}.onnx")
        ran = dokimos("check", suite)
        assert ran.code == 1
        assert "sha256 differs" in ran.err

    def test_a_missing_truth_is_not_proven(self, dokimos: Dokimos, suite: Path) -> None:
        self.truth(suite, "sat").unlink()
        ran = dokimos("check", suite)
        assert ran.code == 1
        assert "no truth file" in ran.err

    def test_a_suite_without_labels_is_no_failure(self, dokimos: Dokimos, suite: Path) -> None:
        shutil.rmtree(suite / "truth")
        ran = dokimos("check", suite)
        assert (ran.code, ran.err) == (0, "")
        assert "no labels: none of 2 instances has a truth file" in ran.out

    def test_in_a_benchmark_of_others_some_may_have_no_label(self, dokimos: Dokimos, suite: Path) -> None:
        self.truth(suite, "sat").unlink()
        (suite / "suite.json").unlink()
        ran = dokimos("check", suite)
        assert ran.code == 0
        assert "1 of 1 labels proven" in ran.out
        assert "1 instance without a label" in ran.out

    def test_a_fault_of_ours_hides_no_other_entry(
        self, dokimos: Dokimos, suite: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object, **__: object) -> None:
            raise ZeroDivisionError("by\nchance")

        monkeypatch.setattr("dokimos.checker.proofs.witness.Witness.prove", fail)
        ran = dokimos("check", suite, "--jobs", 1)
        assert ran.code == 3
        assert "a fault of Dokimos: ZeroDivisionError: by chance" in ran.err
        assert "1 of 2 labels proven" in ran.out
        listed = json.loads(dokimos("check", suite, "--jobs", 1, "--json").out)["tables"]["labels"]
        assert sorted(one["is_fault"] for one in listed) == [False, True]

    def test_a_fault_of_the_cross_check_fails_its_entry(
        self, dokimos: Dokimos, suite: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object, **__: object) -> None:
            raise IndexError("somewhere")

        monkeypatch.setattr("dokimos.engine.runtimes.cross_check.cross_check", fail)
        ran = dokimos("check", suite, "--jobs", 1)
        assert ran.code == 3
        assert "0 of 2 labels proven" in ran.out

    def test_a_truncated_truth_is_unreadable(self, dokimos: Dokimos, suite: Path) -> None:
        path = self.truth(suite, "sat")
        path.write_text(path.read_text()[:200])
        ran = dokimos("check", suite)
        assert ran.code == 2
        assert "not valid JSON" in ran.err
        assert "1 of 2 labels proven" in ran.out


def test_families_and_their_knobs_are_listed(dokimos: Dokimos) -> None:
    ran = dokimos("families")
    assert ran.code == 0
    assert "exclusive-pairs" in ran.out
    assert "quick" in dokimos("suites").out
    assert "--gamma" in dokimos("families", "exclusive-pairs").out
    assert dokimos("families", "nothing-like-it").code == 2


def test_a_suite_is_drawn_again_from_another_seed(dokimos: Dokimos, tmp_path: Path) -> None:
    recipe = tmp_path / "two.toml"
    recipe.write_text(
        'seed = 5\n[[draw]]\nfamily = "exclusive-pairs"\nknobs = { inputs = 20, pairs = 2 }\n'
    )
    words = ("generate", "--suite", str(recipe))
    names = {}
    for seed, own in (("its own", ()), ("5", ("--seed", "5")), ("6", ("--seed", "6"))):
        folder = tmp_path / seed
        assert dokimos(*words, *own, "--out", str(folder)).code == 0
        names[seed] = (folder / "instances.csv").read_text()
    assert names["5"] == names["its own"]
    assert names["6"] != names["5"]
    assert dokimos("check", str(tmp_path / "6")).code == 0
