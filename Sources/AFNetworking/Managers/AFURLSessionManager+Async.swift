import Foundation
import Larkspur

/// Functions that return when a task is over. They need neither the main queue nor a completion queue: what has come of
/// the task goes from the queue where it was serialized to the caller. Cancelling the caller's task cancels the
/// session's.
///
/// They throw what a handler is told as its error.
extension AFURLSessionManager {
  /// Loads a request, and gives what the response serializer has made of the response.
  ///
  /// - Parameters:
  ///   - uploadProgress: Called on ``operationQueue`` as the body leaves.
  ///   - downloadProgress: Called on ``operationQueue`` as the content comes.
  ///   - request: What is to be loaded.
  public func value(
    for request: URLRequest, uploadProgress: ((Progress) -> Void)? = nil, downloadProgress: ((Progress) -> Void)? = nil
  ) async throws -> (value: Any?, response: URLResponse) {
    let (value, response) = try await AsyncReceiver.run(self) {
      dataTask(
        with: request, uploadProgress: uploadProgress, downloadProgress: downloadProgress, completionHandler: $0)
    }
    return (value, response)
  }

  /// Sends a request with a file as its body.
  public func upload(
    for request: URLRequest, fromFile fileURL: URL, progress: ((Progress) -> Void)? = nil
  ) async throws -> (value: Any?, response: URLResponse) {
    let (value, response) = try await AsyncReceiver.run(self) {
      uploadTask(with: request, fromFile: fileURL, progress: progress, completionHandler: $0)
    }
    return (value, response)
  }

  /// Sends a request with some bytes as its body.
  public func upload(
    for request: URLRequest, from bodyData: Data, progress: ((Progress) -> Void)? = nil
  ) async throws -> (value: Any?, response: URLResponse) {
    let (value, response) = try await AsyncReceiver.run(self) {
      uploadTask(with: request, from: bodyData, progress: progress, completionHandler: $0)
    }
    return (value, response)
  }

  /// Sends a request with its stream as its body.
  public func upload(
    withStreamedRequest request: URLRequest, progress: ((Progress) -> Void)? = nil
  ) async throws -> (value: Any?, response: URLResponse) {
    let (value, response) = try await AsyncReceiver.run(self) {
      uploadTask(withStreamedRequest: request, progress: progress, completionHandler: $0)
    }
    return (value, response)
  }

  /// Loads a request into a file.
  ///
  /// - Parameters:
  ///   - destination: Says where the file goes. There must be no file there yet.
  ///   - request: What is to be loaded.
  ///   - progress: Called on the operation queue, as bytes go their way.
  public func download(
    for request: URLRequest, progress: ((Progress) -> Void)? = nil,
    destination: @escaping (URL, URLResponse) -> URL
  ) async throws -> (file: URL, response: URLResponse) {
    try await Self.file(
      AsyncReceiver.run(self) { receive in
        downloadTask(with: request, progress: progress, destination: destination) { receive($0, $1, $2) }
      })
  }

  /// Goes on with an earlier download, and gives the whole file.
  public func download(
    resumeFrom resumeData: Data, progress: ((Progress) -> Void)? = nil,
    destination: @escaping (URL, URLResponse) -> URL
  ) async throws -> (file: URL, response: URLResponse) {
    try await Self.file(
      AsyncReceiver.run(self) { receive in
        downloadTask(withResumeData: resumeData, progress: progress, destination: destination) { receive($0, $1, $2) }
      })
  }

  private static func file(_ result: (object: Any?, response: URLResponse)) throws -> (file: URL, response: URLResponse)
  {
    guard let file = result.object as? URL else { throw URLError(.cannotOpenFile) }
    return (file, result.response)
  }
}
