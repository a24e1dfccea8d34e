import Foundation
import Larkspur

struct Workload {
  enum Kind {
    case data
    /// A data task whose delegate discards the body.
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

  var path: String
  var bodyBytes: Int
  var tasks = 1
  var kind = Kind.data
  var isSecure = false
  /// Whether the session has the unchanged default configuration.
  var isDefault = false
  var uploadBytes = 0

  /// The size of the bodies that the workload measures.
  var movedBytes: Int { uploadBytes > 0 ? uploadBytes : bodyBytes }

  static let all: [String: Workload] = [
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
    "events": Workload(path: "/events", bodyBytes: 40, kind: .events, isDefault: true),
  ]

  func url(host: String, port: String) throws -> URL {
    let scheme = kind == .echo ? "ws" : isSecure ? "https" : "http"
    guard let url = URL(string: "\(scheme)://\(host):\(port)\(path)") else {
      throw Failure(description: "bad host")
    }
    return url
  }

  func request(to url: URL) -> URLRequest {
    var request = URLRequest(url: url)
    if kind == .uploadData {
      request.httpMethod = "POST"
      request.setValue("application/json", forHTTPHeaderField: "Content-Type")
    }
    if kind == .uploadFile { request.httpMethod = "PUT" }
    return request
  }

  func configuration(caFile: String?) throws -> URLSessionConfiguration {
    let configuration = isDefault ? URLSessionConfiguration.default : .ephemeral
    if !isDefault {
      configuration.httpMaximumConnectionsPerHost = tasks
      // Without a cache every request goes to the server.
      configuration.urlCache = nil
    }
    if let caFile {
      let data = try Data(contentsOf: URL(fileURLWithPath: caFile))
      configuration.tlsTrustSettings.roots = .only(TLSCertificate.read(data) ?? [])
    }
    return configuration
  }

  /// The JSON object that `uploadData` sends. Empty for other kinds.
  var upload: Data {
    guard kind == .uploadData else { return Data() }
    let (begin, end) = (Data(#"{"name":"Item","note":""#.utf8), Data(#""}"#.utf8))
    let fill = max(0, uploadBytes - begin.count - end.count)
    return begin + Data(repeating: UInt8(ascii: "."), count: fill) + end
  }
}
