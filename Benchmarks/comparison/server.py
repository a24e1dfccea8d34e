"""The server: an nginx of our own, on loopback, with its files and certificates in a folder that is gone afterwards."""

import contextlib
import dataclasses
import grp
import gzip
import http.client
import os
import pathlib
import pwd
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time

from .certificates import Certificates
from .peer_servers import PeerServer
from .processes import Failure, find_program
from .websockets import check_echo
from .workloads import TINY_BODY, WORKLOADS, Lifetime, Protocol

NGINX_CONFIGURATION = """\
{user}
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr warn;

events {{
  worker_connections 1024;
}}

http {{
  default_type application/octet-stream;
  types {{
    application/json json;
  }}

  # A connection lives as long as its client, also when that client is slowed down by valgrind or strace.
  keepalive_requests 1000000000;
  keepalive_timeout 1h;
  send_timeout 1h;

  sendfile on;
  # Head and body leave together: otherwise a client might be woken twice for one tiny response.
  tcp_nopush on;
  open_file_cache max=16;

  # Never used, but created at the start: by default they are the system's own, which must stay as they are.
  client_body_temp_path {folder}/temp-body;
  proxy_temp_path {folder}/temp-proxy;
  fastcgi_temp_path {folder}/temp-fastcgi;
  uwsgi_temp_path {folder}/temp-uwsgi;
  scgi_temp_path {folder}/temp-scgi;

  root {folder}/files;

  # One line for each connection that has made a request: was its session resumed? So nobody has to believe a client.
  map $connection_requests $is_first {{
    1 1;
    default 0;
  }}
  log_format connections "$ssl_session_reused";
  access_log {folder}/connections connections if=$is_first;
  {requests_log}

  ssl_certificate {certificates.leaf};
  ssl_certificate_key {certificates.leaf_key};
  ssl_protocols TLSv1.2 TLSv1.3;

  server {{
    listen 127.0.0.1:{ports.plain};

    # As a service answers: compressed, and with the fields of a usual API beside Server, Date, Content-Length and
    # Content-Encoding. A location with fields of its own does not inherit others.
    location /api/ {{
      gzip_static on;
      gzip_vary on;
      types {{
        "application/json; charset=utf-8" json;
      }}
      location /api/no-store/ {{
        etag off;
        add_header Last-Modified "";
        {api_fields}
        add_header Cache-Control no-store;
      }}
      location /api/etag/ {{
        {api_fields}
        add_header Cache-Control max-age=0;
      }}
    }}
  }}

  # Responses that come right behind one another: a file sent with tcp_nopush would wait for the client's delayed
  # acknowledgement.
  server {{
    listen 127.0.0.1:{ports.pipelined};
    tcp_nopush off;
    location /tiny {{
      return 200 "{tiny_body}";
    }}
  }}

  server {{
    listen 127.0.0.1:{ports.tls} ssl;
    ssl_session_tickets on;
    ssl_session_cache shared:sessions:4m;
    ssl_session_timeout 1h;
  }}

  server {{
    listen 127.0.0.1:{ports.tls_without_sessions} ssl;
    ssl_session_tickets off;
    ssl_session_cache off;
  }}
}}
"""

API_FIELDS = """\
add_header X-Request-Id $request_id;
        add_header X-Content-Type-Options nosniff;
        add_header X-Frame-Options DENY;"""

# Written for each request, it makes nginx the slower side by some microseconds. (Twice, to nowhere: the files would
# grow.)
REQUESTS_LOG = """\
log_format requests "$msec $time_iso8601 $remote_addr $request $status $bytes_sent $request_time $http_user_agent";
  access_log /dev/null requests;
  access_log /dev/null combined;"""


@dataclasses.dataclass(frozen=True)
class Ports:
    plain: int
    pipelined: int
    tls: int
    tls_without_sessions: int

    @classmethod
    def unused(cls):
        # All sockets are open at the same time, so that no two get the same port.
        with contextlib.ExitStack() as stack:
            probes = [stack.enter_context(socket.socket()) for _ in dataclasses.fields(cls)]
            for probe in probes:
                probe.bind((Server.host, 0))
            return cls(*(probe.getsockname()[1] for probe in probes))

    def of(self, workload):
        if not workload.trust:
            return self.pipelined if workload.pipelines else self.plain
        return self.tls_without_sessions if workload.lifetime is Lifetime.FULL else self.tls


class Server:
    """A running nginx. `with` starts it, and leaves nothing behind."""

    host = "127.0.0.1"

    def __init__(self, core, workloads, *, is_busy=False):
        self.core = core
        self.is_busy = is_busy
        self.workloads = workloads
        self.ports = None

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="larkspur-benchmark-"))
        self.certificates = Certificates(self.folder / "certificates")
        self.process = None
        self.sinks = {}
        self.live = None
        try:
            self.make_files()
            self.certificates.make()
            self.start_sinks()
            self.start_live()
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            # The master process ends its worker as well.
            self.process.terminate()
            try:
                self.process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        for server in [*self.sinks.values(), *filter(None, [self.live])]:
            server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def upload_file(self):
        """The file of 1 GiB that clients send."""
        return self.folder / "files" / "1g"

    def port(self, workload):
        if workload.protocol is not Protocol.HTTP:
            return self.live.port
        return self.sinks[workload.scheme].port if workload.upload_bytes else self.ports.of(workload)

    def start_sinks(self):
        schemes = {workload.scheme for workload in self.workloads if workload.upload_bytes}
        for scheme in sorted(schemes):
            files = [self.certificates.leaf, self.certificates.leaf_key] if scheme == "https" else []
            self.sinks[scheme] = PeerServer("sink", self.core, *files)

    def start_live(self):
        if any(workload.protocol is not Protocol.HTTP for workload in self.workloads):
            self.live = PeerServer("live", self.core)

    def make_files(self):
        files = self.folder / "files"
        files.mkdir()
        for workload in WORKLOADS:
            if workload.upload_bytes or workload.protocol is not Protocol.HTTP:
                continue
            path = files / workload.path.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(workload.body, bytes):
                path.write_bytes(workload.body)
                if workload.is_gzipped:
                    path.with_name(path.name + ".gz").write_bytes(gzip.compress(workload.body, mtime=0))
            else:
                # A file with a hole: no disk space, and nginx reads zeros.
                path.touch()
                os.truncate(path, workload.body_bytes)

    def start(self):
        # Another process may take a port between its choice and nginx's bind; then other ports are tried.
        for _ in range(5):
            self.ports = Ports.unused()
            if self.is_started():
                return
        raise Failure(f"nginx did not start:\n{self.log()}")

    def is_started(self):
        configuration = self.folder / "nginx.conf"
        configuration.write_text(NGINX_CONFIGURATION.format(
            user=user_directive(), tiny_body=TINY_BODY.decode(), folder=self.folder, ports=self.ports, certificates=self.certificates,
            api_fields=API_FIELDS,
            requests_log=REQUESTS_LOG if self.is_busy else ""))
        with open(self.folder / "log", "w") as log:
            command = ["taskset", "-c", str(self.core), find_program("nginx"), "-p", self.folder, "-c", configuration]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            start_new_session=True)
        deadline = time.monotonic() + 30
        failure = None
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                return self.check()
            except (OSError, http.client.HTTPException) as error:
                failure = error
            time.sleep(0.02)
        if self.process.poll() is None:
            raise Failure(f"nginx does not answer: {failure}\n{self.log()}")
        if "Address already in use" in self.log():
            return False
        raise Failure(f"nginx did not start:\n{self.log()}")

    def check(self):
        """Makes each workload's request once: is it answered as clients expect? Afterwards the files are in memory."""
        # Any answer shows that nginx runs: the workloads may all be those of other servers.
        with contextlib.closing(http.client.HTTPConnection(self.host, self.ports.plain, timeout=60)) as connection:
            connection.request("GET", "/")
            connection.getresponse().read()
        for workload in self.workloads:
            with contextlib.closing(self.connection(workload)) as connection:
                if workload.protocol is Protocol.WEBSOCKET:
                    check_echo(connection, workload.path, workload.body_bytes)
                    continue
                if workload.upload_bytes:
                    with open(self.upload_file, "rb") as file:
                        read(file)
                    connection.request("POST", "/upload/16", body=bytes(16))
                elif workload.protocol is Protocol.EVENTS:
                    connection.request("GET", f"{workload.path}/1")
                else:
                    connection.request("GET", workload.path, headers={"Accept-Encoding": "gzip"})
                response = connection.getresponse()
                is_gzipped = response.headers["Content-Encoding"] == "gzip"
                received = len(gzip.decompress(response.read())) if is_gzipped else read(response)
                if (response.status, received, is_gzipped) != (200, workload.body_bytes, workload.is_gzipped):
                    raise Failure(f"{workload.path} is answered with {response.status} and {received} bytes:\n"
                                  f"{self.log()}")
                if tag := is_gzipped and response.headers["ETag"]:
                    connection.request("GET", workload.path, headers={"Accept-Encoding": "gzip", "If-None-Match": tag})
                    if (status := connection.getresponse().status) != 304:
                        raise Failure(f"{workload.path} is validated with {status}")
        return True

    def connection(self, workload):
        port = self.port(workload)
        if not workload.trust:
            return http.client.HTTPConnection(self.host, port, timeout=60)
        context = ssl.create_default_context(cafile=self.certificates.trusted(workload.trust))
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return http.client.HTTPSConnection(self.host, port, timeout=60, context=context)

    def forget_connections(self):
        os.truncate(self.folder / "connections", 0)

    def check_connections(self, workload, expected):
        """Were there as many connections as the workload wants since they were forgotten, and of the kind it wants?"""
        log = self.folder / "connections"
        deadline = time.monotonic() + 5
        # nginx writes a line only after the response, so the client may already have ended.
        while len(lines := log.read_text().splitlines()) < expected and time.monotonic() < deadline:
            time.sleep(0.01)
        resumed = lines.count("r")
        if len(lines) != expected:
            raise Failure(f"{len(lines)} connections instead of {expected}")
        if workload.lifetime is Lifetime.FULL and resumed > 0:
            raise Failure(f"{resumed} sessions were resumed instead of none")
        # The first connection has nothing to resume.
        if workload.lifetime is Lifetime.RESUMED and resumed < expected - 1:
            raise Failure(f"{resumed} sessions were resumed instead of {expected - 1}")

    def log(self):
        return (self.folder / "log").read_text(errors="replace").rstrip()


def read(file):
    """Reads a file or a response to its end, and returns how many bytes that were."""
    count = 0
    while chunk := file.read(1 << 20):
        count += len(chunk)
    return count


def user_directive():
    """The worker runs as whoever runs this script: nobody else may read the temporary folder."""
    if os.geteuid() != 0:
        return ""  # then nginx cannot change its user anyway, and warns about the directive
    return f"user {pwd.getpwuid(0).pw_name} {grp.getgrgid(0).gr_name};"
