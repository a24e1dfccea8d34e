import LarkspurIO
import Synchronization

/// The disk as the directory of a download's destination. An inode is the number of a node.
extension ScriptedDisk: DownloadFiles {
  /// Limits the bytes of all files together.
  package func setRoom(_ bytes: Int) { state.withLock { $0.roomBytes = bytes } }

  /// The number of the file of a name.
  func node(_ name: String) -> Int? { state.withLock { $0.names[name] } }

  /// Makes the checks of a world fail.
  func plant(_ fault: DownloadScenario.Plant) {
    state.withLock { state in
      switch fault {
      case .ignoresSync: state.ignoresSync = true
      case .ignoresPartSync: state.ignoresPartSync = true
      case .ignoresDirectorySync: state.ignoresDirectorySync = true
      case .ignoresLock: state.ignoresLock = true
      default: break
      }
    }
  }

  package func facts(_ name: String) throws(Errno) -> OpenDirectory.Facts? {
    try step("facts \(name)") { state in
      .success(
        state.names[name].map { node in
          OpenDirectory.Facts(
            kind: .regularFile, size: state.nodes[node]?.bytes.count ?? 0, inode: UInt64(node), permissions: 0o644)
        })
    }
  }

  package func openPart(_ name: String, _ use: DownloadPartUse) throws(Errno) -> (any DownloadPart)? {
    let node = try step("open part \(name)") { state -> Result<Int, Errno> in
      if use == .create { return state.names[name] == nil ? .success(state.create(name)) : .failure(.fileExists) }
      return state.names[name].map { .success($0) } ?? .failure(.noSuchFile)
    }
    if use == .read { return Part(disk: self, node: node, isLocked: false) }
    return try step("lock part \(name)") { state -> Result<Part?, Errno> in
      guard !state.lockedNodes.contains(node) || state.ignoresLock else { return .success(nil) }
      // An earlier holder of the lock may have renamed the file after it was opened here.
      guard state.names[name] == node else { return .failure(.noSuchFile) }
      state.lockedNodes.insert(node)
      return .success(Part(disk: self, node: node, isLocked: true))
    }
  }

  package func freeBytes() throws(Errno) -> Int { try step("free") { .success($0.freeBytes) } }

  private final class Part: DownloadPart {
    let disk: ScriptedDisk
    let node: Int
    private let isLocked: Mutex<Bool>

    init(disk: ScriptedDisk, node: Int, isLocked: Bool) {
      (self.disk, self.node) = (disk, node)
      self.isLocked = Mutex(isLocked)
    }

    deinit { unlock() }

    func unlock() {
      isLocked.withLock { isLocked in
        if isLocked { disk.state.withLock { _ = $0.lockedNodes.remove(node) } }
        isLocked = false
      }
    }

    private func step<Value: Sendable>(
      _ call: String, _ body: @Sendable (inout Node, _ freeBytes: Int) -> Result<Value, Errno>
    ) throws(Errno) -> Value {
      try disk.step(call) { state in
        let free = state.freeBytes
        return body(&state.nodes[node, default: Node()], free)
      }
    }

    func facts() throws(Errno) -> DownloadPartFacts {
      let number = UInt64(node)
      return try step("part facts") { node, _ in
        .success(DownloadPartFacts(size: node.bytes.count, allocated: node.allocated, inode: number))
      }
    }

    /// Writes the bytes in two steps.
    func write(_ bytes: Span<UInt8>, at offset: Int) throws(Errno) {
      let all = bytes.indices.map { bytes[$0] }
      let half = all.count / 2
      for part in [all[..<half], all[half...]] where !part.isEmpty {
        try step("part write") { node, free -> Result<Void, Errno> in
          let first = offset + part.startIndex
          let growth = max(node.allocated, first + part.count) - node.allocated
          guard growth <= free else { return .failure(.noSpace) }
          node.bytes += repeatElement(0, count: max(0, first + part.count - node.bytes.count))
          node.bytes.replaceSubrange(first..<first + part.count, with: part)
          node.wrote(first..<first + part.count)
          return .success(())
        }
      }
    }

    func read(at offset: Int, atMost count: Int) throws(Errno) -> [UInt8] {
      try step("part read") { node, _ in .success(Array(node.bytes.dropFirst(offset).prefix(count))) }
    }

    func reserve(_ count: Int) throws(Errno) {
      try step("part reserve") { node, free -> Result<Void, Errno> in
        let growth = max(0, count - node.allocated)
        node.reserved = node.allocated + min(growth, free)
        return growth <= free ? .success(()) : .failure(.noSpace)
      }
    }

    func cut(toBytes count: Int) throws(Errno) {
      try step("part cut") { node, _ -> Result<Void, Errno> in
        node.bytes = Array(node.bytes.prefix(count)) + repeatElement(0, count: max(0, count - node.bytes.count))
        node.reserved = 0
        return .success(())
      }
    }

    func setPermissions(_ mode: UInt32) throws(Errno) { try step("part mode") { _, _ in .success(()) } }

    func sync() throws(Errno) {
      try disk.step("part sync", failing: { $0.nodes[node]?.failSync() }) { state -> Result<Void, Errno> in
        if !state.ignoresSync, !state.ignoresPartSync { state.nodes[node]?.sync() }
        return .success(())
      }
    }
  }
}
