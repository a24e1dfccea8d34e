import Foundation
import Larkspur
import Synchronization

/// The blocks that a program has set for a manager's session, and the delegate calls that they require. Safe to use
/// from any thread.
///
/// Blocks belong to the program, and need not be `Sendable`, as in Objective-C: they are called on the session's queue,
/// one after another, except `didFinishEvents`, which is called on the main queue.
final class SessionBlocks: Sendable {
  struct Set: @unchecked Sendable {
    var sessionDidBecomeInvalid: ((URLSession, any Error) -> Void)?
    var sessionDidReceiveAuthenticationChallenge: AFURLSessionManager.SessionChallengeBlock?
    var didFinishEvents: ((URLSession) -> Void)?
    var taskNeedNewBodyStream: ((URLSession, URLSessionTask) -> InputStream)?
    var taskWillPerformHTTPRedirection: ((URLSession, URLSessionTask, URLResponse, URLRequest) -> URLRequest?)?
    var authenticationChallengeHandler: AFURLSessionManager.AuthenticationChallengeHandler?
    var taskDidReceiveAuthenticationChallenge: AFURLSessionManager.TaskChallengeBlock?
    var taskDidSendBodyData: ((URLSession, URLSessionTask, Int64, Int64, Int64) -> Void)?
    var taskDidComplete: ((URLSession, URLSessionTask, (any Error)?) -> Void)?
    var taskDidFinishCollectingMetrics: ((URLSession, URLSessionTask, URLSessionTaskMetrics?) -> Void)?
    var dataTaskDidReceiveResponse: AFURLSessionManager.ResponseBlock?
    var dataTaskDidBecomeDownloadTask: ((URLSession, URLSessionDataTask, URLSessionDownloadTask) -> Void)?
    var dataTaskDidReceiveData: ((URLSession, URLSessionDataTask, Data) -> Void)?
    var dataTaskWillCacheResponse: ((URLSession, URLSessionDataTask, CachedURLResponse) -> CachedURLResponse)?
    var downloadTaskDidFinishDownloading: ((URLSession, URLSessionDownloadTask, URL) -> URL?)?
    var downloadTaskDidWriteData: ((URLSession, URLSessionDownloadTask, Int64, Int64, Int64) -> Void)?
    var downloadTaskDidResume: ((URLSession, URLSessionDownloadTask, Int64, Int64) -> Void)?

    fileprivate func needsCall(_ call: URLSessionDelegateCall) -> Bool {
      switch call {
      case .response: dataTaskDidReceiveResponse != nil
      case .didReceiveData: dataTaskDidReceiveData != nil
      case .sentBody: taskDidSendBodyData != nil
      case .writtenData: downloadTaskDidWriteData != nil
      case .cachedResponse: dataTaskWillCacheResponse != nil
      case .redirection: taskWillPerformHTTPRedirection != nil
      case .informationalResponse: false
      case .completionOnQueue:
        taskDidComplete != nil || taskDidFinishCollectingMetrics != nil || dataTaskDidReceiveData != nil
          || downloadTaskDidFinishDownloading != nil
      }
    }
  }

  /// An immutable set of blocks. Performance: a reader retains a single object.
  final class Snapshot: Sendable {
    let set: Set

    init(_ set: Set) { self.set = set }
  }

  private let snapshot = Mutex(Snapshot(Set()))
  /// The calls that have blocks, as bits. Read several times for each request, and nearly always zero. `change(_:)`
  /// stores with release order, `needsCall(_:)` loads with acquire order.
  private let neededCalls = Atomic<UInt8>(0)

  var current: Snapshot { snapshot.withLock { $0 } }

  func needsCall(_ call: URLSessionDelegateCall) -> Bool {
    neededCalls.load(ordering: .acquiring) & Self.bit(of: call) != 0
  }

  private static func bit(of call: URLSessionDelegateCall) -> UInt8 {
    switch call {
    case .response: 1
    case .didReceiveData: 1 << 1
    case .sentBody: 1 << 2
    case .writtenData: 1 << 3
    case .cachedResponse: 1 << 4
    case .redirection: 1 << 5
    case .completionOnQueue: 1 << 6
    case .informationalResponse: 1 << 7
    }
  }

  private static let calls: [URLSessionDelegateCall] = [
    .response, .didReceiveData, .sentBody, .writtenData, .cachedResponse, .redirection, .completionOnQueue,
    .informationalResponse,
  ]

  func change(_ body: (inout Set) -> Void) {
    let old = snapshot.withLock { snapshot in
      defer {
        var set = snapshot.set
        body(&set)
        snapshot = Snapshot(set)
        let bits = Self.calls.filter { set.needsCall($0) }.map { Self.bit(of: $0) }
        neededCalls.store(bits.reduce(0, |), ordering: .releasing)
      }
      return snapshot
    }
    // Release replaced blocks after the lock: their deinitializers may run the program's code.
    withExtendedLifetime(old) {}
  }
}
