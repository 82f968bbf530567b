"""The signal of a compiled entry whose assumptions do not hold for the arguments at hand."""


class Miss(Exception):  # noqa: N818  (a signal, not a failure)
    """Raised before any work is done: another specialisation is needed."""
