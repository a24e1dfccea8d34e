import LarkspurIO
import LarkspurTransfers
import Synchronization

/// A directory in memory that can fail at any call, and that knows what a loss of power may leave.
///
/// Written bytes and names are on the disk only after a `sync` of the file or of the directory. A loss of power leaves
/// any of the changes of names since then, and any beginning of the bytes.
final class ScriptedDisk: TransferFiles {
  private struct Node {
    var bytes: [UInt8] = []
    var syncedCount = 0
  }

  private enum Change {
    case create(String, Int)
    case rename(String, String)
    case remove(String)
  }

  private struct Content {
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
    var calls: [String] = []
  }

  private let state: Mutex<Content>

  init() { state = Mutex(Content()) }

  private init(_ content: Content) { state = Mutex(content) }

  /// The names of all calls so far.
  var calls: [String] { state.withLock { $0.calls } }

  var names: [String] { state.withLock { $0.names.keys.sorted() } }

  func bytes(_ name: String) -> [UInt8]? {
    state.withLock { state in state.names[name].flatMap { state.nodes[$0]?.bytes } }
  }

  /// Adds a file that is on the disk.
  func put(_ name: String, _ bytes: [UInt8]) {
    state.withLock { state in
      state.lastNode += 1
      state.nodes[state.lastNode] = Node(bytes: bytes, syncedCount: bytes.count)
      state.names[name] = state.lastNode
      state.syncedNames[name] = state.lastNode
    }
  }

  /// Makes the call after `steps` more fail, and all calls after that one unless `once` is set.
  func fail(after steps: Int, with error: Errno = .noSpace, once: Bool = false) {
    state.withLock { state in
      state.stepsLeft = steps
      state.error = error
      state.failsOnce = once
    }
  }

  /// Makes reading a file fail.
  func setUnreadable(_ names: Set<String>) { state.withLock { $0.unreadable = names } }

  /// The disk as it is after the process has been killed.
  func afterKill() -> ScriptedDisk {
    var content = state.withLock { $0 }
    content.stepsLeft = .max
    content.isLocked = false
    return ScriptedDisk(content)
  }

  /// The disks that a loss of power may leave.
  func afterPowerLoss() -> [ScriptedDisk] {
    let content = state.withLock { $0 }
    var disks: [ScriptedDisk] = []
    for subset in 0..<(1 << content.changes.count) {
      for part in 0...2 {
        var left = Content()
        left.lastNode = content.lastNode
        left.names = content.syncedNames
        for (index, change) in content.changes.enumerated() where subset >> index & 1 == 1 {
          Self.apply(change, to: &left.names)
        }
        left.nodes = content.nodes.mapValues { node in
          let lost = node.bytes.count - node.syncedCount
          let count = node.syncedCount + lost * part / 2
          return Node(bytes: Array(node.bytes.prefix(count)), syncedCount: count)
        }
        left.syncedNames = left.names
        disks.append(ScriptedDisk(left))
      }
    }
    return disks
  }

  private static func apply(_ change: Change, to names: inout [String: Int]) {
    switch change {
    case .create(let name, let node): names[name] = node
    case .rename(let name, let other): if let node = names.removeValue(forKey: name) { names[other] = node }
    case .remove(let name): names[name] = nil
    }
  }

  private func step<Value: Sendable>(
    _ call: String, _ body: @Sendable (inout Content) -> Result<Value, Errno>
  ) throws(Errno) -> Value {
    let result: Result<Value, Errno> = state.withLock { state in
      state.calls.append(call)
      guard state.stepsLeft > 0 else {
        if state.failsOnce { state.stepsLeft = .max }
        return .failure(state.error)
      }
      state.stepsLeft -= 1
      return body(&state)
    }
    return try result.get()
  }

  func list() throws(Errno) -> [Directory.Facts] {
    try step("list") { state in
      .success(
        state.names.map { name, node in
          Directory.Facts(name: name, size: state.nodes[node]?.bytes.count ?? 0, usedTime: 0, changedTime: 0)
        })
    }
  }

  func read(_ name: String, atMost count: Int) throws(Errno) -> [UInt8] {
    try step("read \(name)") { state in
      guard let node = state.names[name].flatMap({ state.nodes[$0] }) else { return .failure(.noSuchFile) }
      return state.unreadable.contains(name) ? .failure(.inputOutput) : .success(Array(node.bytes.prefix(count)))
    }
  }

  func create(_ name: String) throws(Errno) -> any TransferFile {
    let node = try step("create \(name)") { state -> Result<Int, Errno> in
      guard state.names[name] == nil else { return .failure(.fileExists) }
      state.lastNode += 1
      state.nodes[state.lastNode] = Node()
      state.names[name] = state.lastNode
      state.changes.append(.create(name, state.lastNode))
      return .success(state.lastNode)
    }
    return File(disk: self, node: node)
  }

  func rename(_ name: String, to other: String) throws(Errno) {
    try change("rename \(name) \(other)", name, .rename(name, other))
  }

  func remove(_ name: String) throws(Errno) { try change("remove \(name)", name, .remove(name)) }

  private func change(_ call: String, _ name: String, _ change: Change) throws(Errno) {
    try step(call) { state -> Result<Void, Errno> in
      guard state.names[name] != nil else { return .failure(.noSuchFile) }
      Self.apply(change, to: &state.names)
      state.changes.append(change)
      return .success(())
    }
  }

  func sync() throws(Errno) {
    try step("sync") { state -> Result<Void, Errno> in
      state.syncedNames = state.names
      state.changes = []
      return .success(())
    }
  }

  func removeDirectory() throws(Errno) {
    try step("remove directory") { state in state.names.isEmpty ? .success(()) : .failure(.notEmpty) }
  }

  func lock(_ name: String) throws(Errno) -> (any Sendable)? {
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

  private struct File: TransferFile {
    let disk: ScriptedDisk
    let node: Int

    /// Writes the bytes in two steps.
    func append(_ bytes: [UInt8]) throws(Errno) {
      for half in [bytes.prefix(bytes.count / 2), bytes.dropFirst(bytes.count / 2)] {
        try disk.step("append") { state -> Result<Void, Errno> in
          state.nodes[node]?.bytes += half
          return .success(())
        }
      }
    }

    func sync() throws(Errno) {
      try disk.step("sync file") { state -> Result<Void, Errno> in
        if let count = state.nodes[node]?.bytes.count { state.nodes[node]?.syncedCount = count }
        return .success(())
      }
    }
  }
}
