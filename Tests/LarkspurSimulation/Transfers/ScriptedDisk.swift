import LarkspurIO
import LarkspurTransfers
import Synchronization

/// A directory in memory that can fail at any call, and that knows what a loss of power may leave.
///
/// Written bytes and names are on the disk only after a `sync` of the file or of the directory. A loss of power leaves
/// any of the changes of names since then, and any pages of the bytes.
package final class ScriptedDisk: TransferFiles {
  struct Node {
    var bytes: [UInt8] = []
    var synced: [UInt8] = []
    /// The bytes that a sync has failed to write. The kernel takes them for written, until they are written to again.
    var lost: Set<Int> = []
    /// Number of bytes that are reserved from the start of the file on.
    var reserved = 0

    /// The room that the file takes. A hole takes room, too.
    var allocated: Int { max(bytes.count, reserved) }
  }

  enum Change {
    case create(String, Int)
    case rename(String, String, Int)
    case remove(String, Int)
  }

  struct Content {
    var nodes: [Int: Node] = [:]
    var lastNode = 0
    var names: [String: Int] = [:]
    /// The names on the disk, and the changes since.
    var syncedNames: [String: Int] = [:]
    var changes: [Change] = []
    var stepsLeft = Int.max
    /// Whether steps succeed again after the one that has failed.
    var failsOnce = false
    var error = Errno.noSpace
    var unreadable: Set<String> = []
    var isLocked = false
    /// The files that a download has locked, by their nodes.
    var lockedNodes: Set<Int> = []
    /// Number of bytes that all files together may have.
    var roomBytes = Int.max
    var calls: [String] = []
    var keepsCalls = true
    /// Whether a call has failed whose process lives on.
    var hasFailedOnce = false
    /// Whether `sync` has no effect, for tests of the checks.
    var ignoresSync = false
    /// Whether `sync` of the directory, or of the part of a download, has no effect, and whether a lock has none.
    var (ignoresDirectorySync, ignoresPartSync, ignoresLock) = (false, false, false)

    /// Whether all calls fail from now on: the process has been killed.
    var isDead: Bool { stepsLeft <= 0 && !failsOnce }

    /// Number of bytes that files may still get.
    var freeBytes: Int { max(0, roomBytes - names.values.reduce(0) { $0 + (nodes[$1]?.allocated ?? 0) }) }

    mutating func create(_ name: String) -> Int {
      lastNode += 1
      nodes[lastNode] = Node()
      names[name] = lastNode
      changes.append(.create(name, lastNode))
      return lastNode
    }
  }

  let state: Mutex<Content>
  /// What happens before each call.
  private let hook = Mutex<Hook?>(nil)

  /// A function in an object: a mutex that has the function itself wraps it once more at each access.
  private final class Hook: Sendable {
    let call: @Sendable () -> Void

    init(_ call: @escaping @Sendable () -> Void) { self.call = call }
  }

  /// - Parameter keepsCalls: Whether `calls` has the calls.
  package init(ignoresSync: Bool = false, keepsCalls: Bool = true) {
    var content = Content()
    (content.ignoresSync, content.keepsCalls) = (ignoresSync, keepsCalls)
    state = Mutex(content)
  }

  private init(_ content: Content) { state = Mutex(content) }

  /// The names of all calls so far.
  package var calls: [String] { state.withLock { $0.calls } }

  package var names: [String] { state.withLock { $0.names.keys.sorted() } }

  package func bytes(_ name: String) -> [UInt8]? {
    state.withLock { state in state.names[name].flatMap { state.nodes[$0]?.bytes } }
  }

  /// Adds a file that is on the disk.
  package func put(_ name: String, _ bytes: [UInt8]) {
    state.withLock { state in
      state.lastNode += 1
      state.nodes[state.lastNode] = Node(bytes: bytes, synced: bytes)
      state.names[name] = state.lastNode
      state.syncedNames[name] = state.lastNode
    }
  }

  /// Makes the call after `steps` more fail, and all calls after that one unless `once` is set.
  package func fail(after steps: Int, with error: Errno = .noSpace, once: Bool = false) {
    state.withLock { state in
      state.stepsLeft = steps
      state.error = error
      state.failsOnce = once
    }
  }

  /// Makes reading a file fail.
  package func setUnreadable(_ names: Set<String>) { state.withLock { $0.unreadable = names } }

  /// The disk as it is after the process has been killed.
  package func afterKill() -> ScriptedDisk {
    var content = state.withLock { $0 }
    content.restart()
    return ScriptedDisk(content)
  }

  /// The disks that a loss of power may leave.
  package func afterPowerLoss() -> [ScriptedDisk] {
    let content = state.withLock { $0 }
    var disks: [ScriptedDisk] = []
    for subset in 0..<(1 << content.changes.count) {
      for part in 0...2 {
        var left = Content()
        (left.lastNode, left.roomBytes) = (content.lastNode, content.roomBytes)
        left.names = content.syncedNames
        for (index, change) in content.changes.enumerated() where subset >> index & 1 == 1 {
          Self.apply(change, to: &left.names)
        }
        left.nodes = content.nodes.mapValues { node in
          // Nothing of what is new, every second page of its first half, or all of it.
          let count = node.synced.count + (node.bytes.count - node.synced.count) * part / 2
          return node.left(count) { page in part == 2 || part == 1 && page % 2 == 0 }
        }
        left.syncedNames = left.names
        disks.append(ScriptedDisk(left))
      }
    }
    return disks
  }

  /// A disk that a loss of power may leave: any changes of names, in their order, and of each file's bytes any pages.
  package func afterPowerLoss(_ random: inout some RandomNumberGenerator) -> ScriptedDisk {
    var left = state.withLock { $0 }
    left.restart()
    left.names = left.syncedNames
    for change in left.changes where Bool.random(using: &random) { Self.apply(change, to: &left.names) }
    for (number, node) in left.nodes.sorted(by: { $0.key < $1.key }) where node.bytes != node.synced {
      let sizes = [node.synced.count, node.bytes.count].sorted()
      let count = Int.random(in: sizes[0]...sizes[1], using: &random)
      left.nodes[number] = node.left(count) { _ in Bool.random(using: &random) }
    }
    left.syncedNames = left.names
    left.changes = []
    return ScriptedDisk(left)
  }

  /// Whether a call has failed whose process lives on.
  package var hasFailedOnce: Bool { state.withLock { $0.hasFailedOnce } }

  /// Removes a file in another process, which no failure concerns.
  package func take(_ name: String) {
    state.withLock { state in
      guard let node = state.names.removeValue(forKey: name) else { return }
      state.changes.append(.remove(name, node))
    }
  }

  /// Whether the process has been killed: all calls fail.
  package var isDead: Bool { state.withLock { $0.isDead } }

  static func apply(_ change: Change, to names: inout [String: Int]) {
    switch change {
    case .create(let name, let node): names[name] = node
    case .rename(let name, let other, let node):
      if names[name] == node { names[name] = nil }
      names[other] = node
    case .remove(let name, let node): if names[name] == node { names[name] = nil }
    }
  }

  /// Sets what happens before each call.
  func interleave(_ body: @escaping @Sendable () -> Void) { hook.withLock { $0 = Hook(body) } }

  /// - Parameter failing: What a call that fails does before. The process lives on.
  func step<Value: Sendable>(
    _ call: @autoclosure () -> String, failing: @Sendable (inout Content) -> Void = { _ in },
    _ body: @Sendable (inout Content) -> Result<Value, Errno>
  ) throws(Errno) -> Value {
    hook.withLock { $0 }?.call()
    let result: Result<Value, Errno> = state.withLock { state in
      if state.keepsCalls { state.calls.append(call()) }
      guard state.stepsLeft > 0 else {
        if state.failsOnce {
          failing(&state)
          (state.stepsLeft, state.hasFailedOnce) = (.max, true)
        }
        return .failure(state.error)
      }
      state.stepsLeft -= 1
      return body(&state)
    }
    return try result.get()
  }

  package func list() throws(Errno) -> [Directory.Facts] {
    try step("list") { state in
      .success(
        state.names.map { name, node in
          Directory.Facts(name: name, size: state.nodes[node]?.bytes.count ?? 0, usedTime: 0, changedTime: 0)
        })
    }
  }

  package func read(_ name: String, atMost count: Int) throws(Errno) -> [UInt8] {
    try step("read \(name)") { state in
      guard let node = state.names[name].flatMap({ state.nodes[$0] }) else { return .failure(.noSuchFile) }
      return state.unreadable.contains(name) ? .failure(.inputOutput) : .success(Array(node.bytes.prefix(count)))
    }
  }

  package func create(_ name: String) throws(Errno) -> any RecordFile {
    let node = try step("create \(name)") { state -> Result<Int, Errno> in
      state.names[name] == nil ? .success(state.create(name)) : .failure(.fileExists)
    }
    return File(disk: self, node: node)
  }

  /// Opens a file that may exist, and cuts it to a size.
  package func open(_ name: String, cutTo count: Int) throws(Errno) -> any RecordFile {
    let node = try step("open \(name)") { state -> Result<Int, Errno> in
      if let node = state.names[name] {
        let kept = state.nodes[node]?.bytes.prefix(count) ?? []
        state.nodes[node]?.bytes = Array(kept)
        return .success(node)
      }
      return .success(state.create(name))
    }
    return File(disk: self, node: node)
  }

  package func rename(_ name: String, to other: String) throws(Errno) {
    try change("rename \(name) \(other)", name) { .rename(name, other, $0) }
  }

  package func remove(_ name: String) throws(Errno) { try change("remove \(name)", name) { .remove(name, $0) } }

  private func change(
    _ call: @autoclosure () -> String, _ name: String, _ make: @Sendable (_ node: Int) -> Change
  ) throws(Errno) {
    try step(call()) { state -> Result<Void, Errno> in
      guard let node = state.names[name] else { return .failure(.noSuchFile) }
      let change = make(node)
      Self.apply(change, to: &state.names)
      state.changes.append(change)
      return .success(())
    }
  }

  package func sync() throws(Errno) {
    try step("sync") { state -> Result<Void, Errno> in
      if state.ignoresSync || state.ignoresDirectorySync { return .success(()) }
      state.syncedNames = state.names
      state.changes = []
      return .success(())
    }
  }

  package func sync(_ name: String) throws(Errno) {
    try step("sync \(name)") { state -> Result<Void, Errno> in
      guard let node = state.names[name] else { return .failure(.noSuchFile) }
      if !state.ignoresSync { state.nodes[node]?.sync() }
      return .success(())
    }
  }

  package func removeDirectory() throws(Errno) {
    try step("remove directory") { state in state.names.isEmpty ? .success(()) : .failure(.notEmpty) }
  }

  package func lock(_ name: String) throws(Errno) -> (any Sendable)? {
    try step("lock") { state -> Result<Lock?, Errno> in
      guard !state.isLocked else { return .success(nil) }
      state.isLocked = true
      return .success(Lock(disk: self))
    }
  }

  private final class Lock: Sendable {
    private let disk: ScriptedDisk

    init(disk: ScriptedDisk) { self.disk = disk }

    deinit { disk.state.withLock { $0.isLocked = false } }
  }

  private struct File: RecordFile {
    let disk: ScriptedDisk
    let node: Int

    /// Writes the bytes in two steps.
    func append(_ bytes: [UInt8]) throws(Errno) {
      for half in [bytes.prefix(bytes.count / 2), bytes.dropFirst(bytes.count / 2)] {
        try disk.step("append") { state -> Result<Void, Errno> in
          guard half.count <= state.freeBytes else { return .failure(.noSpace) }
          state.nodes[node]?.bytes += half
          return .success(())
        }
      }
    }

    func sync() throws(Errno) {
      try disk.step("sync file") { state -> Result<Void, Errno> in
        if !state.ignoresSync { state.nodes[node]?.sync() }
        return .success(())
      }
    }
  }
}

extension ScriptedDisk.Content {
  /// Ends the process.
  mutating func restart() {
    stepsLeft = .max
    isLocked = false
    lockedNodes = []
  }
}

extension ScriptedDisk.Node {
  private static let pageBytes = 4

  /// All bytes reach the disk, except those that an earlier sync has lost.
  mutating func sync() {
    var synced = bytes
    for position in lost where position < synced.count {
      synced[position] = position < self.synced.count ? self.synced[position] : 0
    }
    self.synced = synced
  }

  /// A sync fails, and loses all that is new.
  mutating func failSync() {
    lost.formUnion(bytes.indices.filter { $0 >= synced.count || bytes[$0] != synced[$0] })
  }

  /// Bytes are written over those that were lost.
  mutating func wrote(_ range: Range<Int>) { if !lost.isEmpty { lost.subtract(range) } }

  /// The file that a loss of power leaves: of that size, with those pages of the new bytes for which `isNew` returns `true`,
  /// and the earlier bytes or zeros in the others.
  func left(_ count: Int, isNew: (_ page: Int) -> Bool) -> ScriptedDisk.Node {
    var left = synced + repeatElement(0, count: max(0, count - synced.count))
    left.removeLast(left.count - count)
    for start in stride(from: 0, to: min(count, bytes.count), by: Self.pageBytes)
    where isNew(start / Self.pageBytes) {
      let page = start..<min(start + Self.pageBytes, count, bytes.count)
      left.replaceSubrange(page, with: bytes[page])
    }
    return ScriptedDisk.Node(bytes: left, synced: left, reserved: reserved)
  }
}
