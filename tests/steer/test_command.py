"""`loadwise steer` as a program: JSON lines, metrics and a history that can be replayed."""

import json
import signal
import subprocess
import sys
import threading
import urllib.request
from contextlib import ExitStack

from command_line import invoke
from confluent_kafka import Consumer
from kafka_process import reserved_port
from topics import WAIT_S, fill, make_topic, until


def test_the_command_reports_its_decisions(broker, topic_name, group_id, tmp_path):
    make_topic(broker, topic_name, 2)
    fill(broker, topic_name, [10, 10])
    history, left = tmp_path / "group.jsonl", threading.Event()
    with reserved_port() as port:
        pass  # the command takes it
    with ExitStack() as stack:
        config = {"bootstrap.servers": broker, "group.id": group_id, "group.protocol": "consumer", "log_level": 0}
        consumer = Consumer(config | {"auto.offset.reset": "earliest", "auto.commit.interval.ms": 200})
        consumer.subscribe([topic_name])

        def consume():
            while not left.is_set():
                consumer.poll(0.1)
            consumer.close()

        member = threading.Thread(target=consume)
        member.start()
        stack.callback(lambda: (left.set(), member.join()))
        command = [sys.executable, "-m", "loadwise", "steer", "--bootstrap-servers", broker, "--group", group_id]
        command += ["--json", "--history", str(history), "--metrics-port", str(port)]
        steering = stack.enter_context(
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
        stack.callback(steering.kill)
        lines = map(json.loads, steering.stdout)
        said = next((line for line in lines if line["decision"] is not None), None)
        assert said is not None, steering.stderr.read()
        assert (said["group"], said["protocol"], said["asks"], len(said["members"])) == (group_id, "loadwise", False, 1)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=WAIT_S) as answer:
            metrics = answer.read().decode()
        for each in ("loadwise_leads", "loadwise_members_missing", "loadwise_steering_written_bytes_total"):
            assert f'{each}{{group="{group_id}"}}' in metrics
        assert f'loadwise_leads{{group="{group_id}"}} 1.0' in metrics
        steering.send_signal(signal.SIGTERM)
        _, log = steering.communicate(timeout=WAIT_S)
        assert steering.returncode == 0, log
        assert f"{group_id}: Steering" in log
        until(history.exists)
    replayed = invoke(["replay", str(history)])
    assert replayed.exit_code == 0, replayed.output
    assert "none of them" in replayed.output
