"""The server's certificate, the root that signed it, and the files of what clients trust. All are gone afterwards."""

import dataclasses
import pathlib

from .processes import run
from .workloads import Trust

# The file of the certificates that Debian trusts. Clients without a setting for it read this file.
SYSTEM_BUNDLE = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")

# Satisfies X509_STRICT, which some clients require and OpenSSL's defaults do not satisfy.
REQUEST_CONFIGURATION = """\
[req]
distinguished_name = name
prompt = no
[name]
CN = {common_name}
"""
ROOT_EXTENSIONS = """\
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid:always
"""
LEAF_EXTENSIONS = """\
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid:always
subjectAltName = IP:127.0.0.1, DNS:localhost
"""


@dataclasses.dataclass(frozen=True)
class Certificates:
    folder: pathlib.Path

    @property
    def leaf(self):
        return self.folder / "leaf.pem"

    @property
    def leaf_key(self):
        return self.folder / "leaf.key"

    def trusted(self, trust):
        """The file with what a client trusts."""
        return self.folder / trust.value

    def make(self):
        self.folder.mkdir()
        root = self.trusted(Trust.ROOT)
        root_key = self.request("root", "Larkspur benchmark root", ROOT_EXTENSIONS)
        self.sign("root", root, "-signkey", root_key)
        self.request("leaf", "Larkspur benchmark server", LEAF_EXTENSIONS)
        self.sign("leaf", self.leaf, "-CA", root, "-CAkey", root_key, "-CAcreateserial")
        # The root comes last, so that a client that searches the list finds it as late as possible.
        self.trusted(Trust.BUNDLE).write_bytes(SYSTEM_BUNDLE.read_bytes() + root.read_bytes())

    def request(self, name, common_name, extensions):
        """Makes a key and a request for its certificate; returns the key's file."""
        key, configuration = self.folder / f"{name}.key", self.folder / f"{name}.cnf"
        configuration.write_text(REQUEST_CONFIGURATION.format(common_name=common_name))
        (self.folder / f"{name}.ext").write_text(extensions)
        run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-sha256",
             "-config", configuration, "-keyout", key, "-out", self.folder / f"{name}.csr"])
        return key

    def sign(self, name, certificate, *signer):
        run(["openssl", "x509", "-req", "-days", "30", "-sha256", "-in", self.folder / f"{name}.csr",
             "-extfile", self.folder / f"{name}.ext", "-out", certificate, *signer])
