"""Autobahn's fuzzing server on a loopback port that the kernel chooses, for Python 2.7.

Usage: server.py FOLDER CASES [CERTIFICATE.pem KEY.pem]

CASES are patterns with commas between them, such as `1.*,10.1.1`. The reports are written to the folder when a client
asks for that. With a certificate, the server uses TLS.
"""

import sys

from autobahntestsuite import fuzzing
from twisted.internet import reactor, ssl

folder, cases = sys.argv[1:3]
is_secure = len(sys.argv) > 3
factory = fuzzing.FuzzingServerFactory({
    # The port in the URL gives way to the real one.
    "url": "wss://127.0.0.1:1" if is_secure else "ws://127.0.0.1:1",
    "outdir": folder,
    "cases": cases.split(","),
    "exclude-cases": [],
    "exclude-agent-cases": {},
})
if is_secure:
    context = ssl.DefaultOpenSSLContextFactory(sys.argv[4], sys.argv[3])
    listener = reactor.listenSSL(0, factory, context, interface="127.0.0.1")
else:
    listener = reactor.listenTCP(0, factory, interface="127.0.0.1")
factory.externalPort = listener.getHost().port
print("listening on %d" % factory.externalPort)
sys.stdout.flush()
reactor.run()
