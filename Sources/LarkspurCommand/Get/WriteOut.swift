import LarkspurBytes
import LarkspurConsole
import LarkspurHTTP
import LarkspurIO

/// The format of `--write-out`: text with variables that are filled when a transfer is over, as in curl.
package struct WriteOut: Hashable, Sendable {
  private enum Piece: Hashable {
    case text(String)
    /// A variable of `TransferReport`, by its name.
    case variable(String)
    /// The first field of this name in the response's head.
    case field(String)
    case json, fieldsAsJSON
    /// What follows goes to standard error, or to standard output.
    case stream(isErrors: Bool)
    /// What follows is written only if the transfer has failed.
    case onError
  }

  private static let words: [String: Piece] = [
    "json": .json, "header_json": .fieldsAsJSON, "stdout": .stream(isErrors: false), "stderr": .stream(isErrors: true),
    "onerror": .onError,
  ]
  private static let escapes: [UInt8: UInt8] = [
    UInt8(ascii: "n"): UInt8(ascii: "\n"), UInt8(ascii: "r"): UInt8(ascii: "\r"), UInt8(ascii: "t"): UInt8(ascii: "\t"),
  ]

  private var pieces: [Piece] = []

  /// Reads the value of `--write-out`: a format, or `@FILE` for the format in a file (`@-`: standard input).
  init(option value: String) throws(UsageError) {
    guard value.hasPrefix("@") else {
      try self.init(value)
      return
    }
    try self.init(String(decoding: try OptionFile.read(String(value.dropFirst()), of: "write-out"), as: UTF8.self))
  }

  /// - Throws: An error for a variable that does not exist. (curl warns when the transfer is over, which is too late.)
  init(_ format: String) throws(UsageError) {
    var rest = Array(format.utf8)[...]
    var text: [UInt8] = []
    while let byte = rest.popFirst() {
      let next = rest.first
      if byte == UInt8(ascii: "\\"), let next, let escaped = Self.escapes[next] {
        text.append(escaped)
        rest.removeFirst()
      } else if byte == UInt8(ascii: "%"), next == UInt8(ascii: "%") {
        text.append(byte)
        rest.removeFirst()
      } else if byte == UInt8(ascii: "%"), let piece = try Self.takePiece(from: &rest) {
        if !text.isEmpty { pieces.append(.text(String(decoding: text, as: UTF8.self))) }
        text = []
        pieces.append(piece)
      } else {
        text.append(byte)
      }
    }
    if !text.isEmpty { pieces.append(.text(String(decoding: text, as: UTF8.self))) }
  }

  /// Takes `{NAME}` or `header{NAME}`.
  ///
  /// - Returns: `nil` for anything else after a percent sign, which stands for itself.
  private static func takePiece(from rest: inout ArraySlice<UInt8>) throws(UsageError) -> Piece? {
    let word = rest.prefix { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) }
    guard rest[word.endIndex...].first == UInt8(ascii: "{") else { return nil }
    let function = String(decoding: word, as: UTF8.self)
    guard let end = rest[word.endIndex...].firstIndex(of: UInt8(ascii: "}")) else {
      throw UsageError("--write-out: the } of %\(function){ is missing")
    }
    let name = String(decoding: rest[(word.endIndex + 1)..<end], as: UTF8.self)
    rest = rest[(end + 1)...]
    if function == "header" { return .field(name) }
    guard function.isEmpty else { throw UsageError("--write-out knows no %\(function){}") }
    if let piece = words[name] { return piece }
    let names = TransferReport.variables.map(\.name)
    guard names.contains(name) else {
      throw UsageError(
        "--write-out knows no variable \(name)" + Suggestion.text(for: name, among: names + words.keys.sorted()))
    }
    return .variable(name)
  }

  /// Checks that a download in pieces has all variables.
  func checkForPieces() throws(UsageError) {
    for piece in pieces {
      switch piece {
      case .field, .fieldsAsJSON:
        throw UsageError("--write-out: a download in pieces has several responses, and no one head")
      case .variable(let name) where TransferReport.variables.contains { $0.name == name && !$0.isOfPieces }:
        throw UsageError("--write-out: a download in pieces has several requests, and no one \(name)")
      case .text, .variable, .json, .stream, .onError: break
      }
    }
  }

  // MARK: - Writing

  /// Writes the text for a transfer that no signal has ended. An error of the output changes no exit status, as in curl.
  func write(_ report: TransferReport, until deadline: Deadline) {
    guard CaughtSignal.pending == nil else { return }
    for part in text(of: report, isShown: { ($0 ? OpenFile.standardError : .standardOutput).isTerminal }) {
      let file = part.isErrors ? OpenFile.standardError : .standardOutput
      try? file.write(Array(part.text.utf8).span, until: deadline)
    }
  }

  /// Returns the text for a transfer, in parts for standard error and standard output.
  ///
  /// - Parameter isShown: Whether a stream is a terminal, where hidden characters in the text of a peer become visible.
  func text(
    of report: TransferReport, isShown: (_ isErrors: Bool) -> Bool = { _ in false }
  ) -> [(isErrors: Bool, text: String)] {
    var parts = [(isErrors: false, text: "")]
    func add(_ value: String) {
      let isErrors = parts[parts.count - 1].isErrors
      parts[parts.count - 1].text += isShown(isErrors) ? Format.visible(value.utf8) : value
    }
    for piece in pieces {
      switch piece {
      case .text(let text): parts[parts.count - 1].text += text
      case .variable(let name): add(report.value(of: name)?.text ?? "")
      case .field(let name): add(report.fields.firstValue(named: name) ?? "")
      case .json: parts[parts.count - 1].text += report.json
      case .fieldsAsJSON: parts[parts.count - 1].text += report.fieldsAsJSON
      case .stream(let isErrors): parts.append((isErrors, ""))
      case .onError where report.failure == nil: return parts
      case .onError: break
      }
    }
    return parts
  }
}
