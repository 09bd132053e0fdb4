"""The section of docs/laws.md on models that users bring: its files are written, its commands run."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from tests.cli.test_law import run as law_command
from tests.laws.models.test_data_frames import granted, people

PAGE = Path(__file__).parents[2] / "docs" / "laws.md"
_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)


def test_what_the_section_shows_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks whose first line is a comment with a file's name are files; other Python runs; `sh` is run."""
    monkeypatch.chdir(tmp_path)
    table = people().assign(granted=granted(people()), sex=["f", "m"] * 30)
    table[["age", "income", "sex", "city", "granted"]].to_csv("people.csv", index=False)
    section = PAGE.read_text(encoding="utf-8").partition("## Your own model")[2].partition("\n## ")[0]
    ran: list[str] = []
    for indent, language, indented in _BLOCK.findall(section):
        text = textwrap.dedent(indented) if indent else indented
        first = re.match(r"# (\S+\.(?:py|law))\n", text)
        if first:
            Path(first[1]).write_text(text, encoding="utf-8")
        elif language == "python":
            exec(compile(text, "docs/laws.md", "exec"), {})
        else:
            for line in text.splitlines():
                done = law_command(*line.removeprefix("dokimos law ").split())
                assert done.exit_code in (0, 1) and isinstance(done.exception, SystemExit | None), line
                assert not re.search(r"\d failed|its code failed", done.stdout), (line, done.output)
                ran.append(done.stdout)
    assert "laws/fair_sex.law: People who differ only in sex" in ran[0]
    assert "of 3 laws violated" in ran[1] and "laws.html: the page of 3 laws" in ran[1]
    assert "moving.law: VIOLATED" in ran[2] and "city 'Bern' instead of" in ran[2]
    assert "shouting.law: holds for every draw" in ran[3]
    assert "ensures abs(d1 - d2) <= 0.25;" in ran[4] and len(ran) == 5
