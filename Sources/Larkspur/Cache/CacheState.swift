import Foundation
import LarkspurHTTP

extension CacheCore.State {
  // MARK: - Memory

  /// Stores an entry in memory if its policy and its size allow, and evicts others to make room.
  mutating func keepInMemory(_ entry: CachedURLResponse, costMax: Int) {
    guard let key = entry.origin?.key, entry.storagePolicy != .notAllowed else { return }
    let (cost, variant) = (entry.cost, entry.variant)
    guard cost <= min(costMax, memoryCapacity) else { return removeFromMemory(key) { $0.variant == variant } }
    var entries = memory[key] ?? []
    entries.removeAll { $0.variant == variant }
    entries.append(entry)
    memoryLedger.insert(CacheCore.MemoryName(key: key, variant: variant), cost: cost)
    if entries.count > CacheCore.variantsMax {
      memoryLedger.remove(CacheCore.MemoryName(key: key, variant: entries.removeFirst().variant))
    }
    memory[key] = entries
    trimMemory()
  }

  /// Whether the body of this generation may still be the entry's: no other body is known under its name.
  func holds(_ name: CacheEntryName, of key: String, generation: UInt64) -> Bool {
    let held = memory[key]?.first { $0.variant == name.variant }?.origin
    return (held?.generation ?? generation) == generation
      && generations[name, default: generation] == generation
  }

  mutating func removeFromMemory(_ key: String, where isGone: (CachedURLResponse) -> Bool) {
    guard var entries = memory[key] else { return }
    for entry in entries where isGone(entry) {
      memoryLedger.remove(CacheCore.MemoryName(key: key, variant: entry.variant))
    }
    entries.removeAll(where: isGone)
    memory[key] = entries.isEmpty ? nil : entries
  }

  mutating func trimMemory() {
    while memoryLedger.cost > memoryCapacity, let oldest = memoryLedger.oldest {
      memoryLedger.remove(oldest)
      memory[oldest.key]?.removeAll { $0.variant == oldest.variant }
      if memory[oldest.key]?.isEmpty == true { memory[oldest.key] = nil }
    }
  }

  mutating func emptyMemory() {
    memory.removeAll()
    memoryLedger = RecencyLedger()
  }

  // MARK: - Invalidation

  mutating func invalidate(_ key: String, now: Double) {
    // When the table is full, treat all keys as invalidated now: nothing that was requested earlier is stored.
    if invalidated.count >= CacheCore.invalidatedMax {
      invalidated.removeAll(keepingCapacity: true)
      invalidatedBefore = now
    }
    invalidated[key] = now
  }

  /// Whether a response requested at this time may be older than an invalidation of its key. An invalidation in the
  /// future, from before the clock was set back, does not count.
  func isOutdated(_ key: String, requested: Double, now: Double) -> Bool {
    let time = max(invalidated[key] ?? invalidatedBefore, invalidatedBefore)
    return requested < time && time <= now
  }

  /// Whether a response of the key, requested at this time, is older than the key's own latest invalidation.
  func isInvalidated(_ key: String, requested: Double, now: Double) -> Bool {
    guard let time = invalidated[key] else { return false }
    return requested < time && time <= now
  }

  // MARK: - Files

  mutating func keepFile(_ name: CacheEntryName, cost: Int) {
    if !fileLedger.contains(name) { files[name.key, default: []].append(name) }
    fileLedger.insert(name, cost: cost)
  }

  /// Lists a file that is going to be written. Until the file exists it adds nothing to the cost.
  mutating func expectFile(_ name: CacheEntryName, _ change: UInt64) {
    pending[name] = change
    if fileLedger.contains(name) { fileLedger.touch(name) } else { keepFile(name, cost: 0) }
  }

  /// Drops a file unless a later write of it is pending. The queue calls this, and may be behind the state.
  mutating func forgetUnlessPending(_ name: CacheEntryName) {
    if pending[name] == nil { forget(name) }
  }

  mutating func forget(_ name: CacheEntryName) {
    pending[name] = nil
    heads[name] = nil
    generations[name] = nil
    behind.forget(name)
    guard fileLedger.remove(name) else { return }
    files[name.key]?.removeAll { $0 == name }
    if files[name.key]?.isEmpty == true { files[name.key] = nil }
  }

  mutating func forgetFiles() {
    files.removeAll()
    fileLedger = RecencyLedger()
    heads.removeAll()
  }

  /// Drops the data of entries that are no longer on the disk.
  mutating func forgetOthers() {
    let ledger = fileLedger
    behind.forget(except: { ledger.contains($0) })
    for name in Array(generations.keys) where !ledger.contains(name) { generations[name] = nil }
  }

  /// Records the size of an entry's later head on the disk, or, with `nil`, that there is none.
  mutating func keepHead(_ name: CacheEntryName, size: Int?) {
    guard let cost = fileLedger.cost(of: name) else { return }
    fileLedger.insert(name, cost: cost + (size ?? 0) - (heads[name] ?? 0))
    heads[name] = size
  }

  /// Returns the files that an entry replaces, including its own if there is one.
  func replaced(by entry: CachedURLResponse, _ name: CacheEntryName) -> [CacheEntryName] {
    let names = files[name.key] ?? []
    let wildcard = CachedURLResponse.variantOfAll
    var replaced = names.filter { $0 == name || name.variant == wildcard || $0.variant == wildcard }
    // Files are listed oldest first.
    let left = names.filter { !replaced.contains($0) }
    if left.count >= CacheCore.variantsMax { replaced += left.prefix(left.count - CacheCore.variantsMax + 1) }
    return replaced
  }
}

extension CachedURLResponse {
  static let variantOfAll = CacheHash()

  /// Whether this response replaces `other`. A response without selecting request fields replaces all others of its
  /// URI, and is replaced by each of them: a server that sends `Vary` in some responses only means the latest one (RFC
  /// 9111 4.1).
  func replaces(_ other: CachedURLResponse) -> Bool {
    let wildcard = Self.variantOfAll
    return variant == other.variant || variant == wildcard || other.variant == wildcard
  }
}

// MARK: - Records

extension CacheRecord {
  init(_ entry: CachedURLResponse, _ origin: CachedURLResponse.Origin) {
    let kind: Kind
    if let stored = origin.stored {
      kind = .http(version: (entry.response as? HTTPURLResponse)?.httpVersion ?? "HTTP/1.1", stored)
    } else {
      let response = entry.response
      kind = .plain(
        Plain(
          mimeType: response.mimeType, expectedCount: response.expectedContentLength,
          textEncodingName: response.textEncodingName))
    }
    self.init(
      key: origin.key, uri: entry.response.url.map(Self.withoutPassword) ?? "", storedTime: origin.storedTime,
      kind: kind,
      userInfo: StoredUserInfo.bytes(of: entry.userInfo), generation: origin.generation)
  }
}

extension CacheRecord {
  /// Returns the URL without its password, which must not be written to the disk.
  fileprivate static func withoutPassword(_ url: URL) -> String {
    guard url.password() != nil, var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else {
      return url.absoluteString
    }
    parts.password = nil
    return parts.string ?? ""
  }
}

extension CachedURLResponse {
  convenience init?(_ record: CacheRecord, _ body: Data) {
    guard let url = URL(string: record.uri) else { return nil }
    let response: URLResponse
    var stored: StoredResponse?
    switch record.kind {
    case .http(let version, let known):
      guard known.bodyCount == body.count else { return nil }
      stored = known
      response = HTTPURLResponse.make(
        url: url, status: known.status, version: version, fields: known.fields, isDecoded: known.isDecoded)
    case .plain(let plain):
      response = URLResponse(
        url: url, mimeType: plain.mimeType, expectedContentLength: Int(clamping: plain.expectedCount),
        textEncodingName: plain.textEncodingName)
    }
    self.init(
      response: response, data: body, userInfo: StoredUserInfo.info(of: record.userInfo), storagePolicy: .allowed,
      origin: Origin(key: record.key, stored: stored, storedTime: record.storedTime, generation: record.generation))
  }
}
