/// A workload of the contract in Benchmarks/README.md, as far as Swift's clients take part.
package struct Workload: Sendable {
  package enum Kind: Sendable {
    case data
    /// The body is discarded: by a session, with a data task's delegate.
    case discard
    /// The body read byte by byte from `bytes(from:)`.
    case bytes
    case download
    /// An upload of a JSON object of `uploadBytes`.
    case uploadData
    /// An upload of the file that `UPLOAD_FILE` names.
    case uploadFile
    /// Messages of `bodyBytes` that a WebSocket server sends back.
    case echo
    /// Events of `bodyBytes` from an event stream.
    case events
  }

  package var path: String
  package var bodyBytes: Int
  package var tasks = 1
  package var kind = Kind.data
  package var isSecure = false
  /// Whether the session has the unchanged default configuration.
  package var isDefault = false
  package var uploadBytes = 0
  /// Whether the requests begin at a fixed rate, and their latencies are measured.
  package var isPaced = false

  /// The size of the bodies that the workload measures.
  package var movedBytes: Int { uploadBytes > 0 ? uploadBytes : bodyBytes }

  package static let all: [String: Workload] = [
    "serial-tiny": Workload(path: "/tiny", bodyBytes: 13),
    "concurrent-tiny": Workload(path: "/tiny", bodyBytes: 13, tasks: 64),
    "concurrent-100k": Workload(path: "/100k", bodyBytes: 100 << 10, tasks: 64),
    "download-1g": Workload(path: "/1g", bodyBytes: 1 << 30, kind: .discard),
    "download-1g-file": Workload(path: "/1g", bodyBytes: 1 << 30, kind: .download),
    "download-1g-memory": Workload(path: "/1g", bodyBytes: 1 << 30),
    "bytes-1g": Workload(path: "/1g", bodyBytes: 1 << 30, kind: .bytes),
    "https-serial-tiny": Workload(path: "/tiny", bodyBytes: 13, isSecure: true),
    "https-concurrent-tiny": Workload(path: "/tiny", bodyBytes: 13, tasks: 64, isSecure: true),
    "https-download-1g": Workload(path: "/1g", bodyBytes: 1 << 30, kind: .discard, isSecure: true),
    "api-json-serial": Workload(path: "/api/no-store/items.json", bodyBytes: 2_300, isDefault: true),
    "api-json-concurrent": Workload(path: "/api/no-store/items.json", bodyBytes: 2_300, tasks: 64, isDefault: true),
    "api-etag-serial": Workload(path: "/api/etag/items.json", bodyBytes: 2_300, isDefault: true),
    "api-etag-concurrent": Workload(path: "/api/etag/items.json", bodyBytes: 2_300, tasks: 64, isDefault: true),
    "upload-json": Workload(
      path: "/upload/1024", bodyBytes: 17, kind: .uploadData, isDefault: true, uploadBytes: 1 << 10),
    "upload-1g": Workload(
      path: "/upload/1073741824", bodyBytes: 17, kind: .uploadFile, isDefault: true, uploadBytes: 1 << 30),
    "https-upload-1g": Workload(
      path: "/upload/1073741824", bodyBytes: 17, kind: .uploadFile, isSecure: true, isDefault: true,
      uploadBytes: 1 << 30),
    "websocket-serial-tiny": Workload(path: "/echo", bodyBytes: 32, kind: .echo, isDefault: true),
    "websocket-serial-64k": Workload(path: "/echo", bodyBytes: 64 << 10, kind: .echo, isDefault: true),
    "websocket-concurrent-tiny": Workload(path: "/echo", bodyBytes: 32, tasks: 64, kind: .echo, isDefault: true),
    "latency-tiny": Workload(path: "/tiny", bodyBytes: 13, tasks: 64, isPaced: true),
    "events": Workload(path: "/events", bodyBytes: 40, kind: .events, isDefault: true),
  ]

  /// The length of each event's data: the rest of its 40 bytes is `data: ` and two line feeds.
  package static let eventDataBytes = 32

  /// The JSON object that `uploadData` sends. Empty for other kinds.
  package var upload: String {
    guard kind == .uploadData else { return "" }
    let (begin, end) = (#"{"name":"Item","note":""#, #""}"#)
    let fill = max(0, uploadBytes - begin.utf8.count - end.utf8.count)
    return begin + String(repeating: ".", count: fill) + end
  }
}
