import LarkspurBytes
import LarkspurCoding
import LarkspurEngine
import LarkspurHTTP
import LarkspurIO
import LarkspurTransport

/// The body of one request as it is sent.
struct SentBody {
  var content = RequestBody.none
  /// How the body's length is announced.
  var length = RequestWriter.Body.none
  /// The fields that describe the body.
  var fields: FieldList = []
}

extension HTTPClient.Request {
  /// Whether the body is compressed, unless that does not make it shorter.
  private func compressesBody(_ composer: RequestComposer) -> Bool {
    bodyCompression != nil && !composer.namesCoding && !fields.contains(named: "Content-Encoding")
  }

  /// Whether the body can be read before it is sent.
  func canHashBody(_ composer: RequestComposer) -> Bool {
    switch body.content {
    case .none, .file: true
    case .bytes: !compressesBody(composer)
    case .produced: false
    }
  }

  /// The function that hashes the body for Digest's `auth-int`, or `nil` if there is no body.
  func bodyHash(_ composer: RequestComposer) -> AuthenticatedRequest.BodyHash? {
    switch body.content {
    case .none: nil
    case .bytes(let bytes): compressesBody(composer) ? BodyHashing.impossible : BodyHashing.of(bytes)
    case .file(let path): BodyHashing.ofFile(at: path)
    case .produced: BodyHashing.impossible
    }
  }

  /// Returns the body for the transport.
  func sentBody(_ composer: RequestComposer) throws(HTTPClientError) -> SentBody {
    let isCompressed = compressesBody(composer)
    var sent = SentBody()
    var isStreamed = false
    switch body.content {
    case .none: break
    case .bytes(let bytes):
      if isCompressed, let (content, length) = try compressed(bytes) {
        sent = SentBody(content: content, length: length, fields: [BodyCompression.field])
      } else {
        sent = SentBody(content: .bytes(bytes), length: .length(UInt(bytes.count)))
      }
    case .file(let path): sent = try file(at: path)
    case .produced(let length, let produce):
      if let length, length < 0 { throw HTTPClientError(.invalidRequest, "a body has no negative length", url: url) }
      let sentLength = isCompressed ? nil : length
      isStreamed = sentLength == nil
      sent.length = sentLength.map { .length(UInt($0)) } ?? .chunked
      if isCompressed { sent.fields.append(BodyCompression.field) }
      sent.content = .produced(length: sentLength) { [trailers] writer in
        let compressor = isCompressed ? try CompressingWriter(to: writer, length: length) : nil
        // The producer is the program's code, and may block: it does not run on the loop's thread.
        try await withTaskExecutorPreference(globalConcurrentExecutor) {
          try await produce(HTTPClient.RequestWriter(writer: writer, compressor: compressor))
        }
        try await compressor?.end()
        try await trailers?.write(to: writer)
      }
    }
    if let trailers {
      do throws(RequestTrailers.Invalid) {
        try trailers.check(isStreamed: isStreamed)
      } catch {
        throw HTTPClientError(.invalidRequest, "\(error)", url: url)
      }
      sent.fields.append(trailers.announcement)
    }
    return sent
  }

  private func compressed(_ bytes: [UInt8]) throws(HTTPClientError) -> (RequestBody, RequestWriter.Body)? {
    do throws(CodingError) {
      return try BodyCompression.body(count: bytes.count) { Array(bytes[$0]) }
    } catch {
      throw HTTPClientError(.unavailable, "bodyCompression: \(error)", url: url)
    }
  }

  private func file(at path: String) throws(HTTPClientError) -> SentBody {
    do throws(Errno) {
      let file = try OpenFile(readingRegular: path)
      let length = try file.status().size
      return SentBody(content: .file(file, offset: 0, length: length), length: .length(UInt(length)))
    } catch {
      throw HTTPClientError(.bodyFailed, "the file \(path) cannot be read: \(error)", url: url)
    }
  }
}
