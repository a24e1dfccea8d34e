import Dispatch
import Foundation
import Larkspur

/// Writes request bodies into files.
enum FormFile {
  /// Number of bytes to read and write at a time.
  private static let pieceBytes = 64 * 1024
  /// Time to wait before reading again from an open stream that has no bytes, in seconds.
  private static let pause: TimeInterval = 0.01

  static func write(_ request: URLRequest, to url: URL, handler: (((any Error)?) -> Void)?) {
    let job = UncheckedSendable((stream: stream(of: request), handler: handler))
    DispatchQueue.global().async {
      let problem = problem { try write(job.value.stream, to: url) }
      guard job.value.handler != nil else { return }
      DispatchQueue.main.async { job.value.handler?(problem) }
    }
  }

  static func write(_ request: URLRequest, to url: URL) async throws {
    let stream = UncheckedSendable(stream(of: request))
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      DispatchQueue.global().async {
        continuation.resume(with: Result { try write(stream.value, to: url) })
      }
    }
  }

  private static func problem(_ body: () throws -> Void) -> (any Error)? {
    do {
      try body()
      return nil
    } catch {
      return error
    }
  }

  private static func stream(of request: URLRequest) -> InputStream? {
    request.httpBodyStream?.copyOrSelf
  }

  private static func write(_ stream: InputStream?, to url: URL) throws {
    guard let stream else { throw RequestProblem.make(.unknown, "The request has no body stream.") }
    guard url.isFileURL else { throw RequestProblem.make(.badURL, "Expected URL to be a file URL") }
    try Data().write(to: url)
    do {
      let handle = try FileHandle(forWritingTo: url)
      defer { try? handle.close() }
      if stream.streamStatus == .notOpen { stream.open() }
      defer { stream.close() }
      var buffer = [UInt8](repeating: 0, count: pieceBytes)
      while true {
        let count = StreamBytes.read(stream, into: &buffer)
        guard count >= 0 else {
          throw StreamBytes.error(of: stream)
            ?? RequestProblem.make(.requestBodyStreamExhausted, "The body stream failed.")
        }
        if count == 0 {
          guard stream.streamStatus == .open, !stream.hasBytesAvailable else { break }
          Thread.sleep(forTimeInterval: pause)
          continue
        }
        try handle.write(contentsOf: Data(buffer[..<count]))
      }
    } catch {
      // Do not leave a part of a body behind.
      try? FileManager.default.removeItem(at: url)
      throw error
    }
  }
}
