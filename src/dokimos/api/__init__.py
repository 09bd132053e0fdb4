"""One function for each command, silent and typed; `import dokimos` offers them all.

They take paths, or the names of suites, verifiers and data that ship with the package, and return typed,
frozen results. They print nothing and never end the process: progress goes to the `progress` callback,
remarks go to the logger `dokimos`, and every error is a `DokimosError` with a one-sentence message, also
for an argument of the wrong type. Messages speak of arguments; the command line says the same of its
options.
"""

import logging

# Callers who want to see the remarks add a handler.
logging.getLogger("dokimos").addHandler(logging.NullHandler())
