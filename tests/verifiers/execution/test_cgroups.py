from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dokimos.verifiers.execution import usage
from dokimos.verifiers.execution.limits import Limits
from dokimos.verifiers.execution.usage import MOST_PROCESSES, ControlGroup, new_group
from tests.verifiers.execution.test_process import has_groups

LIMITS = Limits(wall_seconds=1, memory_bytes=1 << 28)


@pytest.fixture(autouse=True)
def _ask_again() -> Any:
    parent = usage._parent
    parent.cache_clear()
    yield
    parent.cache_clear()


def test_without_benchexec_there_is_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "benchexec.cgroups", None)
    assert new_group(LIMITS) is None


class Stub:
    """What BenchExec gives, as far as it is used; `missing` is a subsystem that cannot be fetched."""

    CPU, MEMORY, version = "cpu", "memory", 2

    def __init__(self, missing: str = "", problem: BaseException | None = None) -> None:
        self.paths: set[Path] = set()
        self.missing, self.problem = missing, problem
        self.removed = False

    def require_subsystem(self, one: str, log: object) -> bool:
        return one != self.missing

    def create_fresh_child_cgroup(self, subsystems: list[str], prefix: str) -> Stub:
        return self

    def write_memory_limit(self, limit: int) -> None:
        if self.problem is not None:
            raise self.problem

    def kill_all_tasks(self) -> None: ...

    def remove(self) -> None:
        self.removed = True


def use(monkeypatch: pytest.MonkeyPatch, stub: Stub) -> None:
    library = SimpleNamespace(Cgroups=SimpleNamespace(initialize=lambda: stub))
    monkeypatch.setitem(sys.modules, "benchexec.cgroups", library)  # type: ignore[arg-type]


@pytest.mark.parametrize("missing", ["cpu", "memory"])
def test_half_a_group_is_no_group(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    use(monkeypatch, Stub(missing))
    assert new_group(LIMITS) is None


@pytest.mark.parametrize("problem", [OSError("no"), AssertionError("delegation failed"), SystemExit("no")])
def test_a_library_that_fails_is_done_without(
    monkeypatch: pytest.MonkeyPatch, problem: BaseException
) -> None:
    def initialize() -> Stub:
        raise problem

    library = SimpleNamespace(Cgroups=SimpleNamespace(initialize=initialize))
    monkeypatch.setitem(sys.modules, "benchexec.cgroups", library)  # type: ignore[arg-type]
    assert new_group(LIMITS) is None


@pytest.mark.parametrize("problem", [OSError("no"), SystemExit("no swap accounting")])
def test_a_group_without_its_limit_is_removed(
    monkeypatch: pytest.MonkeyPatch, problem: BaseException
) -> None:
    stub = Stub(problem=problem)
    use(monkeypatch, stub)
    assert new_group(LIMITS) is None
    assert stub.removed


def test_what_a_killed_process_left_is_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("dokimos_999999999_x", "dokimos_1_x", "other_999999999_x", "dokimos_odd_x"):
        (tmp_path / name).mkdir()
    stub = Stub()
    stub.paths = {tmp_path}
    use(monkeypatch, stub)
    assert new_group(LIMITS) is not None
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"dokimos_1_x", "other_999999999_x", "dokimos_odd_x"}


def test_a_real_group_is_made_and_removed() -> None:
    if not has_groups():
        pytest.skip("no control groups here")
    group = new_group(LIMITS)
    assert isinstance(group, ControlGroup)
    assert all(entrance.is_file() for entrance in group.entrances)
    assert group.made.read_memory_limit() == LIMITS.memory_bytes
    assert not group.is_out_of_memory()
    assert group.cpu_seconds() == 0
    places = [entrance.parent for entrance in group.entrances]
    limits = [
        (place / "pids.max").read_text().strip() for place in places if (place / "pids.max").is_file()
    ]
    assert limits == ([str(MOST_PROCESSES)] if group.limits_processes else limits)
    assert (f"at most {MOST_PROCESSES} processes" in group.means()) is group.limits_processes
    group.remove()
    assert not any(place.exists() for place in places)


@pytest.mark.parametrize("problem", [None, OSError("read-only")])
def test_version_2_limits_the_number_of_processes_where_it_can(
    monkeypatch: pytest.MonkeyPatch, problem: OSError | None
) -> None:
    """Where it cannot, the group still limits memory."""
    written: list[tuple[str, str, int]] = []

    class Counting(Stub):
        PID = "pids"

        def __contains__(self, one: str) -> bool:
            return one == "pids"

        def set_value(self, *value: Any) -> None:
            if problem is not None:
                raise problem
            written.append(value)

    monkeypatch.setattr(usage, "_parent", Counting)
    group = new_group(LIMITS)
    assert group is not None and group.limits_processes is (problem is None)
    assert written == ([] if problem else [("pids", "max", MOST_PROCESSES)])
