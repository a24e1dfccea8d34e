import Foundation

#if FOUNDATION_NETWORKING
  import FoundationNetworking
#else
  import Larkspur
#endif

/// A delegate that counts calls, and that runs closures at certain points.
final class Listener: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, @unchecked Sendable {
  private let lock = NSLock()
  private var completions: [Int: Int] = [:]
  private var callsAfterEnd = 0
  private var pieces = 0
  private var bytes = 0
  private var files = 0
  private var collected: URLSessionTaskMetrics?
  private var lastError: (any Error)?
  /// Left once for each task that completes.
  let ended = DispatchGroup()
  /// Left when the session has been invalidated.
  let invalidated = DispatchGroup()
  private let released: DispatchGroup

  var onResponse: (@Sendable (URLSessionTask) -> Void)?
  var onData: (@Sendable (URLSessionTask) -> Void)?
  var disposition = URLSession.ResponseDisposition.allow

  init(released: DispatchGroup = DispatchGroup()) {
    self.released = released
    super.init()
    released.enter()
    invalidated.enter()
  }

  deinit { released.leave() }

  /// Registers a task whose completion `ended` waits for.
  func follow(_ task: URLSessionTask) { ended.enter() }

  var doubleCompletions: Int { lock.withLock { completions.values.count { $0 > 1 } } }
  var lateCalls: Int { lock.withLock { callsAfterEnd } }
  var pieceCount: Int { lock.withLock { pieces } }
  var byteCount: Int { lock.withLock { bytes } }
  var fileCount: Int { lock.withLock { files } }
  var metrics: URLSessionTaskMetrics? { lock.withLock { collected } }
  var error: (any Error)? { lock.withLock { lastError } }

  private func heard(_ task: URLSessionTask) {
    lock.withLock { if completions[task.taskIdentifier] != nil { callsAfterEnd += 1 } }
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
  ) {
    heard(dataTask)
    onResponse?(dataTask)
    completionHandler(disposition)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    heard(dataTask)
    lock.withLock {
      pieces += 1
      bytes += data.count
    }
    onData?(dataTask)
  }

  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
  ) {
    heard(downloadTask)
    lock.withLock { files += 1 }
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics
  ) {
    heard(task)
    lock.withLock { collected = metrics }
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    lock.withLock {
      completions[task.taskIdentifier, default: 0] += 1
      lastError = error
    }
    ended.leave()
  }

  func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { invalidated.leave() }
}

extension DispatchGroup {
  /// Suspends until every `enter` is balanced by a `leave`.
  func wait() async {
    await withCheckedContinuation { continuation in notify(queue: .global()) { continuation.resume() } }
  }
}

/// The arguments of a completion handler.
struct Loaded: Sendable {
  var data: Data?
  var status: Int?
  var error: URLError?
}

extension URLSession {
  /// Loads with a task that has a completion handler.
  func load(_ request: URLRequest) async -> Loaded {
    await withCheckedContinuation { continuation in
      dataTask(with: request) { data, response, error in
        let error = error.map { ($0 as? URLError) ?? URLError(.unknown) }
        continuation.resume(
          returning: Loaded(data: data, status: (response as? HTTPURLResponse)?.statusCode, error: error))
      }.resume()
    }
  }
}

/// The process's resources as the kernel counts them.
enum Footprint {
  static var descriptors: Int { count(of: "/proc/self/fd") }
  static var threads: Int { count(of: "/proc/self/task") }

  private static func count(of directory: String) -> Int {
    (try? FileManager.default.contentsOfDirectory(atPath: directory))?.count ?? 0
  }

  /// The peak of the resident memory, in bytes.
  static var peakBytes: Int {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmHWM:") }) else { return 0 }
    return (Int(line.filter(\.isNumber)) ?? 0) * 1024
  }
}
