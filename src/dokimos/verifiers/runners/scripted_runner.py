"""Behaves as its script says. Run as a process of its own; imports the standard library only.

scripted_runner.py [--script JSON] [--truth FOLDER] --instance NAME NETWORK PROPERTY RESULT

right            the label, and for `sat` the witness, of the truth
wrong            the other answer; for `unsat` instances with a witness of zeros
slow             as `right`, after `seconds` (1)
busy             as `right`, after `seconds` (1) of CPU time
crash            exit code `exit_code` (3), or `signal` (a number) sent to itself; says "unsat" on the way
hang forever, SIGTERM ignored, with a child process that does the same; `detached` starts that
                 child in a session of its own, orphaned; `pids` names a file for the process ids
flood            `megabytes` (64) of output, then as `right`
memory           takes `megabytes` (1024) and keeps them
bogus-witness    `sat` with a witness of zeros
outside-witness  `sat` with a witness far away
no-witness       `sat` without a witness
garbage          a result file that is no JSON
partial          the first half of a result file
says             `answer`, `witness`, `outputs` and `detail` as the script has them
"""

from __future__ import annotations

import json
import os
import sys
import time

# Neither `typing` nor `pathlib` nor `argparse`: each would take as long as all the rest of a run.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_OTHER = {"sat": "unsat", "unsat": "sat"}


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _write(path: str, content: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(content)


class ScriptedTask:
    """One instance and the script's entry for it."""

    def __init__(self, options: dict[str, str], property_file: str, result: str) -> None:
        self.script: dict[str, Any] = (
            json.loads(_text(options["--script"])) if "--script" in options else {}
        )
        self.instance = options["--instance"]
        self.property_file = property_file
        self.result = result
        self.beside = options.get("--truth", "truth")
        default = self.script.get("default", {"behaviour": "right"})
        self.entry: dict[str, Any] = self.script.get("instances", {}).get(self.instance, default)

    def truth(self) -> tuple[str, list[str] | None]:
        """The label, and the witness if there is one."""
        if "label" in self.entry:
            return self.entry["label"], self.entry.get("witness")
        folder = self.script.get("truth", self.beside)
        data = json.loads(_text(f"{folder}/{self.instance}.json"))
        return data["label"], data.get("witness")

    def write(self, answer: str, witness: list[str] | None = None, **rest: Any) -> None:
        """The whole result file, or none."""
        content = json.dumps({"schema": 1, "answer": answer, "witness": witness, **rest})
        draft = f"{os.path.dirname(self.result)}/draft"
        _write(draft, content)
        os.replace(draft, self.result)

    def inputs(self) -> int:
        """How many inputs the property declares, in VNN-LIB 1.0."""
        return _text(self.property_file).count("(declare-const X_")


def be_right(task: ScriptedTask) -> None:
    """Answer with the truth."""
    task.write(*task.truth())


def be_wrong(task: ScriptedTask) -> None:
    """Answer the opposite of the truth."""
    answer = _OTHER[task.truth()[0]]
    task.write(answer, ["0"] * task.inputs() if answer == "sat" else None)


def be_slow(task: ScriptedTask) -> None:
    """Take a while, then be right."""
    time.sleep(task.entry.get("seconds", 1.0))
    be_right(task)


def be_busy(task: ScriptedTask) -> None:
    """Compute for a while, then be right."""
    while time.process_time() < task.entry.get("seconds", 1.0):
        pass
    be_right(task)


def crash(task: ScriptedTask) -> None:
    """Say something that looks like an answer, and crash."""
    print("the property is safe: unsat", flush=True)
    if "signal" in task.entry:
        os.kill(os.getpid(), task.entry["signal"])
    sys.exit(task.entry.get("exit_code", 3))


def hang(task: ScriptedTask) -> None:
    """Never end, and leave a child that never ends."""
    import signal

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0 and task.entry.get("detached"):
        os.setsid()
        if os.fork() > 0:
            os._exit(0)
    if "pids" in task.entry:
        with open(task.entry["pids"], "a") as file:
            file.write(f"{os.getpid()}\n")
    while True:
        time.sleep(3600)


def flood(task: ScriptedTask) -> None:
    """Print a lot, then be right."""
    line = b"all work and no play makes a verifier dull\n" * 1000
    for _ in range(task.entry.get("megabytes", 64) * 1_000_000 // len(line)):
        sys.stdout.buffer.write(line)
    sys.stdout.flush()
    be_right(task)


def take_memory(task: ScriptedTask) -> None:
    """Take memory bit by bit and keep it."""
    held = bytearray()
    for _ in range(task.entry.get("megabytes", 1024)):
        held += b"x" * 1_000_000
    time.sleep(3600)


def write_raw(task: ScriptedTask, content: str) -> None:
    """Put anything at all into the result file."""
    _write(task.result, content)


BEHAVIOURS: dict[str, Callable[[ScriptedTask], None]] = {
    "right": be_right,
    "wrong": be_wrong,
    "slow": be_slow,
    "busy": be_busy,
    "crash": crash,
    "hang": hang,
    "flood": flood,
    "memory": take_memory,
    "bogus-witness": lambda task: task.write("sat", ["0"] * task.inputs()),
    "outside-witness": lambda task: task.write("sat", ["1e6"] * task.inputs()),
    "no-witness": lambda task: task.write("sat"),
    "garbage": lambda task: write_raw(task, "unsat\nunsat\n"),
    "partial": lambda task: write_raw(task, '{"schema": 1, "answer": "uns'),
    "says": lambda task: task.write(
        task.entry["answer"],
        task.entry.get("witness"),
        outputs=task.entry.get("outputs"),
        detail=task.entry.get("detail", ""),
    ),
}


def main() -> None:
    """Do what the script says for this instance."""
    *words, _, property_file, result = sys.argv[1:]
    task = ScriptedTask(dict(zip(words[::2], words[1::2], strict=True)), property_file, result)
    if "executions" in task.script:
        # One write of a short line: atomic, also with several runs at once.
        with open(task.script["executions"], "ab", buffering=0) as file:
            file.write(f"{task.instance}\n".encode())
    BEHAVIOURS[task.entry["behaviour"]](task)


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # which a bare interpreter leaves out
    from warm_queries import serve

    serve(main)
