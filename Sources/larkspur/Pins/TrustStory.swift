import LarkspurTLS

/// A server's certificates in words.
enum TrustStory {
  /// For `-v`: the result, the chain, and the pins that one could use.
  static func lines(of trust: Trust) -> [String] {
    let chain = shownChain(of: trust)
    var lines = [trust.result.isTrusted ? "verified chain:" : "NOT VERIFIED (\(trust.result.words)); sent:"]
    for (index, certificate) in chain.enumerated() {
      lines.append("\(index) \(subject(of: certificate))")
      lines.append("  valid \(Format.date(certificate.notBefore)) to \(Format.date(certificate.notAfter))")
      lines.append("  \(certificate.pin)")
    }
    return lines
  }

  /// A line per certificate: its pin, whose it is.
  static func pins(of trust: Trust) -> [String] {
    let mark = trust.result.isTrusted ? "" : "  (not verified)"
    return shownChain(of: trust).map { "\($0.pin)  \(subject(of: $0))\(mark)" }
  }

  /// What is not verified is shown as it was sent.
  private static func shownChain(of trust: Trust) -> [Certificate] {
    trust.result.isTrusted ? trust.verified : trust.sent
  }

  /// The subject, or a name of the certificate's where that is empty.
  private static func subject(of certificate: Certificate) -> String {
    let subject = certificate.subject
    if !subject.isEmpty { return Format.visible(subject.utf8) }
    for case .dns(let name) in certificate.names { return name }
    return "(no name)"
  }
}
