import LarkspurConsole
import TestKit
import Testing

@Suite struct WaterfallTests {
  private let whole: [Waterfall.Span] = [
    .init(.lookUp, 0, 0.1), .init(.connect, 0.1, 0.2), .init(.tls, 0.2, 0.4), .init(.request, 0.4, 0.41),
    .init(.wait, 0.41, 0.7), .init(.body, 0.7, 1),
  ]
  /// A request on a connection that is used again, 0.2 s after it was made.
  private let reused = Waterfall.Request(
    "GET example.org/b", start: 1, [.init(.request, 1.2, 1.2), .init(.wait, 1.2, 1.8), .init(.body, 1.8, 2)])

  private func lines(
    _ requests: Waterfall.Request..., columns: Int = 60, style: Style = Style(isOn: false)
  ) -> [String] {
    Waterfall(requests).lines(columns: columns, style: style)
  }

  @Test func redirection() {
    let expected = [
      "GET example.org/a  ::-====>....#####                  1.00 s",
      "GET example.org/b                      >.........###  1.00 s",
      "                   0            1.00 s        2.00 s",
      ": look-up  - connect  = TLS  > request  . wait  # body",
    ]
    let first = Waterfall.Request("GET example.org/a", whole)
    #expect(lines(first, reused) == expected)
    // The picture of a narrow terminal has the smallest width.
    #expect(lines(first, reused, columns: 0) == expected)
  }

  @Test func wideTerminal() {
    func row(_ title: String, _ bar: String) -> String { title + "  " + Format.padded(bar, to: 173) + "  1.00 s" }
    func gap(_ count: Int) -> String { String(repeating: " ", count: count) }
    func cells(_ character: Character, _ count: Int) -> String { String(repeating: character, count: count) }
    #expect(
      lines(Waterfall.Request("GET example.org/a", whole), reused, columns: 200) == [
        row(
          "GET example.org/a",
          cells(":", 9) + cells("-", 8) + cells("=", 18) + ">" + cells(".", 25) + cells("#", 26)),
        row("GET example.org/b", gap(104) + ">" + cells(".", 51) + cells("#", 17)),
        gap(19) + "0" + gap(82) + "1.00 s" + gap(78) + "2.00 s",
        ": look-up  - connect  = TLS  > request  . wait  # body",
      ])
  }

  /// Of a failed request the phases until the failure are drawn. With all phases the legend has closer entries.
  @Test func failures() {
    #expect(
      lines(
        Waterfall.Request("GET example.org/c", whole + [.init(.failure, 1, 1)]),
        Waterfall.Request("POST x.invalid/", start: 2, [.init(.lookUp, 2, 2.5), .init(.failure, 2.5, 2.5)])) == [
          "GET example.org/c  :--==>...####!                     1.00 s",
          "POST x.invalid/                              ::::::!  500 ms",
          "                   0            1.25 s        2.50 s",
          ": look-up - connect = TLS > request . wait # body ! failed",
        ])
  }

  @Test func wideCharactersAndHiddenOnes() {
    let titles = ["GET 日本語.example/ディレクトリ/ファイル.txt", "GET e\u{301}.example/\u{202e}\u{1f600}"]
    #expect(
      lines(
        Waterfall.Request(titles[0], [.init(.request, 0, 0.1), .init(.body, 0.1, 0.2)]),
        Waterfall.Request(titles[1], [.init(.request, 0.2, 0.3), .init(.body, 0.3, 0.4)])) == [
          "GET 日本語....ァイル.txt  >>>>>>>######               200 ms",
          "GET e\u{301}.example/\\u{202e}\u{1f600}               >>>>>>#######  200 ms",
          "                          0         200 ms    400 ms",
          "> request  # body",
        ])
  }

  /// Phases that are too short for a cell at the end of the axis take their cells before it.
  @Test func shortRequestAtTheEnd() {
    #expect(
      lines(
        Waterfall.Request("GET a/", [.init(.request, 0, 0.5), .init(.wait, 0.5, 0.9), .init(.body, 0.9, 1)]),
        Waterfall.Request("GET b/", [.init(.request, 1, 1), .init(.wait, 1, 1), .init(.body, 1, 1)])) == [
          "GET a/  >>>>>>>>>>>>>>>>>>>>>>..................####  1.00 s",
          "GET b/                                           >.#  0.0 ms",
          "        0                  500 ms             1.00 s",
          "> request  . wait  # body",
        ])
  }

  /// The server answers before it has the whole request.
  @Test func earlyAnswer() {
    #expect(
      lines(Waterfall.Request("PUT a/", [.init(.request, 0, 1), .init(.wait, 1, 0.2), .init(.body, 0.2, 0.4)])) == [
        "PUT a/  >>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>.#  1.00 s",
        "        0                  500 ms             1.00 s",
        "> request  . wait  # body",
      ])
  }

  @Test(arguments: [[10, 4, 3, 2], [5, 5, 5, 5]])
  func noTimePasses(_ times: [Double]) {
    let spans = zip([Waterfall.Phase.request, .wait, .body], zip(times, times.dropFirst())).map { phase, times in
      Waterfall.Span(phase, times.0, times.1)
    }
    #expect(
      lines(Waterfall.Request("GET a/", start: times[0], spans)) == [
        "GET a/  >.#                                           0.0 ms",
        "        0                  0.0 ms             0.0 ms",
        "> request  . wait  # body",
      ])
  }

  @Test func nothingToDraw() {
    #expect(lines() == [])
    let expected = [
      "GET a/                                                     -",
      "        0                    0.0 ms                0.0 ms",
    ]
    #expect(lines(Waterfall.Request("GET a/", start: 5, [])) == expected)
    for time in [Double.nan, .infinity, -.infinity, 1e300] {
      #expect(lines(Waterfall.Request("GET a/", start: time, [.init(.wait, time, time)])) == expected)
    }
  }

  @Test func colors() {
    let request = Waterfall.Request("GET a/", [.init(.request, 0, 0), .init(.body, 0, 0), .init(.failure, 0, 0)])
    let styled = lines(request, style: Style(isOn: true))
    #expect(styled[0].hasPrefix("GET a/  >\u{1b}[34m#\u{1b}[m\u{1b}[31m!\u{1b}[m   "))
    #expect(styled.last == "> request  \u{1b}[34m# body\u{1b}[m  \u{1b}[31m! failed\u{1b}[m")
    let plain = styled.map { $0.replacing(/\u{1b}\[[0-9]*m/, with: "") }
    #expect(plain == lines(request))
  }

  /// Each phase has its cells, and each line the width of the picture, whatever the times are.
  @Test func cellsOfAnyTimes() {
    var generator = SeededGenerator(seed: 1)
    for _ in 0..<2000 {
      let phases = Waterfall.Phase.allCases.filter { _ in Bool.random(using: &generator) }
      let requests = (0..<Int.random(in: 1...4, using: &generator)).map { number in
        let spans = phases.map { phase in
          let start = Double(Int.random(in: 0...9, using: &generator))
          return Waterfall.Span(phase, start, start + Double(Int.random(in: -3...9, using: &generator)))
        }
        return Waterfall.Request("GET host.example/\(number)", spans)
      }
      let columns = Int.random(in: 60...140, using: &generator)
      let drawn = Waterfall(requests).lines(columns: columns, style: Style(isOn: false))
      let marks = phases.map { Character(Self.marks[$0] ?? "?") }
      for line in drawn.prefix(requests.count) {
        #expect(line.count == columns)
        let bar = line.dropFirst("GET host.example/0".count).prefix { !$0.isNumber }.filter { $0 != " " }
        let runs = bar.reduce(into: [Character]()) { runs, cell in if runs.last != cell { runs.append(cell) } }
        #expect(runs == marks || phases.isEmpty && bar == "-", "\(line)")
      }
    }
  }

  private static let marks: [Waterfall.Phase: String] = [
    .lookUp: ":", .connect: "-", .tls: "=", .request: ">", .wait: ".", .body: "#", .failure: "!",
  ]
}
