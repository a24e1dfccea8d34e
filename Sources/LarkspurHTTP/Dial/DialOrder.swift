/// The order in which a host's addresses are tried.
public enum DialOrder {
  /// Returns the indices of the addresses in the order of attempts: the two families in turn, beginning with the family
  /// of the first address (RFC 8305 section 4), so that a dead family costs one attempt delay and not one per address.
  ///
  /// - Parameters:
  ///   - isIPv6: The family of each address, in the resolver's order.
  ///   - hasFailed: Whether each address could not be connected to lately. Such addresses come last, their families in
  ///     turn as well.
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
