import LarkspurBytes
import LarkspurHTTP

/// Checks the chunked decoder on any bytes.
///
/// An input begins with four bytes: a mode (bit 4: tight limits; bit 5: trailers may end with LF alone), and the sizes
/// of the pieces in which the rest arrives, in turn. The rest is the body.
package enum ChunkedBodyOracle {
  private struct Reading: Equatable {
    var body: [UInt8] = []
    var trailers: [Transcript.Field]?
    /// The length of the body in bytes, if it is complete.
    var byteCount = 0
    var error: ResponseError?
  }

  /// - Returns: The error of the decoder, or `nil` if there is none.
  package static func finding(in input: [UInt8]) -> String? {
    guard input.count >= 4 else { return nil }
    let limits = input[0] & 16 != 0 ? ResponseParserOracle.tightLimits : Limits()
    let mayEndWithLF = input[0] & 32 != 0
    let sizes = input[1..<4]
    let bytes = Array(input[4...])

    let whole: Reading
    do {
      whole = try read(Cuts.whole(bytes), limits, mayEndWithLF)
      let cut = try read(Cuts.cycling(bytes, sizes: sizes), limits, mayEndWithLF)
      guard cut == whole else { return "whole: \(whole), cut by \(Array(sizes)): \(cut)" }
    } catch {
      return error.what
    }

    let naive = NaiveChunks(bytes[...], trailersMayEndWithLF: mayEndWithLF)
    guard naive.body.starts(with: whole.body) else { return "a body of \(whole.body), not of \(naive.body)" }
    if let trailers = whole.trailers {
      guard naive.trailers == trailers, naive.end == whole.byteCount, naive.body == whole.body else {
        return "complete: \(whole), naively \(naive)"
      }
      return roundTrip(whole, sizes)
    }
    // The naive reading applies no limits.
    if whole.error?.isLimit != true, naive.trailers != nil { return "refused: \(whole), naively \(naive)" }
    return nil
  }

  /// Encodes the decoded body in chunks of `sizes`, and compares the result of decoding it again.
  private static func roundTrip(_ reading: Reading, _ sizes: ArraySlice<UInt8>) -> String? {
    var encoded: [UInt8] = []
    for chunk in Cuts.cycling(reading.body, sizes: sizes) where !chunk.isEmpty {
      encoded += ChunkedEncoder.start(ofChunk: chunk.count)
      encoded += chunk
      encoded += ChunkedEncoder.endOfChunk
    }
    do {
      let trailers = (reading.trailers ?? []).map { Field($0.name, $0.value) }
      encoded += try ChunkedEncoder.end(trailers: trailers)
      let again = try read(Cuts.whole(encoded), Limits())
      let isSame = again.body == reading.body && again.trailers == reading.trailers && again.byteCount == encoded.count
      return isSame ? nil : "encoded as \(encoded), decoded as \(again)"
    } catch {
      // Trailers that are needed before the body, or that give its length, may be received, but not sent.
      switch error {
      case RequestError.fieldReserved, RequestError.fieldForProxies, RequestError.fieldNotForTrailers: return nil
      default: return "not encoded again: \(error)"
      }
    }
  }

  private struct Breach: Error {
    var what: String
  }

  private static func read(
    _ pieces: [ArraySlice<UInt8>], _ limits: Limits, _ trailersMayEndWithLF: Bool = false
  ) throws(Breach) -> Reading {
    var decoder = ChunkedDecoder(trailersMayEndWithLF: trailersMayEndWithLF)
    var table = FieldTable()
    var reading = Reading()
    var unread: [UInt8] = []
    var done = 0
    for piece in pieces {
      var bytes: [UInt8] = []
      bytes.reserveCapacity(unread.count + piece.count)
      bytes += unread
      bytes += piece
      var consumed = 0
      reading: while true {
        let before = consumed
        let event: ChunkedDecoder.Event
        do {
          event = try decoder.next(in: bytes.span, consumed: &consumed, limits: limits, trailers: &table)
        } catch {
          reading.error = error
          return reading
        }
        guard before...bytes.count ~= consumed else {
          throw Breach(what: "consumed went from \(before) to \(consumed)")
        }
        switch event {
        case .needMore:
          break reading
        case .data(let range):
          guard !range.isEmpty, range.lowerBound >= before, range.upperBound == consumed else {
            throw Breach(what: "data \(range) out of \(before)..<\(consumed)")
          }
          reading.body += bytes[range]
        case .complete(let base):
          guard reading.trailers == nil else { throw Breach(what: "complete twice") }
          let section = Array(bytes[base..<consumed])
          reading.byteCount = done + consumed
          reading.trailers = Transcript.fields(table, of: section)
        }
      }
      done += consumed
      unread = Array(bytes[consumed...])
      let retainable = limits.trailerBytesMax + 2
      guard unread.count <= retainable || reading.trailers != nil else {
        throw Breach(what: "kept \(unread.count) bytes")
      }
    }
    return reading
  }
}
