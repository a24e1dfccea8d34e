import LarkspurBytes
import LarkspurIO

/// The addresses to which a connect failed a short while ago. They are tried after the others. Each loop has one such
/// list.
struct FailedAddresses {
  /// The time for which a failure counts.
  static let lifetime = Duration.seconds(30)
  /// Maximum number of failures. The oldest is dropped first.
  static let countMax = 256

  private var failures: [(address: SocketAddress, until: Deadline)] = []

  func contains(_ address: SocketAddress, now: Deadline) -> Bool {
    failures.contains { $0.address == address && $0.until > now }
  }

  mutating func failed(_ address: SocketAddress, now: Deadline) {
    failures.removeAll { $0.address == address || $0.until <= now }
    if failures.count == Self.countMax { failures.removeFirst() }
    failures.append((address, now.advanced(by: Self.lifetime)))
  }

  mutating func succeeded(_ address: SocketAddress) {
    guard !failures.isEmpty else { return }
    failures.removeAll { $0.address == address }
  }
}
