"""ssl.principal.mapping.rules: the examples of Kafka's documentation and of its own ``SslPrincipalMapperTest``."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from topics import WAIT_S

from loadwise.coordinator import Acl, Authorization, BadSecurityError, Certificates, Coordinator, Security
from loadwise.coordinator.security.broker_configs import security_of
from loadwise.coordinator.security.principal_rules import principal_name, principal_rules

DOCUMENTED = (
    r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,"
    r"RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L,"
    r"RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,"
    r"DEFAULT"
)
ORDERED = (
    r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L, "
    r"RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U, RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U, DEFAULT"
)


@pytest.mark.parametrize(
    ("rules", "subject", "name"),
    [
        (DOCUMENTED, "CN=serviceuser,OU=ServiceUsers,O=Unknown,L=Unknown,ST=Unknown,C=Unknown", "serviceuser"),
        (DOCUMENTED, "CN=adminUser,OU=Admin,O=Unknown,L=Unknown,ST=Unknown,C=Unknown", "adminuser@admin"),
        (ORDERED, "CN=Duke,OU=ServiceUsers,O=Org,C=US", "duke"),
        (ORDERED, "CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        (ORDERED, "cn=duke,ou=sme,dc=mycp,dc=com", "DUKE@SME"),
        (ORDERED, "CN=duke,OU=JavaSoft,O=Sun Microsystems", "DUKE"),
        (ORDERED, "OU=JavaSoft,O=Sun Microsystems,C=US", "OU=JavaSoft,O=Sun Microsystems,C=US"),
        ("", "CN=a,O=b", "CN=a,O=b"),
        ("DEFAULT", "CN=a,O=b", "CN=a,O=b"),
        (r"RULE:^CN=([^,]*),.*$/$1/", "O=b", None),
        (r"RULE:^CN=(.*?),OU=(.*)$/$1\/$2/", "CN=a,OU=b", "a/b"),
        (r"RULE:^CN=(.*?)\/.*$/$1/U", "CN=a/b", "A"),
        (r"RULE:^.*/Test/", "CN=a", "Test"),
        (r"RULE:.*/Test/", "CN=a", "TestTest"),  # as "CN=a".replaceAll(".*", "Test") in Java
        (r"RULE:CN=(.*?)(,.*)?/$1/", "CN=a,OU=b", "a,OU=b"),
        (r"RULE:CN=(\w+)/$1/", "CN=J\u00fcrgen", None),
        (r"RULE:CN=(.*)/$1-$2/", "CN=a", "a-$2"),
    ],
)
def test_the_first_rule_that_fits_makes_the_name(rules: str, subject: str, name: str | None) -> None:
    assert principal_name(principal_rules(rules), subject) == name


@pytest.mark.parametrize(
    "rules",
    [
        "default", "DEFAUL", "DEFAULT/L", "DEFAULT/U", "DEFAULT DEFAULT", "RULE:CN=(.*?),OU=ServiceUsers.*/$1",
        "rule:^CN=(.*?),OU=ServiceUsers.*$/$1/L/U", "RULE:^CN=(.*?),OU=ServiceUsers.*$/LU",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/LU", "RULE:^CN=((.*?),OU=ServiceUsers.*$/$1/", "RULE:(?u)CN=(.*)/$1/",
    ],
)  # fmt: skip
def test_what_is_no_rule_is_refused(rules: str) -> None:
    with pytest.raises(BadSecurityError, match=r"ssl\.principal\.mapping\.rules"):
        principal_rules(rules)


def test_a_client_goes_by_the_name_that_a_rule_makes_of_its_certificate(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """And one that no rule is for is not served."""
    certificates = Certificates(tmp_path)
    allowed = Authorization(acls=[Acl.of("User:orders", "DESCRIBE", "TOPIC", "seen")])
    security, _ = security_of(
        {
            "security.protocol": "SSL",
            "ssl.keystore.location": str(certificates.broker),
            "ssl.truststore.location": str(certificates.authority),
            "ssl.client.auth": "required",
            "ssl.principal.mapping.rules": r"RULE:^CN=(orders).*$/$1/L",
        }
    )
    assert security is not None
    both = replace(security, authorization=allowed)
    with Coordinator({"seen": 1, "hidden": 1}, security=both).in_thread() as coordinator:
        own = certificates.client("orders")
        config = {
            "bootstrap.servers": coordinator.bootstrap_servers,
            "security.protocol": "SSL",
            "ssl.ca.location": str(certificates.authority),
            "ssl.key.location": str(own),
            "ssl.certificate.location": str(own),
            "log_level": 0,
        }
        assert set(AdminClient(config).list_topics(timeout=WAIT_S).topics) == {"seen"}
        context = ssl.create_default_context(cafile=certificates.authority)
        context.load_cert_chain(certificates.client("billing"))
        host, port = coordinator.bootstrap_servers.split(":")
        with (
            socket.create_connection((host, int(port)), timeout=WAIT_S) as plain,
            context.wrap_socket(plain, server_hostname=host) as other,
            suppress(ConnectionError, ssl.SSLError),
        ):
            assert other.recv(1) == b""
    assert "no rule of ssl.principal.mapping.rules matches the certificate of CN=billing" in caplog.text


def test_rules_that_cannot_be_are_refused_at_once() -> None:
    with pytest.raises(BadSecurityError, match="is not valid from 'nonsense' on"):
        Security(protocol="PLAINTEXT", principal_mapping_rules="nonsense")
