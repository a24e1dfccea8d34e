import LarkspurBytes
import LarkspurIO

/// Addresses that could not be connected to a short while ago: they are tried after the others. A loop has one.
struct FailedAddresses {
  /// How long a failure is remembered.
  static let lifetime = Duration.seconds(30)
  /// How many are: the oldest goes first.
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
