"""What is measured: the requests of each workload, and how they use connections."""

import dataclasses
import enum
import json


class Lifetime(enum.Enum):
    """How long a connection lives."""
    KEPT = "kept"  # for the whole run
    FULL = "full"  # for one request, after a full handshake if it is https
    RESUMED = "resumed"  # for one request, after a handshake that resumes the session of an earlier connection
    IDLE = "idle"  # each makes one request and then stays open


class Trust(enum.Enum):
    """The file with the certificates that a client of an https workload trusts."""
    ROOT = "root.pem"  # only the root that signed the server's certificate
    BUNDLE = "bundle.pem"  # the system's certificates and that root


class Protocol(enum.Enum):
    """What a workload's requests are."""
    HTTP = "http"  # requests
    WEBSOCKET = "websocket"  # messages, which come back
    EVENTS = "events"  # server-sent events of one response


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    what: str
    path: str
    # The response's body, or the number of zeros in it.
    body: "bytes | int"
    # With 64 connections a run needs at least 640 requests, because the warm-up, a tenth of them, must use all
    # connections.
    requests: int
    quick_requests: int
    # The two run lengths whose difference gives instructions and system calls for each request.
    counted_requests: tuple[int, int]
    lifetime: Lifetime = Lifetime.KEPT
    trust: "Trust | None" = None
    warms_up: bool = True
    # Whether one request moves so much that its cost is given for each gigabyte.
    is_bulk: bool = False
    # Whether a client may pipeline these requests on a connection.
    pipelines: bool = False
    # The length of the request's body. Such requests go to the sink instead of nginx.
    upload_bytes: int = 0
    # Whether the server compresses the body with gzip for a client that accepts it.
    is_gzipped: bool = False
    # Whether only clients made for this workload take part.
    is_for_few: bool = False
    # Whether to count instructions. Those of whole downloads or of many connections tell no more than those of one
    # request.
    counts_instructions: bool = False
    protocol: Protocol = Protocol.HTTP
    # Whether the requests begin at a fixed rate, and their latencies are measured.
    is_paced: bool = False

    @property
    def body_bytes(self) -> int:
        return self.body if isinstance(self.body, int) else len(self.body)

    @property
    def moved_bytes(self) -> int:
        """The size of the bodies that the workload is about."""
        return self.upload_bytes or self.body_bytes

    @property
    def scheme(self) -> str:
        return "https" if self.trust else "http"

    @property
    def measures_memory(self) -> bool:
        return self.lifetime is Lifetime.IDLE

    def total_requests(self, requests: int) -> int:
        """What a client sends in all when it is asked to measure `requests`."""
        return requests + (min(requests // 10, 1000) if self.warms_up else 0)


TINY_BODY = b"Hello, world!"
JSON_BODY = b'{"id":17,"name":"Hello"}'
# The sink's response to each upload (sink.c).
RECEIVED_BODY = b'{"received":true}'


def api_body():
    """A page of a list, as services send it: 2,300 bytes of JSON."""
    items = [{"id": 1000 + number, "name": f"Item {number:02}", "price": 9.5 + number, "in_stock": number % 3 != 0,
              "tags": ["new", "sale"], "url": f"/items/{1000 + number}"} for number in range(20)]
    page = {"page": 1, "total": 20, "items": items, "note": ""}
    page["note"] = "." * (2_300 - len(json.dumps(page, separators=(",", ":"))))
    return json.dumps(page, separators=(",", ":")).encode()


API_BODY = api_body()

WORKLOADS = [
    Workload("serial-tiny", "tiny GETs, one after the other over one connection",
             "/tiny", TINY_BODY, 20_000, 2_000, (500, 1_500), counts_instructions=True),
    Workload("serial-json", "GETs of a small JSON document, parsed, one after the other over one connection",
             "/document.json", JSON_BODY, 20_000, 2_000, (500, 1_500), is_for_few=True,
             counts_instructions=True),
    Workload("concurrent-tiny", "tiny GETs over 64 connections",
             "/tiny", TINY_BODY, 20_000, 2_000, (1_000, 3_000)),
    Workload("latency-tiny", "tiny GETs that begin at a fixed rate, over at most 64 connections",
             "/tiny", TINY_BODY, 0, 0, (0, 0), is_for_few=True, is_paced=True),
    Workload("concurrent-100k", "100 KiB GETs over 64 connections",
             "/100k", 100 << 10, 6_400, 640, (640, 1_280)),
    Workload("download-1g", "GETs of 1 GiB, the body thrown away",
             "/1g", 1 << 30, 1, 1, (1, 2), warms_up=False, is_bulk=True),
    Workload("download-1g-file", "GETs of 1 GiB into a file",
             "/1g", 1 << 30, 1, 1, (1, 2), warms_up=False, is_bulk=True),
    Workload("download-1g-memory", "GETs of 1 GiB into memory, by sessions",
             "/1g", 1 << 30, 1, 1, (1, 2), warms_up=False, is_bulk=True),
    Workload("pipelined-tiny", "tiny GETs, 16 at a time: one behind another over one connection, or over 16",
             "/tiny", TINY_BODY, 32_000, 3_200, (1_600, 4_800), pipelines=True, counts_instructions=True),
    Workload("new-tiny", "tiny GETs, each over a new connection",
             "/tiny", TINY_BODY, 5_000, 500, (200, 600), Lifetime.FULL, counts_instructions=True),
    Workload("idle", "connections that stay open after one tiny GET",
             "/tiny", TINY_BODY, 800, 800, (50, 150), Lifetime.IDLE),
    Workload("https-serial-tiny", "tiny GETs over TLS, one after the other over one connection",
             "/tiny", TINY_BODY, 20_000, 2_000, (500, 1_500), trust=Trust.ROOT, counts_instructions=True),
    Workload("https-concurrent-tiny", "tiny GETs over 64 TLS connections",
             "/tiny", TINY_BODY, 20_000, 2_000, (1_000, 3_000), trust=Trust.ROOT),
    Workload("https-download-1g", "GETs of 1 GiB over TLS, the body thrown away",
             "/1g", 1 << 30, 1, 1, (1, 2), trust=Trust.ROOT, warms_up=False, is_bulk=True),
    Workload("https-new-full", "tiny GETs, each over a new TLS connection with a full handshake",
             "/tiny", TINY_BODY, 1_000, 50, (20, 60), Lifetime.FULL, Trust.ROOT, counts_instructions=True),
    # Fewer, because clients that read the bundle for each connection take tens of milliseconds for one request.
    Workload("https-new-full-bundle", "the same, trusting the system's certificates as well",
             "/tiny", TINY_BODY, 300, 20, (20, 60), Lifetime.FULL, Trust.BUNDLE, counts_instructions=True),
    Workload("https-new-resumed", "tiny GETs, each over a new TLS connection with a resumed session",
             "/tiny", TINY_BODY, 1_000, 50, (20, 60), Lifetime.RESUMED, Trust.ROOT, counts_instructions=True),
    Workload("https-idle", "TLS connections that stay open after one tiny GET",
             "/tiny", TINY_BODY, 200, 200, (50, 150), Lifetime.IDLE, Trust.ROOT),
    Workload("api-json-serial", "GETs of 2.3 KB of JSON in gzip, default configuration, one after the other",
             "/api/no-store/items.json", API_BODY, 20_000, 1_000, (500, 1_500), is_gzipped=True, is_for_few=True,
             counts_instructions=True),
    Workload("api-json-concurrent", "GETs of 2.3 KB of JSON in gzip, default configuration, 64 at once",
             "/api/no-store/items.json", API_BODY, 20_000, 1_000, (1_000, 3_000), is_gzipped=True, is_for_few=True),
    Workload("api-etag-serial", "GETs of the same document, which a cache has to validate, one after the other",
             "/api/etag/items.json", API_BODY, 20_000, 1_000, (500, 1_500), is_gzipped=True, is_for_few=True,
             counts_instructions=True),
    Workload("api-etag-concurrent", "GETs of the same document, which a cache has to validate, 64 at once",
             "/api/etag/items.json", API_BODY, 20_000, 1_000, (1_000, 3_000), is_gzipped=True, is_for_few=True),
    Workload("upload-json", "POSTs of 1 KiB of JSON, default configuration, one after the other",
             "/upload/1024", RECEIVED_BODY, 20_000, 1_000, (500, 1_500), upload_bytes=1 << 10, is_for_few=True,
             counts_instructions=True),
    Workload("upload-1g", "PUTs of a file of 1 GiB, default configuration",
             f"/upload/{1 << 30}", RECEIVED_BODY, 1, 1, (1, 2), upload_bytes=1 << 30, warms_up=False, is_bulk=True,
             is_for_few=True),
    Workload("https-upload-1g", "PUTs of a file of 1 GiB over TLS, default configuration",
             f"/upload/{1 << 30}", RECEIVED_BODY, 1, 1, (1, 2), trust=Trust.ROOT, upload_bytes=1 << 30,
             warms_up=False, is_bulk=True, is_for_few=True),
    Workload("websocket-serial-tiny", "WebSocket messages of 32 bytes and their echoes, one after the other",
             "/echo", 32, 20_000, 1_000, (500, 1_500), protocol=Protocol.WEBSOCKET, is_for_few=True,
             counts_instructions=True),
    Workload("websocket-serial-64k", "WebSocket messages of 64 KiB and their echoes, one after the other",
             "/echo", 64 << 10, 5_000, 200, (100, 300), protocol=Protocol.WEBSOCKET, is_for_few=True,
             counts_instructions=True),
    Workload("websocket-concurrent-tiny", "WebSocket messages of 32 bytes and their echoes over 64 connections",
             "/echo", 32, 40_000, 1_000, (1_000, 3_000), protocol=Protocol.WEBSOCKET, is_for_few=True),
    Workload("events", "server-sent events of 40 bytes, of one response",
             "/events", 40, 2_000_000, 20_000, (10_000, 30_000), protocol=Protocol.EVENTS, is_for_few=True,
             counts_instructions=True),
]

API_SERIAL = ("api-json-serial", "api-etag-serial")
API_CONCURRENT = ("api-json-concurrent", "api-etag-concurrent")
UPLOADS = ("upload-json", "upload-1g", "https-upload-1g")
WEBSOCKETS = ("websocket-serial-tiny", "websocket-serial-64k", "websocket-concurrent-tiny")
EVENTS = ("events",)
LATENCY = ("latency-tiny",)
TRANSPORT = ("serial-tiny", "concurrent-tiny", "concurrent-100k", "download-1g", "https-serial-tiny",
             "https-concurrent-tiny", "https-download-1g")
