"""`dokimos.toml` is read strictly: what is wrong is said with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dokimos.campaigns.config_file import (
    ConfiguredVerifier,
    config_text,
    parse_config,
    read_config,
)
from dokimos.campaigns.settings import RunSettings
from dokimos.core.errors import UnreadableFile

FILE = Path("at/dokimos.toml")
WHOLE = """\
suites = ["quick", "./bench", "../other"]
rules = ["exact", "vnncomp2026"]

[[verifiers]]
name = "marabou"

[[verifiers]]
name = "mine"
place = "./tools/mine"

[limits]
timeout = "1.5m"
memory = "4GB"
cpu = 120
budget = "10m"
jobs = 2
repeat = 3
threads = 4
"""


def test_a_whole_file_is_read() -> None:
    found = parse_config(WHOLE, FILE)
    assert found.suites == ("quick", "at/bench", "other")
    assert found.verifiers == (ConfiguredVerifier("marabou"), ConfiguredVerifier("mine", "at/tools/mine"))
    assert [each.given for each in found.verifiers] == ["marabou", "mine=at/tools/mine"]
    assert found.settings == RunSettings(
        timeout_seconds=90, memory_bytes=4_000_000_000, cpu_seconds=120, threads=4, jobs=2, repeat=3
    )
    assert found.budget_seconds == 600
    assert found.rules == ("exact", "vnncomp2026")
    assert found.verifier("mine") == "mine=at/tools/mine" and found.verifier("other") == "other"


def test_an_empty_file_says_nothing() -> None:
    found = parse_config("", FILE)
    assert (found.suites, found.verifiers, found.given, found.rules) == ((), (), (), ())
    assert found.settings == RunSettings()


@pytest.mark.parametrize(
    ("line", "instead", "said"),
    [
        (1, "suits = []", "Unknown key 'suits'; did you mean 'suites'?"),
        (1, 'suites = "quick"', "`suites` must be a list of names and folders"),
        (1, "suites = [1]", "`suites` must be a list of names and folders"),
        (2, 'rules = [""]', "`rules` must be a list of rule sets"),
        (5, "nam = 1", "Unknown key 'nam'; did you mean 'name'?"),
        (4, "[[verifierz]]", "Unknown key 'verifierz'; did you mean 'verifiers'?"),
        (5, "", "a verifier needs a `name`"),
        (5, 'name = "a=b"', "a verifier needs a `name`, without `=` or commas"),
        (8, 'name = "marabou"', "two verifiers are called 'marabou'"),
        (9, "place = 3", "`place` must be a text"),
        (12, 'timout = "1m"', "Unknown key 'timout'; did you mean 'timeout'?"),
        (12, 'timeout = "soon"', "'soon' is not an amount of time"),
        (12, "timeout = true", "`timeout` must be a time"),
        (12, "timeout = -1", "'-1' is not an amount of time"),
        (13, 'memory = "lots"', "'lots' is not an amount of memory"),
        (16, "jobs = 0", "`jobs` must be a whole number of at least 1"),
        (16, 'jobs = "2"', "`jobs` must be a whole number of at least 1"),
        (17, "repeat = 1.5", "`repeat` must be a whole number of at least 1"),
        (17, "trust = true", "Unknown key 'trust'; known: timeout"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(line: int, instead: str, said: str) -> None:
    lines = WHOLE.splitlines()
    lines[line - 1] = instead
    with pytest.raises(UnreadableFile) as refused:
        parse_config("\n".join(lines), FILE)
    where = 4 if instead == "" else line
    assert str(refused.value).startswith(f"at/dokimos.toml:{where}: ")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value) and str(refused.value)[-1] in ".?"


def test_what_is_no_toml_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "dokimos.toml"
    for content in (b"suites = [", b"\xff", b"a = 1\na = 2"):
        path.write_bytes(content)
        with pytest.raises(UnreadableFile, match=r"dokimos\.toml"):
            read_config(path)
    with pytest.raises(UnreadableFile, match="directory"):
        read_config(tmp_path)


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip), max_size=3),
    st.text(st.characters(exclude_categories=["Cs"])),
)
def test_what_is_written_is_read_again(names: list[str], place: str) -> None:
    suites = [name for name in names if not name.startswith(("./", "../"))]
    where = "" if place.startswith(("./", "../")) else place
    tools = [ConfiguredVerifier("mine", where)]
    text = config_text(suites, tools, timeout="60s", memory="512MB", jobs=3, rules=["exact"])
    found = parse_config(text, Path("dokimos.toml"))
    assert (found.suites, found.verifiers) == (tuple(suites), tuple(tools))
    assert found.settings == RunSettings(timeout_seconds=60, memory_bytes=512_000_000, jobs=3)
