"""A task that Celery carries out, sent over Kafka."""

import os
from pathlib import Path

from celery import Celery

host, port = os.environ["BROKER"].split(":")
app = Celery("tasks", broker=f"confluentkafka://{host}:{port}")
app.conf.task_default_queue = os.environ["NAME"]
app.conf.broker_transport_options = {"allow_create_topics": True, "kafka_common_config": {}}
FOLDER = Path.cwd()


@app.task
def add(first, second):
    Path(FOLDER, "sum.txt").write_text(str(first + second))
