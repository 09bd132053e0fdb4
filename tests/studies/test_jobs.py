"""The study of the laws of the shipped domains: counts, resuming, and the table beside the paper's."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dokimos.core.errors import InputError, UnreadableFile
from dokimos.laws.domain.definition import DOMAINS, shipped_domains, shipped_laws
from dokimos.laws.models.lookup import as_model
from dokimos_studies.laws import jobs as study_jobs
from dokimos_studies.laws.comparison_table import law_rows, markdown
from dokimos_studies.laws.jobs import StudyJob, domains_with_laws, parts_of, run_jobs
from dokimos_studies.laws.paper import difference, effort, published, task_difference
from dokimos_studies.laws.runs import Quality, Run, Skipped, StudyRecords
from tests.json_mutants import mutants
from tests.laws.language.test_parser import CORPUS
from tests.laws.toy import MORE_FELONIES, domain, inputs, law, risk
from tests.studies.running import studies

CHANGED = "input x1; var x2 := x1[felonies := x1.felonies * 1]; ENSURES d1 == d2"


def jobs(*, seeds: int = 2, budget: int = 300, labels: Any = None) -> list[StudyJob]:
    own = domain(**({} if labels is None else {"labels": labels}))
    model = as_model(risk, own, name="risk")
    laws = {"more": law(MORE_FELONIES), "same": law(CHANGED)}
    every: list[int | None] = [*range(seeds), None]
    return [
        StudyJob(own, "network", model, each, name, seed, 0 if seed is None else budget)
        for name, each in laws.items()
        for seed in every
    ]


def jobs_of(name: str, **settings: int) -> list[StudyJob]:
    """All jobs of a domain; each part has as many as it says before anything is trained."""
    parts = parts_of(name, **settings)
    made = [part.jobs() for part in parts]
    assert [part.size for part in parts] == [len(each) for each in made]
    return [job for each in made for job in each]


def part(of: str, make: Callable[[], list[StudyJob]], training: int = 0) -> Any:
    """What stands for a part of a study, with the jobs that `make` gives."""
    return SimpleNamespace(domain=SimpleNamespace(name=of), size=4, jobs=make, training=training)


def ran(path: Path, wanted: list[StudyJob]) -> tuple[StudyRecords, list[str]]:
    records, said = StudyRecords(path), list[str]()
    run_jobs(wanted, records, said.append)
    return records, said


def test_counts_are_kept_and_not_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "study.json"
    records, said = ran(path, jobs(labels=lambda: risk(inputs())))
    assert len(records.runs) == len(said) == 6
    more = law_rows(records.runs.values())["toy", "network"][0]
    assert (more.law, more.is_violated, len(more.runs)) == ("more", True, 2)
    for run in more.runs:
        assert run.tested == 300 == run.passed + run.violated and 0 < run.unique <= run.violated
        assert run.precondition_failed > 0
    assert more.unique == sum(run.unique for run in more.runs) / 2
    assert more.every is not None and more.every.violated == more.every.unique > more.unique
    assert records.qualities["toy", "network"].right == 1.0

    monkeypatch.setattr(study_jobs, "test_law", lambda *_, **__: pytest.fail("computed again"))
    again, _ = ran(path, jobs(labels=lambda: risk(inputs())))
    assert again.runs == records.runs and again.qualities == records.qualities


def test_another_text_or_model_is_another_run(tmp_path: Path) -> None:
    path = tmp_path / "study.json"
    (old,) = [each for each in jobs(seeds=1)[:2] if each.seed == 0]
    first, _ = ran(path, [old])
    changed = replace(old, law=law(MORE_FELONIES.replace("10", "9")))
    second, _ = ran(path, [changed])
    assert len(second.runs) == 1 and first.runs.keys() != second.runs.keys()
    other = replace(old, model=replace(old.model, sha256="another"))
    third, _ = ran(path, [other, replace(other, seed=1)])
    assert {run.model_sha256 for run in third.runs.values()} == {"another"} and len(third.runs) == 2


def test_draws_without_end_are_left_out(tmp_path: Path) -> None:
    endless = law("input x1; var x2 := x1[income := randReal(0, 1)];")
    job = replace(jobs()[0], law=endless, seed=None, budget=0)
    records, said = ran(tmp_path / "study.json", [job])
    assert not records.runs and said == ["toy network more all draws"]
    wrong = replace(job, seed=0, budget=5, domain=replace(job.domain, inputs=None))
    with pytest.raises(InputError, match="there is no test set"):
        ran(tmp_path / "study.json", [wrong])


def test_an_interruption_keeps_what_is_done(tmp_path: Path) -> None:
    wanted = jobs(seeds=1)

    def stop(record: Any) -> Any:
        raise KeyboardInterrupt

    wanted[2] = replace(wanted[2], model=as_model(stop, None, name="stop"))
    with pytest.raises(KeyboardInterrupt):
        ran(tmp_path / "study.json", wanted)
    assert len(StudyRecords(tmp_path / "study.json").runs) == 2


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not valid JSON"),
        ("{}", "choose another --out"),
        (
            '{"format": "dokimos-law-study", "version": 1, "models": [], "runs": [{}]}',
            "missing required field",
        ),
        ('{"format": "dokimos-law-study", "version": 1}', "missing required field `models`"),
        ('{"format": "dokimos-law-study", "version": 2}', "has version 2"),
    ],
)
def test_files_that_are_no_study(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "s.json").write_text(content)
    with pytest.raises(InputError, match=said):
        StudyRecords(tmp_path / "s.json")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(InputError, match="cannot be read"):
        StudyRecords(tmp_path / "folder.json")


def _run(**changes: Any) -> Run:
    counts = {"tested": 10, "passed": 8, "precondition_failed": 3, "violated": 2, "unique": 2, "inputs": 1}
    names = {
        "domain": "compas",
        "model": "tree",
        "model_sha256": "m",
        "law": "priors_inc",
        "law_sha256": "l",
    }
    rest = {"seed": 0, "budget": 10, "failed": 0, "is_violated": True, "is_starved": False, "seconds": 0.1}
    return Run(**{**names, **counts, **rest, **changes})


def test_whatever_a_file_says_it_is_read_or_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    records = StudyRecords(path)
    records.add(_run())
    records.add_quality(Quality("compas", "tree", "m", 0.7, 0.5))
    read = 0
    for mutant in mutants(json.loads(path.read_text())):
        path.write_text(json.dumps(mutant))
        with suppress(UnreadableFile):
            found = StudyRecords(path)
            markdown(found.runs.values(), found.qualities)
            read += 1
    assert read > 20


def test_the_table() -> None:
    runs = [
        _run(budget=5, unique=99),
        _run(),
        _run(seed=1, unique=5, is_starved=True),
        _run(seed=None, budget=0, tested=40, violated=7),
        _run(domain="mine", model="network", law="own", is_violated=False, violated=0, unique=0),
        _run(law="only_all_draws", seed=None),
    ]
    page = markdown(
        runs, {("compas", "tree"): Quality("compas", "tree", "m", 0.7, 0.5)}, [Skipped("x", "why")]
    )
    overview = "| compas | tree | 72 % | 70.0 % (50.0 %) | 2 × 10 | 6 of 12 | 1 of 1 | 294.8 | 3.5 |"
    assert overview in page
    assert "| mine | network | – | – | 1 × 10 | – | 0 of 1 | – | 0.0 |" in page
    assert "| priors_inc | 8.0 | 3.0 | 2.0 | 0.0 | 3.5 | 90.0 | 7 of 40 |" in page
    assert "| own | 8.0 | 3.0 | 0.0 | 0.0 | 0.0 | – | – |" in page
    assert "almost never holds: priors_inc" in page and "- x: why" in page


def test_what_the_paper_says_adds_up() -> None:
    """Table 1 is the sum of Tables 3 to 5; its counts of violated laws are those above 0."""
    for name in shipped_domains():
        for model in ("network", "tree"):
            said = published(name, model)
            if said is None:
                continue
            assert sum(said.unique_by_law.values()) == pytest.approx(said.unique, abs=0.11)
            assert sum(unique > 0 for unique in said.unique_by_law.values()) == said.violated
            assert len(said.unique_by_law) == said.laws == len(shipped_laws(name))
            assert set(said.unique_by_law) == {path.stem for path in shipped_laws(name)}
    assert published("compas", "forest") is None
    assert (effort("compas"), effort("lunar_lander")) == ((10, 5000), (3, 200))


def test_jobs_of_a_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"Unknown domain with laws 'compass'; did you mean 'compas'\?"):
        jobs_of("compass")
    assert {"compas", "german_credit"} <= set(domains_with_laws())
    laws = shipped_laws("compas")
    for own in (domain(model=lambda: risk), domain(MODELS={"network": lambda: risk, "tree": lambda: risk})):
        monkeypatch.setattr(study_jobs, "load_domain", lambda name, own=own: own)
        monkeypatch.setattr(study_jobs, "make_plan", lambda law, domain: SimpleNamespace(code=None))
        made = jobs_of("compas", seeds=2, budget=7)
        kinds = list(own.models or ["network"])
        assert [each.model_name for each in made] == [kind for kind in kinds for _ in range(3 * len(laws))]
        assert [(each.seed, each.budget) for each in made[:3]] == [(0, 7), (1, 7), (None, 0)]
    monkeypatch.setattr(study_jobs, "make_plan", lambda law, domain: SimpleNamespace(code="code"))
    assert {each.seed for each in jobs_of("compas")} == set(range(10))


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = "dokimos_studies.laws.study.parts_of"
    monkeypatch.setattr(made, lambda name, **_: [part(name, lambda: jobs(seeds=1))])
    monkeypatch.setattr("dokimos_studies.laws.study.domains_with_laws", lambda: ("toy", "other"))
    done = studies("law-study", "--out", tmp_path / "made" / "study")
    assert done.code == 0 and "study.md: 4 runs" in done.out
    content = json.loads((tmp_path / "made" / "study.json").read_text())
    assert len(content["runs"]) == 4
    assert "| toy | network |" in (tmp_path / "made" / "study.md").read_text()

    def missing(*_: Any, **__: Any) -> Any:
        raise InputError("no data")

    for parts in (missing, lambda name, **_: [part(name, missing), part(name, missing, 1)]):
        monkeypatch.setattr(made, parts)
        assert studies("law-study", "--out", tmp_path / "made" / "study").code == 0
        page = (tmp_path / "made" / "study.md").read_text()
        assert page.count("- toy: no data") == page.count("- other: no data") == 1
        named = studies("law-study", "toy", "--out", tmp_path / "x")
        assert (named.code, named.err) == (2, "dokimos-studies law-study: no data\n")
        assert not (tmp_path / "x.md").exists()

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(made, lambda name, **_: [part(name, lambda: jobs(seeds=1))])
    monkeypatch.setattr("dokimos_studies.laws.study.run_jobs", interrupted)
    assert studies("law-study", "--out", tmp_path / "made" / "study").code == 130


def test_the_page_is_written_after_each_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "study.md"
    seen: list[str] = []

    def second() -> list[StudyJob]:
        """Trained after the first has been tested, and interrupted then."""
        seen.append(page.read_text())
        raise KeyboardInterrupt

    parts = [part("toy", lambda: jobs(seeds=1)), part("toy", second, 1)]
    monkeypatch.setattr("dokimos_studies.laws.study.parts_of", lambda name, **_: parts)
    done = studies("law-study", "toy", "--out", tmp_path / "study")
    assert done.code == 130 and "4 runs of 8 asked for" in done.out
    assert "| toy | network |" in seen[0] == page.read_text()


def test_rates_and_trainings_stand_beside_the_counts() -> None:
    further = [_run(training=training, unique=unique) for training, unique in ((1, 4), (2, 9))]
    trained = [_run(unique=2), _run(seed=1, unique=6), *further]
    page = markdown(trained, {})
    over = "5.7 (95 %: 0.0 to 12.8; 4.0 to 9.0 in 3)"  # the means of three trainings: 4, 4 and 9
    assert f"| 294.8 | 4.0 | 4.91 | 400 | {over} |" in page
    published_share = f"{100 * 90 / 5000:g} %"
    assert f"| – | 20 % | 40 % | {published_share} | {over} | in words only in the paper; here any" in page
    (row,) = law_rows(trained)["compas", "tree"]
    assert (len(row.runs), row.trainings) == (2, (4.0, 4.0, 9.0))
    alone = markdown([_run(tested=0, violated=0, unique=0)], {})
    assert "| – | – | 1.8 % | – |" in alone


def test_every_shipped_law_says_how_it_differs_from_the_published_one() -> None:
    for name in shipped_domains():
        assert task_difference(name)
        for path in (*shipped_laws(name), *DOMAINS[name].printed):
            assert len(difference(name, path.stem)) > 3, (name, path.stem)
    assert difference("compas", "mine") == "–" and task_difference("mine") == ""


def test_the_law_of_figure_1a_ships_as_printed_and_counts_in_place_of_felony_inc() -> None:
    (printed,) = shipped_laws("compas/figure_1a")
    text = printed.read_text(encoding="utf-8")
    assert text.endswith((CORPUS / "accept" / "felony_inc.law").read_text(encoding="utf-8"))
    assert [path.stem for path in shipped_laws("compas/felony_inc")] == ["felony_inc"]
    assert shipped_laws("compas/nothing") == shipped_laws("nothing/figure_1a") == []
    page = markdown([_run(law="felony_inc"), _run(law="figure_1a", unique=1000)], {})
    assert "1 of 1 | 294.8 | 1,000.0 |" in page
    assert re.search(r"^\| figure_1a \|.*\| 1,000.0 \| 3.5 \|", page, re.MULTILINE)
    assert "1 of 1 | 294.8 | 2.0 |" in markdown([_run()], {})


def test_networks_of_other_trainings_are_tested_with_fewer_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = domain(model=lambda: risk)
    monkeypatch.setattr(study_jobs, "load_domain", lambda name: own)
    monkeypatch.setattr(study_jobs, "make_plan", lambda law, domain: SimpleNamespace(code=None))
    study = SimpleNamespace(model=lambda seed: f"{seed}.onnx")
    monkeypatch.setattr(study_jobs, "find_study", lambda name, kind: study)
    monkeypatch.setattr(study_jobs, "load_model", lambda path, domain: as_model(risk, domain, name=path))
    made = jobs_of("compas", budget=7, trainings=3)
    assert {each.seed for each in made if each.training == 0} == {None, *range(10)}
    trained = [
        (each.training, each.seed, each.model.name) for each in made if each.law_name == "priors_inc"
    ]
    assert trained[11:] == [(t, seed, f"{t}.onnx") for t in (1, 2) for seed in range(3)]
    (job,) = [each for each in jobs(seeds=1)[:2] if each.seed == 0]
    records, said = ran(tmp_path / "s.json", [job, replace(job, training=1)])
    assert [run.training for run in records.runs.values()] == [0, 1]
    assert "network (training 1) more seed 0" in said[1] and not records.qualities
