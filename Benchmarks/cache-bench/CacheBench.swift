// Measures the cost of the response cache and of the cookie store for a load: wall and processor time, by the public
// API.
//
// Called as `larkspur-cache-bench WORKLOAD [ROUNDS]`. Cookies are kept below `$XDG_DATA_HOME`. The server runs on
// threads of the same process, so its time is included.

import Foundation
import Glibc
import Larkspur
import Synchronization

struct Failure: Error, CustomStringConvertible {
  var description: String
}

/// A server with a thread for each connection. The request's path chooses the response.
enum Server {
  static let sent = Atomic<Int>(0)

  static func answer(_ head: String) -> [UInt8] {
    let path = head.split(separator: " ")[1]
    let number = sent.wrappingAdd(1, ordering: .relaxed).newValue
    func tiny(_ fields: String) -> [UInt8] { Array("HTTP/1.1 200 OK\r\n\(fields)Content-Length: 2\r\n\r\nok".utf8) }
    switch path {
    case "/plain": return tiny("")
    case "/same": return tiny("Set-Cookie: same=value\r\n")
    case "/same-lifetime": return tiny("Set-Cookie: same=value; Max-Age=86400\r\n")
    case "/changed": return tiny("Set-Cookie: changed=\(number); Max-Age=86400\r\n")
    default: break
    }
    guard let size = Int(path.dropFirst()) else { return tiny("") }
    if head.contains("If-None-Match") {
      return Array("HTTP/1.1 304 Not Modified\r\nETag: \"e\"\r\nX-Number: \(number)\r\n\r\n".utf8)
    }
    return Array("HTTP/1.1 200 OK\r\nETag: \"e\"\r\nCache-Control: no-cache\r\nContent-Length: \(size)\r\n\r\n".utf8)
      + [UInt8](repeating: 120, count: size)
  }

  static func start() throws -> UInt16 {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe bind(listener, $0, length) == 0 && listen(listener, 8) == 0 && getsockname(listener, $0, &length) == 0
      }
    }
    guard isBound else { throw Failure(description: "no port") }
    Thread.detachNewThread {
      while true {
        let connection = accept(listener, nil, nil)
        guard connection >= 0 else { return }
        Thread.detachNewThread { serve(connection) }
      }
    }
    return UInt16(bigEndian: address.sin_port)
  }

  private static func serve(_ connection: Int32) {
    var one: Int32 = 1
    unsafe setsockopt(connection, Int32(IPPROTO_TCP), TCP_NODELAY, &one, 4)
    var buffer = [UInt8](repeating: 0, count: 1 << 14)
    while true {
      // A request without a body arrives in one piece.
      let count = unsafe recv(connection, &buffer, buffer.count, 0)
      guard count > 0 else { return }
      let answer = answer(String(decoding: buffer[..<count], as: UTF8.self))
      var offset = 0
      while offset < answer.count {
        let written = unsafe answer.withUnsafeBytes {
          unsafe send(
            connection, $0.baseAddress.map { unsafe $0 + offset }, $0.count - offset, Int32(MSG_NOSIGNAL))
        }
        guard written > 0 else { return }
        offset += written
      }
    }
  }
}

func processorSeconds() -> Double {
  var usage = rusage()
  unsafe getrusage(RUSAGE_SELF.rawValue, &usage)
  let (user, system) = (usage.ru_utime, usage.ru_stime)
  return Double(user.tv_sec + system.tv_sec) + Double(user.tv_usec + system.tv_usec) / 1e6
}

/// Runs `body` in seven parts. Prints the median and the minimum of the parts' wall time for each round, and the mean
/// processor time for each round.
func measure(_ name: String, rounds: Int, _ body: (Int) async throws -> Void) async throws {
  for round in 0..<min(rounds, 200) { try await body(round) }
  var walls: [Double] = []
  let part = max(1, rounds / 7)
  let used = processorSeconds()
  for index in 0..<7 {
    let start = ContinuousClock.now
    for round in 0..<part { try await body(index * part + round) }
    walls.append((ContinuousClock.now - start) / .microseconds(1) / Double(part))
  }
  let processor = (processorSeconds() - used) * 1e6 / Double(7 * part)
  func shown(_ value: Double) -> String { String(format: "%.1f", value) }
  walls.sort()
  print("\(name): wall \(shown(walls[3])) us (least \(shown(walls[0]))), processor \(shown(processor)) us")
}

/// Runs off the main actor, like most programs' loads. On the main actor each load would change threads twice more.
@main
enum CacheBench {
  static func main() async throws {
    let arguments = CommandLine.arguments
    guard arguments.count >= 2 else { throw Failure(description: "usage: larkspur-cache-bench WORKLOAD [ROUNDS]") }
    let rounds = arguments.count > 2 ? Int(arguments[2]) ?? 7000 : 7000
    let folder = FileManager.default.temporaryDirectory.appending(
      path: "larkspur-bench-\(ProcessInfo.processInfo.processIdentifier)")
    defer { try? FileManager.default.removeItem(at: folder) }
    let origin = "http://127.0.0.1:\(try Server.start())"

    @Sendable func url(_ path: String) throws -> URL {
      guard let url = URL(string: origin + path) else { throw Failure(description: path) }
      return url
    }

    func load(_ url: URL, _ session: URLSession, bytes: Int) async throws {
      let (data, _) = try await session.data(from: url)
      guard data.count == bytes else { throw Failure(description: "\(data.count) bytes of \(bytes)") }
    }

    switch arguments[1] {
    case "revalidations":
      for (storage, disk) in [("memory", 0), ("memory and disk", 1 << 30)] {
        for size in [1 << 10, 100 << 10, 3 << 20] {
          let configuration = URLSessionConfiguration.ephemeral
          configuration.urlCache = URLCache(memoryCapacity: 64 << 20, diskCapacity: disk, directory: folder)
          let session = URLSession(configuration: configuration)
          let url = try url("/\(size)")
          try await measure("304, \(size >> 10) KB, \(storage)", rounds: rounds) { _ in
            try await load(url, session, bytes: size)
          }
          configuration.urlCache?.removeAllCachedResponses()
          session.finishTasksAndInvalidate()
        }
      }
    case "hits":
      let count = 10_000
      for (storage, memory) in [("memory", 64 << 20), ("disk", 0)] {
        let configuration = URLSessionConfiguration.ephemeral
        let cache = URLCache(memoryCapacity: memory, diskCapacity: memory > 0 ? 0 : 1 << 30, directory: folder)
        configuration.urlCache = cache
        let session = URLSession(configuration: configuration)
        var requests: [URLRequest] = []
        for number in 0..<count {
          let request = URLRequest(url: try url("/hit/\(number)"))
          requests.append(request)
          guard let url = request.url,
            let response = HTTPURLResponse(
              url: url, statusCode: 200, httpVersion: "HTTP/1.1",
              headerFields: [
                "Cache-Control": "max-age=100000", "Content-Type": "application/json", "ETag": "\"e\"",
                "Date": "Thu, 01 Jan 2037 00:00:00 GMT", "Vary": "Accept-Encoding", "Content-Length": "1024",
              ])
          else { throw Failure(description: "no response") }
          cache.storeCachedResponse(
            CachedURLResponse(response: response, data: Data(repeating: 120, count: 1024)), for: request)
        }
        _ = cache.currentDiskUsage
        try await measure("hit of \(count), \(storage), by the cache", rounds: rounds) { round in
          guard cache.cachedResponse(for: requests[round * 7919 % count]) != nil else {
            throw Failure(description: "a miss")
          }
        }
        try await measure("hit of \(count), \(storage), by a session", rounds: rounds) { round in
          let (data, _) = try await session.data(for: requests[round * 7919 % count])
          guard data.count == 1024 else { throw Failure(description: "a miss") }
        }
        session.finishTasksAndInvalidate()
      }
    case "cookies":
      let storage = HTTPCookieStorage.shared
      for kept in [0, 1000, 2500] {
        storage.removeCookies(since: .distantPast)
        for number in 0..<kept {
          let properties: [HTTPCookiePropertyKey: Any] = [
            .name: "n\(number)", .value: "0123456789", .domain: "h\(number / 20).example.com", .path: "/",
            .expires: Date(timeIntervalSinceNow: 1e6), .secure: number % 2 == 0 ? "TRUE" : "FALSE",
          ]
          if let cookie = HTTPCookie(properties: properties) { storage.setCookie(cookie) }
        }
        let configuration = URLSessionConfiguration.default
        configuration.urlCache = nil
        let session = URLSession(configuration: configuration)
        await session.flush()
        for path in ["/plain", "/same", "/same-lifetime", "/changed"] {
          let url = try url(path)
          try await measure("\(path) among \(kept) cookies", rounds: rounds) { _ in
            try await load(url, session, bytes: 2)
          }
          await session.flush()
        }
        session.finishTasksAndInvalidate()
      }
    default: throw Failure(description: "no such workload")
    }
  }
}
