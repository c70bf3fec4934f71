"""What docs/benchmarks.md and other pages publish is measured here. The brokers are started by the tests' support."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "support"))  # which is no package: pytest finds it by its pythonpath
