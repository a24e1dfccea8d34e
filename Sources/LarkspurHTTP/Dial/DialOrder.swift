/// The order in which a host's addresses are tried.
public enum DialOrder {
  /// Indices of the addresses in their order, the two families in turn, beginning with the first address's (RFC 8305 4):
  /// a dead family costs one attempt delay and not one per address. Those that `hasFailed` come last.
  public static func interleaved(isIPv6: [Bool], hasFailed: [Bool]) -> [Int] {
    let good = isIPv6.indices.filter { !hasFailed[$0] }
    let bad = isIPv6.indices.filter { hasFailed[$0] }
    return interleaved(good, isIPv6) + interleaved(bad, isIPv6)
  }

  private static func interleaved(_ indices: [Int], _ isIPv6: [Bool]) -> [Int] {
    guard let first = indices.first else { return [] }
    let own = indices.filter { isIPv6[$0] == isIPv6[first] }
    let other = indices.filter { isIPv6[$0] != isIPv6[first] }
    return (0..<max(own.count, other.count)).flatMap { turn in
      [own, other].compactMap { turn < $0.count ? $0[turn] : nil }
    }
  }
}
