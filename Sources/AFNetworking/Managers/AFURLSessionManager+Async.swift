import Foundation
import Larkspur

/// Async functions. They return when a task is over, and need neither the main queue nor a completion queue: the result
/// goes directly from the thread that has serialized the response to the caller. Cancelling the caller's task cancels
/// the session's task.
///
/// These functions throw the errors that a handler receives.
extension AFURLSessionManager {
  /// Loads a request, and returns the response serializer's object.
  ///
  /// - Parameters:
  ///   - uploadProgress: Called on ``operationQueue`` while the body is sent.
  ///   - downloadProgress: Called on ``operationQueue`` while the content arrives.
  ///   - request: The request to load.
  public func value(
    for request: URLRequest, uploadProgress: ((Progress) -> Void)? = nil, downloadProgress: ((Progress) -> Void)? = nil
  ) async throws -> (value: Any?, response: URLResponse) {
    let (value, response) = try await TaskPromise.run(self) {
      dataTask(
        with: request, uploadProgress: uploadProgress, downloadProgress: downloadProgress, completionHandler: $0)
    }
    return (value, response)
  }

  /// Sends a request with a file as its body.
  public func upload(
    for request: URLRequest, fromFile fileURL: URL, progress: ((Progress) -> Void)? = nil
  ) async throws -> (value: Any?, response: URLResponse) {
    let (value, response) = try await TaskPromise.run(self) {
      uploadTask(with: request, fromFile: fileURL, progress: progress, completionHandler: $0)
    }
    return (value, response)
  }

  /// Sends a request with bytes as its body.
  public func upload(
    for request: URLRequest, from bodyData: Data, progress: ((Progress) -> Void)? = nil
  ) async throws -> (value: Any?, response: URLResponse) {
    let (value, response) = try await TaskPromise.run(self) {
      uploadTask(with: request, from: bodyData, progress: progress, completionHandler: $0)
    }
    return (value, response)
  }

  /// Sends a request with the request's stream as its body.
  public func upload(
    withStreamedRequest request: URLRequest, progress: ((Progress) -> Void)? = nil
  ) async throws -> (value: Any?, response: URLResponse) {
    let (value, response) = try await TaskPromise.run(self) {
      uploadTask(withStreamedRequest: request, progress: progress, completionHandler: $0)
    }
    return (value, response)
  }

  /// Loads a request into a file.
  ///
  /// - Parameters:
  ///   - destination: Returns the final location of the file. There must not be a file already.
  ///   - request: The request to load.
  ///   - progress: Called on the operation queue while the content arrives.
  public func download(
    for request: URLRequest, progress: ((Progress) -> Void)? = nil,
    destination: @escaping (URL, URLResponse) -> URL
  ) async throws -> (file: URL, response: URLResponse) {
    try await Self.file(
      TaskPromise.run(self) { receive in
        downloadTask(with: request, progress: progress, destination: destination) { receive($0, $1, $2) }
      })
  }

  /// Resumes an earlier download, and returns the whole file.
  public func download(
    resumeFrom resumeData: Data, progress: ((Progress) -> Void)? = nil,
    destination: @escaping (URL, URLResponse) -> URL
  ) async throws -> (file: URL, response: URLResponse) {
    try await Self.file(
      TaskPromise.run(self) { receive in
        downloadTask(withResumeData: resumeData, progress: progress, destination: destination) { receive($0, $1, $2) }
      })
  }

  private static func file(_ result: (object: Any?, response: URLResponse)) throws -> (file: URL, response: URLResponse)
  {
    guard let file = result.object as? URL else {
      throw URLError.make(.cannotOpenFile, "the downloaded file has no destination")
    }
    return (file, result.response)
  }
}
