"""`python -m tests.traced_command FILE ARGUMENTS...` runs a command and writes to the file how many
modules the command executed and loaded, and how many functions had called each other at the deepest.

A call is that of a named function, not of a comprehension; what runs only while a module is loaded is none.
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from types import FrameType

from dokimos.__main__ import main

SOURCE = str(Path(sys.modules["dokimos"].__path__[0]))


class Trace:
    """What has been called."""

    def __init__(self) -> None:
        self.executed: set[str] = set()
        self.deepest = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Take note of a call."""
        code = frame.f_code
        if event != "call" or code.co_name.startswith("<") or not code.co_filename.startswith(SOURCE):
            return
        depth = 0
        above: FrameType | None = frame
        while above is not None:
            if above.f_code.co_filename.startswith(SOURCE):
                if above.f_code.co_name == "<module>":
                    return
                depth += not above.f_code.co_name.startswith("<")
            above = above.f_back
        self.executed.add(code.co_filename)
        self.deepest = max(self.deepest, depth)


if __name__ == "__main__":
    result = Path(sys.argv.pop(1))
    trace = Trace()
    sys.setprofile(trace)
    with contextlib.suppress(SystemExit):
        main()
    sys.setprofile(None)
    loaded = [name for name in sys.modules if name.partition(".")[0] == "dokimos"]
    result.write_text(
        json.dumps({"executed": len(trace.executed), "deepest": trace.deepest, "loaded": len(loaded)})
    )
