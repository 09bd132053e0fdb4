"""Each promise of the pages on strangers, clusters and the gate has a test, named here beside its words.

A bullet or row in one of these parts of a page that no entry below quotes fails here, and so does an entry
whose test is gone.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: A part of a page; below it, words of each bullet or row; below these, the test.
PROMISES = """
concepts.md: Isolation
  **no network**
    verifiers/test_isolation.py test_has_no_network_but_its_own_loopback
  **nothing to write** but
    verifiers/test_isolation.py test_can_write_in_its_folder_and_those_named_and_nowhere_else
  **of what others have**
    verifiers/test_isolation.py test_sees_of_common_folders_only_what_it_is_told_of
  **no processes but its own**
    verifiers/test_isolation.py test_reaches_no_other_processes_and_not_its_first
concepts.md: Scripts of tools in folders
  are run from their repositories
    verifiers/test_script_guard.py test_of_tools_in_repositories_no_script_is_called
  Isolated scripts see and end
    verifiers/test_script_guard.py test_a_script_that_kills_by_name_does_not_reach_outside
  Where isolation is refused
    verifiers/test_script_guard.py test_without_namespaces_the_first_on_the_path_is_harmless
  `--trust` runs scripts
    verifiers/test_script_guard.py test_a_trusted_script_does_reach_outside
concepts.md: Environment variables
  `PATH`, `HOME`
    verifiers/test_permissions.py test_a_verifier_and_its_supervisor_get_what_is_allowed
  `TMPDIR`
    verifiers/test_permissions.py test_a_verifier_and_its_supervisor_get_what_is_allowed
  `OMP_NUM_THREADS`
    verifiers/execution/test_process.py test_threads_are_pinned_and_stdin_is_empty
  `ORT_DISABLE_TELEMETRY`
    faults/test_silence.py test_onnxruntime_is_told_before_it_is_loaded_and_so_are_verifiers
  `CUDA_*`, `NVIDIA_*`
    verifiers/test_permissions.py test_a_verifier_and_its_supervisor_get_what_is_allowed
  what its adapter declares
    verifiers/test_permissions.py test_a_verifier_and_its_supervisor_get_what_is_allowed
  `--pass-env NAME`
    verifiers/test_permissions.py test_what_is_passed_must_be_a_name_that_is_set
scale.md: Many machines
  **One writer.**
    campaigns/test_cluster.py test_the_results_are_those_of_a_local_run
  **Files travel by content hash**
    campaigns/test_cluster.py test_the_results_are_those_of_a_local_run
  **A lost worker's runs
    campaigns/test_cluster.py test_a_lost_workers_runs_are_done_again_elsewhere
  **Workers may come and go.**
    campaigns/test_partitions.py test_a_worker_that_was_cut_off_and_is_back_leaves_the_same_count
  **If your process ends
    campaigns/test_cluster.py test_an_interrupted_campaign_ends_its_runs_and_goes_on
scale.md: Who trusts whom
  **Workers trust you
    campaigns/test_ports.py test_the_page_has_the_words_that_keep_a_cluster_on_loopback
  **A worker is not believed.**
    campaigns/test_cluster.py test_nothing_is_written_of_what_a_worker_was_not_asked
  **You do trust Dask's own
    a warning
  **An exception in a worker
    campaigns/test_cluster.py test_an_exception_in_a_worker_is_that_jobs_error
  **Verifiers are isolated on workers**
    campaigns/test_cluster.py test_the_results_are_those_of_a_local_run
  **Dokimos listens on no port.**
    campaigns/test_ports.py test_a_campaign_on_a_cluster_listens_on_no_port_itself
gate.md: Gate a verifier in CI
  a wrong answer (
    judging/test_gate.py test_a_wrong_answer_closes_it
  a `sat` without a witness
    judging/test_gate.py test_a_sat_without_a_witness_closes_it_unless_it_is_expected
  planned runs that are missing
    judging/test_gate.py test_missing_runs_close_it
  a verifier of which no answer
    judging/test_gate.py test_a_suite_on_which_nothing_is_decided_closes_it_whatever_another_suite_says
  an answer that was right in the baseline and is not now
    cli/test_gate.py test_an_answer_lost_to_a_timeout_is_tried_once_more
  answers that have become slower than
    judging/test_gate.py test_slower_answers_are_listed_and_close_the_gate_only_if_that_is_asked_for
  answers that have become more than twice as slow
    judging/test_gate.py test_slower_answers_are_listed_and_close_the_gate_only_if_that_is_asked_for
  anything but a wrong answer from the tool without its attack
    judging/test_gate.py test_without_its_attack_only_wrong_answers_count
  a baseline that has none
    judging/test_gate.py test_a_baseline_that_has_none_of_these_runs_compares_nothing
  a label that fails its check
    judging/test_gate.py test_a_label_that_fails_closes_it_though_all_agree_with_it
  an answer against a label whose check
    judging/test_gate.py test_an_answer_against_a_label_that_could_not_be_checked_closes_it
  a right answer that took more than half
    judging/test_gate.py test_what_is_near_its_limit_is_listed
  a right answer of the baseline that was not asked
    judging/test_gate.py test_what_the_baseline_has_right_and_nobody_asked_for_is_listed
  an answer that was wrong last time
    judging/test_gate.py test_only_a_right_answer_is_called_mended
  `unknown`, `timeout`, `error` otherwise
    judging/test_gate.py test_right_answers_open_it
"""


def promises() -> dict[str, dict[str, str]]:
    """For each part of a page the words of its promises, each with its test."""
    found: dict[str, dict[str, str]] = {}
    for line in PROMISES.strip().splitlines():
        text = line.strip()
        match len(line) - len(text):
            case 0:
                of_part = found.setdefault(text, {})
            case 2:
                words = text
            case _:
                of_part[words] = text
    return found


@cache
def names_in(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def part(named: str) -> str:
    """What is below a heading, up to the next one."""
    page, _, heading = named.partition(": ")
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.split(r"^#+ ", text.partition(f"# {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


@pytest.mark.parametrize("named", promises())
def test_every_bullet_and_row_has_a_test(named: str) -> None:
    said = [line[2:] for line in part(named).splitlines() if line.startswith(("- ", "| "))]
    said = [line for line in said if not line.startswith(("what |", "variables |", "---"))]
    assert said
    for line in said:
        assert any(words in line for words in promises()[named]), f"no test for: {line}"


@pytest.mark.parametrize("named", promises())
def test_every_promise_is_still_made_and_tested(named: str) -> None:
    for words, test in promises()[named].items():
        assert words in part(named)
        if test != "a warning":
            file, name = test.split()
            assert name in names_in(file), f"no test {name} in {file} for: {words}"
