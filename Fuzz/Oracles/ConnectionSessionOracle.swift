import LarkspurTestSupport

/// What must hold for a whole connection, whatever its server, its kernel and its caller do.
package enum ConnectionSessionOracle {
  /// What is wrong with the connection, or nil.
  package static func finding(in input: [UInt8]) -> String? {
    let findings = runConnectionSession(input)
    return findings.isEmpty ? nil : findings.joined(separator: "\n")
  }
}
