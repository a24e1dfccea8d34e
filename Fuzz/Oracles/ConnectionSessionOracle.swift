import LarkspurTestSupport

/// Checks a whole connection under any behaviour of its server, its kernel and its caller.
package enum ConnectionSessionOracle {
  /// - Returns: The errors of the connection, or `nil` if there are none.
  package static func finding(in input: [UInt8]) -> String? {
    let findings = runConnectionSession(input)
    return findings.isEmpty ? nil : findings.joined(separator: "\n")
  }
}
