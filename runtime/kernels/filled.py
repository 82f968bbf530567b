"""Built-in exceptions whose messages get their values when they are raised, for modules that are built ahead of time.

    raise FilledIndexError("no row {} (in lane {})", k, lane)       IndexError: no row 7 (in lane 2)

Compiled code can give an exception numbers, but cannot write text.  Functions that gradsmith itself calls raise the
built-in ones, with their values beside the message, of which the run time makes the user's.
"""

import builtins
from typing import Any

PREFIX = "Filled"


def __getattr__(name: str) -> type[Exception]:
    kind = getattr(builtins, name.removeprefix(PREFIX), None)
    if not name.startswith(PREFIX) or not (isinstance(kind, type) and issubclass(kind, Exception)):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __init__(self: Any, message: str, *values: Any) -> None:
        kind.__init__(self, message.format(*values) if values else message)

    article = "An" if name[len(PREFIX)] in "AEIOU" else "A"
    members = {"__init__": __init__, "__module__": __name__,
               "__doc__": f"{article} {kind.__name__} whose message gets its values when it is raised."}
    globals()[name] = found = type(name, (kind,), members)
    return found
