"""The names of Kafka's security settings that have an effect."""

from __future__ import annotations

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
"""The SASL mechanisms."""
JAAS = "sasl.jaas.config"
ENABLED_MECHANISMS = "sasl.enabled.mechanisms"
TLS = {
    "ssl.keystore.location": "keystore",
    "ssl.key.password": "key_password",
    "ssl.truststore.location": "truststore",
    "ssl.client.auth": "client_auth",
}
STORE_TYPES = ("ssl.keystore.type", "ssl.truststore.type")
RULES = "ssl.principal.mapping.rules"
AUTHORIZATION = ("super.users", "allow.everyone.if.no.acl.found")
NAMES = (
    "security.protocol", ENABLED_MECHANISMS, JAAS, *(f"{each.lower()}.{JAAS}" for each in MECHANISMS),
    "connections.max.reauth.ms", *TLS, *STORE_TYPES, RULES, "authorizer.class.name", *AUTHORIZATION,
)  # fmt: skip
"""The supported security settings."""
