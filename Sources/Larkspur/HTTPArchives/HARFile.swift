import Foundation
import Synchronization

/// The file of a recorder: JSON that is complete after each entry, because each entry is written together with the closing
/// brackets, over those of the entry before.
final class HARFile: Sendable {
  private struct State {
    var handle: FileHandle
    /// The offset of the closing brackets.
    var end: UInt64
    var isEmpty = true
    var failure: (any Error)?
  }

  private static let waitingBytesMax = 256 << 20

  private static let closing = Data("\n]}}\n".utf8)

  private let queue = DispatchQueue(label: "larkspur.har", qos: .utility)
  private let state: Mutex<State>
  /// The bytes of bodies in entries that are not written yet.
  private let waitingBytes = Atomic(0)

  init(_ url: URL) throws {
    let opening = Data(
      #"{"log":{"version":"1.2","creator":{"name":"Larkspur","version":"1"},"entries":["#.utf8)
    let path = url.path(percentEncoded: false)
    guard
      FileManager.default.createFile(
        atPath: path, contents: opening + Self.closing, attributes: [.posixPermissions: 0o600])
    else { throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: path]) }
    state = Mutex(State(handle: try FileHandle(forUpdating: url), end: UInt64(opening.count)))
  }

  /// Appends an entry, on the queue of the file. Does not wait for the queue.
  ///
  /// - Parameter bytes: The number of bytes that the entry holds in memory.
  func append(bytes: Int, _ entry: @escaping @Sendable () -> HAREntry) {
    guard waitingBytes.add(bytes, ordering: .relaxed).newValue <= Self.waitingBytesMax else {
      waitingBytes.subtract(bytes, ordering: .relaxed)
      return queue.async { [self] in state.withLock { $0.failure = $0.failure ?? CocoaError(.fileWriteUnknown) } }
    }
    queue.async { [self] in
      state.withLock { Self.write(entry(), &$0) }
      waitingBytes.subtract(bytes, ordering: .relaxed)
    }
  }

  private static func write(_ entry: HAREntry, _ state: inout State) {
    guard state.failure == nil else { return }
    do {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      let text = Data((state.isEmpty ? "\n" : ",\n").utf8) + (try encoder.encode(entry))
      try state.handle.seek(toOffset: state.end)
      try state.handle.write(contentsOf: text + closing)
      state.end += UInt64(text.count)
      state.isEmpty = false
    } catch {
      state.failure = error
    }
  }

  func flush() throws {
    let failure = queue.sync { state.withLock { $0.failure } }
    if let failure { throw failure }
  }
}
