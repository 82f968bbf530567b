"""Random programs with loops, branches, early exits, aliases, views and stores, in value and derivatives.

`run.py` runs as many more as one likes.
"""

from __future__ import annotations

import pytest
from programs.run import run_chunk

CHUNKS, SIZE = 20, 100
# What a program may be refused for: which array a name is, or which type a variable has, depends on the run; the size
# of what the reverse mode has to save changes from one iteration to the next.
REFUSALS = {"E121", "E122", "E123", "E204", "E311"}


@pytest.mark.parametrize("number", range(CHUNKS))
def test_programs_mean_what_python_says(number):
    found = run_chunk(number, SIZE)
    refused = {what.split()[1]: count for what, count in found.items() if what.startswith("refused")}
    assert set() == refused.keys() - REFUSALS
    assert SIZE == found["programs"]
    assert found["compared"] > 0.8 * SIZE
    assert found["trip counts with derivatives"] > 2 * SIZE


def test_compiled_programs_mean_what_python_says():
    found = run_chunk(CHUNKS, 4, compiled_every=1)
    assert found["compiled"] >= 2
