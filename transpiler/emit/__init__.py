"""From IR to text: Python for Numba, StableHLO."""
