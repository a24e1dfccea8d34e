import Foundation
import Glibc
import LarkspurTestServer
import LarkspurTransfers
import TestKit
import Testing

/// A background download on a machine whose network goes away in the middle of the body. The session is in a process of
/// its own on that machine, and so is the transfer service, if there is one.
@Suite(.serialized, .timeLimit(.minutes(3)), .ownThread, .ownProcess)
struct BackgroundNetworkTests {
  let hosts: TwoHosts
  private let folder: TemporaryDirectory

  init() throws {
    hosts = try TwoHosts()
    folder = try TemporaryDirectory()
  }

  private static let size = 300_000
  private static let head = "HTTP/1.1 200 OK\r\nContent-Length: \(size)\r\nETag: \"a\"\r\n\r\n"

  enum Outage: CaseIterable, CustomTestStringConvertible {
    case link, address, otherNetwork

    var testDescription: String { "\(self)" }
  }

  private func begin(_ outage: Outage) throws {
    if outage != .address { try hosts.client.ip("link set cable down") }
    if outage != .link { try hosts.client.ip("address flush dev cable") }
  }

  private func end(_ outage: Outage) throws {
    switch outage {
    case .link: try hosts.client.ip("link set cable up")
    case .address: try hosts.client.ip("address add 10.9.0.1/24 dev cable")
    case .otherNetwork:
      try hosts.server.ip("address add 10.8.0.2/24 dev cable")
      try hosts.client.ip(
        "link set cable up", "address add 10.8.0.1/24 dev cable", "route add 10.9.0.0/24 via 10.8.0.2")
    }
  }

  private func record() -> TransferRecord? {
    let path = folder.path("larkspur/groups/tests/transfers/transfers/1.task")
    return FileManager.default.contents(atPath: path).flatMap { try? TransferRecord(file: Array($0)) }
  }

  /// The program with the session, on the client's machine.
  private func start(_ arguments: [String], isServed: Bool) throws -> ServerProcess {
    let program = try SiblingProcess.program("TestHelper").path
    var environment: [String] = []
    if isServed {
      environment = [
        "XDG_STATE_HOME=\(folder.url.path)", "XDG_RUNTIME_DIR=\(folder.url.path)",
        "LARKSPUR_TRANSFER_SERVICE=\(try SiblingProcess.program("larkspur").path)",
      ]
    }
    let words =
      environment + [program, "background-session", isServed ? "-" : folder.url.path, folder.url.path] + arguments
    return try hosts.client.run { try ServerProcess("/usr/bin/env", words, readyText: "wrote download") }
  }

  /// The bytes that came before the outage are not loaded again, and the file is right.
  @Test(arguments: Outage.allCases, [false, true])
  func theNetworkComesBack(outage: Outage, isServed: Bool) async throws {
    defer {
      if let service = TransferServiceProcess.find(runtimeDirectory: folder.url.path) { kill(service, SIGKILL) }
    }
    let (server, signal) = (try hosts.start(), TestServer.Signal())
    server.enqueue([.expectRequest, .send(Self.head), .sendContent(0..<100_000), .wait(signal), .close])
    server.route("GET", "/file") { request in
      guard let range = request.fields["range"], let first = Int(range.dropFirst(6).dropLast()) else {
        return TestServer.Response(fields: ["ETag": "\"a\""], body: .content(0..<Self.size))
      }
      var response = TestServer.Response(status: 206, fields: ["ETag": "\"a\""], body: .content(first..<Self.size))
      response.fields["Content-Range"] = "bytes \(first)-\(Self.size - 1)/\(Self.size)"
      return response
    }
    try Data().write(to: URL(filePath: folder.path("ends")))
    let probe = try start(
      ["impatient", "http://10.9.0.2:\(server.port)/file", "download"], isServed: isServed)
    try begin(outage)
    // The attempt ends with its request's timeout, because nothing tells the client that no more bytes come.
    await Wait.until("an attempt has failed") { record().map { $0.failedAttempts > 0 } ?? false }
    try end(outage)
    probe.wait()
    #expect((TransferServiceProcess.find(runtimeDirectory: folder.url.path) != nil) == isServed)
    signal.fire()
    let content = try Data(contentsOf: URL(filePath: folder.path("download")))
    #expect(content == Data(TestServer.content(count: Self.size)))
    #expect(try String(contentsOfFile: folder.path("ends"), encoding: .utf8) == "download 0\n")
    let ranges = server.requests.compactMap { $0.fields["range"] }
    #expect(ranges.count == 1 && ranges[0] != "bytes=0-")
  }
}
