import LarkspurCommand
import LarkspurConsole
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTransport
import Testing

@Suite struct FormatTests {
  @Test func decimals() {
    #expect(Format.decimal(0) == "0.0")
    #expect(Format.decimal(1.25) == "1.3")
    #expect(Format.decimal(-0.04) == "0.0")
    #expect(Format.decimal(-1.5) == "-1.5")
    #expect(Format.decimal(9.999, digits: 2) == "10.00")
    #expect(Format.decimal(0.05, digits: 2) == "0.05")
    #expect(Format.decimal(2.5, digits: 0) == "3")
    #expect(Format.decimal(.infinity) == "?")
    #expect(Format.decimal(.nan) == "?")
    #expect(Format.decimal(1e300) == "?")
  }

  @Test func groups() {
    #expect(
      [0, 12, 999, 1000, 123_456, 1_234_567, -1234].map(Format.grouped) == [
        "0", "12", "999", "1,000", "123,456", "1,234,567", "-1,234",
      ])
    #expect(Format.grouped(.min) == "-9,223,372,036,854,775,808")
  }

  @Test func byteCounts() {
    let counts: [Int] = [0, 1, 1023, 1024, 1536, 1_048_575, 1 << 20, 64 << 20, 5 << 30, 1 << 40]
    #expect(
      counts.map(Format.bytes) == [
        "0 B", "1 B", "1023 B", "1.0 KiB", "1.5 KiB", "1.0 MiB", "1.0 MiB", "64.0 MiB", "5.0 GiB", "1.0 TiB",
      ])
    #expect(Format.bytes(Int.max) == "8192.0 PiB")
  }

  @Test func hexadecimal() {
    #expect(Format.hexadecimal([]) == "\n")
    #expect(Format.hexadecimal([0, 0xab]) == "00 ab\n")
    #expect(Format.hexadecimal(0...16) == "00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f\n10\n")
  }

  @Test func times() {
    #expect(Format.time(.microseconds(420)) == "0.4 ms")
    #expect(Format.time(.milliseconds(42)) == "42 ms")
    #expect(Format.time(.milliseconds(1250)) == "1.25 s")
    #expect(Format.clock(.seconds(7)) == "0:07")
    #expect(Format.clock(.seconds(754)) == "12:34")
    #expect(Format.clock(.seconds(3723)) == "1:02:03")
  }

  @Test func whatATerminalMustNotSee() {
    #expect(Format.visible("a\tb\u{1b}[31m\r\n\u{7f}\u{9b}ü".utf8) == "a\tb\\x1b[31m\\x0d\\x0a\\x7f\\x9bü")
    #expect(Format.visible([0x9b, 0x41]) == "\u{fffd}A")
  }

  /// Controls of direction, zero-width characters, separators, tags and fillers are shown. Letters, marks and emoji stay.
  @Test func charactersThatAreNotSeen() {
    let hidden: [Unicode.Scalar] = [
      "\u{ad}", "\u{34f}", "\u{61c}", "\u{115f}", "\u{180e}", "\u{200b}", "\u{200d}", "\u{200e}", "\u{200f}",
      "\u{2028}",
      "\u{2029}", "\u{202a}", "\u{202e}", "\u{2060}", "\u{2066}", "\u{2069}", "\u{3164}", "\u{feff}", "\u{fff9}",
      "\u{e0001}", "\u{e0041}", "\u{e007f}", "\u{e0100}",
    ]
    for scalar in hidden {
      let digits = String(scalar.value, radix: 16)
      let text = scalar.value < 0x100 ? "\\x\(digits)" : "\\u{\(digits)}"
      #expect(Format.visible("a\(Character(scalar))b".utf8) == "a\(text)b")
    }
    for text in ["e\u{301}", "❤\u{fe0f}", "日本", "שלום", "\u{a0}", "\u{e000}", "\u{fffd}"] {
      #expect(Format.visible(text.utf8) == text)
    }
  }

  @Test func tables() {
    var table = Table(columns: [.left, .right])
    table.append(["What", "Time"])
    table.append(["longer", "1"], style: { "<\($0)>" })
    table.append(["x", ""])
    #expect(table.text == "What    Time\n<longer     1>\nx\n")
  }
}

@Suite struct ProgressBarTests {
  private func line(_ received: Int, of total: Int?, rate: Double = 1_048_576, columns: Int = 79) -> String {
    ProgressBar.line(.init(received: received, total: total, bytesPerSecond: rate), columns: columns)
  }

  @Test func knownLength() {
    #expect(line(0, of: 64 << 20, rate: 0).hasPrefix("  0% [                        ]  0 B of 64.0 MiB  0 B/s "))
    #expect(
      line(32 << 20, of: 64 << 20).hasPrefix(
        " 50% [===========>            ]  32.0 MiB of 64.0 MiB  1.0 MiB/s  0:32 left"))
    #expect(line(64 << 20, of: 64 << 20).hasPrefix("100% [========================]  64.0 MiB of 64.0 MiB  1.0 MiB/s "))
    // An incomplete transfer never shows 100 %.
    #expect(line((64 << 20) - 1, of: 64 << 20).hasPrefix(" 99% "))
  }

  @Test func unknownLength() {
    #expect(line(3 << 20, of: nil) == "3.0 MiB  1.0 MiB/s")
    #expect(line(0, of: 0, rate: 0) == "0 B  0 B/s")
  }

  @Test func neverWiderThanTheTerminal() {
    for columns in 0...200 {
      for received in [0, 1, 999_999, 5 << 30] {
        #expect(line(received, of: 5 << 30, rate: 0.1, columns: columns).count <= columns)
        #expect(line(received, of: nil, columns: columns).count <= columns)
      }
    }
  }

  @Test func moreThanAnnounced() {
    #expect(line(200, of: 100).hasPrefix("100% [========================]"))
  }
}

@Suite struct ExitStatusTests {
  @Test func eachNumberMeansOneThing() {
    let numbers = ExitStatus.allCases.map(\.rawValue)
    #expect(numbers == numbers.sorted())
    #expect(Set(numbers).count == numbers.count)
    for number in numbers {
      #expect(HelpTopic.exitStatus.text.contains("\n  \(Format.padded("\(number)", to: 3, atEnd: false))  "))
    }
  }

  @Test func theDocumentationHasTheTable() throws {
    let root = #filePath.split(separator: "/").dropLast(4).map { "/" + $0 }.joined()
    let page = String(
      decoding: try OpenFile(reading: root + "/Sources/Larkspur/Larkspur.docc/Command.md").readToEnd(), as: UTF8.self)
    let rows = ExitStatus.allCases.map { "| \($0.rawValue) | \($0.meaning) |\n" }.joined()
    #expect(page.contains("|---|---|\n" + rows))
  }

  @Test(
    arguments: [
      (TransportError.resolutionFailed(host: "x", reason: "y"), 6), (.connectFailed([]), 7),
      (.localEndpointUnusable(LocalEndpoint(interface: "x"), nil), 45), (.optionInvalid("x", "y"), 2),
      (.timedOut(.resolving), 28), (.timedOut(.connecting), 28), (.timedOut(.sending), 28),
      (.timedOut(.awaitingHead), 28),
      (.timedOut(.receivingBody), 28), (.connectionLost(.sending, .brokenPipe), 55),
      (.connectionLost(.awaitingHead, .connectionReset), 56), (.connectionLost(.receivingBody, nil), 56),
      (.connectionClosed, 52), (.badResponse(.truncated(.beforeHead)), 52), (.badResponse(.truncated(.statusLine)), 52),
      (.badResponse(.truncated(.head)), 18),
      (.badResponse(.truncated(.body(missing: 1))), 18), (.badResponse(.truncated(.chunkedBody)), 18),
      (.badResponse(.truncated(.trailers)), 18), (.badResponse(.notHTTP), 1),
      (.badResponse(.versionUnsupported), 1), (.badResponse(.statusInvalid), 1), (.badResponse(.bareCR), 8),
      (.badResponse(.contentLengthInvalid), 8), (.badResponse(.fieldNameInvalid), 8),
      (.badResponse(.transferCodingUnsupported), 61), (.badResponse(.headTooLarge(limit: 1)), 56),
      (.badResponse(.tooManyInterimResponses(limit: 1)), 56), (.badResponse(.trailersTooLarge(limit: 1)), 56),
      (.badResponse(.chunkSizeInvalid), 56), (.badResponse(.chunkEndMissing), 56),
      (.unavailable(.tooManyDescriptors), 27), (.localMisuse(.notOnLoop), 43), (.cancelled, 130),
    ] as [(TransportError, Int32)])
  func transportErrors(error: TransportError, number: Int32) {
    #expect(ExitStatus(error).rawValue == number)
  }

  @Test(
    arguments: [
      (.transport(.resolutionFailed(host: "x", reason: "y")), 5), (.transport(.connectFailed([])), 7),
      (.transport(.connectionLost(.tunnelling, nil)), 56), (.transport(.badResponse(.notHTTP)), 56),
      (.transport(.tls(TLSError(.wrongHost))), 60), (.socks(.credentialsRefused), 97), (.socks(.truncated), 97),
      (.tunnel(.authenticationRequired), 56), (.tunnel(.refused(status: 403, reason: "")), 56),
    ] as [(ProxyError.Failure, Int32)])
  func proxyErrors(failure: ProxyError.Failure, number: Int32) throws {
    let error = TransportError.proxy(ProxyError(try Proxy("p"), failure))
    #expect(ExitStatus(error).rawValue == number)
  }

  /// A failure during a SOCKS proxy's handshake has curl's exit status for the handshake.
  @Test func socksErrors() throws {
    let lost = ProxyError(try Proxy("socks5h://p"), .transport(.connectionLost(.tunnelling, .connectionReset)))
    #expect(ExitStatus(TransportError.proxy(lost)).rawValue == 97)
    let unreached = ProxyError(try Proxy("socks5h://p"), .transport(.connectFailed([])))
    #expect(ExitStatus(TransportError.proxy(unreached)).rawValue == 7)
  }
}
