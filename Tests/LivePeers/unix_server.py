"""An HTTP server like that of Docker's API, on the Unix socket that the argument names."""

import http.server
import json
import socketserver
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, content, kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        if self.path == "/v1.41/containers/1/logs":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for line in (b"one\n", b"two\n", b""):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        else:
            self.answer(200, json.dumps({"Host": self.headers["Host"], "Path": self.path}).encode())

    def do_POST(self):
        self.answer(201, self.rfile.read(int(self.headers["Content-Length"])))

    def address_string(self):
        return "unix"

    def log_message(self, *arguments):
        pass


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


with Server(sys.argv[1], Handler) as server:
    # The number stands where other servers have their port.
    print("listening on 0")
    server.serve_forever()
