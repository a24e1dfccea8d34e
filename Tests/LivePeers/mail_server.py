"""A server of a line protocol like SMTP's, with STARTTLS, on a loopback port that the kernel chooses.

Usage: mail_server.py CHAIN.pem KEY.pem

  EHLO      the extensions; behind TLS, its version
  STARTTLS  `220`, and then the TLS handshake
  DATA      `354`; lines up to a dot; `250` with their number of bytes
  NOOP      `250` with the rest of the line
  QUIT      `221`, and the end
"""

import socketserver
import ssl
import sys

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])


class Conversation(socketserver.StreamRequestHandler):
    def say(self, text):
        self.wfile.write(text.encode() + b"\r\n")

    def handle(self):
        version = None
        self.say("220 mail.example")
        while line := self.rfile.readline():
            command, _, rest = line.decode().strip().partition(" ")
            if command == "EHLO":
                self.say("250-mail.example greets " + rest)
                self.say("250 SECURE " + version if version else "250 STARTTLS")
            elif command == "STARTTLS" and not version:
                self.say("220 go ahead")
                try:
                    self.request = context.wrap_socket(self.request, server_side=True)
                except (ssl.SSLError, OSError):
                    return
                self.rfile = self.request.makefile("rb")
                self.wfile = self.request.makefile("wb", buffering=0)
                version = self.request.version()
            elif command == "DATA":
                self.say("354 end with a dot")
                count = 0
                while (line := self.rfile.readline()) not in (b".\r\n", b""):
                    count += len(line)
                self.say(f"250 {count} bytes")
            elif command == "NOOP":
                self.say("250 " + rest)
            elif command == "QUIT":
                self.say("221 bye")
                return
            else:
                self.say("500 what?")

    def finish(self):
        if isinstance(self.request, ssl.SSLSocket):
            # Sends close_notify, and does not wait for the client's.
            self.request.setblocking(False)
            try:
                self.request.unwrap()
            except OSError:
                pass
        super().finish()
        self.request.close()


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


with Server(("127.0.0.1", 0), Conversation) as server:
    print("listening on", server.server_address[1], flush=True)
    server.serve_forever()
