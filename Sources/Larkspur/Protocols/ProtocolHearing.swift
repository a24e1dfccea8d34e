import Foundation

/// What a task has heard of one load by a protocol. It belongs to the task's loop.
final class ProtocolHearing {
  let load: ProtocolLoad
  /// What the task's owner has been told of, or would have been.
  var response: URLResponse?
  /// Content has been delivered, and the protocol has told of no response: ``response`` only stands in for it.
  var hasContentWithoutResponse = false
  /// Content that waits for a response, which a reader of bytes is given first.
  private(set) var early: [Data] = []
  private var earlyBytes = 0
  /// How many bytes wait for a response. A protocol that sends more without one is taken to have none.
  private static let earlyBytesMax = 64 * 1024
  /// What the protocol has called valid.
  var validCached: CachedURLResponse?
  /// All that was said within `startLoading()` has been heard.
  var hasStarted = false
  /// The delegate has refused a redirection: the load ends when `startLoading()` has returned.
  var isRefused = false

  private let cache: URLCache?
  private let policy: URLRequest.CachePolicy
  private var storagePolicy = URLCache.StoragePolicy.notAllowed
  /// Shares what the protocol has sent.
  private var pieces: [Data] = []
  private var pieceBytes = 0
  private var pieceBytesMax = 0

  /// - Parameter policy: The request's, or the session's if it has none.
  init(_ load: ProtocolLoad, cache: URLCache?, policy: URLRequest.CachePolicy) {
    self.load = load
    self.policy = policy
    self.cache = load.client.request.own.method == "GET" ? cache : nil
  }

  var request: URLRequest { load.client.request }

  /// For a protocol that has none.
  var blankResponse: URLResponse {
    URLResponse(
      url: request.url ?? URL(fileURLWithPath: "/"), mimeType: nil, expectedContentLength: -1, textEncodingName: nil)
  }

  /// Keeps content until the response comes. Returns `false` if there is too much of it already.
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

  /// Where the protocol may find what is stored.
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
    // It would not fit.
    storagePolicy = .notAllowed
    pieces = []
  }

  /// What would be stored, and where. Nil: nothing.
  var proposal: (CachedURLResponse, URLCache)? {
    guard let cache, let response, storagePolicy != .notAllowed, validCached == nil, !isRefused else { return nil }
    var data = Data(capacity: pieceBytes)
    for piece in pieces { data.append(piece) }
    return (CachedURLResponse(response: response, data: data, userInfo: nil, storagePolicy: storagePolicy), cache)
  }
}
