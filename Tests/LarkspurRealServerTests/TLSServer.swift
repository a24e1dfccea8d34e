import Foundation
import Glibc
import LarkspurTestServer
import Testing

/// The server programs.
enum TLSServerKind: String, Sendable, CaseIterable, CustomTestStringConvertible {
  case openssl
  case nginx
  /// `TestServer`, for behavior that real servers do not have.
  case ours

  var testDescription: String { rawValue }

  /// - Parameter port: The port for a real server to listen on, or `nil` for a free one.
  func start(_ plan: TLSPlan, port: UInt16? = nil) throws -> any TLSServer {
    switch self {
    case .openssl: try OpenSSLServer(plan, port: port)
    case .nginx: try NginxServer(plan, port: port)
    case .ours: try TestServer(plan)
    }
  }
}

/// A server on a loopback port that runs until its last reference is released.
protocol TLSServer: AnyObject, Sendable {
  var tcpPort: UInt16 { get }
}

extension TestServer: TLSServer {
  var tcpPort: UInt16 { UInt16(clamping: port) }

  convenience init(_ plan: TLSPlan) throws {
    var tls = TLS(chainDER: plan.chain, privateKeyDER: plan.key)
    tls.versions = plan.versions
    tls.ciphers = plan.ciphers
    tls.stapledResponse = plan.staple
    plan.ours(&tls)
    try self.init(tls: plan.isPlain ? nil : tls)
    defaultScript = plan.script
    route("GET", "/small") { _ in .text("Hello, world!") }
  }
}

/// The files that a server reads, in a directory that is deleted with this object.
final class TLSFiles: Sendable {
  let directory: URL

  init(_ plan: TLSPlan) throws {
    directory = FileManager.default.temporaryDirectory.appending(path: "larkspur-tls-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory.appending(path: "tmp"), withIntermediateDirectories: true)
    // nginx's worker may run as another user.
    chmod(directory.path, 0o755)
    chmod(directory.appending(path: "tmp").path, 0o777)
    try write("chain.pem", plan.chain.map(Self.pem).joined())
    try write("leaf.pem", plan.chain.prefix(1).map(Self.pem).joined())
    try write("rest.pem", plan.chain.dropFirst().map(Self.pem).joined())
    try write("key.pem", Self.pem("PRIVATE KEY", plan.key))
    try write("clients.pem", plan.authorities.clients.rootCertificatePEM)
    try write("small", "Hello, world!")
    if let group = plan.dhParameters { try write("dh.pem", group) }
    if let staple = plan.staple { try Data(staple).write(to: directory.appending(path: "staple.der")) }
  }

  deinit {
    try? FileManager.default.removeItem(at: directory)
  }

  func path(_ name: String) -> String { directory.appending(path: name).path }

  func write(_ name: String, _ text: String) throws {
    try Data(text.utf8).write(to: directory.appending(path: name))
    chmod(path(name), 0o644)
  }

  static func pem(_ certificate: [UInt8]) -> String { pem("CERTIFICATE", certificate) }

  static func pem(_ label: String, _ der: [UInt8]) -> String {
    let text = Data(der).base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
    return "-----BEGIN \(label)-----\n\(text)\n-----END \(label)-----\n"
  }
}

/// Checks that a program is installed. Where it is missing, this throws in CI, and elsewhere cancels the test with a
/// message.
func requireProgram(_ program: String, package: String) throws {
  guard !FileManager.default.isExecutableFile(atPath: program) else { return }
  let message = "\(program) is not there: install the package \(package)"
  guard ProcessInfo.processInfo.environment["CI"] == nil else { throw RealServer.Unavailable(description: message) }
  FileHandle.standardError.write(Data("skipped: \(message)\n".utf8))
  try Test.cancel("\(message)")
}
