"""An ordinary consumer beside a stream, as a program of its own, to be killed: processes, and then commits.

``python member_consumer.py BOOTSTRAP TOPIC GROUP FILE``: until it is killed. It writes down which offsets came.
"""

from __future__ import annotations

import sys

from kafka.errors import CommitFailedError, KafkaTimeoutError, RebalanceInProgressError

from loadwise import kafka_python_consumer


def main(brokers: str, topic: str, group: str, file: str) -> None:
    consumer = kafka_python_consumer(
        topic,
        group_id=group,
        bootstrap_servers=brokers,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=6000,
        heartbeat_interval_ms=1000,
        max_poll_records=200,
    )
    with open(file, "a", encoding="ascii") as came:
        while True:
            for batch in consumer.poll(timeout_ms=200).values():
                came.writelines(f"{record.partition} {record.offset}\n" for record in batch)
            came.flush()
            try:
                consumer.commit(timeout_ms=5000)
            except (CommitFailedError, KafkaTimeoutError, RebalanceInProgressError) as error:
                print(repr(error), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
