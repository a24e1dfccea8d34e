import Foundation
import LarkspurBytes
import LarkspurEngine
import LarkspurHTTP
import LarkspurIO
import LarkspurTransport

/// The body of one request: how it is sent, and how its length is announced.
struct UploadBody {
  var content = RequestBody.none
  var length = RequestWriter.Body.none
  /// `nil` if the body is the whole.
  var part: Part?
  /// Whether the body has the content coding of `BodyCompression.field`.
  var isCompressed = false
  /// Whether the request's trailers follow the body.
  var hasTrailers = false

  /// The position of a body in a resumable upload's file, in bytes.
  struct Part {
    var offset: Int64
    /// Size of the file.
    var whole: Int64
  }

  init() {}

  init(content: RequestBody, length: RequestWriter.Body) {
    self.content = content
    self.length = length
  }

  init(_ data: Data) {
    guard !data.isEmpty else { return }
    if data.count <= Self.copiedBytesMax {
      content = .bytes([UInt8](data))
    } else {
      content = .lent(count: data.count, Self.reader(of: data))
    }
    length = .length(UInt(data.count))
  }

  /// Returns the function that copies a range of data.
  static func reader(of data: Data) -> @Sendable (Range<Int>) -> [UInt8] {
    { [UInt8](data[data.startIndex + $0.lowerBound..<data.startIndex + $0.upperBound]) }
  }

  /// Longer data is sent from the caller's memory. A copy of shorter data leaves in one piece with the head.
  static let copiedBytesMax = 64 * 1024
}

/// What a load sends: its bodies, one for each request that needs it, and the notifications of its owner while they are
/// sent. Made for a load that sends a body, or whose request is observed. It belongs to the loop.
final class TaskUpload {
  /// Maximum number of interim responses that are never merged. If the delegate is slower than the server, its calls
  /// skip all but the latest of further ones.
  fileprivate static let interimResponsesMax = 32

  private let core: SessionCore
  private let source: BodySource
  /// The request's stream, once a body has been read from it: a stream can be read once.
  private var usedStream: InputStream?
  private var usedBefore: InputStream?
  fileprivate let sentBytes = CoalescedUpdates<SentBytes>()
  fileprivate lazy var interimResponses = CoalescedUpdates<InterimResponse>()
  /// The number of interim responses to all requests so far.
  fileprivate var interimCount = 0
  /// The number of the whole's bytes before the current body.
  fileprivate var sentBefore: Int64 = 0
  /// The number of the whole's bytes up to the end of the current body, or `nil` if it is not known or the request has
  /// no body.
  fileprivate var sentAtEnd: Int64?

  init(_ core: SessionCore, _ source: BodySource) {
    self.core = core
    self.source = source
  }

  // MARK: - The body

  /// Returns the body of a request, or `nil` if it is a stream, which the delegate may have to be asked for. Called for
  /// each request of a load: a redirection or a challenge may need the body once more.
  ///
  /// - Parameters:
  ///   - isRedirected: Whether the request is the result of a redirection.
  ///   - isPinned: Whether a change of the file fails the request. An upload that continues later must not mix the bytes
  ///     of two files.
  func knownBody(
    of request: URLRequest, isRedirected: Bool, isPinned: Bool, _ kernel: any Kernel
  ) throws(URLError) -> UploadBody? {
    usedBefore = usedStream
    switch source {
    case .request:
      switch request.own.body {
      case .none: return UploadBody()
      case .data(let data): return try body(data, of: request)
      case .stream: return nil
      }
    case .data, .file, .delegateStream:
      // A redirection that has turned the request into a GET has removed its body.
      if request.own.method == "GET", isRedirected { return UploadBody() }
    }
    switch source {
    case .data(let data): return try body(data, of: request)
    case .file(let url): return try file(url, isPinned: isPinned, kernel)
    case .request, .delegateStream: return nil
    }
  }

  private func body(_ data: Data, of request: URLRequest) throws(URLError) -> UploadBody {
    request.compressesBody(in: core) && !data.isEmpty ? try UploadBody(compressing: data) : UploadBody(data)
  }

  /// The latest request has not been sent, and nothing has been read from its stream.
  func streamIsUnread() { usedStream = usedBefore }

  private func file(_ url: URL, isPinned: Bool, _ kernel: any Kernel) throws(URLError) -> UploadBody {
    guard url.isFileURL else { throw URLError.make(.fileDoesNotExist, "not a file URL: \(url.absoluteString)") }
    let problem: URLError
    do throws(Errno) {
      switch try FilePaths.kind(of: url.path) {
      case nil: problem = .make(.fileDoesNotExist, "there is no file \(url.path)")
      case .directory: problem = .make(.fileIsDirectory, "\(url.path) is a directory")
      case .other: return body(readFrom: url)
      case .regularFile:
        let file = try OpenFile(readingRegular: url.path)
        let status = try file.status(by: kernel)
        if status.size > 0 {
          return UploadBody(
            content: .file(file, offset: 0, length: status.size, unchangedSince: isPinned ? status : nil),
            length: .length(UInt(status.size)))
        }
        // Files that the kernel makes up as they are read (`/proc`) have a reported size of 0.
        if try !file.read(atMost: 1).isEmpty { return body(readFrom: url) }
        return UploadBody(content: .none, length: .length(0))
      }
    } catch {
      problem = Self.failure(error, url.path)
    }
    throw problem
  }

  /// Returns the error of a file that cannot be opened.
  static func failure(_ error: Errno, _ path: String) -> URLError {
    let code: URLError.Code =
      switch error {
      case .accessDenied, .notPermitted: .noPermissionsToReadFile
      case .notDirectory, .noSuchFile: .fileDoesNotExist
      default: .cannotOpenFile
      }
    return .make(
      code, "\(path): \(error)", underlying: NSError(domain: NSPOSIXErrorDomain, code: Int(error.rawValue)))
  }

  /// The body of a file whose length is not known before it has been read.
  private func body(readFrom url: URL) -> UploadBody {
    UploadBody(content: produced(by: InputStream(url: url), length: nil), length: .chunked)
  }

  /// The stream of a request, unless a body has been read from it already.
  fileprivate func unusedStream(of request: URLRequest) -> InputStream? {
    request.httpBodyStream === usedStream ? nil : request.httpBodyStream
  }

  /// Whether nothing has been read from the stream of a request.
  func hasUnusedStream(of request: URLRequest) -> Bool { unusedStream(of: request) != nil }

  /// Returns the body of a request that comes from a stream.
  fileprivate func body(of request: URLRequest, from stream: InputStream?) throws(URLError) -> UploadBody {
    guard let stream else {
      throw URLError.make(.requestBodyStreamExhausted, "the body has to be sent, and there is no new stream for it")
    }
    // A stream of the delegate's is not in the next request.
    if stream === request.httpBodyStream { usedStream = stream }
    let length = request.declaredLength
    let isCompressed = request.compressesBody(in: core)
    var body = UploadBody(
      content: produced(by: stream, length: length, isCompressed: isCompressed, request.own.trailers),
      length: isCompressed ? .chunked : length.map { .length(UInt($0)) } ?? .chunked)
    body.isCompressed = isCompressed
    body.hasTrailers = request.own.trailers != nil && body.length == .chunked
    return body
  }

  /// - Parameter length: The number of bytes to read from the stream, or `nil` to read up to its end.
  private func produced(
    by stream: InputStream?, length: Int?, isCompressed: Bool = false, _ trailers: RequestTrailers? = nil
  ) -> RequestBody {
    let sentLength = isCompressed ? nil : length
    guard let stream else {
      return .produced(length: sentLength) { _ in
        throw URLError.make(.cannotOpenFile, "the stream of the body is missing")
      }
    }
    let reader = StreamReader(stream)
    return .produced(length: sentLength) { writer in
      defer { reader.close() }
      // The stream may stay open after the last byte of a known length.
      var missing = length ?? .max
      let compressor = isCompressed ? try CompressingWriter(to: writer, length: length) : nil
      while missing > 0, let piece = try await reader.next() {
        if let compressor { try await compressor.write(piece) } else { try await writer.write(piece) }
        if length != nil { missing -= piece.count }
      }
      try await compressor?.end()
      try await trailers?.write(to: writer)
    }
  }

  // MARK: - While it is sent

  /// Makes the task show that a body is about to be sent, for the first time or again. After a redirection it may be
  /// another body.
  func expectToSend(_ body: UploadBody, of task: URLSessionTask?) {
    let before = body.part?.offset ?? 0
    let count: Int64? = if case .length(let count) = body.length { Int64(clamping: count) } else { nil }
    sentBefore = before
    sentAtEnd = count.map { before + $0 }
    guard let task else { return }
    let isAgain = task.show { shown in
      shown.bytesExpectedToSend = body.part?.whole ?? count ?? NSURLSessionTransferSizeUnknown
      defer { shown.bytesSent = before }
      return shown.bytesSent != before
    }
    if isAgain { task.updateProgress() }
  }

  /// The next request of a resumable upload has no body.
  func expectNoBody() { sentAtEnd = nil }
}

extension Load {
  /// Prepares the body of a request with a stream. The delegate is asked for the second one, and if there is none.
  func askForBody() async throws(URLError) {
    guard let load = networkLoad else { throw Self.inconsistency }
    let own = upload.unusedStream(of: load.request)
    let asksFirst = if case .delegateStream = source { true } else { false }
    var stream = asksFirst ? nil : own
    if stream == nil { stream = try await askForStream() }
    load.body = try upload.body(of: load.request, from: stream ?? own)
  }

  func askForStream() async throws(URLError) -> InputStream? {
    let task = task
    let answer = try await askDelegate(otherwise: StreamBox(nil)) { session, delegate, answer in
      delegate.urlSession(session, task: task, needNewBodyStream: { answer(StreamBox($0)) })
      return true
    }
    return answer.stream
  }

  /// Observes the sending of a request, up to the end of the load, which drops the request.
  func observe(_ poolRequest: inout PoolRequest, url: URL?) {
    poolRequest.observer = { [self] event, _ in
      switch event {
      case .bodySent(let bytes):
        bodySent(upTo: upload.sentBefore + Int64(bytes))
        resumable?.sent(bytes)
      case .requestSent:
        allSent()
        resumable?.allSent()
      case .interimReceived(let status, let bytes, let fields):
        progressed()
        received(status, .wire(bytes: bytes, table: fields), from: url)
      default: break
      }
    }
  }

  /// An interim response has arrived.
  private func received(_ status: Int, _ fields: ResponseFields, from url: URL?) {
    let isProgress = resumable?.informed(status, fields, from: url) ?? false
    if resumable?.isInterrupted == true { slot.cancelRunning() }
    upload.interimCount += 1
    guard hasDelegate, status != 101, let url, needsCall(.informationalResponse) else { return }
    let response = HTTPURLResponse(
      url: url, statusCode: status, httpVersion: "HTTP/1.1", fields: fields, isDecoded: false)
    // A server may send many, and the delegate may be slow.
    let isMergeable = isProgress || upload.interimCount > TaskUpload.interimResponsesMax
    let responses = upload.interimResponses
    guard responses.add(InterimResponse(response: response, isMergeable: isMergeable)) else { return }
    let (task, session, core) = (task, session, core)
    calls.dispatch(dropped: { responses.dropped() }) {
      while let next = responses.take() {
        DelegateCalls.make(
          { session, delegate in
            delegate.urlSession(session, task: task, didReceiveInformationalResponse: next.response)
            return true
          }, for: task, of: session, core)
      }
    }
  }

  /// All of the body has been sent.
  func allSent() {
    guard let end = uploadIfAny?.sentAtEnd, let currentTask else { return }
    bodySent(upTo: currentTask.read { max($0.shown.bytesSent, end) })
  }

  /// - Parameter total: The number of the whole's bytes that have been sent.
  private func bodySent(upTo total: Int64) {
    progressed()
    guard let task = currentTask else { return }
    let (before, expected) = task.show { shown in
      defer { shown.bytesSent = max(shown.bytesSent, total) }
      return (shown.bytesSent, shown.bytesExpectedToSend)
    }
    guard total > before else { return }
    task.updateProgress()
    let sentBytes = upload.sentBytes
    guard hasDelegate, needsCall(.sentBody), sentBytes.add(SentBytes(from: before, to: total)) else { return }
    let (session, core) = (session, core)
    calls.dispatch(dropped: { sentBytes.dropped() }) {
      while let sent = sentBytes.take() {
        DelegateCalls.make(
          { session, delegate in
            delegate.urlSession(
              session, task: task, didSendBodyData: sent.to - sent.from, totalBytesSent: sent.to,
              totalBytesExpectedToSend: expected)
            return true
          }, for: task, of: session, core)
      }
    }
  }
}

/// Carries a stream from the delegate's queue.
struct StreamBox: @unchecked Sendable {
  let stream: InputStream?

  init(_ stream: InputStream?) { self.stream = stream }
}
