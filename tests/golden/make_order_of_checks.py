"""Make the golden order of checks: the errors of a real Apache Kafka for requests with one or two wrong values.

    python tests/golden/make_order_of_checks.py HOST:PORT > tests/golden/order-of-checks-4.3.1.txt

Needs a new Kafka with one broker, as `tests/support/kafka_process.py` starts it.
"""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))  # no package: pytest has it as a path
sys.path.append(str(Path(__file__).resolve().parents[1] / "support" / "coordinator"))

from doubled_requests import Doubler
from faulty_requests import FAULTY, checks

for name in sorted(FAULTY):
    with closing(Doubler(sys.argv[1])) as session:
        print(*checks(session, name), sep="\n")
