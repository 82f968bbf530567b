"""What gradsmith says about its own work: the logger "gradsmith", one INFO record for each compilation.

`GRADSMITH_LOG=1` in the environment prints the records on standard error.
"""

from __future__ import annotations

import logging
import os

logger = logging.getLogger("gradsmith")


def set_up() -> None:
    """Honour `GRADSMITH_LOG`; called once, when this module is imported."""
    if os.environ.get("GRADSMITH_LOG", "0") in ("", "0"):
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("gradsmith: %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)


set_up()
