"""The program of consumer.yaml: a consumer with metrics and probes on port 8000.

/live fails if `poll` was not called for max.poll.interval.ms. The loop hangs then, and
Kubernetes restarts the pod. /ready succeeds once the member has had partitions. Both
ignore the lag, because a restart would make it worse. SIGTERM stops the program.
"""

import argparse
import signal
import threading
import time
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

from loadwise import GroupCollector, kafka_python_consumer

MAX_POLL_S = 300.0


class Probes:
    """Answers /live and /ready, and everything else with the metrics."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.polled_at = time.monotonic()
        self.had_partitions = False
        self._metrics = make_wsgi_app(registry)

    def __call__(self, environ, start_response):
        path = environ["PATH_INFO"]
        if path == "/live":
            good = time.monotonic() - self.polled_at < MAX_POLL_S
        elif path == "/ready":
            good = self.had_partitions
        else:
            return self._metrics(environ, start_response)
        status = "200 OK" if good else "503 Service Unavailable"
        start_response(status, [("Content-Type", "text/plain")])
        return [b"yes\n" if good else b"no\n"]


class Quiet(WSGIRequestHandler):
    """Logs no requests: probes come every few seconds."""

    def log_message(self, *args) -> None:
        """Do nothing."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("topic")
    options.add_argument("--bootstrap-servers", default="kafka:9092")
    options.add_argument("--group", default="billing")
    options.add_argument("--port", type=int, default=8000)
    given = options.parse_args()

    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    consumer = kafka_python_consumer(
        given.topic,
        assignor="cooperative-weighted",
        group_id=given.group,
        bootstrap_servers=given.bootstrap_servers,
        max_poll_interval_ms=int(1000 * MAX_POLL_S),
    )
    registry = CollectorRegistry()
    registry.register(GroupCollector(consumer, group_id=given.group))
    probes = Probes(registry)
    server = make_server("", given.port, probes, handler_class=Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"serving on port {server.server_port}", flush=True)

    while not stopping.is_set():
        for records in consumer.poll(timeout_ms=500).values():
            for record in records:
                print(record.value, flush=True)  # your work
        probes.polled_at = time.monotonic()
        probes.had_partitions = probes.had_partitions or bool(consumer.assignment())
    consumer.close()  # leaves the group at once, so that the others take over
    server.shutdown()


if __name__ == "__main__":
    main()
