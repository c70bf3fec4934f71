"""Reading from an Apache Kafka that asks for TLS and a password, with the Java client's settings; no Spark in it."""

from __future__ import annotations

import base64
import json
import pickle
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from secured_kafka import OAUTH_MODULE, PASSWORDS, PREFIX, STORE_PASSWORD
from topics import fill, make_topic

from loadwise.spark_source.cluster import offsets
from loadwise.spark_source.errors import GroupUnavailableError, OffsetsUnavailableError, ReadError
from loadwise.spark_source.planning.query import checked, planned_by
from loadwise.spark_source.reading.arrow_batches import full_schema
from loadwise.spark_source.reading.tasks import read_task

pytestmark = pytest.mark.kafka

MECHANISMS = ["SCRAM-SHA-512", "PLAIN"]
READERS = ["batches", "messages"]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(offsets, "PATIENCE_S", 1.0)


@pytest.fixture(scope="module")
def topic(secured):
    """Two partitions with 15 records each, in what ``reader`` may read."""
    name = f"{PREFIX}{uuid.uuid4().hex[:12]}"
    make_topic(secured.open_address, name, 2)
    fill(secured.open_address, name, [15, 15])
    return name


def options(secured, topic, user, mechanism="SCRAM-SHA-512", *, password=None, kafka=None, **more):
    settings = secured.settings(user, mechanism, password) | {"bootstrap.servers": secured.address} | (kafka or {})
    return {"subscribe": topic} | {f"kafka.{name}": value for name, value in settings.items()} | more


def records(given):
    """How many records are read, when the plan and the options have gone to the tasks and back."""
    parsed = checked(given)
    plan, sent = pickle.loads(pickle.dumps((planned_by(parsed), parsed)))
    schema = full_schema(include_headers=False)
    return sum(batch.num_rows for task in plan.tasks for batch in read_task(task, sent, schema))


def shows_no_password(error):
    text = str(error.value)
    assert "not-to-be-seen" not in text
    assert "\n" not in text
    return text


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_reading_with_a_password_through_tls(secured, topic, mechanism, reader):
    """This user has rights on no group whose name begins as ours do: reading takes none."""
    assert records(options(secured, topic, "reader", mechanism, reader=reader)) == 30


@pytest.mark.parametrize("reader", READERS)
def test_tasks_need_no_copy_of_a_file_of_certificates(secured, topic, tmp_path, reader):
    bundle = tmp_path / "bundle.pem"
    bundle.write_text("".join((secured.folder / f"{name}.pem").read_text() for name in ("other", "ca")))
    parsed = checked(options(secured, topic, "reader", kafka={"ssl.truststore.location": str(bundle)}, reader=reader))
    bundle.unlink()
    schema = full_schema(include_headers=False)
    read = sum(batch.num_rows for task in planned_by(parsed).tasks for batch in read_task(task, parsed, schema))
    assert read == 30


@pytest.mark.parametrize("reader", READERS)
def test_reading_with_a_trust_store_of_javas(secured, topic, reader):
    store = {"location": str(secured.folder / "ca.jks"), "type": "JKS", "password": STORE_PASSWORD}
    kafka = {f"ssl.truststore.{name}": value for name, value in store.items()}
    assert records(options(secured, topic, "reader", kafka=kafka, reader=reader)) == 30


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_names_the_options_to_change(secured, topic, mechanism):
    """As soon as it is clear, and not when kafka.default.api.timeout.ms is over."""
    given = options(secured, topic, "reader", mechanism, password="wrong-not-to-be-seen")
    given["kafka.default.api.timeout.ms"] = str(3_600_000)
    with pytest.raises(OffsetsUnavailableError, match=f"^cannot look up topic {topic}: .*uthentication") as failed:
        records(given)
    assert shows_no_password(failed).endswith("; check kafka.sasl.mechanism and kafka.sasl.jaas.config")


def test_a_mechanism_that_the_broker_does_not_have_is_named(secured, topic):
    given = options(secured, topic, "reader", kafka={"sasl.mechanism": "SCRAM-SHA-256"})
    with pytest.raises(OffsetsUnavailableError, match=r"SCRAM-SHA-256.* check kafka.sasl.mechanism and") as failed:
        records(given)
    shows_no_password(failed)


@pytest.mark.parametrize("reader", READERS)
def test_a_user_who_may_not_read_is_told_topic_partition_offset_and_right(secured, topic, reader):
    with pytest.raises(ReadError) as failed:
        records(options(secured, topic, "looker", reader=reader))
    text = shows_no_password(failed)
    assert text.startswith(f"cannot read {topic}-0 at offset 0 (of {topic}-0[0, 15)): ")
    assert text.endswith("give this user (kafka.sasl.*, kafka.ssl.*) the right to READ the topic")


def test_a_user_who_may_not_even_see_the_topic_is_told_the_rights(secured, topic):
    with pytest.raises(OffsetsUnavailableError, match=f"^cannot look up topic {topic}: ") as failed:
        records(options(secured, topic, "stranger"))
    assert shows_no_password(failed).endswith("(kafka.sasl.*, kafka.ssl.*) DESCRIBE and READ on the topic")


def test_a_group_that_may_not_be_seen(secured, topic):
    follow = {"assignment.mode": "follow", "assignment.group": "somebodys"}
    with pytest.raises(GroupUnavailableError, match=r"somebodys.*uthorization") as failed:
        records(options(secured, topic, "reader", **follow))
    shows_no_password(failed)


def test_passwords_are_shown_nowhere(secured, topic):
    parsed = checked(options(secured, topic, "reader"))
    assert PASSWORDS["reader"] not in repr(parsed) + str(parsed.client)


@pytest.fixture
def tokens():
    """The address of a server of tokens (OpenID Connect's client credentials), and what it was asked, each time."""
    asked = []

    def part(fields):
        return base64.urlsafe_b64encode(json.dumps(fields).encode()).rstrip(b"=").decode()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            login = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
            asked.append((login, self.rfile.read(int(self.headers["Content-Length"])).decode()))
            claims = {"sub": "owner", "iat": int(time.time()), "exp": int(time.time()) + 600}
            body = json.dumps({"access_token": f"{part({'alg': 'none'})}.{part(claims)}.", "expires_in": 600}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/token", asked
        server.shutdown()
        thread.join()


def test_reading_with_tokens(secured, topic, tokens):
    endpoint, asked = tokens
    login = f'{OAUTH_MODULE} required clientId="us" clientSecret="clients-not-to-be-seen" scope="read";'
    kafka = {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": login,
        "sasl.oauthbearer.token.endpoint.url": endpoint,
        "sasl.login.callback.handler.class": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
        ),
    }
    assert records(options(secured, topic, "reader", kafka=kafka)) == 30
    assert {user for user, _ in asked} == {"us:clients-not-to-be-seen"}
    assert all("grant_type=client_credentials" in form and "scope=read" in form for _, form in asked)
