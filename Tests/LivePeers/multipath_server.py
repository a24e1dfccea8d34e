"""An HTTP server on all addresses, over multipath TCP with the argument `multipath`, and over TCP with `tcp`."""

import http.server
import socket
import sys

IPPROTO_MPTCP = 262


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "100000")
        self.end_headers()
        self.wfile.write(b"x" * 100000)

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    def __init__(self, protocol):
        super().__init__(("0.0.0.0", 0), Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
        self.server_bind()
        self.server_activate()


with Server(IPPROTO_MPTCP if sys.argv[1] == "multipath" else 0) as server:
    print(f"listening on {server.server_port}")
    server.serve_forever()
