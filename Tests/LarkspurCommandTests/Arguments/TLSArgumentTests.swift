import LarkspurCommand
import LarkspurConsole
import LarkspurTLS
import LarkspurTransport
import Testing

@Suite struct TLSArgumentTests {
  private static let pin = "sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="

  private func get(_ arguments: String...) throws -> TLSOptions {
    guard case .get(let options) = try Invocation(parsing: (["get", "https://example.org"] + arguments)[...]) else {
      throw UsageError("no get")
    }
    return options.tls
  }

  private func pins(_ arguments: String...) throws -> PinsOptions {
    guard case .pins(let options) = try Invocation(parsing: (["pins"] + arguments)[...]) else {
      throw UsageError("no pins")
    }
    return options
  }

  @Test func everyOption() throws {
    var expected = TLSOptions()
    #expect(try get() == expected)
    #expect(expected.minimumVersion == .tls12 && expected.maximumVersion == .tls13)
    expected.roots = "roots"
    expected.certificate = "certificate"
    expected.key = "key"
    expected.password = "a=b c"
    expected.pins = [try #require(Pin(Self.pin)), try #require(Pin(Self.pin))]
    expected.minimumVersion = .tls13
    expected.logsKeys = true
    let arguments = [
      "--cacert", "roots", "--cert=certificate", "--key", "key", "--pass=a=b c", "--pin", Self.pin, "--tls-min", "1.3",
      "--pin=" + Self.pin, "--dangerously-log-keys", "--tls-max", "1.3",
    ]
    guard case .get(let options) = try Invocation(parsing: (["get"] + arguments + ["x"])[...]) else {
      throw UsageError("no get")
    }
    #expect(options.tls == expected)
    guard case .pins(let options) = try Invocation(parsing: (["pins"] + arguments + ["x"])[...]) else {
      throw UsageError("no pins")
    }
    #expect(options.tls == expected)
    #expect(try get("-k").isInsecure)
    #expect(try get("--insecure").isInsecure)
    #expect(try get("-kv").isInsecure)
    #expect(try get("--tls-max", "1.2").maximumVersion == .tls12)
    // Of a repeated option the last one counts.
    #expect(try get("--tls-max", "1.2", "--tls-max", "1.3").maximumVersion == .tls13)
    #expect(try get("--cacert", "a", "--cacert", "b").roots == "b")
  }

  @Test func pinsOptions() throws {
    let options = try pins("example.org", "--connect-timeout", "0.25", "-k")
    #expect(options.url == "example.org")
    #expect(options.connectTimeout == .milliseconds(250))
    #expect(options.tls.isInsecure)
    #expect(try pins("--", "-x").url == "-x")
    #expect(try Invocation(parsing: ["pins", "x", "-h"]) == .help(.pins))
    #expect(try Invocation(parsing: ["pins", "--help"]) == .help(.pins))
  }

  @Test(arguments: [
    (["--pin", "nonsense"], "--pin wants sha256/ and 44 characters of base64, not \"nonsense\""),
    (["--pin", "sha256/"], "--pin wants sha256/ and 44 characters of base64, not \"sha256/\""),
    (["--pin", "sha1/" + pin.dropFirst(7)], "--pin wants sha256/ and 44 characters of base64, not \"sha1/"),
    (["--pin", String(pin.dropLast())], "--pin wants sha256/ and 44 characters of base64, not \"sha256/"),
    (["--tls-min", "1.1"], "--tls-min wants 1.2 or 1.3, not \"1.1\""),
    (["--tls-max", "TLSv1.3"], "--tls-max wants 1.2 or 1.3, not \"TLSv1.3\""),
    (["--tls-max="], "--tls-max wants 1.2 or 1.3, not \"\""),
    (["--tls-min", "1.3", "--tls-max", "1.2"], "--tls-min 1.3 is above --tls-max 1.2"),
    (["--key", "k"], "--key needs --cert"), (["--pass", "p"], "--pass needs --cert"),
    (["-k", "--pin", pin], "--pin and --insecure exclude each other: what is not verified has no pins"),
    (["--cacert"], "--cacert needs a value"), (["--insecure=1"], "--insecure takes no value"),
    (["--dangerously-log-keys=x"], "--dangerously-log-keys takes no value"), (["--ciphers", "x"], "unknown option"),
  ])
  func errors(arguments: [String], message: String) {
    for (command, topic) in [("get", HelpTopic.get), ("pins", .pins)] {
      let error = #expect(throws: UsageError.self) { try Invocation(parsing: ([command, "x"] + arguments)[...]) }
      #expect(error?.description.hasPrefix(message) == true)
      #expect(error?.topic == topic)
    }
  }

  @Test(arguments: [
    ([], "the URL is missing"), (["-k"], "the URL is missing"), (["a", "b"], "more than one URL: a and b"),
    (["", "b"], "the URL is empty"), (["a", "-v"], "unknown option -v"),
    (["a", "--connect-timeout", "soon"], "--connect-timeout wants seconds, such as 2 or 0.5, not \"soon\""),
  ])
  func errorsOfPins(arguments: [String], message: String) {
    let error = #expect(throws: UsageError.self) { try Invocation(parsing: (["pins"] + arguments)[...]) }
    #expect(error == UsageError(message, topic: .pins))
  }

  /// The help explains every option and variable.
  @Test(arguments: [HelpTopic.get, .pins]) func help(topic: HelpTopic) {
    for option in [
      "--cacert FILE", "--cert FILE", "--key FILE", "--pass PHRASE", "--pin sha256/", "--tls-min VERSION",
      "--tls-max VERSION", "-k, --insecure", "--dangerously-log-keys", "--dangerously-allow-legacy-key-exchange",
      "SSL_CERT_FILE", "SSL_CERT_DIR",
      "SSLKEYLOGFILE", "--connect-timeout",
    ] {
      #expect(topic.text.contains(option), "\(option)")
    }
    // All options start in one column.
    for line in topic.text.split(separator: "\n") where line.drop(while: { $0 == " " }).hasPrefix("-") {
      #expect(line.prefix(6).hasSuffix("  ") || line.prefix(6).hasSuffix(", "), "\(line)")
      #expect(line.dropFirst(6).hasPrefix("--"), "\(line)")
    }
  }

  @Test func usageErrorsOfTheCommand() async throws {
    let result = try await Command.run("pins", "--tls-min", "2")
    #expect(result.status == 2)
    #expect(result.errors == "larkspur: --tls-min wants 1.2 or 1.3, not \"2\"\nSee: larkspur help pins\n")
  }

  // MARK: - Statuses and dates

  @Test(
    arguments: [
      (.untrustedRoot, 60), (.selfSigned, 60), (.expired, 60), (.notYetValid, 60), (.wrongHost, 60), (.revoked, 60),
      (.badSignature, 60), (.weakKey, 60), (.keyTooLarge, 60), (.weakDigest, 60), (.certificateInvalid, 60),
      (.refusedByCaller, 60),
      (.revocationUnknown, 91), (.protocolVersion, 35), (.noSharedCipher, 35), (.notTLS, 35),
      (.applicationProtocol, 35), (.noSharedProtocol, 35), (.alert(TLSAlert(number: 80)), 35), (.protocolViolation, 35),
      (.connectionLost, 35),
      (.truncated, 18), (.handshakeTimedOut, 28), (.clientCertificateRequired, 98), (.clientCertificateRefused, 58),
      (.identityUnreadable, 58), (.passwordWrong, 58), (.encryptionUnsupported, 58), (.keyMismatch, 58),
      (.hostInvalid, 6),
      (.trustStoreUnreadable, 77), (.revocationListUnreadable, 77), (.keyLogUnwritable, 23), (.outOfMemory, 27),
    ] as [(TLSError.Problem, Int32)])
  func statuses(problem: TLSError.Problem, number: Int32) {
    #expect(ExitStatus(TLSError(problem)).rawValue == number)
    #expect(ExitStatus(.tls(TLSError(problem, reason: "words"))).rawValue == number)
  }

  @Test(
    arguments: [
      (0, "1970-01-01"), (-1, "1969-12-31"), (86_399, "1970-01-01"), (86_400, "1970-01-02"),
      (951_782_399, "2000-02-28"), (951_782_400, "2000-02-29"), (951_868_800, "2000-03-01"),
      (1_709_164_800, "2024-02-29"), (1_772_323_200, "2026-03-01"), (4_107_542_400, "2100-03-01"),
      (4_107_456_000, "2100-02-28"), (1_798_761_599, "2026-12-31"), (-2_203_891_200, "1900-03-01"),
      (-62_135_596_800, "0001-01-01"), (253_402_300_799, "9999-12-31"), (-62_135_596_801, "?"),
      (253_402_300_800, "?"), (.min, "?"), (.max, "?"),
    ] as [(Int64, String)])
  func dates(seconds: Int64, text: String) {
    #expect(Format.date(seconds) == text)
  }
}
