"""Reading through TLS, with the stores that Java's users have: a proxy with certificates stands before the broker."""

from __future__ import annotations

import asyncio
import pickle
import shutil
import ssl
import subprocess
import threading

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from confluent_kafka import Producer
from topics import WAIT_S

from loadwise.coordinator import Coordinator
from loadwise.spark_source.cluster import offsets
from loadwise.spark_source.errors import OffsetsUnavailableError, OptionError
from loadwise.spark_source.options import stores as stores_module
from loadwise.spark_source.options.query import parse
from loadwise.spark_source.planning.query import checked, planned_by
from loadwise.spark_source.reading.arrow_batches import full_schema
from loadwise.spark_source.reading.tasks import read_task
from loadwise.spark_source.task import OffsetRange, Task

PASSWORD = "not-to-be-seen"

pytestmark = pytest.mark.skipif(
    not (shutil.which("keytool") and shutil.which("openssl")), reason="needs keytool (of a JDK) and openssl"
)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """A folder with a server's and a client's certificate, each trusted by the other, as Java and as PEM."""
    folder = tmp_path_factory.mktemp("stores")

    def run(*command):
        subprocess.run([*map(str, command)], cwd=folder, check=True, capture_output=True, timeout=WAIT_S)

    for name in ("server", "client"):
        subject = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", 30,
            *subject, "-keyout", f"{name}.key", "-out", f"{name}.pem")  # fmt: skip
    keytool = ("keytool", *stores_module.JVM)
    for kind in ("jks", "pkcs12"):
        run(*keytool, "-importcert", "-noprompt", "-alias", "ca", "-file", "server.pem", "-keystore", f"trust.{kind}",
            "-storetype", kind, "-storepass", PASSWORD)  # fmt: skip
    run("openssl", "pkcs12", "-export", "-in", "client.pem", "-inkey", "client.key", "-out", "client.p12",
        "-passout", f"pass:{PASSWORD}")  # fmt: skip
    run(*keytool, "-importkeystore", "-noprompt", "-srckeystore", "client.p12", "-srcstorepass", PASSWORD,
        "-destkeystore", "client.jks", "-deststoretype", "JKS", "-deststorepass", PASSWORD)  # fmt: skip
    return folder


class TlsProxy:
    """Takes TLS connections from clients with a certificate, and hands what comes on to a plain address."""

    def __init__(self, stores):
        self.target = None
        self.port = None
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(stores / "server.pem", stores / "server.key")
        self._context.verify_mode = ssl.CERT_REQUIRED
        self._context.load_verify_locations(stores / "client.pem")
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    def __enter__(self):
        self._thread.start()
        assert self._ready.wait(WAIT_S)
        return self

    def __exit__(self, *error):
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    async def _serve(self):
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self._context)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._over.wait()
        server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connected(self, reader, writer):
        there_reader, there_writer = await asyncio.open_connection(*self.target)
        await asyncio.gather(self._copy(reader, there_writer), self._copy(there_reader, writer))

    async def _copy(self, reader, writer):
        try:
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass  # a client that does not trust us, or that is gone
        finally:
            writer.close()


@pytest.fixture
def tls(stores):
    """The address of a broker with a topic ``t`` that can be reached through TLS only."""
    with (
        TlsProxy(stores) as proxy,
        Coordinator({"t": 2}, advertised_host="127.0.0.1", advertised_port=proxy.port).in_thread() as coordinator,
    ):
        # Where it listens; what it says of itself is the proxy's address.
        proxy.target = coordinator._embedded.server._listeners._sockets[0].getsockname()
        yield f"127.0.0.1:{proxy.port}"


def options(address, stores, **more):
    given = {
        "bootstrap.servers": address,
        "security.protocol": "SSL",
        "ssl.truststore.location": stores / "trust.jks",
        "ssl.truststore.password": PASSWORD,
        "ssl.keystore.location": stores / "client.p12",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.password": PASSWORD,
    }
    given |= {name.replace("__", "."): value for name, value in more.items()}
    return {"subscribe": "t"} | {f"kafka.{name}": str(value) for name, value in given.items()}


def client_certificate(stores, form):
    """The settings of a client's certificate and key: in a store, in a file of PEM, or written out."""
    certificate, key = ((stores / f"client.{end}").read_text() for end in ("pem", "key"))
    (stores / "both.pem").write_text(key + certificate)
    return {
        "PKCS12": {},
        "JKS": {"ssl__keystore__location": stores / "client.jks", "ssl__keystore__type": "JKS"},
        "PEM": {"ssl__keystore__location": stores / "both.pem", "ssl__keystore__type": "PEM"},
        "inline": {"ssl__keystore__certificate__chain": certificate, "ssl__keystore__key": key},
    }[form]


@pytest.mark.parametrize(
    ("kind", "form", "reader"),
    [
        ("JKS", "PKCS12", "messages"),
        ("PKCS12", "PEM", "batches"),
        ("JKS", "inline", "batches"),
        ("PKCS12", "JKS", "batches"),
    ],
)
def test_reading_with_a_trust_store_of_javas_and_a_client_certificate(tls, stores, kind, form, reader):
    producer = Producer(
        {
            "bootstrap.servers": tls,
            "security.protocol": "SSL",
            "ssl.ca.location": str(stores / "server.pem"),
            "ssl.certificate.location": str(stores / "client.pem"),
            "ssl.key.location": str(stores / "client.key"),
        }
    )
    for number in range(30):
        producer.produce("t", b"v", partition=number % 2)
    assert producer.flush(WAIT_S) == 0
    given = options(tls, stores, ssl__truststore__location=stores / f"trust.{kind.lower()}", ssl__truststore__type=kind)
    if form == "inline":
        given = {name: value for name, value in given.items() if "keystore" not in name}
    given |= {
        f"kafka.{name.replace('__', '.')}": str(value) for name, value in client_certificate(stores, form).items()
    }
    parsed = checked(given)
    assert parsed.reader == reader, "Python's ssl reads no PKCS12"
    assert PASSWORD not in repr(parsed) + str(parsed.client)
    assert "PRIVATE KEY" not in repr(parsed) + str(parsed.client)
    plan, sent = pickle.loads(pickle.dumps((planned_by(parsed), parsed)))  # as the tasks get them
    schema = full_schema(include_headers=False)
    assert sum(batch.num_rows for task in plan.tasks for batch in read_task(task, sent, schema)) == 30


def test_certificates_that_an_executor_lacks_are_named_at_once(stores):
    """The driver has read them; so there is no use in trying until the timeout."""
    change = {"ssl__keystore__location": "/no/such.pem", "ssl__keystore__type": "PEM"}
    parsed = parse(options("127.0.0.1:1", stores, ssl__truststore__type="PEM", **change))
    reading = read_task(Task("slot-0", (OffsetRange("t", 0, 0, 1),), 1.0), parsed, full_schema(include_headers=False))
    with pytest.raises(OptionError, match=r"^option kafka.ssl.\*: certificates or keys cannot be read where this task"):
        next(reading)


def test_a_server_that_is_not_trusted_is_named(tls, stores, monkeypatch):
    monkeypatch.setattr(offsets, "PATIENCE_S", 0.5)  # from the refusal on
    given = options(tls, stores)
    given |= {"kafka.ssl.truststore.location": str(stores / "client.pem"), "kafka.ssl.truststore.type": "PEM"}
    remedy = "; check kafka.security.protocol, kafka.ssl.truststore.location and the other kafka.ssl.* options"
    with pytest.raises(OffsetsUnavailableError, match="certificate verify failed") as refused:
        planned_by(checked(given))
    assert str(refused.value).endswith(remedy)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"ssl__truststore__password": "wrong"}, "cannot be read as JKS: .*password was incorrect"),
        ({"ssl__truststore__location": "/no/such.jks"}, "/no/such.jks cannot be read as JKS: .*(exist|No such)"),
        (
            {"ssl__truststore__location": "/no/such.pem", "ssl__truststore__type": "PEM"},
            "/no/such.pem cannot be read as PEM: .*No such",
        ),
        ({"ssl__truststore__location": __file__, "ssl__truststore__type": "PEM"}, "as PEM: it holds no certificate"),
    ],
    ids=["password", "file", "file of PEM", "no PEM"],
)
def test_a_trust_store_that_cannot_be_read(stores, change, problem):
    with pytest.raises(OptionError, match=f"^option kafka.ssl.truststore.location: .*{problem}") as refused:
        checked(options("127.0.0.1:1", stores, **change))
    assert PASSWORD not in str(refused.value)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"ssl__keystore__password": "wrong"}, "password was incorrect"),
        ({"ssl__keystore__location": "/no/such.jks"}, "/no/such.jks"),
        ({"ssl__keystore__location": "trust.jks"}, "trust.jks holds 0 keys with 1 certificates; expected one key"),
    ],
    ids=["password", "file", "no key"],
)
def test_a_key_store_of_javas_that_cannot_be_read(stores, change, problem):
    change = {"ssl__keystore__location": "client.jks", "ssl__keystore__type": "JKS"} | change
    change["ssl__keystore__location"] = stores / change["ssl__keystore__location"]
    with pytest.raises(OptionError, match=f"^option kafka.ssl.keystore.location: .*{problem}") as refused:
        checked(options("127.0.0.1:1", stores, **change))
    assert PASSWORD not in str(refused.value)


def test_without_openssl_the_way_out_for_a_key_store_is_named(stores, monkeypatch):
    monkeypatch.setattr(stores_module.shutil, "which", lambda name: None if name == "openssl" else f"/bin/{name}")
    change = {"ssl__keystore__location": stores / "client.jks", "ssl__keystore__type": "JKS"}
    with pytest.raises(
        OptionError, match=r"needs openssl, not on PATH; convert it on another machine: keytool -importkey"
    ):
        checked(options("127.0.0.1:1", stores, **change))


def test_without_keytool_the_way_out_is_named(stores, monkeypatch):
    monkeypatch.setattr(stores_module, "keytool", lambda: None)
    with pytest.raises(OptionError, match=r"keytool -list -rfc -keystore .*trust.jks > ca.pem, and set"):
        checked(options("127.0.0.1:1", stores))
