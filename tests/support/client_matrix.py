"""The page docs/client-matrix.md: which client was seen to do what, on which broker."""

from __future__ import annotations

CLIENTS = {
    "kafka-python": "kafka-python (`kafka_python_consumer`)",
    "aiokafka": "aiokafka (`aiokafka_consumer`)",
    "confluent-consumer": "confluent-kafka (`confluent_consumer`)",
    "confluent-aio": "confluent-kafka for asyncio (`confluent_aio_consumer`)",
    "java": "Java, in the same group, with Kafka's own assignors",
}
COLUMNS = (
    *("join", "leave", "crash", "static restart", "cooperative move", "commit fencing"),
    *("drift", "upgrade", "downgrade"),
)
BROKERS = {"loadwise": "L", "apache": "K"}
HEAD = """# Clients in a group

For each client, the table shows what its members did in a test, in a group with a member of another client, while
records were produced: **K** on Apache Kafka 4.3.1, **L** on loadwise's coordinator, - not possible or not tried. A test
run writes this page: `LOADWISE_MATRIX=1 make test-kafka KAFKA=kafka TESTS=tests/interop/test_client_matrix.py`.

"""
FOOT = """
- **join**, **leave**, **crash** (killed with SIGKILL): afterwards every partition has exactly one owner, and no
  record is missed.
- **static restart**: a member with a group instance id gets its partitions back, and the other members notice nothing.
- **cooperative move**: when another member joins, a member holds the partitions that it keeps all the time
  (`cooperative-sticky`).
- **commit fencing**: a member is stopped (SIGSTOP) until its session has ended. When it continues, it moves no
  committed offset back.
- **drift**: three members of this client, each able to process 900 records/s. The whole load, 1,350/s, moves to the
  partitions of one member. Within a minute, and after at most three rebalances, the total lag is below 900 again.
- **upgrade**: members change from `range` to `["weighted", "range"]`, and then to `weighted`, one by one.
  **downgrade**: the same in the other direction. No record is missed. Java does not have these assignors.
"""


def page(shown: set[tuple[str, str, str]]) -> str:
    """The page for what was shown: client, column, broker."""
    lines = ["| | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for client, name in CLIENTS.items():
        cells = (
            " ".join(letter for broker, letter in BROKERS.items() if (client, column, broker) in shown) or "-"
            for column in COLUMNS
        )
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return HEAD + "\n".join(lines) + "\n" + FOOT
