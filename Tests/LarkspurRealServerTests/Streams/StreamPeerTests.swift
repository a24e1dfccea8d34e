import Foundation
import Larkspur
import LarkspurTestServer
import TestKit
import Testing

/// Stream tasks with servers in Python: see `Tests/LivePeers/mail_server.py` and `push_server.py`.
@Suite(.serialized, .ownThread) struct StreamPeerTests {
  private let authority: TestCA
  private let files: RealProxy.Files
  private let mail: PythonServer

  init() throws {
    authority = try TestCA()
    files = try RealProxy.Files()
    let certificate = try authority.issue()
    try files.write("chain.pem", certificate.chainPEM)
    try files.write("key.pem", certificate.privateKeyPEM)
    mail = try PythonServer("Tests/LivePeers/mail_server.py", [files.path("chain.pem"), files.path("key.pem")])
  }

  /// Returns a configuration.
  ///
  /// - Parameters:
  ///   - isTrusting: Whether the server's root is trusted.
  ///   - proxy: A proxy to use, with its password.
  private func configuration(isTrusting: Bool = true, through proxy: RealProxy? = nil) throws
    -> URLSessionConfiguration
  {
    let configuration = URLSessionConfiguration.ephemeral
    if isTrusting {
      configuration.tlsTrustSettings.roots = .only([
        try #require(TLSCertificate(Data(authority.rootCertificateDER)))
      ])
    }
    if let proxy {
      configuration.connectionProxyDictionary = [
        "HTTPSEnable": true, "HTTPSProxy": "127.0.0.1", "HTTPSPort": Int(proxy.port), "HTTPSUser": "me",
        "HTTPSPassword": "secret",
      ]
    }
    return configuration
  }

  /// Greets the server, and starts TLS.
  private func startTLS(over stream: URLSessionStreamTask) async throws {
    #expect(try await stream.readLine() == "220 mail.example")
    #expect(try await stream.ask("EHLO larkspur") == "250-mail.example greets larkspur")
    #expect(try await stream.readLine() == "250 STARTTLS")
    #expect(try await stream.ask("STARTTLS") == "220 go ahead")
    stream.startSecureConnection()
  }

  @Test(arguments: [false, true]) func startTLS(isProxied: Bool) async throws {
    let proxy = try isProxied ? RealProxy(.squid) : nil
    let session = URLSession(configuration: try configuration(through: proxy))
    let stream = session.streamTask(withHostName: "localhost", port: mail.port)
    stream.resume()
    try await startTLS(over: stream)
    #expect(try await stream.ask("EHLO again") == "250-mail.example greets again")
    #expect(try await stream.readLine().hasPrefix("250 SECURE TLSv1."))
    #expect(try await stream.ask("DATA") == "354 end with a dot")
    let line = String(repeating: "x", count: 70) + "\r\n"
    try await stream.write(Data((String(repeating: line, count: 20_000) + ".\r\n").utf8), timeout: 0)
    #expect(try await stream.readLine() == "250 \(72 * 20_000) bytes")
    #expect(try await stream.ask("QUIT") == "221 bye")
    let (data, isAtEnd) = try await stream.readData(ofMinLength: 1, maxLength: 1, timeout: 0)
    #expect(data == Data() && isAtEnd)
    stream.closeWrite()
  }

  /// A server whose certificate is not trusted ends the stream, and sees none of what follows.
  @Test func startTLSWithoutTrust() async throws {
    let session = URLSession(configuration: try configuration(isTrusting: false))
    let stream = session.streamTask(withHostName: "localhost", port: mail.port)
    stream.resume()
    try await startTLS(over: stream)
    let error = await #expect(throws: URLError.self) { _ = try await stream.ask("EHLO again") }
    #expect(error?.code == .serverCertificateUntrusted)
  }

  @Test func aProxyRefuses() async throws {
    let proxy = try RealProxy(.squid)
    let configuration = try configuration(through: proxy)
    configuration.connectionProxyDictionary?["HTTPSPassword"] = "wrong"
    let stream = URLSession(configuration: configuration).streamTask(withHostName: "localhost", port: mail.port)
    stream.resume()
    await #expect(throws: URLError.self) { _ = try await stream.readLine() }
  }

  @Test(arguments: [false, true]) func capturedStreams(isProxied: Bool) async throws {
    let proxy = try isProxied ? RealProxy(.squid) : nil
    let recorder = StreamPeerRecorder()
    let session = URLSession(
      configuration: try configuration(through: proxy), delegate: recorder, delegateQueue: nil)
    let stream = session.streamTask(withHostName: "localhost", port: mail.port)
    stream.resume()
    #expect(try await stream.readLine() == "220 mail.example")
    #expect(try await stream.ask("NOOP before") == "250 before")
    stream.captureStreams()
    let streams = try #require(await recorder.streams.firstElement())
    streams.input.open()
    streams.output.open()
    for number in 0..<100 { #expect(streams.ask("NOOP \(number)") == "250 \(number)") }
    #expect(streams.ask("DATA") == "354 end with a dot")
    let line = String(repeating: "y", count: 98)
    for _ in 0..<10_000 { streams.write(line) }
    #expect(streams.ask(".") == "250 1000000 bytes")
    #expect(streams.ask("QUIT") == "221 bye")
    #expect(streams.readLine() == nil)
    #expect(streams.input.streamStatus == .atEnd)
    streams.output.close()
    streams.input.close()
  }

  /// The server continues to send behind the head of its response, and answers lines.
  @Test func aResponseBecomesAStream() async throws {
    let server = try PythonServer("Tests/LivePeers/push_server.py")
    let recorder = StreamPeerRecorder()
    let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    session.dataTask(with: try #require(URL(string: "http://127.0.0.1:\(server.port)/raw"))).resume()
    let stream = try #require(await recorder.tasks.firstElement())
    #expect((stream.response as? HTTPURLResponse)?.statusCode == 200)
    #expect(try await stream.readLine() == "begin")
    for number in 0..<100 {
      try await stream.write(Data("line \(number)\n".utf8), timeout: 0)
      #expect(try await stream.readLine() == "answer to line \(number)")
    }
    try await stream.write(Data("bye\n".utf8), timeout: 0)
    #expect(try await stream.readLine() == "answer to bye")
    #expect(try await stream.readData(ofMinLength: 1, maxLength: 1, timeout: 0).1)
    stream.closeWrite()
  }
}

/// A delegate that makes each response a stream, and passes on what tasks become.
private final class StreamPeerRecorder: NSObject, URLSessionStreamDelegate, URLSessionDataDelegate {
  let (streams, streamsArrived) = AsyncStream<LineStreams>.makeStream()
  let (tasks, taskArrived) = AsyncStream<URLSessionStreamTask>.makeStream()

  func urlSession(
    _ session: URLSession, streamTask: URLSessionStreamTask, didBecome inputStream: InputStream,
    outputStream: OutputStream
  ) { streamsArrived.yield(LineStreams(input: inputStream, output: outputStream)) }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
  ) { completionHandler(.becomeStream) }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask) {
    taskArrived.yield(streamTask)
  }

  /// Ends the waits of a test whose task has failed.
  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    streamsArrived.finish()
    taskArrived.finish()
  }
}

extension AsyncStream where Element: Sendable {
  /// Waits for an element, and returns it, or `nil` if the stream ends first.
  fileprivate func firstElement() async -> Element? {
    for await element in self { return element }
    return nil
  }
}

extension URLSessionStreamTask {
  /// Reads a line. Throws at the end of the stream.
  fileprivate func readLine() async throws -> String {
    var line = Data()
    while line.last != UInt8(ascii: "\n") {
      let (data, _) = try await readData(ofMinLength: 1, maxLength: 1, timeout: 0)
      guard let byte = data?.first else { throw URLError(.networkConnectionLost) }
      line.append(byte)
    }
    return String(decoding: line, as: UTF8.self).trimmingCharacters(in: .newlines)
  }

  /// Writes a command, and reads a line.
  fileprivate func ask(_ command: String) async throws -> String {
    try await write(Data((command + "\r\n").utf8), timeout: 0)
    return try await readLine()
  }
}

/// Foundation's streams with lines, for one thread at a time. Reading and writing block.
private struct LineStreams: @unchecked Sendable {
  let input: InputStream
  let output: OutputStream

  func write(_ line: String) {
    var bytes = Array((line + "\r\n").utf8)
    while !bytes.isEmpty {
      let count = output.write(bytes, maxLength: bytes.count)
      guard count > 0 else { return }
      bytes.removeFirst(count)
    }
  }

  /// Returns the next line, or `nil` at the end.
  func readLine() -> String? {
    var line: [UInt8] = []
    var byte: [UInt8] = [0]
    while line.last != UInt8(ascii: "\n") {
      guard input.read(&byte, maxLength: 1) == 1 else { return nil }
      line += byte
    }
    return String(decoding: line, as: UTF8.self).trimmingCharacters(in: .newlines)
  }

  func ask(_ line: String) -> String? {
    write(line)
    return readLine()
  }
}
