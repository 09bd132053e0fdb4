"""A runner that loads much is loaded once, and a fork answers each query: none reaches the next."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from dokimos.verifiers.execution.limits import Limits, Outcome
from dokimos.verifiers.execution.warm_worker import WarmStart, WarmWorkers
from dokimos.verifiers.runners import RUNNERS

RUNNER = f"""\
import os, sys
sys.path.insert(0, {str(RUNNERS)!r})
from warm_queries import serve
loaded = []
def load():
    loaded.append(os.getpid())
def main():
    loaded.append("query")
    open("result", "w").write(f"{{loaded[0]}} {{len(loaded)}}")
    if sys.argv[1] == "dies":
        os.kill(os.getpid(), 9)
    sys.exit(int(sys.argv[1]))
serve(main, load)
"""


def test_forks_answer_whatever_they_end_with(tmp_path: Path) -> None:
    (tmp_path / "runner.py").write_text(RUNNER)
    start = WarmStart.of((sys.executable, str(tmp_path / "runner.py")), {}, Limits(wall_seconds=60))
    workers = WarmWorkers(tmp_path, most=1)
    codes, asked, results = [], [], []

    def is_odd(outcome: Outcome) -> bool:
        return outcome.exit_code != 0

    try:
        for number, word in enumerate(("0", "1", "dies", "0")):
            (folder := tmp_path / str(number)).mkdir()
            outcome, count = workers.ask(
                start,
                (word,),
                folder=folder,
                log=tmp_path / f"{number}.log",
                cancel=threading.Event(),
                is_odd=is_odd,
            )
            codes.append(outcome.exit_code)
            asked.append(count)
            results.append((folder / "result").read_text().split())
    finally:
        workers.end()
    assert codes == [0, 1, 128 + 9, 0]
    assert asked == [1, 2, 3, 4], "one process answers them all"
    assert len({pid for pid, _ in results}) == 1
    assert {length for _, length in results} == {"2"}, "what a query changes, the next does not see"
