import Foundation
import Larkspur
import LarkspurTestServer
import Testing

/// The record of a session's traffic.
@Suite struct HARRecorderTests {
  let server: TestServer
  let folder = FileManager.default.temporaryDirectory.appending(path: "har-\(UUID().uuidString)")

  init() throws {
    server = try TestServer()
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }

  private func record(_ name: String, includesSecrets: Bool = false, bodyBytesMax: Int = 1000) throws -> (
    HARRecorder, URLSession, URL
  ) {
    let file = folder.appending(path: name)
    let recorder = try HARRecorder(file, bodyBytesMax: bodyBytesMax, includesSecrets: includesSecrets)
    let configuration = URLSessionConfiguration.ephemeral
    configuration.eventObserver = recorder
    return (recorder, URLSession(configuration: configuration), file)
  }

  private func entries(_ file: URL) throws -> [[String: Any]] {
    let json = try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any]
    let log = try #require(json?["log"] as? [String: Any])
    #expect(log["version"] as? String == "1.2")
    #expect((log["creator"] as? [String: Any])?["name"] as? String == "Larkspur")
    return try #require(log["entries"] as? [[String: Any]])
  }

  /// The members that HAR 1.2 requires, with the types of their values.
  private static let required: [(path: [String], names: [String: Any.Type])] = [
    ([], ["startedDateTime": String.self, "time": Double.self, "cache": [String: Any].self]),
    (
      ["request"],
      [
        "method": String.self, "url": String.self, "httpVersion": String.self, "cookies": [Any].self,
        "headers": [Any].self,
        "queryString": [Any].self, "headersSize": Int.self, "bodySize": Int.self,
      ]
    ),
    (
      ["response"],
      [
        "status": Int.self, "statusText": String.self, "httpVersion": String.self, "cookies": [Any].self,
        "headers": [Any].self, "redirectURL": String.self, "headersSize": Int.self, "bodySize": Int.self,
      ]
    ),
    (["response", "content"], ["size": Int.self, "mimeType": String.self]),
    (["timings"], ["send": Double.self, "wait": Double.self, "receive": Double.self]),
  ]

  private func check(_ entry: [String: Any]) throws {
    for (path, names) in Self.required {
      var object = entry
      for name in path { object = try #require(object[name] as? [String: Any], "\(name) is missing") }
      for (name, type) in names {
        let value = try #require(object[name], "\(path).\(name) is missing")
        let fits: Bool =
          switch type {
          case is String.Type: value is String
          case is Int.Type: value is Int
          case is Double.Type: (value as? NSNumber)?.doubleValue ?? -1 >= 0
          case is [Any].Type: value is [Any]
          default: value is [String: Any]
          }
        #expect(fits, "\(path).\(name) is \(value)")
      }
    }
    let url = try #require(member(entry, "request", "url") as String?)
    // RFC 3986: characters of a URI.
    #expect(url.wholeMatch(of: /[A-Za-z0-9\-._~:\/?#@!$&'()*+,;=%]+/) != nil, "\(url)")
    let date = try #require(entry["startedDateTime"] as? String)
    #expect(date.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z/) != nil)
  }

  private func member<T>(_ entry: [String: Any], _ path: String...) -> T? {
    var value: Any? = entry
    for name in path { value = (value as? [String: Any])?[name] }
    return value as? T
  }

  @Test func entriesHaveWhatTheFormatRequires() async throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let (recorder, session, file) = try record("a.har")
    defer { session.invalidateAndCancel() }
    #expect(try entries(file).isEmpty)
    server.route("POST", "/token") { _ in .json(["access_token": "secret", "kind": "bearer"]) }
    var request = URLRequest(url: try #require(URL(string: server.url("/token?key=secret&a=b"))))
    request.httpMethod = "POST"
    request.httpBody = Data("grant=x&client_secret=secret".utf8)
    request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
    request.setValue("application/x-www-form-urlencoded", forHTTPHeaderField: "Content-Type")
    _ = try await session.data(for: request)
    _ = try await session.data(from: try #require(URL(string: server.url("/redirect/1"))))
    _ = try await session.data(from: try #require(URL(string: server.url("/gzip"))))
    let (bytes, _) = try await session.data(from: try #require(URL(string: server.url("/bytes/300"))))
    _ = try await session.data(from: try #require(URL(string: server.url("/bytes/3000"))))
    await #expect(throws: URLError.self) {
      _ = try await session.data(from: try #require(URL(string: server.url("/lie/10"))))
    }
    await #expect(throws: URLError.self) {
      _ = try await session.data(from: try #require(URL(string: "http://127.0.0.1:1/")))
    }
    try recorder.flush()
    let all = try entries(file)
    for entry in all { try check(entry) }
    #expect(all.count == 8)
    let statuses = all.compactMap { member($0, "response", "status") as Int? }
    #expect(statuses == [200, 302, 200, 200, 200, 200, 200, 0])
    let text = try String(contentsOf: file, encoding: .utf8)
    #expect(!text.contains("secret\""))
    #expect(!text.contains("=secret"))
    #expect(!text.contains("Bearer secret"))
    #expect(member(all[0], "request", "postData", "text") == "grant=x&client_secret=(redacted)")
    #expect(member(all[0], "request", "url") == server.url("/token?key=(redacted)&a=b"))
    #expect(member(all[0], "serverIPAddress") == "127.0.0.1")
    #expect((member(all[3], "response", "content", "text") as String?)?.contains("gzip") == true)
    let recorded = (member(all[4], "response", "content", "text") as String?).flatMap { Data(base64Encoded: $0) }
    #expect(recorded == bytes)
    #expect(member(all[5], "response", "content", "_truncated") == true)
    #expect(member(all[5], "response", "content", "size") == 3000)
    #expect(member(all[6], "response", "content", "_truncated") == true)
    #expect((member(all[7], "response", "_error") as String?)?.isEmpty == false)
    let mode = try FileManager.default.attributesOfItem(atPath: file.path(percentEncoded: false))[.posixPermissions]
    #expect(mode as? Int == 0o600)
  }

  /// Secrets are recorded on request, and downloads into a file are recorded as other content.
  @Test func everything() async throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let (recorder, session, file) = try record("b.har", includesSecrets: true)
    defer { session.invalidateAndCancel() }
    var request = URLRequest(url: try #require(URL(string: server.url("/bytes/20?token=secret"))))
    request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
    let (place, _) = try await session.download(for: request)
    let content = try Data(contentsOf: place)
    try recorder.flush()
    let entry = try #require(try entries(file).first)
    let text = try String(contentsOf: file, encoding: .utf8)
    #expect(text.contains("Bearer secret"))
    #expect(member(entry, "request", "url") == request.url?.absoluteString)
    let recorded: String? = member(entry, "response", "content", "text")
    #expect(recorded.flatMap { Data(base64Encoded: $0) ?? Data($0.utf8) } == content)
  }
}
