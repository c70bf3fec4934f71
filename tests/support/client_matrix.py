"""The page docs/client-matrix.md: which client was seen to do what, on which broker."""

from __future__ import annotations

CLIENTS = {
    "kafka-python": "kafka-python (`kafka_python_consumer`)",
    "aiokafka": "aiokafka (`aiokafka_consumer`)",
    "confluent-consumer": "confluent-kafka (`confluent_consumer`)",
    "confluent-aio": "confluent-kafka for asyncio (`confluent_aio_consumer`)",
    "java": "Java beside them, with Kafka's own assignors",
}
COLUMNS = (
    *("join", "leave", "crash", "static restart", "cooperative move", "commit fencing"),
    *("drift", "upgrade", "downgrade"),
)
BROKERS = {"loadwise": "L", "apache": "K"}
HEAD = """# Clients in a group

What members of each client did in a test, in a group with another client's member, while records were produced:
**K** on Apache Kafka 4.3.1, **L** on loadwise's coordinator, - not possible or not tried. The test run makes this page:
`LOADWISE_MATRIX=1 make test-kafka KAFKA=kafka TESTS=tests/interop/test_client_matrix.py`.

"""
FOOT = """
- **join**, **leave**, **crash** (killed with SIGKILL): every partition has one owner again, and no record is missed.
- **static restart**: a member with a group instance id gets its partitions back, and no other member notices.
- **cooperative move**: what a member keeps when another one joins, it holds all the time (`cooperative-sticky`).
- **commit fencing**: a member that is stopped (SIGSTOP) until its session is over, and goes on later, moves no
  committed offset back.
- **drift**: three members of this client, each able to process 900 records/s. All of the load, 1,350/s, moves to the
  partitions of one member. Within a minute the lag of all is below 900 again, after at most three rebalances.
- **upgrade**: from `range` by `["weighted", "range"]` to `weighted`, member by member; **downgrade**: the way back. No
  record is missed. Java has no such assignors.
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
