import Foundation

/// Where a task's body comes from.
enum BodySource: @unchecked Sendable {
  /// What the request says.
  case request
  case data(Data)
  case file(URL)
  /// A stream that the delegate is asked for.
  case delegateStream

  /// Bytes; -1 if nobody knows.
  func byteCount(of request: URLRequest?) -> Int64 {
    switch self {
    case .request:
      guard let request else { return 0 }
      return switch request.own.body {
      case .none: 0
      case .data(let data): Int64(data.count)
      case .stream: request.saidLength.map(Int64.init) ?? NSURLSessionTransferSizeUnknown
      }
    case .data(let data): return Int64(data.count)
    case .file(let url):
      let size = (try? FileManager.default.attributesOfItem(atPath: url.path))?[.size] as? NSNumber
      return size?.int64Value ?? NSURLSessionTransferSizeUnknown
    case .delegateStream: return request?.saidLength.map(Int64.init) ?? NSURLSessionTransferSizeUnknown
    }
  }
}

extension URLRequest {
  /// How many bytes its stream has: who sets the length knows it.
  var saidLength: Int? {
    value(forHTTPHeaderField: "Content-Length").flatMap { Int($0) }.flatMap { $0 >= 0 ? $0 : nil }
  }
}

/// What becomes of what a task receives.
enum TaskOutput: Sendable {
  /// Piece by piece to the delegate: bytes, or a file when it is complete.
  case delegate
  /// To a handler, when it is complete; it is called on the delegate queue.
  case dataHandler(@Sendable (Data?, URLResponse?, (any Error)?) -> Void)
  case fileHandler(@Sendable (URL?, URLResponse?, (any Error)?) -> Void)
  /// To an async function, which waits.
  case dataResult
  case fileResult
  case bytes(BytesChannel)

  /// Whether its owner gets the content before it is complete.
  var isIncremental: Bool {
    switch self {
    case .delegate, .bytes: true
    case .dataHandler, .fileHandler, .dataResult, .fileResult: false
    }
  }
}
