import LarkspurTLS

/// Describes a server's certificates in words.
package enum TrustReport {
  /// Returns the lines for `-v`: the result, the chain, and the pin of each certificate.
  package static func lines(of trust: Trust) -> [String] {
    let chain = shownChain(of: trust)
    var lines = [trust.result.isTrusted ? "verified chain:" : "NOT VERIFIED (\(trust.result.message)); sent:"]
    for (index, certificate) in chain.enumerated() {
      lines.append("\(index) \(subject(of: certificate))")
      lines.append("  valid \(Format.date(certificate.notBefore)) to \(Format.date(certificate.notAfter))")
      lines.append("  \(certificate.pin)")
    }
    return lines
  }

  /// Returns a line for each certificate: its pin and its subject.
  package static func pins(of trust: Trust) -> [String] {
    let mark = trust.result.isTrusted ? "" : "  (not verified)"
    return shownChain(of: trust).map { "\($0.pin)  \(subject(of: $0))\(mark)" }
  }

  /// Returns the verified chain, or the certificates that the server sent if they are not verified.
  private static func shownChain(of trust: Trust) -> [Certificate] {
    trust.result.isTrusted ? trust.verified : trust.sent
  }

  /// Returns the subject, or if it is empty, a name of the certificate.
  private static func subject(of certificate: Certificate) -> String {
    let subject = certificate.subject
    if !subject.isEmpty { return Format.visible(subject.utf8) }
    for case .dns(let name) in certificate.names { return name }
    return "(no name)"
  }
}
