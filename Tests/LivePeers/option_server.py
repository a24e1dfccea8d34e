"""A server for the options of connections and messages: one that is silent, slow or stuck where a path asks for it, and
reports what it got of a body. With the argument `names` it also takes the questions of DNS, and answers none."""

import gzip
import http.server
import json
import socket
import sys
import threading
import time

FOREVER = threading.Event()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, content):
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        if self.path == "/silent":
            self.rfile.read(1)
            self.close_connection = True
        elif self.path == "/trickle":
            self.send_response(200)
            self.send_header("Content-Length", "2000")
            self.end_headers()
            for _ in range(2000):
                self.wfile.write(b"x")
                time.sleep(0.01)
        elif self.path == "/trailers":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.send_header("Trailer", "X-Sum")
            self.end_headers()
            self.wfile.write(b"3\r\none\r\n3\r\ntwo\r\n0\r\nX-Sum: 6\r\n\r\n")
        elif self.path == "/ports":
            self.answer(json.dumps(PORTS).encode())
        else:
            self.answer(b"x" * int(self.path.rsplit("/", 1)[1]))

    def do_POST(self):
        if self.path == "/stuck":
            FOREVER.wait()
        trailers = {}
        if self.headers["Transfer-Encoding"] == "chunked":
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            while line := self.rfile.readline().strip():
                name, value = line.decode().split(":", 1)
                trailers[name] = value.strip()
        else:
            body = self.rfile.read(int(self.headers["Content-Length"]))
        coding = self.headers["Content-Encoding"]
        plain = gzip.decompress(body) if coding == "gzip" else body
        report = {
            "coding": coding, "announced": self.headers["Trailer"], "trailers": trailers, "sent": len(body),
            "length": self.headers["Content-Length"], "content": len(plain), "isRight": plain == b"x" * len(plain),
        }
        self.answer(json.dumps(report).encode())

    def handle(self):
        try:
            super().handle()
        except OSError:
            # The client has closed the connection, which is what the tests wait for.
            self.close_connection = True

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


# The kernel accepts the connections of this one, and no program reads from them.
silent = socket.create_server(("127.0.0.1", 0), backlog=64)
# The queue of this one is full, so that the kernel answers no further connection.
full = socket.create_server(("127.0.0.1", 0), backlog=0)
waiting = []
for _ in range(4):
    client = socket.socket()
    client.setblocking(False)
    client.connect_ex(full.getsockname())
    waiting.append(client)
PORTS = {"silent": silent.getsockname()[1], "full": full.getsockname()[1]}

if "names" in sys.argv[1:]:
    names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    names.bind(("127.0.0.1", 53))

with Server(("127.0.0.1", 0), Handler) as server:
    print(f"listening on {server.server_port}")
    server.serve_forever()
