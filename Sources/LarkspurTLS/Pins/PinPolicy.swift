/// The certificates or keys that the chains of particular hosts must contain.
///
/// Pins are matched against the verified chain only, because other certificates that a server sends prove nothing. Pins
/// count for resumed sessions, too. A host should have a backup pin: an ordinary pin of a key that is not in use yet.
public struct PinPolicy: Sendable {
  /// The pins of a host or a domain.
  public struct Host: Hashable, Sendable {
    /// The name in lower case without a final dot, or an address in its canonical form.
    public let name: String
    /// Whether the pins also count for all names below the name.
    public var includesSubdomains: Bool
    /// The pins, at least one of which must match.
    public var pins: Set<Pin>
    /// Whether only the server's own certificate is matched.
    public var looksAtLeafOnly: Bool
    /// Whether a mismatch is only reported, and does not fail the connection.
    public var reportsOnly: Bool

    /// Creates an entry.
    ///
    /// - Parameter name: A host as it stands in a URL, without brackets.
    /// - Returns: The entry, or `nil` if `name` cannot be a host.
    public init?(
      _ name: String, includesSubdomains: Bool = false, pins: Set<Pin>, looksAtLeafOnly: Bool = false,
      reportsOnly: Bool = false
    ) {
      guard let host = ServerName(host: name) else { return nil }
      self.name = host.text
      self.includesSubdomains = includesSubdomains
      self.pins = pins
      self.looksAtLeafOnly = looksAtLeafOnly
      self.reportsOnly = reportsOnly
    }
  }

  /// The entries. Of several that cover a server, those with the longest name count.
  public var hosts: [Host]

  /// Creates a policy. Without entries, each chain is accepted.
  public init(_ hosts: [Host] = []) { self.hosts = hosts }

  /// Returns the entries with the longest name that covers the server. If several entries have that name, all count.
  func entries(for server: ServerName) -> [Host] {
    let covering = hosts.filter { $0.covers(server) }
    let longest = covering.map(\.name.utf8.count).max()
    return covering.filter { $0.name.utf8.count == longest }
  }

  /// Returns the entries that a verified chain does not match, each with a flag: whether a mismatch is only reported.
  public func mismatches(_ chain: [Certificate], for server: ServerName) -> [(
    mismatch: PinMismatch, reportsOnly: Bool
  )] {
    guard !hosts.isEmpty else { return [] }
    return entries(for: server).compactMap { host in
      let candidates = host.looksAtLeafOnly ? Array(chain.prefix(1)) : chain
      let isMet = host.pins.contains { pin in candidates.contains(where: pin.matches) }
      guard !isMet else { return nil }
      return (PinMismatch(server: server, expected: host.pins, seen: chain.map(\.pin)), host.reportsOnly)
    }
  }
}

extension PinPolicy.Host {
  fileprivate func covers(_ server: ServerName) -> Bool {
    let text = server.text
    if text == name { return true }
    // There are no names below an address.
    return includesSubdomains && server.name != nil && text.hasSuffix("." + name)
  }
}

/// A report that none of the pins is in the chain.
public struct PinMismatch: Hashable, Sendable, CustomStringConvertible {
  public var server: ServerName
  public var expected: Set<Pin>
  /// The pins of the chain's keys, from the server's certificate to the root. Empty if no chain was verified.
  public var seen: [Pin]

  public var description: String {
    "no pin of \(server.text) matches; seen: "
      + (seen.isEmpty ? "no verified chain" : seen.map(\.description).joined(separator: ", "))
  }
}
