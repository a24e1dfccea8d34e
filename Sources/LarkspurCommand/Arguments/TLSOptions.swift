import LarkspurConsole
import LarkspurIO
import LarkspurTLS

/// The TLS options, common to all commands that make connections.
package struct TLSOptions: Hashable, Sendable {
  /// A file of root certificates to trust in place of the system's.
  package var roots: String?
  /// A file with the client's certificate: in PEM, with its chain; as PKCS#12, with its key; or in DER.
  package var certificate: String?
  /// A file with the client's key. If `nil`, the key is in the certificate's file.
  package var key: String?
  package var password: String?
  package var pins: [Pin] = []
  package var minimumVersion = TLSVersion.tls12
  package var maximumVersion = TLSVersion.tls13
  package var isInsecure = false
  package var logsKeys = false
  package var allowsLegacyKeyExchange = false

  package init() {}

  var minimumIsTLS13: Bool { minimumVersion == .tls13 }
  var maximumIsTLS12: Bool { maximumVersion == .tls12 }

  static let options: [CommandOption<TLSOptions>] =
    optionsOfSessions + [
      .flag(
        nil, "dangerously-log-keys",
        "Append the connection's secrets to the file that SSLKEYLOGFILE names, for debuggers. Whoever has the file can "
          + "read the traffic. It must not be accessible to others; without this option the variable is ignored.",
        \.logsKeys
      ).in(.tls)
    ]

  /// The options of `larkspur socket` and `larkspur events`, which write no key log.
  static let optionsOfSessions = optionsOfConnections.in(.tls)

  private static let optionsOfConnections: [CommandOption<TLSOptions>] = [
    .text(
      nil, "cacert", "FILE",
      "Trust the roots in FILE (PEM or DER) and no others. Otherwise SSL_CERT_FILE and SSL_CERT_DIR count, or the "
        + "system's roots.", \.roots),
    .text(
      nil, "cert", "FILE",
      "Show this client certificate: PEM, with those behind it; or PKCS#12, with its key; or DER.", \.certificate),
    .text(nil, "key", "FILE", "The certificate's key (PEM or DER), if it does not stand in its file.", \.key),
    .text(
      nil, "pass", "PHRASE", "What the key is encrypted with. (Others on this machine can see command lines.)",
      \.password),
    .init(
      nil, "pin", "sha256/...",
      "Go on only if a key of the verified chain has this digest. Repeatable: one of them has to match. "
        + "`larkspur pins URL` shows the pins of a server."
    ) { options, value throws(UsageError) in
      guard let pin = Pin(value) else {
        throw UsageError("--pin wants sha256/ and 44 characters of base64, not \(value.debugDescription)")
      }
      options.pins.append(pin)
    },
    .init(nil, "tls-min", "VERSION", "1.2 (as it is anyway) or 1.3.") { options, value throws(UsageError) in
      options.minimumVersion = try Self.version(value, of: "tls-min")
    },
    .init(nil, "tls-max", "VERSION", "1.2 or 1.3.") { options, value throws(UsageError) in
      options.maximumVersion = try Self.version(value, of: "tls-max")
    },
    .flag(
      "k", "insecure", "Take any certificate. Whoever sits on the way can read and change everything.", \.isInsecure),
    .flag(
      nil, "dangerously-allow-legacy-key-exchange",
      "Offer DHE and static RSA beside ECDHE. Static RSA has no forward secrecy.", \.allowsLegacyKeyExchange),
  ]

  /// Checks the combination of all options.
  func check() throws(UsageError) {
    if maximumVersion < minimumVersion {
      throw UsageError("--tls-min \(minimumVersion.number) is above --tls-max \(maximumVersion.number)")
    }
    if certificate == nil, key != nil || password != nil {
      throw UsageError("--\(key != nil ? "key" : "pass") needs --cert")
    }
    if isInsecure, !pins.isEmpty {
      throw UsageError("--pin and --insecure exclude each other: what is not verified has no pins")
    }
  }

  /// The file that `SSLKEYLOGFILE` names, if `--dangerously-log-keys` is given.
  var keyLogFile: String? {
    guard logsKeys, let path = EnvironmentVariable.value(of: "SSLKEYLOGFILE"), !path.isEmpty else { return nil }
    return path
  }

  /// Warns of `--dangerously-log-keys`, if the option is given.
  func warnOfKeyLog() {
    guard logsKeys else { return }
    let warning =
      keyLogFile.map { "whoever can read \($0) can read what is sent and received" }
      ?? "SSLKEYLOGFILE names no file; nothing is logged"
    Console.complain("warning: --dangerously-log-keys: \(warning)")
  }

  private static func version(_ text: String, of name: String) throws(UsageError) -> TLSVersion {
    guard let version = TLSVersion.allCases.first(where: { $0.number == text }) else {
      throw UsageError("--\(name) wants 1.2 or 1.3, not \(text.debugDescription)")
    }
    return version
  }
}

extension TLSVersion {
  fileprivate var number: String { self == .tls12 ? "1.2" : "1.3" }
}
