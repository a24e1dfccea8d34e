import Foundation
import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import Synchronization

@testable import Larkspur

/// A temporary directory for caches. Deinitialization waits for the caches' writes and removes the directory.
final class CacheDirectory {
  let url = FileManager.default.temporaryDirectory.appending(path: "larkspur-cache-\(UUID().uuidString)")
  private var caches: [URLCache] = []

  deinit {
    for cache in caches { cache.core.settle() }
    try? FileManager.default.removeItem(at: url)
  }

  /// The directory of the cache's files.
  var path: String { url.path + "/URLCache" }

  var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }

  func cache(memory: Int = 0, disk: Int = 1 << 20) -> URLCache {
    let cache = URLCache(memoryCapacity: memory, diskCapacity: disk, directory: url)
    caches.append(cache)
    return cache
  }
}

/// Files in memory that fail every operation after a given number of steps, as if the process had been killed.
final class KillableFiles: CacheFiles {
  struct File {
    var bytes: [UInt8]
    var used = 0.0
    var changed = 0.0
  }

  struct Killed: Error {}

  private struct State {
    var files: [String: File] = [:]
    var stepsLeft = Int.max
    var lists = 0
    var placed: [String] = []
    var bytesWritten = 0
    var usesNoted = 0
  }

  private let state = Mutex(State())

  var files: [String: File] { state.withLock { $0.files } }

  /// The number of steps that still succeed.
  var stepsLeft: Int {
    get { state.withLock { $0.stepsLeft } }
    set { state.withLock { $0.stepsLeft = newValue } }
  }

  var disk: CacheDisk { CacheDisk(isInUse: true, process: 1) { (_) throws(Errno) in self } }

  private func step<T: Sendable>(
    _ body: @Sendable (inout [String: File]) -> Result<T, Errno>
  ) throws(Errno) -> T {
    let result: Result<T, Errno> = state.withLock { state in
      guard state.stepsLeft > 0 else { return .failure(.inputOutput) }
      state.stepsLeft -= 1
      return body(&state.files)
    }
    return try result.get()
  }

  /// The number of directory listings.
  var lists: Int { state.withLock { $0.lists } }

  /// The names of the files that were completed, in order.
  var placed: [String] { state.withLock { $0.placed } }

  /// The bytes written to all files.
  var bytesWritten: Int { state.withLock { $0.bytesWritten } }

  /// The number of writes that set a file's time of use and nothing else.
  var usesNoted: Int { state.withLock { $0.usesNoted } }

  func list() throws(Errno) -> [Directory.Facts] {
    state.withLock { $0.lists += 1 }
    return try step { files in
      .success(
        files.map {
          Directory.Facts(
            name: $0.key, size: $0.value.bytes.count, usedTime: $0.value.used, changedTime: $0.value.changed)
        })
    }
  }

  func read(_ name: String, atMost count: Int) throws(Errno) -> [UInt8] {
    try step { files in files[name].map { .success(Array($0.bytes.prefix(count))) } ?? .failure(.noSuchFile) }
  }

  func create(_ name: String, _ head: [UInt8], _ body: Data) throws(Errno) {
    try step { files -> Result<Void, Errno> in
      guard files[name] == nil else { return .failure(.fileExists) }
      // Not long ago: a scan by another cache would remove the file of a writer as an orphan.
      files[name] = File(bytes: [], changed: HandClock().now.timeIntervalSince1970)
      return .success(())
    }
    let all = head + [UInt8](body)
    state.withLock { $0.bytesWritten += all.count }
    // Writes three pieces, none of which ends where the head does.
    let piece = all.count / 3 + 1
    for start in stride(from: 0, to: all.count, by: piece) {
      try step { files -> Result<Void, Errno> in
        files[name]?.bytes += all[start..<min(start + piece, all.count)]
        return .success(())
      }
    }
  }

  func rename(_ name: String, to other: String) throws(Errno) {
    state.withLock { if $0.stepsLeft > 0 { $0.placed.append(other) } }
    try step { files -> Result<Void, Errno> in
      guard let file = files.removeValue(forKey: name) else { return .failure(.noSuchFile) }
      files[other] = file
      return .success(())
    }
  }

  func remove(_ name: String) throws(Errno) {
    try step { files -> Result<Void, Errno> in
      files.removeValue(forKey: name) == nil ? .failure(.noSuchFile) : .success(())
    }
  }

  func setTimes(_ name: String, used: Double?, changed: Double?) throws(Errno) {
    if changed == nil { state.withLock { $0.usesNoted += 1 } }
    try step { files -> Result<Void, Errno> in
      guard files[name] != nil else { return .failure(.noSuchFile) }
      if let used { files[name]?.used = used }
      if let changed { files[name]?.changed = changed }
      return .success(())
    }
  }

  /// Adds a file, as another process would.
  func put(_ name: String, _ bytes: [UInt8], changed: Double) {
    state.withLock { $0.files[name] = File(bytes: bytes, used: changed, changed: changed) }
  }
}

extension URLCache {
  /// Waits for the plan, which may need a lookup on disk.
  func plan(
    for request: URLRequest, fields: FieldList, policy: URLRequest.CachePolicy, now: Date
  ) async -> CachePlan {
    let question = OneShot<CachePlan>()
    plan(for: request, fields: fields, policy: policy, now: now) { question.set($0) }
    // The plan is never `nil`: `plan` always calls its completion.
    return await question.get() ?? .fail(.resourceUnavailable)
  }
}

func request(_ url: String, _ fields: [String: String] = [:], method: String = "GET") -> URLRequest {
  var request = URLRequest(url: URL(string: url) ?? URL(fileURLWithPath: "/"))
  request.httpMethod = method
  for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
  return request
}

func response(_ url: String, _ fields: [String: String] = [:], status: Int = 200) -> HTTPURLResponse {
  HTTPURLResponse.make(
    url: URL(string: url) ?? URL(fileURLWithPath: "/"), status: status, version: "HTTP/1.1",
    fields: fields.sorted { $0.key < $1.key }.map { Field($0.key, $0.value) }, isDecoded: false)
}

func entry(
  _ url: String, _ text: String, _ fields: [String: String] = [:], policy: URLCache.StoragePolicy = .allowed
) -> CachedURLResponse {
  CachedURLResponse(response: response(url, fields), data: Data(text.utf8), storagePolicy: policy)
}

extension CachedURLResponse {
  var text: String { String(decoding: data, as: UTF8.self) }

  /// Returns the response as a cache stores it for a request without fields.
  func prepared(key: String, now: Double) -> CachedURLResponse { prepared(key: key, for: [], now: now) ?? self }
}
