import LarkspurHTTP

/// A second reading of a server's bytes, in another way than the parser's: all bytes at once, with lines found by
/// searching for their ends, and every rule in the order of the specification. The reader is slow, applies no limits,
/// and does not name errors.
package enum NaiveReader {
  /// Compares `transcript` with the naive reading.
  ///
  /// If both find an error, its position has to be the same, but not its name. If the parser reaches a limit, only the
  /// entries before that are compared.
  ///
  /// - Returns: The difference, or `nil` if the readings agree.
  package static func disagreement(
    with transcript: Transcript, over bytes: [UInt8], requests: [RequestContext]
  ) -> String? {
    let naive = read(bytes, requests)
    var heard = Transcript()
    for entry in transcript.entries {
      if case .failed(let error) = entry {
        if error.isLimit { return isStart(heard, of: naive) ? nil : says(transcript, naive) }
        heard.append(fault)
      } else {
        heard.append(entry)
      }
    }
    return heard == naive ? nil : says(transcript, naive)
  }

  private static func says(_ transcript: Transcript, _ naive: Transcript) -> String {
    "the parser says \(transcript.lines), the naive reader \(naive.lines)"
  }

  private static func isStart(_ part: Transcript, of whole: Transcript) -> Bool {
    guard let last = part.entries.last else { return true }
    guard part.entries.count <= whole.entries.count else { return false }
    guard part.entries.dropLast() == whole.entries.prefix(part.entries.count - 1) else { return false }
    switch (last, whole.entries[part.entries.count - 1]) {
    case (.body(let part), .body(let whole)): return whole.starts(with: part)
    case (let part, let whole): return part == whole
    }
  }

  /// The entry that stands for any error.
  private static let fault = Transcript.Entry.failed(.notHTTP)

  private static func read(_ bytes: [UInt8], _ requests: [RequestContext]) -> Transcript {
    var transcript = Transcript()
    var rest = bytes[...]
    for request in requests {
      guard let isPersistent = readResponse(to: request, from: &rest, into: &transcript) else {
        transcript.append(fault)
        return transcript
      }
      if case .tunnel = transcript.entries.last { return transcript }
      if transcript.heads.last?.framing == .tunnel { return transcript }
      if !isPersistent { break }
    }
    if !rest.isEmpty { transcript.append(fault) }
    return transcript
  }

  /// - Returns: Whether another response may follow, or `nil` if there is an error.
  private static func readResponse(
    to request: RequestContext, from rest: inout ArraySlice<UInt8>, into transcript: inout Transcript
  ) -> Bool? {
    while true {
      guard let (read, endsWithLF) = readHead(&rest) else { return nil }
      var head = read
      if head.status < 200, head.status != 101 {
        transcript.append(.interim(head))
        continue
      }
      guard decideFraming(of: &head, request) else { return nil }
      transcript.append(.head(head))
      return readBody(head.framing, endsWithLF, &rest, &transcript) ? head.isPersistent : nil
    }
  }

  private static func readHead(_ rest: inout ArraySlice<UInt8>) -> (head: Transcript.Head, endsWithLF: Bool)? {
    guard let section = NaiveFields.section(of: rest, mayEndWithLF: true), let statusLine = section.lines.first else {
      return nil
    }
    guard let fields = NaiveFields.parse(Array(section.lines.dropFirst())) else { return nil }
    var head = Transcript.Head()
    head.fields = fields
    head.byteCount = section.end - rest.startIndex
    rest = rest[section.end...]

    // "HTTP/1.x NNN", optionally followed by " reason".
    let text = statusLine.prefix(12)
    guard text.count == 12, text.starts(with: "HTTP/1.".utf8), text[8] == 0x20 else { return nil }
    guard let minor = digit(text[7]), let hundreds = digit(text[9]), let tens = digit(text[10]),
      let ones = digit(text[11])
    else { return nil }
    head.minorVersion = min(minor, 1)
    head.status = hundreds * 100 + tens * 10 + ones
    let reason = statusLine.dropFirst(12)
    guard head.status >= 100, reason.first ?? 0x20 == 0x20, NaiveFields.isValue(reason) else { return nil }
    head.reason = NaiveFields.text(Array(reason.dropFirst()))
    return (head, section.endsWithLF)
  }

  private static func digit(_ byte: UInt8) -> Int? {
    byte >= 0x30 && byte <= 0x39 ? Int(byte) - 0x30 : nil
  }

  /// - Returns: `false` if there is an error.
  private static func decideFraming(of head: inout Transcript.Head, _ request: RequestContext) -> Bool {
    if head.status == 101, !request.offersUpgrade { return false }
    if head.status == 101 || request.method == .connect && 200..<300 ~= head.status {
      head.framing = .tunnel
      return true
    }
    let lengths = elements(of: "content-length", in: head)
    if let first = lengths.first {
      let isPlain = !first.isEmpty && first.allSatisfy { digit($0) != nil }
      guard isPlain, lengths.allSatisfy({ $0 == first }) else { return false }
      guard let length = Int(String(decoding: first, as: UTF8.self)) else { return false }
      head.contentLength = length
    }
    let codings = elements(of: "transfer-encoding", in: head)
    let isChunked = !codings.isEmpty && head.minorVersion == 1
    if isChunked, codings != [Array("chunked".utf8)] { return false }

    if head.status == 204 || head.status == 304 || request.method == .head {
      head.framing = .none
    } else if isChunked {
      head.framing = .chunked
    } else if let length = head.contentLength {
      head.framing = length == 0 ? .none : .length(length)
    } else {
      head.framing = .untilClose
    }

    let options = elements(of: "connection", in: head)
    let isFaulty = !codings.isEmpty && (head.contentLength != nil || head.minorVersion == 0)
    let keepsAlive = head.minorVersion == 1 || options.contains(Array("keep-alive".utf8))
    let isWanted = keepsAlive && !options.contains(Array("close".utf8))
    let announcesWrongly = head.status == 204 && (!codings.isEmpty || (head.contentLength ?? 0) > 0)
    head.isPersistent = isWanted && !isFaulty && !announcesWrongly && head.framing != .untilClose
    return true
  }

  /// Returns the elements of a list in lower case, as bytes: a Unicode comparison would take a Kelvin sign for a k.
  private static func elements(of name: String, in head: Transcript.Head) -> [[UInt8]] {
    head.fields.filter { $0.name.lowercased() == name }.flatMap { field in
      Array(field.value.utf8).split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false).map {
        NaiveFields.trimmed($0).map { 0x41...0x5a ~= $0 ? $0 | 0x20 : $0 }
      }
    }
  }

  private static func readBody(
    _ framing: BodyFraming, _ endsWithLF: Bool, _ rest: inout ArraySlice<UInt8>, _ transcript: inout Transcript
  ) -> Bool {
    func take(_ count: Int) {
      if count > 0 { transcript.append(.body(Array(rest.prefix(count)))) }
      rest = rest.dropFirst(count)
    }
    switch framing {
    case .none: break
    case .length(let length):
      let isComplete = rest.count >= length
      take(min(length, rest.count))
      if !isComplete { return false }
    case .untilClose:
      take(rest.count)
    case .chunked:
      let chunks = NaiveChunks(rest, trailersMayEndWithLF: endsWithLF)
      if !chunks.body.isEmpty { transcript.append(.body(chunks.body)) }
      guard let trailers = chunks.trailers else { return false }
      rest = rest[chunks.end...]
      transcript.append(.end(trailers: trailers))
      return true
    case .tunnel:
      if !rest.isEmpty { transcript.append(.tunnel(Array(rest))) }
      rest = []
      return true
    }
    transcript.append(.end(trailers: []))
    return true
  }
}

extension ResponseError {
  /// Whether the error is a limit: the bytes are legal, but too many.
  var isLimit: Bool {
    switch self {
    case .headTooLarge, .fieldLineTooLong, .tooManyFields, .tooManyInterimResponses, .chunkExtensionsTooLarge,
      .trailersTooLarge:
      true
    default: false
    }
  }
}
