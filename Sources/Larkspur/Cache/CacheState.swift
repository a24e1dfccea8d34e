import Foundation
import LarkspurHTTP

extension CacheCore.State {
  // MARK: - Memory

  /// Puts it in memory if it may be there, and makes room for it.
  mutating func keepInMemory(_ entry: CachedURLResponse, costMax: Int) {
    guard let key = entry.origin?.key, entry.storagePolicy != .notAllowed else { return }
    let cost = entry.cost
    removeFromMemory(key) { $0.variant == entry.variant }
    guard cost <= min(costMax, memoryCapacity) else { return }
    memory[key, default: []].append(entry)
    memoryLedger.insert(CacheCore.MemoryName(key: key, variant: entry.variant), cost: cost)
    if let first = memory[key]?.first, (memory[key]?.count ?? 0) > CacheCore.variantsMax {
      removeFromMemory(key) { $0 === first }
    }
    trimMemory()
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

  // MARK: - What is on its way

  mutating func invalidate(_ key: String, now: Double) {
    // (Rather than to forget one of them, all that is under way is kept out.)
    if invalidated.count >= CacheCore.invalidatedMax {
      invalidated.removeAll(keepingCapacity: true)
      invalidatedBefore = now
    }
    invalidated[key] = now
  }

  /// Whether what was asked for then may be older than what has been invalidated. (Of a time to come the clock has been set
  /// back since, and nobody knows.)
  func isOutdated(_ key: String, requested: Double, now: Double) -> Bool {
    let time = max(invalidated[key] ?? invalidatedBefore, invalidatedBefore)
    return requested < time && time <= now
  }

  // MARK: - Files

  mutating func keepFile(_ name: CacheEntryName, cost: Int) {
    if !fileLedger.contains(name) { files[name.key, default: []].append(name) }
    fileLedger.insert(name, cost: cost)
  }

  /// A file that is going to be written. It takes nothing from the budget before it is there.
  mutating func expectFile(_ name: CacheEntryName, _ change: UInt64) {
    pending[name] = change
    if fileLedger.contains(name) { fileLedger.touch(name) } else { keepFile(name, cost: 0) }
  }

  /// For the queue, which may be behind: what is to be written after this stays listed.
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

  /// Forgets what is known of entries that are not on the disk any more.
  mutating func forgetOthers() {
    let ledger = fileLedger
    behind.forget(except: { ledger.contains($0) })
    for name in Array(generations.keys) where !ledger.contains(name) { generations[name] = nil }
  }

  /// A later head is on the disk, of so many bytes, or is not there any more.
  mutating func keepHead(_ name: CacheEntryName, size: Int?) {
    guard let cost = fileLedger.cost(of: name) else { return }
    fileLedger.insert(name, cost: cost + (size ?? 0) - (heads[name] ?? 0))
    heads[name] = size
  }

  /// The files that an entry takes the place of, its own among them if there is one.
  func replaced(by entry: CachedURLResponse, _ name: CacheEntryName) -> [CacheEntryName] {
    let names = files[name.key] ?? []
    let nobody = CachedURLResponse.variantOfAll
    var replaced = names.filter { $0 == name || name.variant == nobody || $0.variant == nobody }
    // The oldest first: those that were listed first.
    let left = names.filter { !replaced.contains($0) }
    if left.count >= CacheCore.variantsMax { replaced += left.prefix(left.count - CacheCore.variantsMax + 1) }
    return replaced
  }
}

extension CachedURLResponse {
  static let variantOfAll = CacheHash()

  /// A response that no request field chose goes in place of all others of its URI, and goes when one of them comes:
  /// a server that names no fields sometimes and some at other times means the latest (RFC 9111 4.1).
  func replaces(_ other: CachedURLResponse) -> Bool {
    let nobody = Self.variantOfAll
    return variant == other.variant || variant == nobody || other.variant == nobody
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
  /// A password is nothing to leave on a disk.
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
