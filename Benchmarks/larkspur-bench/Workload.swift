/// The lifetime of a connection.
enum Lifetime {
  /// For the whole run.
  case kept
  /// For one request, after a full handshake if it is https.
  case full
  /// For one request, after a handshake that resumes the session of an earlier connection.
  case resumed
  /// Each makes one request and then stays open.
  case idle
}

struct Workload {
  var path = "/tiny"
  var bodyBytes = 13
  var connections = 1
  var warmsUp = true
  var isTLS = false
  var lifetime = Lifetime.kept
  /// Whether the body goes into a file.
  var intoFile = false
  /// Whether the body is collected in memory, which this client does not do.
  var isForSessions = false
  /// The maximum number of requests in flight on one connection.
  var depth = 1

  static let all: [String: Workload] = [
    "serial-tiny": Workload(),
    "concurrent-tiny": Workload(connections: 64),
    "concurrent-100k": Workload(path: "/100k", bodyBytes: 100 * 1024, connections: 64),
    "download-1g": Workload(path: "/1g", bodyBytes: 1 << 30, warmsUp: false),
    "download-1g-file": Workload(path: "/1g", bodyBytes: 1 << 30, warmsUp: false, intoFile: true),
    "download-1g-memory": Workload(isForSessions: true),
    "pipelined-tiny": Workload(connections: 16, depth: 16),
    "new-tiny": Workload(lifetime: .full),
    "idle": Workload(lifetime: .idle),
    "https-serial-tiny": Workload(isTLS: true),
    "https-concurrent-tiny": Workload(connections: 64, isTLS: true),
    "https-download-1g": Workload(path: "/1g", bodyBytes: 1 << 30, warmsUp: false, isTLS: true),
    "https-new-full": Workload(isTLS: true, lifetime: .full),
    "https-new-full-bundle": Workload(isTLS: true, lifetime: .full),
    "https-new-resumed": Workload(isTLS: true, lifetime: .resumed),
    "https-idle": Workload(isTLS: true, lifetime: .idle),
  ]
}

/// The parsed command line.
struct Arguments {
  var workload: Workload
  var host: String
  var port: UInt16
  var requests: Int
  /// The file with the certificates to trust, or `nil` without TLS.
  var caFile: String?

  /// Whether the requests go through a pool.
  var usesPool = false
  /// The number of loops, each with a thread of its own and an equal share of the requests.
  var loops = 1
  /// Whether the server is replaced by one in memory that answers at once.
  var isInstant = false

  /// Fails unless the arguments are `[--pool] [--instant] [--loops N] WORKLOAD HOST PORT REQUESTS [CA_FILE]`, with a CA
  /// file exactly if the workload uses TLS.
  init?(_ arguments: [String]) {
    var arguments = arguments
    if arguments.count > 1, arguments[1] == "--pool" {
      usesPool = true
      arguments.remove(at: 1)
    }
    if arguments.count > 1, arguments[1] == "--instant" {
      isInstant = true
      arguments.remove(at: 1)
    }
    if arguments.count > 2, arguments[1] == "--loops", let count = Int(arguments[2]), 1...64 ~= count {
      loops = count
      arguments.removeSubrange(1...2)
    }
    guard 5...6 ~= arguments.count, let workload = Workload.all[arguments[1]], let port = UInt16(arguments[3]),
      let requests = Int(arguments[4]), requests > 0, workload.isTLS == (arguments.count == 6)
    else { return nil }
    self.workload = workload
    self.host = arguments[2]
    self.port = port
    self.requests = requests
    self.caFile = workload.isTLS ? arguments[5] : nil
  }

  /// The number of requests before the measurement. `compare` subtracts run lengths and relies on this exact rule.
  var warmUpRequests: Int { workload.warmsUp ? min(requests / 10, 1000) : 0 }
}
