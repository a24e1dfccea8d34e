import LarkspurBytes
import LarkspurHTTP

/// What a parser makes of a whole event stream.
package struct EventStreamOutcome: Equatable {
  package var events: [EventStreamEvent] = []
  package var lastEventID = ""
  package var reconnectionMilliseconds: UInt64?
  package var error: EventStreamError?

  package init() {}

  /// Parses a stream that arrives in these pieces.
  package init(of pieces: [ArraySlice<UInt8>], limits: EventStreamLimits = EventStreamLimits()) {
    var parser = EventStreamParser(limits: limits)
    defer {
      lastEventID = parser.lastEventID
      reconnectionMilliseconds = parser.reconnectionMilliseconds
    }
    for piece in pieces {
      let bytes = Array(piece)
      var position = 0
      do throws(EventStreamError) {
        while let event = try parser.next(in: bytes.span, from: &position) { events.append(event) }
      } catch {
        self.error = error
        return
      }
    }
  }
}

/// Checks the parser of event streams on any bytes that a server could send.
///
/// An input begins with four bytes: the limits (0: the default ones; else a line of at most this number of bytes, and
/// twice as many in an event), and the sizes of the pieces in which the rest arrives, in turn. The rest is the stream.
package enum EventStreamOracle {
  /// - Returns: The error of the parser, or `nil` if there is none.
  package static func finding(in input: [UInt8]) -> String? {
    guard input.count >= 4 else { return nil }
    var limits = EventStreamLimits()
    if input[0] != 0 {
      limits.lineBytesMax = Int(input[0])
      limits.eventBytesMax = 2 * Int(input[0])
    }
    return finding(in: Array(input[4...]), sizes: input[1..<4], limits: limits)
  }

  /// Compares the stream read whole, byte by byte and in pieces of these sizes with what the naive reader reads.
  package static func finding(
    in bytes: [UInt8], sizes: some Sequence<UInt8>, limits: EventStreamLimits = EventStreamLimits()
  ) -> String? {
    let whole = EventStreamOutcome(of: Cuts.whole(bytes), limits: limits)
    for pieces in [Cuts.single(bytes), Cuts.cycling(bytes, sizes: sizes)] {
      let cut = EventStreamOutcome(of: pieces, limits: limits)
      if cut != whole { return "whole: \(whole), in pieces of \(pieces.prefix(3).map(\.count)): \(cut)" }
    }
    let naive = NaiveEventStream.read(bytes, limits: limits)
    return naive == whole ? nil : "\(whole), naively \(naive)"
  }
}
