import LarkspurBytes

/// The public suffixes: names under which independent owners register names, such as `com`, `co.uk`, and in the list's
/// private part `github.io`. A cookie for such a name would reach sites that have nothing to do with each other.
///
/// The table is made from the text of the public suffix list (https://publicsuffix.org/list/). Where no rule matches,
/// the last label is a public suffix, so that without a list every name of a single label is one.
///
/// The names of all rules stand in one array of bytes, and a hash table holds their positions. Hashes run from a name's
/// end to its beginning, so that one pass over a host gives the hashes of all domains above it. A look-up allocates
/// nothing.
public struct PublicSuffixTable: Sendable {
  private struct Rule {
    var start: Int
    var count: Int
    var kinds: Kinds
  }

  private struct Kinds: OptionSet {
    let rawValue: UInt8
    /// The name is a public suffix.
    static let name = Kinds(rawValue: 1)
    /// Each name one label below the rule's name is a public suffix.
    static let wildcard = Kinds(rawValue: 2)
    /// The name is not a public suffix, although a wildcard matches it.
    static let exception = Kinds(rawValue: 4)
  }

  private var text: [UInt8] = []
  private var rules: [Rule] = []
  /// The hash table, with open addressing: each slot is 0, or a rule's index plus one. The number of slots is a power
  /// of two, and at least half of them are free.
  private var slots: [UInt32] = []

  /// Creates a table without rules.
  public init() {}

  public init(list: [UInt8]) {
    text.reserveCapacity(list.count / 2)
    rules.reserveCapacity(list.count / 24)
    // A rule ends at the first white space of its line.
    for line in list.split(separator: ASCII.lf) {
      let rule = line.prefix { $0 > ASCII.space }
      guard let first = rule.first, first != UInt8(ascii: "/") else { continue }
      if first == UInt8(ascii: "!") {
        append(rule.dropFirst(), .exception)
      } else if first == UInt8(ascii: "*"), rule.dropFirst().first == UInt8(ascii: ".") {
        append(rule.dropFirst(2), .wildcard)
      } else {
        append(rule, .name)
      }
    }
    index()
  }

  public var isEmpty: Bool { rules.isEmpty }

  private mutating func append(_ name: ArraySlice<UInt8>, _ kinds: Kinds) {
    // The list's grammar allows a wildcard inside a name, but no rule has one.
    guard !name.isEmpty, !name.contains(UInt8(ascii: "*")) else { return }
    let start = text.count
    if name.allSatisfy({ $0 < 0x80 }) {
      for byte in name { text.append(byte.asciiLowercased) }
    } else {
      guard let ascii = Punycode.asciiName(String(decoding: name, as: UTF8.self)) else { return }
      text += ascii.utf8
    }
    rules.append(Rule(start: start, count: text.count - start, kinds: kinds))
  }

  private mutating func index() {
    var capacity = 16
    while capacity < rules.count * 2 { capacity *= 2 }
    slots = Array(repeating: 0, count: capacity)
    for index in rules.indices {
      let rule = rules[index]
      let name = text[rule.start..<(rule.start + rule.count)]
      var hash = DomainHash()
      for byte in name.reversed() { hash.add(byte) }
      var slot = Int(truncatingIfNeeded: hash.value) & (capacity - 1)
      while slots[slot] != 0 {
        let other = rules[Int(slots[slot]) - 1]
        if text[other.start..<(other.start + other.count)].elementsEqual(name) { break }
        slot = (slot + 1) & (capacity - 1)
      }
      if slots[slot] == 0 {
        slots[slot] = UInt32(index + 1)
      } else {
        // `*.ck` and `ck` are one entry.
        rules[Int(slots[slot]) - 1].kinds.formUnion(rule.kinds)
      }
    }
  }

  private func kinds(of name: Substring.UTF8View, _ hash: DomainHash) -> Kinds {
    guard !slots.isEmpty else { return [] }
    var slot = Int(truncatingIfNeeded: hash.value) & (slots.count - 1)
    while slots[slot] != 0 {
      let rule = rules[Int(slots[slot]) - 1]
      if rule.count == name.count, text[rule.start..<(rule.start + rule.count)].elementsEqual(name) {
        return rule.kinds
      }
      slot = (slot + 1) & (slots.count - 1)
    }
    return []
  }

  /// Returns the position at which the public suffix of a name begins. The name must not end with a dot.
  private func suffixStart(_ name: Substring) -> Substring.Index {
    let dot = UInt8(ascii: ".")
    let bytes = name.utf8
    var hash = DomainHash()
    var start: Substring.Index?
    var isBelowWildcard = false
    var last = bytes.endIndex
    var index = bytes.endIndex
    while index > bytes.startIndex {
      index = bytes.index(before: index)
      hash.add(bytes[index])
      let isLabelStart = index == bytes.startIndex || bytes[bytes.index(before: index)] == dot
      guard isLabelStart, bytes[index] != dot else { continue }
      let kinds = kinds(of: bytes[index...], hash)
      // The public suffix of an exception is the domain above it.
      if kinds.contains(.exception) { return last }
      // The last label is a public suffix without a rule.
      if kinds.contains(.name) || isBelowWildcard || start == nil { start = index }
      isBelowWildcard = kinds.contains(.wildcard)
      last = index
    }
    return start ?? bytes.startIndex
  }

  /// Whether the name is a public suffix, so that a cookie for its subdomains would reach independent sites. Also
  /// `true` for a name that is empty, begins with a dot, or ends with two.
  ///
  /// - Parameter name: The name in lower case and in its ASCII form. A trailing dot is ignored.
  public func isPublicSuffix(_ name: String) -> Bool {
    guard let name = Self.withoutDot(name) else { return true }
    return suffixStart(name) == name.startIndex
  }

  /// Returns the public suffix of the name with one label more, which belongs to one owner.
  ///
  /// - Returns: The domain, or `nil` if the name is a public suffix, is empty, begins with a dot, or ends with two.
  public func registrableDomain(of name: String) -> Substring? {
    guard let name = Self.withoutDot(name) else { return nil }
    let start = suffixStart(name)
    guard start > name.startIndex else { return nil }
    let before = name.utf8.index(before: start)
    guard before > name.startIndex else { return nil }
    let dot = name.utf8[..<before].lastIndex(of: UInt8(ascii: "."))
    return name[(dot.map { name.utf8.index(after: $0) } ?? name.startIndex)...]
  }

  /// Removes a trailing dot.
  ///
  /// - Returns: The name, or `nil` if it is empty, begins with a dot, or ends with two.
  private static func withoutDot(_ name: String) -> Substring? {
    var name = name[...]
    let dot = UInt8(ascii: ".")
    if name.utf8.last == dot { name = name.dropLast() }
    guard let first = name.utf8.first, let last = name.utf8.last, first != dot, last != dot else { return nil }
    return name
  }
}

/// The hash of a domain's name from its end to its beginning (FNV-1a).
struct DomainHash {
  private(set) var value: UInt64 = 0xcbf2_9ce4_8422_2325

  mutating func add(_ byte: UInt8) { value = (value ^ UInt64(byte)) &* 0x100_0000_01b3 }
}
