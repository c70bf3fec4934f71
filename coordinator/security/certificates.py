"""Certificates for tests: an authority, a broker's certificate and clients', as PEM files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from loadwise.coordinator.errors import MissingLibraryError
from loadwise.installation import pip_install

if TYPE_CHECKING:
    from trustme import LeafCert

_UNIT, _ORGANIZATION = "tests", "loadwise"


class Certificates:
    """An authority and the certificates that it signed.

    All files are in one folder; everyone who can read it can use them.
    """

    def __init__(self, folder: Path, *hosts: str) -> None:
        try:
            import trustme  # noqa: PLC0415  (slow to import, and seldom needed)
        except ImportError as missing:
            raise MissingLibraryError(
                f"certificates need trustme, which is not installed; get it with: {pip_install('tls')}"
            ) from missing
        self._folder = folder
        self._authority = trustme.CA()
        self.authority = folder / "authority.pem"
        """The certificate of the authority, for the truststores of clients and brokers."""
        self._authority.cert_pem.write_to_path(str(self.authority))
        names = hosts or ("localhost", "127.0.0.1", "::1")
        self.broker = self._written("broker", self._authority.issue_cert(*names))
        """The broker's private key and certificates, for ``TlsFiles(keystore=...)``."""

    def client(self, name: str) -> Path:
        """Create a client's private key and certificate in one file.

        `principal` is the client's name in ACLs.
        """
        # Java cannot read a certificate without a host, though it is not checked.
        made = self._authority.issue_cert(
            "localhost", common_name=name, organization_unit_name=_UNIT, organization_name=_ORGANIZATION
        )
        return self._written(name, made)

    @staticmethod
    def principal(name: str) -> str:
        """Return the client's principal: ``User:CN=name,OU=tests,O=loadwise``."""
        return f"User:CN={name},OU={_UNIT},O={_ORGANIZATION}"

    def _written(self, name: str, made: LeafCert) -> Path:
        from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
            Encoding,
            NoEncryption,
            PrivateFormat,
            load_pem_private_key,
        )

        # PKCS #8, the only format that Java reads.
        key = load_pem_private_key(made.private_key_pem.bytes(), None)
        file = self._folder / f"{name}.pem"
        file.touch(mode=0o600)
        file.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            + b"".join(each.bytes() for each in made.cert_chain_pems)
        )
        return file
