"""Tests in this folder import `table_texts` beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
