"""The examples in the docstrings of the public functions are what happens."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import dokimos

#: Each group is one session: a later function uses what an earlier one has made.
SESSIONS = {
    "campaigns": (
        "run",
        "read_campaign",
        "watch",
        "judge",
        "show",
        "explain",
        "report",
        "gate",
        "write_gate",
    ),
    "attacks": ("attack", "hide", "assess_hiding", "hide_soundness"),
    "audits": ("audit",),
    "editions": ("init_edition", "read_edition", "run_edition", "score_edition", "publish_edition"),
    "database": ("add_labels", "find_labels", "export_labels"),
    "configuration": ("init_config", "read_config"),
    "suites": (
        "read_suite",
        "generate",
        "check",
        "label",
        "release",
        "list_families",
        "find_family",
        "list_suites",
    ),
    "profiles": ("profile",),
    "data": ("list_data", "get_data", "train_model", "make_properties"),
    "networks": ("read_network", "read_property", "evaluate", "replay"),
    "verifiers": ("list_verifiers", "install_verifier", "diagnose_verifier"),
    "laws": (
        "init_laws",
        "new_law",
        "lint_law",
        "read_law",
        "format_law",
        "test_law",
        "replay_law",
        "verify_law",
        "verify_law_rows",
        "repair_law",
        "export_law",
        "ask_law",
        "check_proofs",
    ),
    "hunts": ("hunt", "reduce"),
    "models": ("convert_model", "fuzz_domain"),
    "monotone": ("monotone",),
}


def test_every_public_function_has_its_examples() -> None:
    functions = {name for name in dir(dokimos) if inspect.isfunction(getattr(dokimos, name))}
    assert {name for names in SESSIONS.values() for name in names} == functions


@pytest.mark.parametrize("session", SESSIONS)
def test_the_examples_of_the_docstrings_run(
    session: str, workplace: Path, run_examples: Callable[[str, str], None]
) -> None:
    texts = [getattr(dokimos, name).__doc__ or "" for name in SESSIONS[session]]
    run_examples("\n\n".join(texts), session)


def test_the_session_of_the_documentation_runs(
    workplace: Path, run_examples: Callable[[str, str], None]
) -> None:
    page = Path(__file__).parents[2] / "docs" / "python.md"
    session = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(session) == 11
    run_examples("\n".join(session), "docs/python.md")
