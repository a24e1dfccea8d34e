import Foundation

/// The state of a task's load by a protocol. It belongs to the task's loop.
final class ProtocolLoadState {
  let load: ProtocolLoad
  /// The response that the task's owner has been notified of, or the one that stands in for it.
  var response: URLResponse?
  /// Whether content has been delivered although the protocol has reported no response: ``response`` is only a
  /// stand-in.
  var hasContentWithoutResponse = false
  /// Content that waits for a response. A reader of bytes gets the response first.
  private(set) var early: [Data] = []
  private var earlyBytes = 0
  /// Maximum number of bytes that wait for a response. A protocol that sends more before its response is treated as
  /// having no response.
  private static let earlyBytesMax = 64 * 1024
  /// The cached response that the protocol has reported to be valid.
  var validCached: CachedURLResponse?
  /// Whether all events from within `startLoading()` have been taken.
  var hasStarted = false
  /// Whether the delegate has refused a redirection: the load ends when `startLoading()` has returned.
  var isRefused = false

  private let cache: URLCache?
  private let policy: URLRequest.CachePolicy
  private var storagePolicy = URLCache.StoragePolicy.notAllowed
  /// The content for the cache. Shares the bytes that the protocol has sent.
  private var pieces: [Data] = []
  private var pieceBytes = 0
  private var pieceBytesMax = 0

  /// - Parameter policy: The cache policy of the request, or that of the session if the request leaves it to that.
  init(_ load: ProtocolLoad, cache: URLCache?, policy: URLRequest.CachePolicy) {
    self.load = load
    self.policy = policy
    self.cache = load.client.request.own.method == "GET" ? cache : nil
  }

  var request: URLRequest { load.client.request }

  /// The response for a protocol that reports none.
  var blankResponse: URLResponse {
    URLResponse(
      url: request.url ?? URL(fileURLWithPath: "/"), mimeType: nil, expectedContentLength: -1, textEncodingName: nil)
  }

  /// Keeps content until the response comes.
  ///
  /// - Returns: `false` if the limit of bytes has been reached; the content is not kept.
  func keepEarly(_ data: Data) -> Bool {
    guard earlyBytes < Self.earlyBytesMax else { return false }
    early.append(data)
    earlyBytes += data.count
    return true
  }

  func takeEarly() -> [Data] {
    defer { early = [] }
    return early
  }

  // MARK: - The cache

  /// The cache in which the protocol may find a stored response.
  var readableCache: URLCache? {
    switch policy {
    case .reloadIgnoringLocalCacheData, .reloadIgnoringLocalAndRemoteCacheData: nil
    default: cache
    }
  }

  func mayStore(by policy: URLCache.StoragePolicy) {
    guard let cache, policy != .notAllowed else { return }
    storagePolicy = policy
    pieceBytesMax = policy == .allowed ? max(cache.memoryCapacity, cache.diskCapacity) : cache.memoryCapacity
  }

  func collect(_ data: Data) {
    guard storagePolicy != .notAllowed else { return }
    pieceBytes += data.count
    if pieceBytes <= pieceBytesMax { return pieces.append(data) }
    // The content does not fit into the cache.
    storagePolicy = .notAllowed
    pieces = []
  }

  /// The response that would be stored, and its cache. `nil` if nothing may be stored.
  var proposal: (CachedURLResponse, URLCache)? {
    guard let cache, let response, storagePolicy != .notAllowed, validCached == nil, !isRefused else { return nil }
    var data = Data(capacity: pieceBytes)
    for piece in pieces { data.append(piece) }
    return (CachedURLResponse(response: response, data: data, userInfo: nil, storagePolicy: storagePolicy), cache)
  }
}
