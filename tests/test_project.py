"""What a public project has besides its code is valid and true: workflows, forms, hooks, the changelog."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from check_jsonschema import main as check_jsonschema
from click.testing import CliRunner

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = ROOT / ".github" / "ISSUE_TEMPLATE"
FORMS = sorted(set(TEMPLATES.glob("*.yml")) - {TEMPLATES / "config.yml"})
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
SCHEMAS = {
    "vendor.github-workflows": WORKFLOWS,
    "custom.github-workflows-require-timeout": WORKFLOWS,
    "vendor.github-actions": [ROOT / "action.yml"],
    "vendor.github-issue-forms": FORMS,
    "vendor.github-issue-config": [TEMPLATES / "config.yml"],
    "vendor.citation-file-format": [ROOT / "CITATION.cff"],
}


def complaints(schema: str, *files: Path) -> str:
    """What check-jsonschema has to say by one of the schemas that it brings; nothing if all is well."""
    words = ["--builtin-schema", schema, "--default-filetype", "yaml", *map(str, files)]
    done = CliRunner().invoke(check_jsonschema, words)
    assert done.exit_code in (0, 1), done.output
    return done.output if done.exit_code else ""


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def project() -> Any:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_for_github_follow_its_schemas(schema: str) -> None:
    assert SCHEMAS[schema]
    assert complaints(schema, *SCHEMAS[schema]) == ""


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        ("vendor.github-workflows", "runs-on:", "run-on:"),
        ("custom.github-workflows-require-timeout", "timeout-minutes:", "name:"),
        ("vendor.github-actions", "using: composite", "using: compost"),
        ("vendor.github-issue-forms", "type: textarea", "type: text"),
    ],
)
def test_a_slip_is_found(tmp_path: Path, schema: str, right: str, wrong: str) -> None:
    text = SCHEMAS[schema][0].read_text(encoding="utf-8")
    assert right in text
    (tmp_path / "slip.yml").write_text(text.replace(right, wrong), encoding="utf-8")
    assert "slip.yml" in complaints(schema, tmp_path / "slip.yml")


def test_workflows_call_targets_that_the_makefile_has() -> None:
    called = {
        target
        for workflow in WORKFLOWS
        for target in re.findall(r"run: make ([\w-]+)", workflow.read_text(encoding="utf-8"))
    }
    assert called == {"test", "test-slow", "docs"}
    (declared,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert called <= set(declared.split())


def test_every_python_that_is_declared_is_tested_and_the_pages_say_where() -> None:
    job = read(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]["test"]
    versions = job["strategy"]["matrix"]["python"]
    assert project()["requires-python"] == f">={versions[0]}"
    readme, contributing = (" ".join((ROOT / page).read_text().split()) for page in PAGES[:2])
    assert f"Python {versions[1]} to {versions[-1]}" in readme
    assert f"Python {versions[0]} to {versions[-1]}" in contributing


@pytest.mark.parametrize(
    ("tag", "head", "complaint"),
    [
        ("v{version}", "## [{version}] - 2026-12-01", ""),
        ("v{version}0", "## [{version}] - 2026-12-01", "pyproject.toml has another version"),
        ("v{version}", "## [{version}]", "CHANGELOG.md has no dated entry"),
    ],
)
def test_a_release_needs_the_version_of_its_tag(
    tmp_path: Path, tag: str, head: str, complaint: str
) -> None:
    version = project()["version"]
    for name in ("pyproject.toml", "CITATION.cff"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{head.format(version=version)}\n")
    steps = read(ROOT / ".github" / "workflows" / "release.yml")["jobs"]["build"]["steps"]
    (script,) = (step["run"] for step in steps if step.get("name") == "Compare the tag with the version")
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "GITHUB_REF_NAME": tag.format(version=version)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == (complaint == "")
    assert complaint in done.stdout


def test_the_hooks_run_what_lint_runs() -> None:
    (source,) = read(ROOT / ".pre-commit-config.yaml")["repos"]
    assert source["repo"] == "local"
    hooks = [hook["entry"].removesuffix(" --force-exclude") for hook in source["hooks"]]
    (lint,) = re.findall(r"^LINT := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert hooks == lint.replace("$(BIN)", ".venv/bin").replace(" --check", "").split(" && ")


def test_the_changelog_starts_with_what_is_unreleased_in_short_entries() -> None:
    _, *sections = re.split(
        r"^## ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    heads = [section.partition("\n")[0] for section in sections]
    assert heads[0] == "[Unreleased]"
    assert heads[1].startswith(f"[{project()['version']}]")
    entries = re.split(r"^- ", sections[0], flags=re.MULTILINE)[1:]
    assert [entry for entry in entries if len(entry.strip().splitlines()) > 3] == []
    assert read(ROOT / "CITATION.cff")["version"] == project()["version"]


@pytest.mark.parametrize("page", PAGES)
def test_links_of_the_first_pages_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text)]
    inside = {link for link in links if link and not link.startswith("https://")}
    assert {link for link in inside if not (ROOT / link).exists()} == set()
