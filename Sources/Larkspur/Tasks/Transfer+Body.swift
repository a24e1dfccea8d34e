import Foundation
import LarkspurHTTP
import LarkspurIO
import LarkspurTransport

/// The body that a task sends.
extension Transfer {
  /// How it is sent, and how its length is told.
  struct Body {
    var content = RequestBody.none
    var length = RequestWriter.Body.none

    init() {}

    init(content: RequestBody, length: RequestWriter.Body) {
      self.content = content
      self.length = length
    }

    /// Whether the body is so short that it leaves at once, most often.
    var isLittle: Bool {
      switch content {
      case .none: true
      case .bytes(let bytes): bytes.count <= Self.littleBytesMax
      case .file, .produced: false
      }
    }

    private static let littleBytesMax = 16 * 1024

    init(_ data: Data) {
      guard !data.isEmpty else { return }
      content = .bytes([UInt8](data))
      length = .length(UInt(data.count))
    }
  }

  /// What is sent with a request, for each request that is made: a redirection or a challenge may want it once more. Nil:
  /// a stream, which the delegate may have to be asked for.
  func knownBody(of request: URLRequest) throws(URLError) -> Body? {
    switch source {
    case .request:
      switch request.own.body {
      case .none: return Body()
      case .data(let data): return Body(data)
      case .stream: return nil
      }
    // What a redirection has turned into a GET has no body any more.
    case .data, .file, .delegateStream:
      if request.own.method == "GET", machine.redirectCount > 0 { return Body() }
    }
    switch source {
    case .data(let data): return Body(data)
    case .file(let url): return try file(url)
    case .request, .delegateStream: return nil
    }
  }

  private func file(_ url: URL) throws(URLError) -> Body {
    guard url.isFileURL else { throw URLError.make(.fileDoesNotExist, "not a file URL: \(url.absoluteString)") }
    let problem: URLError
    do throws(Errno) {
      switch try FilePaths.kind(of: url.path) {
      case nil: problem = .make(.fileDoesNotExist, "there is no file \(url.path)")
      case .directory: problem = .make(.fileIsDirectory, "\(url.path) is a directory")
      case .other: return body(readFrom: url)
      case .regularFile:
        let file = try OpenFile(readingRegular: url.path)
        let length = try file.size(by: engine.loop.kernel)
        if length > 0 { return Body(content: .file(file, offset: 0, length: length), length: .length(UInt(length))) }
        // Files that the kernel makes up as they are read (`/proc`) say that they are empty.
        if try !file.read(atMost: 1).isEmpty { return body(readFrom: url) }
        return Body(content: .none, length: .length(0))
      }
    } catch {
      let code: URLError.Code =
        switch error {
        case .accessDenied, .notPermitted: .noPermissionsToReadFile
        case .notDirectory, .noSuchFile: .fileDoesNotExist
        default: .cannotOpenFile
        }
      problem = URLError.make(
        code, "\(url.path): \(error)",
        underlying: NSError(domain: NSPOSIXErrorDomain, code: Int(error.rawValue)))
    }
    throw problem
  }

  /// The body that a file gives whose length is not known before it has been read.
  private func body(readFrom url: URL) -> Body {
    Body(content: produced(by: InputStream(url: url), length: nil), length: .chunked)
  }

  /// A stream can be read once. For the second time, or if there is none, the delegate is asked.
  func askForBody() async throws(URLError) {
    guard let load else { throw Self.inconsistency }
    load.body = try await askedBody(of: load.request)
  }

  private func askedBody(of request: URLRequest) async throws(URLError) -> Body {
    let own = request.httpBodyStream === usedStream ? nil : request.httpBodyStream
    let asksFirst = if case .delegateStream = source { true } else { false }
    var stream = asksFirst ? nil : own
    if stream == nil { stream = try await bodyStreamOfDelegate() }
    guard let stream = stream ?? own else {
      throw URLError.make(.requestBodyStreamExhausted, "the body has to be sent, and there is no new stream for it")
    }
    // Another one is the delegate's, and is not in the next request.
    if stream === own { usedStream = own }
    let length = request.saidLength
    return Body(content: produced(by: stream, length: length), length: length.map { .length(UInt($0)) } ?? .chunked)
  }

  /// It begins, or begins again. Behind a redirection it may be another one.
  func expectToSend(_ body: Body) {
    guard let currentTask else { return }
    let isAgain = currentTask.show { shown in
      if case .length(let count) = body.length {
        shown.bytesExpectedToSend = Int64(clamping: count)
      } else {
        shown.bytesExpectedToSend = NSURLSessionTransferSizeUnknown
      }
      defer { shown.bytesSent = 0 }
      return shown.bytesSent > 0
    }
    if isAgain { currentTask.updateProgress() }
  }

  func bodyStreamOfDelegate() async throws(URLError) -> InputStream? {
    let task = task
    let answer = try await ask(otherwise: StreamBox(nil)) { session, delegate, answer in
      delegate.urlSession(session, task: task, needNewBodyStream: { answer(StreamBox($0)) })
      return true
    }
    return answer.stream
  }

  private func produced(by stream: InputStream?, length: Int?) -> RequestBody {
    guard let stream else { return .produced(length: length) { _ in throw URLError(.cannotOpenFile) } }
    let reader = StreamReader(stream)
    return .produced(length: length) { writer in
      defer { reader.close() }
      while let piece = try await reader.next() { try await writer.write(piece) }
    }
  }

  // MARK: - On its way

  /// Whether events of the request have an observer: its body's way, or what the server says before its response.
  func isObserved(_ body: Body) -> Bool {
    guard let currentTask else { return !body.isLittle }
    if hasDelegate, body.length != .none || wants(.informationalResponse) { return true }
    return !body.isLittle || currentTask.read { $0.progress != nil }
  }

  func observe(_ poolRequest: inout PoolRequest, url: URL?) {
    poolRequest.observer = { [self] event, _ in
      switch event {
      case .bodySent(let bytes): sent(Int64(bytes))
      case .requestSent: allSent()
      case .interimReceived(let status, let bytes, let fields):
        progressed()
        guard hasDelegate, status != 101, let url, wants(.informationalResponse) else { return }
        let response = HTTPURLResponse(
          url: url, statusCode: status, httpVersion: "HTTP/1.1", fields: .wire(bytes: bytes, table: fields),
          isDecoded: false)
        tellLater { session, task, delegate in
          delegate.urlSession(session, task: task, didReceiveInformationalResponse: response)
        }
      default: break
      }
    }
  }

  /// All of the body has left.
  func allSent() {
    guard let currentTask else { return }
    sent(currentTask.read { max($0.shown.bytesSent, $0.shown.bytesExpectedToSend) })
  }

  /// - Parameter total: The number of the body's bytes that have left.
  private func sent(_ total: Int64) {
    progressed()
    guard let currentTask else { return }
    let (before, expected) = currentTask.show { shown in
      defer { shown.bytesSent = max(shown.bytesSent, total) }
      return (shown.bytesSent, shown.bytesExpectedToSend)
    }
    guard total > before else { return }
    currentTask.updateProgress()
    guard hasDelegate, wants(.sentBody), sentBytes.add(SentBytes(from: before, to: total)) else { return }
    tellLater(of: sentBytes, expected: expected)
  }
}

/// Carries a stream from the delegate's queue.
struct StreamBox: @unchecked Sendable {
  let stream: InputStream?

  init(_ stream: InputStream?) { self.stream = stream }
}
