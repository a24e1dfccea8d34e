import LarkspurBytes
import LarkspurHTTP

/// Checks the WebSocket machines on any bytes that a peer could send.
///
/// An input begins with four bytes: a mode, and the sizes of the pieces in which the rest arrives, in turn. Bits of the
/// mode: 0: frames of a client, which are masked; 1: compression is agreed; 2: a tight limit; 3: the caller closes
/// first; 4: the socket is blocked; 5: the caller pings first; 6: the rest is a value of `Sec-WebSocket-Extensions`.
package enum WebSocketOracle {
  /// The limit in bytes of a message, if it is tight.
  package static let tightLimit = 16

  private struct Breach: Error {
    var what: String
  }

  /// - Returns: The error of the machines, or `nil` if there is none.
  package static func finding(in input: [UInt8]) -> String? {
    guard input.count >= 4 else { return nil }
    let mode = input[0]
    let bytes = Array(input[4...])
    if mode & 64 != 0 { return extensionFinding(in: bytes) }
    let role: WebSocketRole = mode & 1 != 0 ? .server : .client
    let allowsCompression = mode & 2 != 0
    let naive = NaiveFrames(bytes, role: role, allowsCompression: allowsCompression)
    let cuts = [Cuts.whole(bytes), Cuts.single(bytes), Cuts.cycling(bytes, sizes: input[1..<4])]
    do {
      for pieces in cuts {
        let frames = try parse(pieces, role, allowsCompression)
        guard frames.frames == naive.frames, frames.error == naive.error else {
          return "\(pieces.count) pieces: \(frames), naively \(naive)"
        }
      }
    } catch {
      return error.what
    }
    if let finding = roundTrip(naive, role, allowsCompression) { return finding }
    guard role == .client else { return nil }

    var settings = WebSocketSettings()
    if mode & 4 != 0 { settings.messageBytesMax = tightLimit }
    var caller = WebSocketConversation.Caller()
    caller.closesFirst = mode & 8 != 0
    caller.isBlocked = mode & 16 != 0
    caller.pings = mode & 32 != 0
    let conversations = cuts.map {
      WebSocketConversation(over: $0, allowsCompression: allowsCompression, settings: settings, caller: caller)
    }
    for conversation in conversations {
      if let breach = conversation.breach { return breach }
      guard conversation == conversations[0] else {
        return "cut: \(conversation.log), whole: \(conversations[0].log)"
      }
    }
    guard mode & 56 == 0 else { return nil }
    let expected = naive.log(messageBytesMax: settings.messageBytesMax)
    return conversations[0].log == expected ? nil : "\(conversations[0].log), naively \(expected)"
  }

  private struct Parsed: Equatable {
    var frames: [NaiveFrames.Frame] = []
    var error: WebSocketFrameError?
  }

  private static func parse(
    _ pieces: [ArraySlice<UInt8>], _ role: WebSocketRole, _ allowsCompression: Bool
  ) throws(Breach) -> Parsed {
    var parser = WebSocketFrameParser(role: role, allowsCompression: allowsCompression)
    var parsed = Parsed()
    var isInFrame = false
    for piece in pieces {
      var bytes = Array(piece)
      var consumed = 0
      while true {
        let before = consumed
        let event: WebSocketFrameParser.Event
        do {
          event = try parser.next(in: bytes.span, consumed: &consumed)
        } catch {
          parsed.error = error
          return parsed
        }
        guard before...bytes.count ~= consumed else { throw Breach(what: "consumed \(before) to \(consumed)") }
        if event == .needMore {
          guard consumed == bytes.count else { throw Breach(what: "bytes were left") }
          break
        }
        switch event {
        case .needMore: break
        case .frame(let header):
          guard !isInFrame else { throw Breach(what: "a frame within a frame") }
          isInFrame = true
          parsed.frames.append(NaiveFrames.Frame(header: header, payload: []))
        case .payload(let range, let endsFrame):
          guard isInFrame, let frame = parsed.frames.last, range.upperBound == consumed, range.lowerBound >= before,
            !range.isEmpty || frame.header.length == 0
          else { throw Breach(what: "payload \(range) of \(before)..<\(consumed)") }
          if let mask = frame.header.mask { Masking.apply(mask, offset: frame.payload.count, to: &bytes, in: range) }
          parsed.frames[parsed.frames.count - 1].payload += bytes[range]
          isInFrame = !endsFrame
          guard endsFrame == parsed.frames.last?.isWhole else { throw Breach(what: "the end is wrong") }
        }
      }
    }
    return parsed
  }

  /// Writes the whole frames again, and compares the result of reading them.
  private static func roundTrip(_ naive: NaiveFrames, _ role: WebSocketRole, _ allowsCompression: Bool) -> String? {
    let frames = naive.frames.filter(\.isWhole)
    var written: [UInt8] = []
    for frame in frames {
      let header = frame.header
      WebSocketFrameWriter.append(
        header.opcode, isFinal: header.isFinal, isCompressed: header.isCompressed, payload: frame.payload.span,
        mask: header.mask, to: &written)
    }
    let again = NaiveFrames(written, role: role, allowsCompression: allowsCompression)
    return again.frames == frames && again.error == nil ? nil : "written as \(written), read as \(again)"
  }

  private static func extensionFinding(in bytes: [UInt8]) -> String? {
    guard let elements = WebSocketExtension.list(String(decoding: bytes, as: UTF8.self)) else { return nil }
    for element in elements {
      guard let compression = try? WebSocketCompression(offer: element) else { continue }
      guard 8...15 ~= compression.clientWindowBits, 8...15 ~= compression.serverWindowBits else {
        return "\(compression)"
      }
      guard let response = WebSocketExtension.list(compression.response), response.count == 1,
        let again = try? WebSocketCompression(offer: response[0]), again == compression
      else { return "\(compression) is not read again" }
    }
    return nil
  }
}
