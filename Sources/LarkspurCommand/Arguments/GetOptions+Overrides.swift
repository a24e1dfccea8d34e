import LarkspurTransport

/// The options that replace the addresses of hosts.
extension GetOptions {
  /// Reads the value of `--resolve`.
  mutating func resolve(_ text: String) throws(UsageError) {
    let parts = Self.parts(text, max: 3)
    guard parts.count == 3, !parts[0].isEmpty, let port = UInt16(parts[1]), port > 0, !parts[2].isEmpty else {
      throw UsageError("--resolve wants HOST:PORT:ADDRESS, not \(text.debugDescription)")
    }
    let addresses = parts[2].split(separator: ",", omittingEmptySubsequences: false).map(Self.withoutBrackets)
    hostOverrides.set(parts[0], port: port, to: .addresses(addresses))
  }

  /// Reads the value of `--connect-to`.
  mutating func connectTo(_ text: String) throws(UsageError) {
    let parts = Self.parts(text, max: 4)
    let ports = [1, 3].map { parts.indices.contains($0) ? UInt16(parts[$0]) : nil }
    guard parts.count == 4, parts[1].isEmpty || ports[0] != nil, parts[3].isEmpty || ports[1] != nil else {
      throw UsageError("--connect-to wants HOST:PORT:HOST2:PORT2, not \(text.debugDescription)")
    }
    let host = Self.withoutBrackets(parts[2][...])
    hostOverrides.set(
      parts[0].isEmpty ? "*" : parts[0], port: ports[0], to: .host(host.isEmpty ? "*" : host, port: ports[1]))
  }

  mutating func connect(toSocket path: String) { hostOverrides.set("*", to: .socket(path: path)) }

  /// Splits a value at its colons, but not at those in brackets. The last part has the rest.
  private static func parts(_ text: String, max: Int) -> [String] {
    var parts = [""]
    var isBracketed = false
    for character in text {
      if character == "[" || character == "]" { isBracketed = character == "[" }
      if character == ":", !isBracketed, parts.count < max {
        parts.append("")
      } else {
        parts[parts.count - 1].append(character)
      }
    }
    return parts
  }

  private static func withoutBrackets(_ text: Substring) -> String {
    String(text.hasPrefix("[") && text.hasSuffix("]") ? text.dropFirst().dropLast() : text)
  }
}
