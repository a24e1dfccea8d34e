/// A picture of requests on a common axis of time: a line for each request, with a bar of its phases.
///
/// ```
/// GET example.org/a     ::--======>.....#                           120 ms
/// GET www.example.org/                   ::--======>........######  180 ms
///                       0                 150 ms            300 ms
/// : look-up  - connect  = TLS  > request  . wait  # body
/// ```
///
/// Invariant: each phase has at least one cell, and no two phases of a request share a cell.
package struct Waterfall: Sendable {
  /// A phase of a request, in the order in which they take place. `failure` marks the end of a request without a whole
  /// response.
  package enum Phase: CaseIterable, Hashable, Sendable {
    case lookUp
    case connect
    case tls
    case request
    case wait
    case body
    case failure

    fileprivate var look: (cell: Character, name: String, color: Style.Color) {
      switch self {
      case .lookUp: (":", "look-up", .cyan)
      case .connect: ("-", "connect", .yellow)
      case .tls: ("=", "TLS", .magenta)
      case .request: (">", "request", .plain)
      case .wait: (".", "wait", .green)
      case .body: ("#", "body", .blue)
      case .failure: ("!", "failed", .red)
      }
    }
  }

  /// The times of a phase, in seconds on a clock that all requests share.
  package struct Span: Hashable, Sendable {
    package var phase: Phase
    package var start: Double
    package var end: Double

    /// - Parameter end: An end before the start counts as the start.
    package init(_ phase: Phase, _ start: Double, _ end: Double) {
      self.phase = phase
      self.start = start
      self.end = max(start, end)
    }

    /// Whether both times can be drawn.
    fileprivate var isUsable: Bool { start.magnitude < Waterfall.secondsMax && end.magnitude < Waterfall.secondsMax }
  }

  /// A request, and the phases that took place, in their order.
  package struct Request: Hashable, Sendable {
    fileprivate let title: String
    fileprivate let start: Double?
    fileprivate let spans: [Span]
    fileprivate var end: Double? { spans.map(\.end).max() }

    /// Creates a request. A phase that begins before an earlier phase, as of a clock that was set back, is moved.
    ///
    /// - Parameter start: The time at which the request was made, or `nil` if it is that of the first phase.
    package init(_ title: String, start: Double? = nil, _ spans: [Span]) {
      self.title = title
      var latest = start.flatMap { $0.magnitude < Waterfall.secondsMax ? $0 : nil }
      let usable = spans.filter(\.isUsable)
      self.start = usable.isEmpty ? nil : latest ?? usable[0].start
      self.spans = usable.map { span in
        let start = max(span.start, latest ?? span.start)
        latest = start
        return Span(span.phase, start, span.end)
      }
    }

    fileprivate var time: String {
      guard let start, let end else { return "-" }
      return Format.time(.seconds(end - start))
    }
  }

  /// Times of this many seconds and more are left out: `Duration` could not hold each difference of them.
  private static let secondsMax = 1e15
  /// The width of the picture on a narrower terminal.
  package static let columnsMin = 60

  private let requests: [Request]

  package init(_ requests: [Request]) { self.requests = requests }

  /// Returns the lines of the picture, or none if there are no requests. They are safe for a terminal.
  ///
  /// - Parameter columns: The width, which is at least `columnsMin`.
  package func lines(columns: Int, style: Style) -> [String] {
    guard !requests.isEmpty else { return [] }
    let columns = max(columns, Self.columnsMin)
    let titles = requests.map { request in
      Format.shortened(Format.visible(request.title.utf8).replacing("\t", with: " "), toColumns: columns * 2 / 5)
    }
    let titleColumns = titles.map(Format.columns).max() ?? 0
    let timeColumns = requests.map(\.time.count).max() ?? 0
    let cells = columns - titleColumns - timeColumns - 4
    let start = requests.compactMap(\.start).min() ?? 0
    let length = (requests.compactMap(\.end).max() ?? 0) - start
    let rows = zip(requests, titles).map { request, title in
      let padding = String(repeating: " ", count: titleColumns - Format.columns(of: title) + 2)
      let time = Format.padded(request.time, to: timeColumns, atEnd: false)
      return title + padding + bar(request.spans, from: start, length: length, cells: cells, style) + "  " + time
    }
    let indent = String(repeating: " ", count: titleColumns + 2)
    let legend = legend(columns: columns, style)
    return rows + [indent + scale(of: .seconds(length), cells: cells)] + (legend.isEmpty ? [] : [legend])
  }

  /// Draws the phases of a request. A phase begins in the cell of its time, or after the phase before it. At the end of
  /// the axis it begins earlier, if it and the phases after it would have no cells.
  private func bar(_ spans: [Span], from start: Double, length: Double, cells: Int, _ style: Style) -> String {
    func cell(_ time: Double) -> Int {
      length > 0 ? Int(((time - start) / length * Double(cells)).rounded()) : 0
    }
    var bar = ""
    var next = 0
    for (index, span) in spans.enumerated() {
      let last = cells - (spans.count - index)
      let first = min(max(cell(span.start), next), last)
      let end = min(max(cell(span.end), first + 1), last + 1)
      let look = span.phase.look
      bar += String(repeating: " ", count: first - next)
      bar += style.colored(String(repeating: look.cell, count: end - first), look.color)
      next = end
    }
    return bar + String(repeating: " ", count: cells - next)
  }

  /// Returns the times at the start, in the middle and at the end of the axis, as far as there is room.
  private func scale(of length: Duration, cells: Int) -> String {
    let (half, full) = (Format.time(length / 2), Format.time(length))
    let halfStart = cells / 2 - half.count / 2
    let fullStart = cells - full.count
    let hasHalf = halfStart + half.count < fullStart
    return Format.padded(Format.padded("0", to: halfStart) + (hasHalf ? half : ""), to: fullStart) + full
  }

  /// Returns the meanings of the characters that the bars have.
  private func legend(columns: Int, _ style: Style) -> String {
    let phases = Phase.allCases.filter { phase in requests.contains { $0.spans.contains { $0.phase == phase } } }
    let entries = phases.map { "\($0.look.cell) \($0.look.name)" }
    let separator = entries.joined(separator: "  ").count > columns ? " " : "  "
    return zip(phases, entries).map { style.colored($1, $0.look.color) }.joined(separator: separator)
  }
}
