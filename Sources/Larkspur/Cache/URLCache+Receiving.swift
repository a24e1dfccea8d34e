import Foundation
import LarkspurHTTP

extension URLCache {
  /// Decides what the task does with the head of a response. Never blocks. Updates the cache, unless that needs the
  /// body.
  ///
  /// - Parameter isWanted: Whether the response may be stored without freshness information or a validator, because a
  ///   subclass of the cache or the delegate decides about each response.
  func received(
    _ response: HTTPURLResponse, for exchange: CacheExchange, isWanted: Bool = false, now: Date
  ) -> CacheVerdict {
    let request = exchange.request
    if !isWanted, request.isSafe, exchange.candidate == nil, response.statusCode != 304 || !request.isConditional,
      !response.fields.mayConcernCache(request)
    {
      return .deliver
    }
    let time = now.timeIntervalSince1970
    let fields = response.fields.list
    let candidate = exchange.candidate
    let outcome = CacheOutcome.received(
      status: response.statusCode, fields: fields, for: request, candidate: candidate?.origin?.stored,
      isValidated: exchange.isValidated, isWanted: isWanted, requestTime: exchange.requestTime, now: time)
    switch outcome {
    case .deliver: return deliver(response.statusCode, fields, exchange, time)
    case .store(let proposal):
      guard let limit = bodyBytesMax(of: response) else { return .deliver }
      return .deliverAndStore(
        CacheStoring(exchange, proposal, of: response, at: time, bodyBytesMax: limit))
    case .freshen(let stored):
      if let candidate { keep(candidate, as: stored, for: exchange, now: time) }
      return .deliver
    case .discard:
      discard(exchange, status: response.statusCode)
      return .deliver
    case .confirmed(let stored), .confirmedOnce(let stored):
      guard let candidate else { return .deliver }
      if case .confirmed = outcome {
        keep(candidate, as: stored, for: exchange, now: time)
      } else {
        discard(exchange, status: stored.status)
      }
      var answer = answer(candidate, stored, exchange, age: nil)
      answer.isValidated = true
      return .useStored(answer)
    case .reload:
      discard(exchange, status: response.statusCode)
      return .reload
    case .standIn: return standIn(exchange, now: time).map { .useStored($0) } ?? .deliver
    case .invalidate(let references):
      invalidate(exchange, references, now: time)
      return .deliver
    }
  }

  /// Returns the stored response to deliver when the server could not be reached, or `nil` if the error is delivered
  /// (RFC 5861 4).
  func failed(_ exchange: CacheExchange, now: Date) -> CacheAnswer? {
    guard let stored = exchange.candidate?.origin?.stored,
      stored.mayStandIn(for: exchange.request, now: now.timeIntervalSince1970)
    else { return nil }
    return standIn(exchange, now: now.timeIntervalSince1970)
  }

  /// Stores a response whose body is complete.
  ///
  /// - Parameter cached: The delegate's version of ``CacheStoring/proposed(_:)``. If the delegate returned `nil`, this
  ///   is not called.
  func store(_ cached: CachedURLResponse, for storing: CacheStoring) {
    guard cached.storagePolicy != .notAllowed, cached.data.count <= storing.bodyBytesMax,
      let key = storing.exchange.key, let entry = storing.entry(cached, key: key)
    else { return }
    if isSubclass { return store(entry, of: storing.exchange.subject(status: storing.response.statusCode)) }
    let (requested, now) = (storing.exchange.requestTime, storing.responseTime)
    guard entry.origin?.stored?.part != nil else {
      return core.store(entry, room: room, requested: requested, now: now)
    }
    // The part may complete a stored one, perhaps on disk.
    core.change(key, now: now) { entries, removals in
      let held = entries.first { $0.variant == entry.variant }
      self.core.store(
        held.flatMap { $0.combined(with: entry) } ?? entry, room: self.room, requested: requested, removals: removals,
        now: now)
    }
  }

  /// Returns the maximum size of a body to store, in bytes, or `nil` if no body of this response can be stored.
  private func bodyBytesMax(of response: HTTPURLResponse) -> Int? {
    let room = room
    let limit = max(room.memoryCostMax, room.diskCostMax)
    guard limit > CachedURLResponse.costOfAny else { return nil }
    // If the head already says that the body is too long, do not keep the body while it arrives.
    return response.expectedContentLength > Int64(limit) ? nil : limit
  }

  private var room: CacheCore.Room {
    CacheCore.Room(
      memoryCostMax: Int(Double(memoryCapacity) * Self.memoryShareMax),
      diskCostMax: Int(Double(diskCapacity) * Self.diskShareMax))
  }

  // MARK: - Stored responses

  /// Delivers a response that is not stored. A 304 may still refresh a stored response.
  private func deliver(
    _ status: Int, _ fields: FieldList, _ exchange: CacheExchange, _ now: Double
  ) -> CacheVerdict {
    // Only a 304 to the caller's own condition concerns a stored response here.
    guard status == 304, exchange.request.isGet, exchange.candidate == nil, !isSubclass, !core.isEmpty,
      let key = exchange.key
    else { return .deliver }
    core.change(key, now: now) { entries, removals in
      let known = entries.compactMap { entry in entry.origin?.stored.map { (entry: entry, stored: $0) } }
      guard let index = CacheDecision.selected(for: exchange.request, among: known.map(\.stored)) else { return }
      let outcome = CacheOutcome.received(
        status: status, fields: fields, for: exchange.request, candidate: known[index].stored, isValidated: false,
        requestTime: exchange.requestTime, now: now)
      switch outcome {
      case .freshen(let stored):
        self.keep(known[index].entry, as: stored, for: exchange, removals: removals, now: now)
      case .discard: self.discard(exchange, status: status)
      default: return
      }
    }
    return .deliver
  }

  private func keep(
    _ entry: CachedURLResponse, as stored: StoredResponse, for exchange: CacheExchange, removals: UInt64? = nil,
    now: Double
  ) {
    guard let origin = entry.origin else { return }
    let response = HTTPURLResponse.make(
      url: entry.response.url ?? exchange.url, status: stored.status,
      version: (entry.response as? HTTPURLResponse)?.httpVersion ?? "HTTP/1.1", fields: stored.fields,
      isDecoded: stored.isDecoded)
    let renewed = CachedURLResponse(
      response: response, data: entry.data, userInfo: entry.userInfo, storagePolicy: entry.storagePolicy,
      origin: CachedURLResponse.Origin(
        key: origin.key, stored: stored, storedTime: now, generation: origin.generation))
    guard !isSubclass else { return store(renewed, of: exchange.subjectOfGet(status: stored.status)) }
    if renewed.variant == entry.variant {
      core.freshen(renewed, requested: exchange.requestTime, removals: removals)
    } else {
      core.store(
        renewed, room: room, renewing: entry.variant, requested: exchange.requestTime, removals: removals, now: now)
    }
  }

  private func discard(_ exchange: CacheExchange, status: Int) {
    if isSubclass { return remove(exchange.subjectOfGet(status: status)) }
    guard let key = exchange.keyOfGet(for: exchange.url) else { return }
    core.remove(key)
  }

  /// Invalidates the target and the references of the same origin (RFC 9111 4.4).
  private func invalidate(_ exchange: CacheExchange, _ references: [String], now: Double) {
    guard let target = exchange.keyOfGet(for: exchange.url) else { return }
    invalidate(exchange.url, target, now: now)
    for url in references.compactMap({ URL(peerText: Array($0.utf8), at: exchange.url) }) {
      guard let key = exchange.keyOfGet(for: url), CacheKey.origin(of: key) == CacheKey.origin(of: target) else {
        continue
      }
      invalidate(url, key, now: now)
    }
  }

  private func invalidate(_ url: URL, _ key: String, now: Double) {
    if isSubclass { remove(CacheSubject(request: URLRequest(url: url))) } else { core.invalidate(key, now: now) }
  }

  private func standIn(_ exchange: CacheExchange, now: Double) -> CacheAnswer? {
    guard let candidate = exchange.candidate, let stored = candidate.origin?.stored else { return nil }
    var answer = answer(candidate, stored, exchange, age: stored.ageSeconds(now: now))
    answer.isStale = true
    return answer
  }

  private func answer(
    _ entry: CachedURLResponse, _ stored: StoredResponse, _ exchange: CacheExchange, age: Int?
  ) -> CacheAnswer {
    let form = CacheDecision.form(of: stored, for: exchange.request) ?? .whole
    return CacheAnswer(entry, stored, form, age: age, url: exchange.url)
  }
}

extension URLCache {
  /// Whether it is known without the disk that nothing is stored for a GET of a URL whose request has no `Host` of its
  /// own.
  func holdsNothing(for url: URL?, now: Date) -> Bool {
    guard !isSubclass, let url else { return false }
    let found = core.find({ CacheKey.make(method: "GET", uri: url.absoluteString) }, now: now.timeIntervalSince1970)
    guard case .inMemory(let entries) = found else { return false }
    return entries.isEmpty
  }
}

extension ResponseFields {
  /// Whether the response has fields that a cache could use. Performance: does not convert the fields to strings.
  fileprivate func mayConcernCache(_ request: CacheRequest) -> Bool {
    guard request.isGet || request.isHead else { return false }
    if request.policy == .storedElseLoad { return true }
    switch self {
    case .given(let fields): return CacheStorage.isOfUse(fields.map { Field($0.key, $0.value) })
    case .wire(let bytes, let table): return CacheStorage.mayBeStored(table, in: bytes.span)
    }
  }
}

extension CachedURLResponse {
  /// Returns this response combined with a part of it (RFC 9111 3.4), or `nil` if they do not fit together.
  func combined(with entry: CachedURLResponse) -> CachedURLResponse? {
    guard let origin, let held = origin.stored, let new = entry.origin?.stored, let part = new.part,
      held.status == 200 || held.part != nil, !held.isDecoded, !new.isDecoded, held.isPartOfSame(new.fields)
    else { return nil }
    let heldRange = held.part ?? ContentRange(bytes: 0..<held.bodyCount, total: held.bodyCount)
    guard heldRange.total == nil || part.total == nil || heldRange.total == part.total,
      let joined = heldRange.bytes.joined(with: part.bytes)
    else { return nil }
    var bytes = Data(capacity: joined.count)
    let (first, second) =
      heldRange.bytes.lowerBound <= part.bytes.lowerBound
      ? ((data, heldRange.bytes), (entry.data, part.bytes)) : ((entry.data, part.bytes), (data, heldRange.bytes))
    bytes += first.0
    bytes += second.0.dropFirst(max(0, first.1.upperBound - second.1.lowerBound))
    guard bytes.count == joined.count else { return nil }
    var stored = held.freshened(by: new.fields, requestTime: new.requestTime, responseTime: new.responseTime)
    let range = ContentRange(bytes: joined, total: part.total ?? heldRange.total)
    stored.bodyCount = bytes.count
    stored.part = range.isWhole ? nil : range
    stored.status = range.isWhole ? 200 : 206
    stored.fields.replace("Content-Length", with: "\(bytes.count)")
    if range.isWhole {
      stored.fields.removeAll(named: "Content-Range")
    } else {
      stored.fields.replace("Content-Range", with: range.text)
    }
    let response = HTTPURLResponse.make(
      url: entry.response.url ?? URL(fileURLWithPath: "/"), status: stored.status, version: "HTTP/1.1",
      fields: stored.fields, isDecoded: false)
    return CachedURLResponse(
      response: response, data: bytes, userInfo: entry.userInfo, storagePolicy: entry.storagePolicy,
      origin: Origin(key: origin.key, stored: stored, storedTime: entry.origin?.storedTime ?? origin.storedTime))
  }
}

extension Range<Int> {
  /// Returns both ranges as one, or `nil` if there is a gap between them.
  fileprivate func joined(with other: Range<Int>) -> Range<Int>? {
    guard lowerBound <= other.upperBound, other.lowerBound <= upperBound else { return nil }
    return Swift.min(lowerBound, other.lowerBound)..<Swift.max(upperBound, other.upperBound)
  }
}
