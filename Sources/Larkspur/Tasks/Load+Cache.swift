import Foundation
import LarkspurBytes
import LarkspurCoding
import LarkspurEngine
import LarkspurHTTP
import LarkspurTransport
import Synchronization

/// A load's use of the cache.
extension Load {
  /// The cache of data and upload tasks. `nil` for a download, whose content goes to a file, and for a WebSocket.
  var cache: URLCache? {
    if case .bytes(let channel) = output, !channel.isCached { return nil }
    return download == nil && live == nil ? core.cache : nil
  }

  /// Applies the request's cache policy without a cache: no stored response can be used, but a field may direct caches
  /// on the way to forward the request.
  func applyPolicyWithoutCache(
    to request: URLRequest, _ additions: inout RequestComposer.AdditionalFields
  ) throws(URLError) {
    switch core.policy(of: request) {
    case .returnCacheDataDontLoad:
      throw URLError.make(
        .resourceUnavailable, "the session has no cache for this, and may not load it", url: request.url)
    case .reloadIgnoringLocalAndRemoteCacheData:
      guard let exchange = core.lateExchange(for: request, additions, sent: Date()) else { return }
      additions.conditions += CacheDecision.bypassing(exchange.request)
    default: return
    }
  }

  /// Gets the cache's plan before anything is sent.
  ///
  /// - Returns: The step that must come first, or `nil` if the plan is made or not needed.
  func planCaching(of load: NetworkLoad) throws(URLError) -> Stop? {
    load.isPlanned = true
    guard let cache else {
      try applyPolicyWithoutCache(to: load.request, &load.additions)
      return nil
    }
    let now = cache.now
    load.sendDate = now
    guard !core.isOutsideCache(load.request, cache, now: now) else { return nil }
    let fields = core.composer.fields(of: load.request, load.additions)
    let policy = core.policy(of: load.request)
    load.plan = cache.planNow(for: load.request, fields: fields, policy: policy, now: now, task: programsTask)
    if load.plan != nil { return nil }
    if isHalted {
      load.isPlanned = false
      return .wait(.resumption)
    }
    // The cache plans on its own queue: it reads its disk, or it is of a program's subclass, which may never answer.
    let callback = PlanCallback(for: self)
    phase = "while reading the cache"
    cancelWait = { [self] in
      callback.drop()
      perform()
    }
    cache.plan(for: load.request, fields: fields, policy: policy, now: now, task: programsTask) {
      callback.plan.set($0)
      callback.loop.submit(callback, inline: false)
    }
    return .wait(.callback)
  }

  fileprivate func planHasCome(_ plan: CachePlan) {
    cancelWait = nil
    phase = nil
    networkLoad?.plan = plan
    perform()
  }

  /// The task, if the cache is a subclass, and the task is one of the program's.
  private var programsTask: URLSessionDataTask? {
    core.cache?.isSubclass == true && task.isKnown ? task as? URLSessionDataTask : nil
  }

  func mayBeStored(_ exchange: Exchange) -> Bool {
    CacheStorage.mayBeStored(exchange.fields, in: exchange.headBytes.span)
  }

  /// Returns what the cache decides about a response.
  func cacheVerdict(on response: HTTPURLResponse, _ exchange: CacheExchange?) -> CacheVerdict {
    guard let exchange, let cache else { return .deliver }
    return cache.received(response, for: exchange, isWanted: decidesStoring(in: cache), now: cache.now)
  }

  /// Whether a subclass of the cache or the delegate decides about each response whether it is stored, and with which
  /// content. The delegate also decides about responses without fields for caches.
  func decidesStoring(in cache: URLCache) -> Bool { cache.isSubclass || isAskedAboutStoring }

  private var mayAskWhetherToStore: Bool {
    guard case .delegate = output, currentTask is URLSessionDataTask else { return false }
    return needsCall(.cachedResponse)
  }

  private var isAskedAboutStoring: Bool {
    guard case .delegate = output, hasDelegate, task is URLSessionDataTask else { return false }
    return (core.mayDecideStoring || task.read { $0.delegate != nil }) && needsCall(.cachedResponse)
  }

  /// Returns a stored response that may be used because the server could not be reached.
  func standIn(for exchange: CacheExchange?) -> CacheAnswer? {
    guard let exchange, let cache else { return nil }
    return cache.failed(exchange, now: cache.now)
  }

  /// Stores the complete content, unless the delegate has to be asked first.
  func store(_ storing: CacheStoring) -> Need? {
    guard let cache, let (proposed, isStoredUnasked) = proposal(of: storing) else { return nil }
    guard !mayAskWhetherToStore else { return .storing(storing) }
    if isStoredUnasked { cache.store(proposed, for: storing) }
    return nil
  }

  func askAndStore(_ storing: CacheStoring) async throws(URLError) {
    guard let cache, let (proposed, isStoredUnasked) = proposal(of: storing) else { return }
    let cached = try await askWhetherToStore(proposed, unasked: isStoredUnasked ? proposed : nil)
    if let cached { cache.store(cached, for: storing) }
  }

  private func proposal(of storing: CacheStoring) -> (CachedURLResponse, isStoredUnasked: Bool)? {
    guard let cache else { return nil }
    let data: Data
    switch output {
    case .dataHandler, .dataResult: data = content.data
    case .delegate, .fileHandler, .fileResult, .bytes:
      guard let kept = content.kept else { return nil }
      data = kept
    }
    guard data.count <= storing.bodyBytesMax else { return nil }
    let isStoredUnasked =
      cache.isSubclass || storing.exchange.request.policy == .storedElseLoad
      || CacheStorage.isOfUse(storing.proposal.fields)
    return (storing.proposed(data), isStoredUnasked)
  }

  /// Stores a redirection that is followed, as other responses are stored, although no owner gets its content. The
  /// delegate is not asked: another call notifies it of the redirection. A redirection with more content than `drain`
  /// reads is not stored.
  func storeRedirection(
    _ storing: CacheStoring, from exchange: Exchange, _ decoder: ContentDecoding?
  ) async throws(URLError) {
    var kept: Data? = Data()
    guard try await drain(exchange, keeping: &kept), let kept, let cache else { return }
    guard let decoder else { return cache.store(storing.proposed(kept), for: storing) }
    var decoded = Data()
    do throws(CodingError) {
      decoder.append(kept.span)
      while decoded.count <= storing.bodyBytesMax, decoder.hasMore { try decoder.step { decoded.append(copying: $0) } }
      try decoder.finish()
    } catch {
      return
    }
    cache.store(storing.proposed(decoded), for: storing)
  }

  /// Loads a stale response that has been served once more, in the background (RFC 5861 3, `stale-while-revalidate`).
  func refresh(_ request: URLRequest) {
    var request = request
    request.cachePolicy = .reloadRevalidatingCacheData
    // One refresh serves all loads that find the response stale meanwhile.
    guard core.startRefresh(request) else { return }
    let task = RefreshTask(core, request: request, output: .dataHandler({ _, _, _ in }))
    core.register(task, session)
    task.resume()
  }
}

/// A cache's plan, on its way from the cache's queue to the loop.
private final class PlanCallback: LoopCallback {
  let loop: ClientLoop
  let plan = OneShot<CachePlan>()
  private let load: Mutex<Load?>

  init(for load: Load) {
    loop = load.engine.loop
    self.load = Mutex(load)
  }

  /// Drops the reference to the load, which has been interrupted: a disk that hangs keeps nothing of the load.
  func drop() { load.withLock { $0 = nil } }

  func perform() {
    guard let load = load.withLock({ $0 }), let plan = plan.value else { return }
    drop()
    load.planHasCome(plan)
  }
}

/// A load that the cache started. No delegate is notified of it, because the program has not created the task. The
/// trust decision for its connection goes to the delegate as for other connections.
private final class RefreshTask: URLSessionDataTask, @unchecked Sendable {
  override var isKnown: Bool { false }
}
