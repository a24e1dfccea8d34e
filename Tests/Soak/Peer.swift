import Foundation
import LarkspurIO
import LarkspurTestServer

/// The servers of a soak, plain and TLS, in a process of their own, so that the client's figures do not include them.
final class Peer: Sendable {
  struct Unavailable: Error {}

  let port: UInt16
  let securePort: UInt16
  /// Port of the server that accepts any body and answers with its length.
  let sinkPort: UInt16
  let root: [UInt8]
  private let process = Process()
  private let input = Pipe()

  init() throws {
    let output = Pipe()
    process.executableURL = URL(filePath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
    process.arguments = [Self.command]
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    // The peer prints one line and no more.
    var line = Data()
    while line.last != UInt8(ascii: "\n") {
      let bytes = output.fileHandleForReading.availableData
      guard !bytes.isEmpty else { throw Unavailable() }
      line += bytes
    }
    let fields = String(decoding: line.dropLast(), as: UTF8.self).split(separator: " ")
    guard fields.count == 4, let port = UInt16(fields[0]), let securePort = UInt16(fields[1]),
      let sinkPort = UInt16(fields[2]), let root = Data(base64Encoded: String(fields[3]))
    else { throw Unavailable() }
    self.port = port
    self.securePort = securePort
    self.sinkPort = sinkPort
    self.root = Array(root)
  }

  /// Ends the peer, and waits until its process has exited.
  ///
  /// - Returns: Whether all of the servers' expectations were met.
  func end() throws -> Bool {
    try input.fileHandleForWriting.close()
    process.waitUntilExit()
    return process.terminationStatus == 0
  }

  // MARK: - In the other process

  /// The command line argument that makes the program a peer.
  static let command = "serve"

  /// Serves until the standard input ends, which happens when the client's process exits at the latest.
  static func serve() throws -> Int32 {
    let ca = try TestCA()
    var options = TestServer.Options()
    options.requestsKept = 100
    let plain = try TestServer(options)
    let secure = try TestServer(options, tls: .init(certificate: try ca.issue()))
    let root = Data(ca.rootCertificateDER).base64EncodedString()
    let sink = try Sink()
    FileHandle.standardOutput.write(Data("\(plain.port) \(secure.port) \(sink.listener.port) \(root)\n".utf8))
    while readLine() != nil {}
    return plain.failures.isEmpty && secure.failures.isEmpty ? 0 : 1
  }
}
