"""The contract of every verifier's adapter."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

import pytest

from dokimos.campaigns.doctor import try_out
from dokimos.core.errors import InputError
from dokimos.core.files import write_whole
from dokimos.suites.answers import Answer
from dokimos.verifiers.base import NO_ATTACK, WARM, CertificateStyle, Query, Verifier
from dokimos.verifiers.execution.limits import Outcome, Termination

#: The answer of a process tree that we killed, whatever it may have written before.
ENDED = {
    Termination.WALL_LIMIT: Answer.TIMEOUT,
    Termination.CPU_LIMIT: Answer.TIMEOUT,
    Termination.MEMORY_LIMIT: Answer.MEMOUT,
    Termination.SIGNALLED: Answer.ERROR,
    Termination.NOT_STARTED: Answer.ERROR,
}


class VerifierContract:
    """Derive a test class from this one, and list the verifiers in `verifiers`.

    Tests that need the tool itself are skipped if it is not installed.
    """

    verifiers: ClassVar[tuple[Verifier, ...]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for each verifier."""
        if "verifier" in metafunc.fixturenames:
            metafunc.parametrize("verifier", self.verifiers, ids=lambda verifier: verifier.name)

    @pytest.fixture
    def query(self, tmp_path: Path) -> Query:
        """A query of which only the paths matter; the property is empty."""
        folder = tmp_path / "private"
        folder.mkdir()
        write_whole(tmp_path / "property.vnnlib", "", what="the property")
        return Query(
            name="instance",
            network_file=tmp_path / "network.onnx",
            property_file=tmp_path / "property.vnnlib",
            folder=folder,
            wall_seconds=5.0,
            memory_bytes=2**30,
        )

    def test_it_says_what_it_is(self, verifier: Verifier) -> None:
        """A name for the command line, its styles, and one sentence on how to get it."""
        assert re.fullmatch(r"[a-z0-9][a-z0-9.-]*", verifier.name)
        assert verifier.styles
        assert all(isinstance(style, CertificateStyle) for style in verifier.styles)
        assert isinstance(verifier.limitations, str)
        assert verifier.how_to_get().strip()
        assert "\n" not in verifier.how_to_get()
        assert type(verifier).__doc__

    def test_its_version_is_a_fact(self, verifier: Verifier) -> None:
        """The same when asked again; if it is not installed, the diagnosis ends with what to do.

        One that is installed is not diagnosed here: that may take long (`dokimos verifiers doctor`).
        """
        version = verifier.version()
        assert version == verifier.version()
        if version is not None:
            assert version.strip()
            return
        *before, last = verifier.diagnose()
        assert all(finding.is_ok for finding in before)
        assert not last.is_ok
        assert last.remedy

    def test_its_command_is_one_for_the_system(self, verifier: Verifier, query: Query) -> None:
        """A list of words, the same each time; making it writes nothing, installed or not."""
        try:
            invocation = verifier.command(query)
        except InputError as error:
            pytest.skip(f"{verifier.name} cannot be called: {error}")
        assert invocation.command
        assert all(isinstance(word, str) for word in invocation.command)
        assert verifier.command(query) == invocation
        assert all(Path(name).name == name for name in invocation.files)
        assert list(query.folder.iterdir()) == []

    @pytest.mark.parametrize("termination", list(ENDED))
    def test_a_tree_that_was_ended_has_no_answer(
        self, verifier: Verifier, query: Query, termination: Termination
    ) -> None:
        """Whatever the result file says."""
        query.result.write_text("unsat\n", encoding="utf-8")
        outcome = Outcome(termination, None, 1.0, 1.0, 1)
        log = query.folder / "log"
        log.write_text("unsat\n", encoding="utf-8")
        assert verifier.answer(outcome, query, log).answer is ENDED[termination]

    @pytest.mark.parametrize("content", [None, b"", b"\xff\xfe garbage", b"{", b"maybe", b"[1, 2]"])
    def test_what_cannot_be_read_is_an_error_and_no_answer(
        self, verifier: Verifier, query: Query, content: bytes | None
    ) -> None:
        """A log that speaks of unsat is no answer either: a crash may say that word."""
        if content is not None:
            query.result.write_bytes(content)
        log = query.folder / "log"
        log.write_text("the result may be unsat, or sat\n", encoding="utf-8")
        given = verifier.answer(Outcome(Termination.EXITED, 0, 1.0, 1.0, 1), query, log)
        assert not given.answer.decides
        assert given.detail

    def test_its_own_attack_can_be_switched_off_or_not(self, verifier: Verifier) -> None:
        """The quiet one is another verifier by name, and has no quieter one."""
        quiet = verifier.without_attack()
        assert (quiet is not None) is verifier.can_switch_attack_off
        if quiet is not None:
            assert quiet.name == verifier.name + NO_ATTACK
            assert quiet.without_attack() is None

    def test_it_can_stay_warm_or_not(self, verifier: Verifier, query: Query) -> None:
        """The warm one is another verifier by name; its command says which words start the process."""
        staying = verifier.warm()
        assert (staying is not None) is verifier.can_stay_warm
        if staying is not None:
            assert staying.name == verifier.name + WARM
            assert staying.warm() is None
            if staying.version() is not None:
                given = staying.command(query)
                assert 0 < given.start_words < len(given.command)
                folder = str(query.folder)
                assert not any(folder in word for word in given.command[: given.start_words])

    def test_it_answers_two_tiny_queries(self, verifier: Verifier) -> None:
        """One is sat and one is not; `unknown` is allowed."""
        if verifier.version() is None:
            pytest.skip(f"{verifier.name} is not installed")
        if not verifier.is_tried_out:
            pytest.skip(f"{verifier.name} has a smoke test of its own, or answers by a script")
        assert [finding.what for finding in try_out(verifier) if not finding.is_ok] == []
