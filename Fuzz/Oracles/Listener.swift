import LarkspurBytes
import LarkspurHTTP

/// The receiving side of a connection: collects the unread bytes, gives them to a `ResponseParser`, and records the
/// results.
///
/// All requests count as sent before the first byte arrives. After a response that is not persistent, no request is
/// left that later bytes could answer.
package struct Listener: ~Copyable {
  package private(set) var transcript = Transcript()
  /// The maximum number of bytes kept for the parser at one time.
  package private(set) var retainedBytesMax = 0

  private var parser: ResponseParser
  private var requests: ArraySlice<RequestContext>
  private var unread: [UInt8] = []
  private var isOver = false

  package init(requests: [RequestContext] = [RequestContext()], limits: Limits = Limits()) {
    parser = ResponseParser(limits: limits)
    self.requests = requests[...]
    startNext()
  }

  package static func transcript(
    of pieces: some Sequence<ArraySlice<UInt8>>, requests: [RequestContext] = [RequestContext()],
    limits: Limits = Limits()
  ) -> Transcript {
    var listener = Listener(requests: requests, limits: limits)
    for piece in pieces { listener.receive(piece) }
    listener.close()
    return listener.transcript
  }

  package mutating func receive(_ piece: ArraySlice<UInt8>) {
    guard !isOver else { return }
    // A new array of exactly this size each time exposes a parser that keeps an address or reads past the end.
    var bytes: [UInt8] = []
    bytes.reserveCapacity(unread.count + piece.count)
    bytes += unread
    bytes += piece
    var consumed = 0
    while !isOver {
      let before = consumed
      let wasComplete = parser.isComplete()
      do {
        let event = try parser.next(in: bytes.span, consumed: &consumed)
        guard before...bytes.count ~= consumed else { return fail("consumed went from \(before) to \(consumed)") }
        if wasComplete, event != .end(trailerBase: before) { return fail("complete, and then \(event)") }
        if case .needMore = event { break }
        take(event, from: bytes, before, consumed)
      } catch {
        fail(error)
      }
    }
    unread = isOver ? [] : Array(bytes[consumed...])
    if parser.isTunnel, !unread.isEmpty {
      transcript.append(.tunnel(unread))
      unread = []
    }
    retainedBytesMax = max(retainedBytesMax, unread.count)
  }

  /// Tells the parser that the server has closed its side.
  package mutating func close() {
    guard !isOver else { return }
    isOver = true
    do {
      let wasInBody = !parser.isIdle && !parser.isTunnel
      let isComplete = try parser.peerClosed(unread: unread.count)
      if isComplete != wasInBody { return fail("peerClosed says \(isComplete)") }
      if isComplete { transcript.append(.end(trailers: [])) }
    } catch {
      transcript.append(.failed(error))
    }
  }

  private mutating func take(_ event: ResponseParser.Event, from bytes: [UInt8], _ before: Int, _ consumed: Int) {
    switch event {
    case .needMore: break
    case .interim: transcript.append(.interim(head(of: bytes, endingAt: consumed)))
    case .head: transcript.append(.head(head(of: bytes, endingAt: consumed)))
    case .body(let range):
      guard !range.isEmpty, range.upperBound == consumed, range.lowerBound >= before else {
        return fail("body \(range) out of \(before)..<\(consumed)")
      }
      transcript.append(.body(Array(bytes[range])))
    case .end(let base):
      guard before...consumed ~= base else { return fail("trailers at \(base), not in \(before)...\(consumed)") }
      transcript.append(.end(trailers: fields(parser.trailers, of: bytes[base..<consumed])))
      guard parser.isIdle else { return fail("not idle after the end") }
      if transcript.heads.last?.isPersistent != true { requests = [] }
      startNext()
    }
  }

  private mutating func startNext() {
    guard let request = requests.popFirst() else { return }
    if !parser.start(request) { fail("an idle parser refuses to begin") }
  }

  private mutating func fail(_ failure: ResponseError) {
    transcript.append(.failed(failure))
    isOver = true
    // A failed parser has to stay failed, whatever bytes it gets.
    let nothing: [UInt8] = []
    var consumed = 0
    do {
      let event = try parser.next(in: nothing.span, consumed: &consumed)
      fail("\(event) after an error")
    } catch {
      if error != failure { fail("\(error) after \(failure)") }
    }
  }

  private mutating func fail(_ breach: String) {
    transcript.append(.broken(breach))
    isOver = true
  }

  private func head(of bytes: [UInt8], endingAt end: Int) -> Transcript.Head {
    var head = Transcript.Head()
    let section = bytes[(end - parser.head.byteCount)..<end]
    head.status = parser.head.status
    head.minorVersion = parser.head.minorVersion
    head.reason = FieldValue.text(parser.head.reason, in: Array(section).span)
    head.fields = fields(parser.head.fields, of: section)
    head.framing = parser.head.framing
    head.isPersistent = parser.head.isPersistent
    head.contentLength = parser.head.contentLength
    head.byteCount = parser.head.byteCount
    return head
  }

  private func fields(_ table: FieldTable, of section: ArraySlice<UInt8>) -> [Transcript.Field] {
    Transcript.fields(table, of: Array(section))
  }
}

extension Transcript {
  /// Returns the fields that `table` describes in `section`.
  static func fields(_ table: FieldTable, of section: [UInt8]) -> [Field] {
    (0..<table.count).map { index in
      Field(
        name: FieldValue.text(table[index].name, in: section.span),
        value: FieldValue.text(table[index].value, in: section.span))
    }
  }
}
