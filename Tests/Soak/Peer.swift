import Foundation
import LarkspurIO
import LarkspurTestServer

/// The servers of a soak, plain and TLS, in a process of their own: what they hold is not in the client's figures.
final class Peer: Sendable {
  struct Unavailable: Error {}

  let port: UInt16
  let securePort: UInt16
  /// Takes any body, and answers its length.
  let sinkPort: UInt16
  let root: [UInt8]
  private let process = Process()
  private let input = Pipe()

  init() throws {
    let output = Pipe()
    process.executableURL = URL(filePath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
    process.arguments = [Self.word]
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    // One line, and no more.
    var line = Data()
    while line.last != UInt8(ascii: "\n") {
      let bytes = output.fileHandleForReading.availableData
      guard !bytes.isEmpty else { throw Unavailable() }
      line += bytes
    }
    let words = String(decoding: line.dropLast(), as: UTF8.self).split(separator: " ")
    guard words.count == 4, let port = UInt16(words[0]), let securePort = UInt16(words[1]),
      let sinkPort = UInt16(words[2]), let root = Data(base64Encoded: String(words[3]))
    else { throw Unavailable() }
    self.port = port
    self.securePort = securePort
    self.sinkPort = sinkPort
    self.root = Array(root)
  }

  /// Lets it end, and waits until it has. False: something went against its expectations.
  func end() throws -> Bool {
    try input.fileHandleForWriting.close()
    process.waitUntilExit()
    return process.terminationStatus == 0
  }

  // MARK: - In the other process

  /// The argument that makes the program a peer.
  static let word = "serve"

  /// Serves until the input ends, which it does with the client's process at the latest.
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
