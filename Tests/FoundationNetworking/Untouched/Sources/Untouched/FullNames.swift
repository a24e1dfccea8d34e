#if canImport(FoundationNetworking)
  public import Foundation
  public import FoundationNetworking

  public typealias NetworkRequest = FoundationNetworking.URLRequest

  public func makeSession(
    _ configuration: FoundationNetworking.URLSessionConfiguration
  ) -> FoundationNetworking.URLSession {
    FoundationNetworking.URLSession(configuration: configuration)
  }

  /// A delegate class of this package.
  open class Recorder: NSObject, FoundationNetworking.URLSessionDataDelegate, @unchecked Sendable {
    public private(set) var bytesReceived = 0
    public let done: @Sendable (Int) -> Void

    public init(done: @escaping @Sendable (Int) -> Void) { self.done = done }

    public func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
      bytesReceived += data.count
    }

    public func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
      done(error == nil ? bytesReceived : -1)
    }
  }
#endif
