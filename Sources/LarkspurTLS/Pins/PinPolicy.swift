/// Which hosts have to show which certificates or keys.
///
/// Pins are looked for in the verified chain only: what a server sends beside it proves nothing. They count for resumed
/// sessions as well. A host should have a backup pin, of a key that is not in use yet: it is a pin like the others.
public struct PinPolicy: Sendable {
  /// The pins of a host, or of a domain.
  public struct Host: Hashable, Sendable {
    /// In lower case, without a dot at its end; an address in its canonical form.
    public let name: String
    /// Whether they count for all names below it as well.
    public var includesSubdomains: Bool
    /// One of them has to be there.
    public var pins: Set<Pin>
    /// Whether only the server's own certificate is looked at.
    public var looksAtLeafOnly: Bool
    /// Whether a mismatch is only reported, and the connection goes on.
    public var reportsOnly: Bool

    /// `name` is a host as it stands in a URL, without brackets. Nil: it cannot be one.
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

  public var hosts: [Host]

  public init(_ hosts: [Host] = []) { self.hosts = hosts }

  /// The pins that count for a server: those of the longest name that covers it. Several entries of one name all count.
  func entries(for server: ServerName) -> [Host] {
    let covering = hosts.filter { $0.covers(server) }
    let longest = covering.map(\.name.utf8.count).max()
    return covering.filter { $0.name.utf8.count == longest }
  }

  /// What is wrong with a verified chain, and whether the connection has to fail for it.
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
    // An address has no names below it.
    return includesSubdomains && server.name != nil && text.hasSuffix("." + name)
  }
}

/// None of the pins is in the chain.
public struct PinMismatch: Hashable, Sendable, CustomStringConvertible {
  public var server: ServerName
  public var expected: Set<Pin>
  /// The pins of the verified chain, from the server's certificate to the root.
  public var seen: [Pin]

  public var description: String {
    "no pin of \(server.text) matches; seen: "
      + (seen.isEmpty ? "no verified chain" : seen.map(\.description).joined(separator: ", "))
  }
}
