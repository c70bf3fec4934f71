"""A Faust application without tables, whose workers share the load of their group by one of our assignors.

python examples/faust_worker.py flights --bootstrap-servers localhost:9092 --capacity 2

With tables Faust needs its own assignor: a worker must own the partitions of a table's changelog that belong to the
partitions that it reads.
"""

import argparse
import sys
import tempfile
from typing import Any

import faust
from faust.transport.drivers import aiokafka as driver

from loadwise import aiokafka_consumer


class LoadwiseThread(driver.AIOKafkaConsumerThread):
    """Faust's thread for a consumer, which is made by our factory in place of aiokafka's class."""

    def _create_worker_consumer(self, transport: Any) -> Any:
        conf = self.app.conf
        if self.app.tables.changelog_topics:
            raise faust.exceptions.ImproperlyConfigured("an application with tables needs Faust's own assignor")
        transport.consumer = aiokafka_consumer(
            group_id=conf.id,
            group_instance_id=conf.consumer_group_instance_id,
            client_id=conf.broker_client_id,
            bootstrap_servers=driver.server_list(transport.url, transport.default_port),
            auto_offset_reset=conf.consumer_auto_offset_reset,
            enable_auto_commit=False,  # Faust commits by itself
            isolation_level="read_committed" if self.consumer.in_transaction else "read_uncommitted",
            max_poll_interval_ms=int((conf.broker_max_poll_interval or 0) * 1000),
            session_timeout_ms=int(conf.broker_session_timeout * 1000),
            heartbeat_interval_ms=int(conf.broker_heartbeat_interval * 1000),
            **driver.credentials_to_aiokafka_auth(conf.broker_credentials, conf.ssl_context),
            **transport.ours,
        )
        return transport.consumer


class LoadwiseConsumer(driver.Consumer):
    """Faust's consumer with that thread."""

    def _new_consumer_thread(self) -> LoadwiseThread:
        return LoadwiseThread(self, loop=self.loop, beacon=self.beacon)


class LoadwiseTransport(driver.Transport):
    """Faust's way to reach Kafka, with that consumer: set it as ``app.transport``."""

    Consumer = LoadwiseConsumer
    consumer: Any = None

    def __init__(self, app: faust.App, **ours: Any) -> None:
        super().__init__(app.conf.broker_consumer, app)
        self.ours = ours


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("topic")
    options.add_argument("--bootstrap-servers", default="localhost:9092")
    options.add_argument("--group", default="loadwise-example")
    options.add_argument("--assignor", default="weighted")
    options.add_argument("--capacity", type=float, default=1.0, help="what this consumer can do, next to the others")
    options.add_argument("--seconds", type=float, default=30.0, help="how long to run...")
    options.add_argument("--records", type=int, default=sys.maxsize, help="... unless so many have come before")
    given = options.parse_args()

    app = faust.App(
        given.group,
        broker=f"kafka://{given.bootstrap_servers}",
        datadir=tempfile.mkdtemp(),
        topic_disable_leader=True,
        web_enabled=False,
    )
    app.transport = LoadwiseTransport(app, assignor=given.assignor, capacity=given.capacity)
    worker = faust.Worker(app, loglevel="warning")
    seen: set[tuple[str, int]] = set()
    stopping: set[Any] = set()
    records = 0

    @app.agent(app.topic(given.topic, value_type=bytes, value_serializer="raw"))
    async def process(stream: Any) -> None:
        nonlocal records
        async for event in stream.events():
            seen.add((event.message.topic, event.message.partition))
            records += 1
            if records == given.records:
                stopping.add(worker.loop.create_task(worker.stop()))

    @app.task
    async def end() -> None:
        await app.sleep(given.seconds)
        stopping.add(worker.loop.create_task(worker.stop()))

    try:
        worker.execute_from_commandline()
    except SystemExit as ended:
        if ended.code:
            raise
    decisions = app.transport.consumer.rebalances
    print("read", sorted(seen))
    print(f"{records} records; led {decisions.led} rebalances, {decisions.fallbacks} of them without load")


if __name__ == "__main__":
    main()
