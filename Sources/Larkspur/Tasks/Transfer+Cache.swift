import Foundation
import LarkspurCoding
import LarkspurHTTP
import LarkspurTransport

/// What the cache has to do with a task.
extension Transfer {
  /// Data and upload tasks use the cache. A download's content is a file, which nobody would want twice.
  var cache: URLCache? {
    download == nil ? core.cache : nil
  }

  /// There is no cache: nothing can be served, but caches on the way may be told.
  func applyPolicyWithoutCache(
    to request: URLRequest, _ extras: inout RequestComposer.Extras
  ) throws(URLError) {
    switch core.policy(of: request) {
    case .returnCacheDataDontLoad:
      throw URLError.make(
        .resourceUnavailable, "the session has no cache for this, and may not load it", url: request.url)
    case .reloadIgnoringLocalAndRemoteCacheData:
      guard let exchange = core.lateExchange(for: request, extras, sent: Date()) else { return }
      extras.conditions += CacheDecision.bypassing(exchange.request)
    default: return
    }
  }

  /// Asks the cache what is to be done before anything is sent.
  func planCaching(of load: NetworkLoad) throws(URLError) -> Need? {
    load.isPlanned = true
    guard let cache else {
      try applyPolicyWithoutCache(to: load.request, &load.extras)
      return nil
    }
    let now = cache.now
    load.sendDate = now
    guard !core.isOutsideCache(load.request, cache, now: now) else { return nil }
    let fields = core.composer.fields(of: load.request, load.extras)
    load.plan = planNow(load.request, fields, cache)
    if load.plan != nil { return nil }
    // A cache of the program's own may take its time, and may never answer.
    if hasWorker || cache.isSubclass { return .cachePlan(fields, cache) }
    subscribeToPlan(of: cache, fields, for: load)
    return .callback
  }

  /// Has the cache plan on its queue. The plan comes by a callback of the loop.
  private func subscribeToPlan(of cache: URLCache, _ fields: CacheFields, for load: NetworkLoad) {
    giveUpWait = { [self] in perform() }
    let callback = PlanCallback(self, load)
    cache.plan(for: load.request, fields: fields, policy: core.policy(of: load.request), now: cache.now) {
      callback.plan = $0
      callback.transfer.engine.loop.submit(callback, inline: true)
    }
  }

  fileprivate func planHasCome(_ callback: PlanCallback) {
    // An interruption does not wait for the plan.
    guard !hasWorker, callback.load === load else { return }
    giveUpWait = nil
    load?.plan = callback.plan
    perform()
  }

  /// Waits for the plan of a cache that has to ask its disk, which takes time.
  func plan(_ fields: CacheFields, _ cache: URLCache) async throws(URLError) {
    guard let load else { throw Self.inconsistency }
    load.plan = try await planLater(load.request, fields, cache)
  }

  private func planNow(_ request: URLRequest, _ fields: CacheFields, _ cache: URLCache) -> CachePlan? {
    cache.planNow(for: request, fields: fields, policy: core.policy(of: request), now: cache.now, task: programsTask)
  }

  private func planLater(
    _ request: URLRequest, _ fields: CacheFields, _ cache: URLCache
  ) async throws(URLError) -> CachePlan {
    let question = Question<CachePlan>()
    cache.plan(for: request, fields: fields, policy: core.policy(of: request), now: cache.now, task: programsTask) {
      question.answer($0)
    }
    let plan = try await waiting(
      givingUpBy: { question.giveUp() }, timeCounts: true, { await question.wait() })
    try await passGate()
    guard let plan else { throw URLError.make(.cancelled) }
    return plan
  }

  /// The task, for a cache of the program's own, if the program knows of it.
  private var programsTask: URLSessionDataTask? {
    core.cache?.isSubclass == true && task.isKnown ? task as? URLSessionDataTask : nil
  }

  /// What the cache makes of a response.
  func cacheVerdict(on response: HTTPURLResponse, _ exchange: CacheExchange?) -> CacheVerdict {
    guard let exchange, let cache else { return .deliver }
    return cache.received(response, for: exchange, isWanted: decidesStoring(in: cache), now: cache.now)
  }

  /// Whether somebody decides of each response whether it is stored, and with what: a cache of the program's own, or the
  /// delegate, which is asked about those as well of which HTTP says nothing.
  func decidesStoring(in cache: URLCache) -> Bool { cache.isSubclass || isAskedAboutStoring }

  private var mayAskWhetherToStore: Bool {
    guard case .delegate = output, currentTask is URLSessionDataTask else { return false }
    return wants(.cachedResponse)
  }

  private var isAskedAboutStoring: Bool {
    guard case .delegate = output, hasDelegate, task is URLSessionDataTask else { return false }
    return (core.mayDecideStoring || task.read { $0.delegate != nil }) && wants(.cachedResponse)
  }

  /// What may be used although the server could not be reached.
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

  /// A redirection that is followed is stored as any response is, though its content is nobody's. The delegate is not asked:
  /// it hears of it in another call. What has much content is not worth the reading.
  func storeRedirection(
    _ storing: CacheStoring, from exchange: Exchange, _ decoder: ContentDecoding?
  ) async throws(URLError) {
    var kept: Data? = Data()
    guard try await drain(exchange, keeping: &kept), let kept, let cache else { return }
    guard let decoder else { return cache.store(storing.proposed(kept), for: storing) }
    var decoded = Data()
    do throws(CodingError) {
      decoder.append(kept.span)
      while decoded.count <= storing.bodyBytesMax, try decoder.step({ decoded.append(copying: $0) }) {}
      try decoder.finish()
    } catch {
      return
    }
    cache.store(storing.proposed(decoded), for: storing)
  }

  /// RFC 5861 3: what was served is stale, and is asked for again behind the caller's back.
  func refresh(_ request: URLRequest) {
    var request = request
    request.cachePolicy = .reloadRevalidatingCacheData
    // Once is enough for all who find it stale meanwhile.
    guard core.beginRefresh(request) else { return }
    let task = RefreshTask(core, request: request, output: .dataHandler({ _, _, _ in }))
    core.register(task, session)
    task.resume()
  }
}

/// A cache's plan, on its way from the cache's queue to the loop.
private final class PlanCallback: LoopCallback, @unchecked Sendable {
  let transfer: Transfer
  let load: NetworkLoad
  var plan: CachePlan?

  init(_ transfer: Transfer, _ load: NetworkLoad) {
    self.transfer = transfer
    self.load = load
  }

  func perform() { transfer.planHasCome(self) }
}

/// What the cache loads for itself. No delegate hears of a task that its program has not made; but who trusts servers is asked
/// for its connection as for any other.
private final class RefreshTask: URLSessionDataTask, @unchecked Sendable {
  override var isKnown: Bool { false }
}
