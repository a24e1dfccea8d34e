import Foundation
import LarkspurBytes
import LarkspurIO
import LarkspurTestServer
import LarkspurTestSupport
import TestKit
import Testing

@testable import LarkspurTLS
@testable import LarkspurTransport

/// Identities and roots from files that change.
@Suite struct ContextRenewalTests {
  let ca: TestCA
  let folder: TemporaryDirectory

  init() throws {
    ca = try TestCA()
    folder = try TemporaryDirectory()
  }

  /// Writes an identity as programs that rotate certificates do: each file is replaced in one step.
  private func write(_ name: String, keyFrom other: TestCertificate? = nil) throws {
    var request = TestCertificate.Request(names: [], ipAddresses: [])
    request.commonName = name
    let made = try ca.issue(request)
    try replace("tls.crt", made.chainPEM)
    try replace("tls.key", (other ?? made).privateKeyPEM)
  }

  private func replace(_ name: String, _ text: String) throws {
    try Data(text.utf8).write(to: folder.file(name), options: .atomic)
  }

  private var files: ClientIdentity.Files {
    ClientIdentity.Files(certificates: folder.path("tls.crt"), key: folder.path("tls.key"))
  }

  private func server() throws -> TestServer {
    try SecureExchangeTests.server(ca) { $0.clientCertificate = .verified(by: [ca.rootCertificateDER]) }
  }

  private func client(_ failures: Shared<[String]>? = nil) throws -> SecureClient {
    let identity = try ClientIdentity(files: files)
    return try SecureClient(
      trusting: ca, { $0.identity = identity },
      fileFailed: { path, reason in failures?.value.append("\(path): \(reason)") })
  }

  @Test func theNextConnectionShowsTheNewIdentity() async throws {
    let server = try server()
    try write("first")
    let client = try client()
    for name in ["first", "second", "third"] {
      try write(name)
      let outcome = await client.get(from: server)
      // A session of the earlier identity is not resumed.
      #expect(outcome.status == 200 && outcome.handshake?.isResumed == false)
      #expect(server.handshakes.last?.clientCertificateSubject == "CN=\(name)")
    }
    #expect(await client.get(from: server).handshake?.isResumed == true)
  }

  @Test func brokenFilesKeepTheEarlierIdentity() async throws {
    let server = try server()
    try write("first")
    let failures = Shared<[String]>([])
    let client = try client(failures)
    #expect(await client.get(from: server).status == 200)
    try write("second", keyFrom: ca.issue())
    for _ in 0..<2 {
      #expect(await client.get(from: server).status == 200)
      #expect(server.handshakes.last?.clientCertificateSubject == "CN=first")
    }
    #expect(failures.value == ["\(files.certificates): the key is not the client certificate's"])
    try FileManager.default.removeItem(atPath: folder.path("tls.key"))
    #expect(await client.get(from: server).status == 200)
    #expect(failures.value.count == 2 && failures.value.last?.hasPrefix(folder.path("tls.key")) == true)
    try write("third")
    #expect(await client.get(from: server).status == 200)
    #expect(server.handshakes.last?.clientCertificateSubject == "CN=third" && failures.value.count == 2)
  }

  /// A certificate rotated under load fails no request.
  @Test func rotationUnderLoad() async throws {
    let server = try server()
    try write("0")
    let client = try client()
    for number in 1...20 {
      try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<4 { group.addTask { await client.get(from: server).status } }
        try write("\(number)")
        for try await status in group { #expect(status == 200) }
      }
    }
    #expect(await client.get(from: server).status == 200)
    #expect(server.handshakes.last?.clientCertificateSubject == "CN=20")
  }

  @Test func rootsFromFiles() async throws {
    let server = try server()
    try write("client")
    try replace("roots.pem", TestCA().rootCertificatePEM)
    let (identity, path) = (try ClientIdentity(files: files), folder.path("roots.pem"))
    let client = try SecureClient(
      trusting: ca,
      {
        $0.roots = .only([])
        $0.rootFiles = [path]
        $0.identity = identity
      })
    #expect(await client.get(from: server).problem == .untrustedRoot)
    try replace("roots.pem", ca.rootCertificatePEM)
    #expect(await client.get(from: server).status == 200)
    try replace("roots.pem", TestCA().rootCertificatePEM)
    #expect(await client.get(from: server).problem == .untrustedRoot)
  }

  @Test func filesThatCannotBeReadAtFirst() throws {
    let missing = folder.path("missing.pem")
    var configuration = TLSConfiguration()
    configuration.rootFiles = [missing]
    let error = #expect(throws: TLSError.self) { try Security(configuration) }
    #expect(error?.problem == .trustStoreUnreadable && error?.reason?.hasPrefix(missing) == true)
    #expect(throws: TLSError.self) { try ClientIdentity(files: .init(certificates: missing)) }
    try replace("large.pem", String(repeating: "a", count: (4 << 20) + 1))
    configuration.rootFiles = [folder.path("large.pem")]
    #expect(throws: TLSError.self) { try Security(configuration) }
  }

  /// Where the kernel notes nothing, the files are looked at once a second.
  @Test func withoutNotes() async throws {
    let inner = folder.file("inner")
    let content = ca.rootCertificatePEM
    func make() throws {
      try FileManager.default.createDirectory(at: inner, withIntermediateDirectories: true)
      try Data(content.utf8).write(to: inner.appending(path: "roots.pem"))
    }
    try make()
    var configuration = TLSConfiguration()
    configuration.rootFiles = [inner.appending(path: "roots.pem").path]
    let renewal = try ContextRenewal(configuration, pinMismatched: nil, fileFailed: nil)
    let start = Deadline(nanoseconds: 1 << 40)
    await renewal.look(at: start)?.value
    // The watch is on a directory that is gone.
    try FileManager.default.removeItem(at: inner)
    try make()
    await renewal.look(at: start)?.value
    let first = renewal.context
    let other = try TestCA().rootCertificatePEM
    try Data(other.utf8).write(to: inner.appending(path: "roots.pem"))
    #expect(renewal.look(at: start.advanced(by: .milliseconds(999))) == nil)
    await renewal.look(at: start.advanced(by: .seconds(1)))?.value
    #expect(renewal.context !== first)
  }
}
