"""How much of Dokimos stands between a command and its work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

#: Runs a command and says which modules of Dokimos it has loaded and executed, and how deep the calls were
#: when something was first to be proven.
MEASURED = """
import os, sys
executed, depth = set(), []
def seen(frame, event, _):
    # not the bodies of modules and classes, nor what dataclasses execute there
    if event == "call" and frame.f_code.co_flags & 1 and frame.f_code.co_name != "__create_fn__":
        name = frame.f_globals.get("__name__", "")
        if name.startswith("dokimos"):
            executed.add(name)
        if name == "dokimos.checker.check" and not depth:
            while frame is not None:
                depth.append(frame.f_code.co_name)
                frame = frame.f_back
from dokimos.cli import main
sys.setprofile(seen)
try:
    main()
except SystemExit:
    pass
sys.setprofile(None)
loaded = [name for name in sys.modules if name.split(".")[0] == "dokimos"]
with open(os.environ["MEASURED"], "w") as file:
    print(len(loaded), len(executed), len(depth), file=file)
"""


def measured(folder: Path, *words: str) -> tuple[int, int, int]:
    file = folder / "measured"
    subprocess.run(
        [sys.executable, "-c", MEASURED, *words],
        cwd=folder,
        env=os.environ | {"MEASURED": str(file), "DOKIMOS_HOME": str(folder / "home")},
        check=True,
        capture_output=True,
    )
    loaded, executed, depth = map(int, file.read_text().split())
    print(words[0], "loads", loaded, "modules, executes", executed, "and proves at depth", depth)
    return loaded, executed, depth


def test_few_modules_stand_between_a_command_and_its_work(tmp_path: Path) -> None:
    made = ("generate", "exclusive-pairs", "--pairs", "2", "--inputs", "4", "--out", "s")
    _, executed, depth = measured(tmp_path, *made)
    assert 40 < executed <= 65 and 10 < depth <= 28
    loaded, _, _ = measured(tmp_path, "run", "s", "--verifier", "reference", "--out", "r")
    assert 50 < loaded <= 110
