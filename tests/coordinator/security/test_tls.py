"""Clients over TLS, with and without certificates and passwords of their own."""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from secured_clients import CLIENTS, Access, confluent, java
from secured_kafka import PASSWORDS, SecuredKafka
from topics import WAIT_S

from loadwise.coordinator import BadSecurityError, Certificates, Coordinator, Security, TlsFiles
from loadwise.coordinator.security.tls import subject_name

USER = "owner"
LOGIN = {"mechanism": "SCRAM-SHA-512", "user": USER, "password": PASSWORDS[USER]}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@contextmanager
def listening(certificates: Certificates, protocol: str, **tls: Any) -> Iterator[str]:
    security = Security(protocol=protocol, users=PASSWORDS, tls=TlsFiles(keystore=certificates.broker, **tls))
    with Coordinator(security=security).in_thread() as coordinator:
        yield coordinator.bootstrap_servers


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_clients_over_tls(certificates: Certificates, client: Callable[[Access], str], protocol: str) -> None:
    login = LOGIN if protocol == "SASL_SSL" else {}
    with listening(certificates, protocol) as address:
        assert client(Access(address=address, protocol=protocol, authority=certificates.authority, **login)) == "hello"


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_clients_that_show_a_certificate(certificates: Certificates, client: Callable[[Access], str]) -> None:
    own = certificates.client("orders")
    with listening(certificates, "SSL", truststore=certificates.authority, client_auth="required") as address:
        access = Access(address=address, protocol="SSL", authority=certificates.authority, certificate=own)
        assert client(access) == "hello"


@pytest.fixture(params=["loadwise", pytest.param("apache", marks=pytest.mark.kafka)])
def wants_certificates(request: pytest.FixtureRequest, certificates: Certificates) -> Iterator[tuple[str, Path]]:
    """The address of a broker that asks clients for certificates, and whom it believes."""
    if request.param == "apache":
        secured: SecuredKafka = request.getfixturevalue("secured")
        yield secured.addresses["SSL"], secured.folder / "ca.pem"
    else:
        with listening(certificates, "SSL", truststore=certificates.authority, client_auth="required") as address:
            yield address, certificates.authority


def alerted(context: ssl.SSLContext, host: str, port: int) -> str | None:
    """When a client hears an alert of TLS; None if it hears none."""
    at = "handshake"
    try:
        with (
            socket.create_connection((host, port), timeout=WAIT_S) as plain,
            context.wrap_socket(plain, server_hostname=host) as peer,
        ):
            at = "first read"
            peer.recv(1)
    except ssl.SSLError as error:
        return at if "ALERT" in str(error.reason) else None
    return None


@pytest.mark.parametrize(
    ("version", "moment"),
    [(ssl.TLSVersion.TLSv1_2, "handshake"), (ssl.TLSVersion.TLSv1_3, "first read")],
    ids=lambda each: getattr(each, "name", ""),
)
def test_who_shows_no_certificate_that_is_believed_is_told_so(
    wants_certificates: tuple[str, Path], version: ssl.TLSVersion, moment: str, tmp_path: Path
) -> None:
    address, authority = wants_certificates
    host, port = address.split(":")
    for own in (None, Certificates(tmp_path).client("stranger")):
        context = ssl.create_default_context(cafile=authority)
        context.minimum_version = context.maximum_version = version
        if own is not None:
            context.load_cert_chain(own)
        assert alerted(context, host, int(port)) == moment


def test_who_speaks_no_tls_is_let_go(certificates: Certificates) -> None:
    with listening(certificates, "SSL") as address:
        host, port = address.split(":")
        with socket.create_connection((host, int(port)), timeout=WAIT_S) as plain:
            plain.sendall(bytes.fromhex("0000000c00120000000000070001007800"))  # ApiVersions
            with contextlib.suppress(ConnectionResetError):
                assert plain.recv(1) == b""


def test_a_client_that_does_not_believe_the_broker(certificates: Certificates, tmp_path: Path) -> None:
    other = Certificates(tmp_path)
    with listening(certificates, "SSL") as address:
        told = confluent(Access(address=address, protocol="SSL", authority=other.authority))
        assert told.startswith("_SSL: ")
        assert "verify" in told


def test_a_certificate_may_be_asked_for_without_need(certificates: Certificates) -> None:
    with listening(certificates, "SSL", truststore=certificates.authority, client_auth="requested") as address:
        assert confluent(Access(address=address, protocol="SSL", authority=certificates.authority)) == "hello"


@pytest.mark.kafka
@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_java_clients_over_tls(certificates: Certificates, protocol: str, tmp_path: Path) -> None:
    tls = {"truststore": certificates.authority, "client_auth": "required"}
    login = LOGIN if protocol == "SASL_SSL" else {}
    with listening(certificates, protocol, **tls) as address:
        own = certificates.client("orders")
        access = Access(address=address, protocol=protocol, authority=certificates.authority, certificate=own, **login)
        done = java(access, tmp_path)
        assert done.returncode == 0, done.stderr


def test_the_coordinator_stops_while_a_peer_is_silent_in_its_handshake(certificates: Certificates) -> None:
    with listening(certificates, "SSL") as address:
        host, port = address.split(":")
        silent = socket.create_connection((host, int(port)))
    silent.close()


def test_a_subject_is_written_as_openssl_writes_it(tmp_path: Path) -> None:
    subject = '/C=DE/O=a/CN=x, "y"; <z>#'
    ask = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", subject)
    files = ("-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "own.pem"))
    subprocess.run([*ask, *files], check=True, capture_output=True, timeout=WAIT_S)
    shown = ("openssl", "x509", "-in", str(tmp_path / "own.pem"), "-noout", "-subject", "-nameopt", "RFC2253")
    told = subprocess.run(shown, check=True, capture_output=True, text=True, timeout=WAIT_S).stdout
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(tmp_path / "own.pem")
    (certificate,) = context.get_ca_certs()
    assert subject_name(certificate) == told.strip().removeprefix("subject=").lstrip()


def test_files_that_cannot_be_used_are_named(certificates: Certificates, tmp_path: Path) -> None:
    for tls in (
        TlsFiles(keystore=tmp_path / "none.pem"),
        TlsFiles(keystore=certificates.authority),
        TlsFiles(keystore=certificates.broker, truststore=tmp_path / "none.pem"),
        TlsFiles(keystore=certificates.broker, client_auth="required"),
        TlsFiles(keystore=certificates.broker, client_auth="maybe"),  # type: ignore[arg-type]
    ):
        with pytest.raises(BadSecurityError):
            Coordinator(security=Security(protocol="SSL", tls=tls))
    for protocol, given in (("SSL", None), ("PLAINTEXT", TlsFiles(keystore=certificates.broker))):
        with pytest.raises(BadSecurityError, match="SSL and SASL_SSL need tls="):
            Security(protocol=protocol, tls=given)  # type: ignore[arg-type]


def test_a_key_may_be_encrypted(certificates: Certificates, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
        load_pem_private_key,
    )

    plain = certificates.broker.read_bytes()
    key = load_pem_private_key(plain, None)
    encrypted = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"a-secret"))
    file = tmp_path / "encrypted.pem"
    file.write_bytes(encrypted + plain[plain.index(b"-----BEGIN CERTIFICATE") :])
    tls = TlsFiles(keystore=file, key_password="a-secret")
    assert isinstance(tls.context(), ssl.SSLContext)
    assert "a-secret" not in repr(tls)
    with pytest.raises(BadSecurityError):
        TlsFiles(keystore=file).context()
