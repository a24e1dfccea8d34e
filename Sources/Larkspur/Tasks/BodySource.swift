import Foundation

/// The source of a task's body.
enum BodySource: @unchecked Sendable {
  /// The body of the request itself.
  case request
  case data(Data)
  case file(URL)
  /// A stream, for which the delegate is asked.
  case delegateStream

  /// Whether the body is sent in a content coding that the request asks for. Files are sent as they are.
  func isCompressed(in request: URLRequest, _ core: SessionCore) -> Bool {
    if case .file = self { return false }
    return request.compressesBody(in: core)
  }

  /// Returns the length of the body in bytes, or -1 if it is not known.
  func byteCount(of request: URLRequest?) -> Int64 {
    switch self {
    case .request:
      guard let request else { return 0 }
      return switch request.own.body {
      case .none: 0
      case .data(let data): Int64(data.count)
      case .stream: request.declaredLength.map(Int64.init) ?? NSURLSessionTransferSizeUnknown
      }
    case .data(let data): return Int64(data.count)
    case .file(let url):
      let size = (try? FileManager.default.attributesOfItem(atPath: url.path))?[.size] as? NSNumber
      return size?.int64Value ?? NSURLSessionTransferSizeUnknown
    case .delegateStream: return request?.declaredLength.map(Int64.init) ?? NSURLSessionTransferSizeUnknown
    }
  }
}

extension URLRequest {
  /// The length of the request's stream in bytes, if the program has set `Content-Length`.
  var declaredLength: Int? {
    value(forHTTPHeaderField: "Content-Length").flatMap { Int($0) }.flatMap { $0 >= 0 ? $0 : nil }
  }
}

/// The destination of the content that a task receives.
enum TaskOutput: Sendable {
  /// The delegate: piece by piece, or as a file when the content is complete.
  case delegate
  /// A completion handler, when the content is complete. Called on the delegate queue.
  case dataHandler(@Sendable (Data?, URLResponse?, (any Error)?) -> Void)
  case fileHandler(@Sendable (URL?, URLResponse?, (any Error)?) -> Void)
  /// An async function, which awaits the content.
  case dataResult
  case fileResult
  case bytes(BytesChannel)

  /// Whether the owner gets the content before it is complete.
  var isIncremental: Bool {
    switch self {
    case .delegate, .bytes: true
    case .dataHandler, .fileHandler, .dataResult, .fileResult: false
    }
  }
}
