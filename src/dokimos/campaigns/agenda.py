"""What a campaign runs next: its jobs in order, some again without the tool's attack, and a budget.

Where a tool's own attack finds the counterexample, its proofs are not tested. So where it answers `sat`,
the same question follows with the attack switched off: that job is the *follower* of the other one.

With a budget, each verifier has a line of its own. A job is begun only if its whole time limit, and that
of its follower, fits into what is left of the budget after the time that earlier runs used. While runs are
under way, their limits count as used, and a job that does not fit waits until they have ended: so how many
runs go at a time does not decide which are left out.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dokimos.campaigns.journal import RunRecord
from dokimos.campaigns.plan import Job
from dokimos.suites.answers import Answer


@dataclass
class _Line:
    """Jobs that share a budget: `left` are those to begin, `followers` those that go before them.

    `reserved` has what runs under way may use at most.
    """

    left: deque[Job]
    room_seconds: float
    followers: deque[Job] = field(default_factory=deque)
    used_seconds: float = 0.0
    reserved: dict[str, float] = field(default_factory=dict)


class Agenda:
    """The jobs of a campaign, given out one by one.

    `follower` has the jobs that follow, by the id of those that they follow. `records` are the runs that
    are recorded already, by job: they are not given out, and their times count. `room_seconds` is the
    budget of each verifier, None if there is none.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        *,
        follower: Mapping[str, Job],
        records: Mapping[str, RunRecord],
        room_seconds: float | None = None,
    ) -> None:
        self._follower, self._records = follower, records
        self._line_of: dict[str, _Line] = {}
        groups: dict[str, list[Job]] = {}
        for job in jobs:
            groups.setdefault("" if room_seconds is None else job.tool.name, []).append(job)
        room = math.inf if room_seconds is None else room_seconds
        self._lines = deque(_Line(deque(own), room) for own in groups.values())
        #: All jobs that may be given out or are recorded.
        self.possible = (*jobs, *follower.values())
        #: The jobs that belong to the campaign so far, recorded or given out, and those given out.
        self.due: set[str] = set()
        self.given: set[str] = set()
        known = [job.id for job in jobs]
        known += [own.id for job in jobs if (own := self._following(records.get(job.id))) is not None]
        #: How many of the runs are recorded, and how many there will be, as far as is known now.
        self.recorded, self.total = sum(job in records for job in known), len(known)

    def next(self) -> Job | None:
        """The next job to begin; None if there is none, or none before another run has ended."""
        for _ in range(len(self._lines)):
            line = self._lines[0]
            self._lines.rotate(-1)
            if (job := self._next(line)) is not None:
                self._line_of[job.id] = line
                self.given.add(job.id)
                return job
        return None

    def ended(self, record: RunRecord) -> None:
        """A job that was given out has ended."""
        line = self._line_of.pop(record.job)
        line.reserved.pop(record.job)
        self.total += self._following(record) is not None
        self._count(line, record)

    def _next(self, line: _Line) -> Job | None:
        while line.followers or line.left:
            is_follower = bool(line.followers)
            queue = line.followers if is_follower else line.left
            job = queue[0]
            if (record := self._records.get(job.id)) is not None:
                queue.popleft()
                self.due.add(job.id)
                self._count(line, record)
                continue
            seconds = job.limits.wall_seconds * (2 if job.id in self._follower else 1)
            taken = line.used_seconds + sum(line.reserved.values())
            if not is_follower and taken + seconds > line.room_seconds:
                if not line.reserved:
                    line.left.clear()
                return None
            queue.popleft()
            self.due.add(job.id)
            line.reserved[job.id] = seconds
            return job
        return None

    def _count(self, line: _Line, record: RunRecord) -> None:
        line.used_seconds += record.wall_seconds
        if (follower := self._following(record)) is not None:
            line.followers.append(follower)

    def _following(self, record: RunRecord | None) -> Job | None:
        """The job that follows a run, after its answer."""
        if record is None or record.answer is not Answer.SAT:
            return None
        return self._follower.get(record.job)
