"""A server that fails by a script, or a relay that cuts its first connection.

    flaky_server.py                  /429,503,200?after=0: the statuses of the requests for this path, with Retry-After
    flaky_server.py relay PORT N     relays to PORT on the loopback, and cuts the first connection after N bytes
"""
import http.server
import socket
import socketserver
import sys
import threading
import time
from email.utils import formatdate
from urllib.parse import parse_qs, urlsplit


class Flaky(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    counts = {}
    lock = threading.Lock()

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        url = urlsplit(self.path)
        statuses = url.path[1:].split(",")
        with self.lock:
            number = self.counts.get(self.path, 0)
            self.counts[self.path] = number + 1
        status = int(statuses[min(number, len(statuses) - 1)])
        body = b"attempt %d" % (number + 1)
        self.send_response(status)
        for after in parse_qs(url.query).get("after", []):
            is_date = after.startswith("date")
            self.send_header("Retry-After", formatdate(time.time() + int(after[4:]), usegmt=True) if is_date else after)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_POST = answer

    def log_message(self, *arguments):
        pass


class Relay(socketserver.BaseRequestHandler):
    left = None

    def handle(self):
        limit, Relay.left = Relay.left, None
        server = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
        threading.Thread(target=self.copy, args=(self.request, server, None), daemon=True).start()
        self.copy(server, self.request, limit)

    @staticmethod
    def copy(source, target, limit):
        try:
            while limit is None or limit > 0:
                piece = source.recv(min(limit or 65536, 65536))
                if not piece:
                    break
                target.sendall(piece)
                limit = limit and limit - len(piece)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Threads(socketserver.ThreadingTCPServer):
    daemon_threads = True


if sys.argv[1:2] == ["relay"]:
    Relay.left = int(sys.argv[3])
server = Threads(("127.0.0.1", 0), Relay if sys.argv[1:2] == ["relay"] else Flaky)
print("listening on", server.server_address[1], flush=True)
server.serve_forever()
