import LarkspurBytes
import LarkspurTransfers

/// Checks the readers of background transfers on any bytes that a disk or a local socket could deliver.
///
/// The first byte of an input selects the reader:
///
/// - 0: the content of a task's record. The oracle adds the head with the checksum, which a fuzzer would hardly guess.
/// - 1: the content of a session's file, likewise.
/// - 2: a stream of messages. The next three bytes are the sizes of the pieces in which the rest arrives, in turn.
/// - 3: the whole file of a record and of a session.
///
/// Each format has one form for each value, so all that can be read is written as the same bytes.
package enum TransferRecordOracle {
  /// - Returns: The error of a reader, or `nil` if there is none.
  package static func finding(in input: [UInt8]) -> String? {
    guard let kind = input.first else { return nil }
    let rest = input.dropFirst()
    switch kind % 4 {
    case 0: return record(TransferRecord.envelope.wrapped(Array(rest)))
    case 1: return session(TransferSessionFile.envelope.wrapped(Array(rest)))
    case 2: return stream(Array(rest.dropFirst(3)), sizes: rest.prefix(3))
    default: return record(Array(rest)) ?? session(Array(rest))
    }
  }

  private static func record(_ file: [UInt8]) -> String? {
    guard let record = try? TransferRecord(file: file) else { return nil }
    return difference(file, Result { try record.encoded() }, record)
  }

  private static func session(_ file: [UInt8]) -> String? {
    let directory = "/state"
    guard let session = try? TransferSessionFile.decoded(file, directory: directory) else { return nil }
    return difference(file, Result { try TransferSessionFile.encoded(session) }, session)
  }

  private static func difference(_ read: [UInt8], _ written: Result<[UInt8], any Error>, _ value: Any) -> String? {
    switch written {
    case .success(read): nil
    case .success(let bytes): "\(value): read from \(read), written as \(bytes)"
    case .failure(let error): "\(value): can be read and not written: \(error)"
    }
  }

  // MARK: - Messages

  /// What a reader makes of a stream.
  private struct Outcome: Equatable {
    var frames: [TransferFrame] = []
    var isTooLarge = false
    var isBetweenFrames = true

    init(of pieces: [ArraySlice<UInt8>]) {
      var parser = TransferFrameParser()
      do {
        for piece in pieces {
          parser.append(Array(piece))
          while let frame = try parser.next() { frames.append(frame) }
        }
        isBetweenFrames = parser.isBetweenFrames
      } catch {
        isTooLarge = true
      }
    }
  }

  private static func stream(_ bytes: [UInt8], sizes: ArraySlice<UInt8>) -> String? {
    let whole = Outcome(of: Cuts.whole(bytes))
    for pieces in [Cuts.single(bytes), Cuts.cycling(bytes, sizes: sizes)] {
      let cut = Outcome(of: pieces)
      if cut != whole { return "whole: \(whole), in pieces of \(pieces.prefix(3).map(\.count)): \(cut)" }
    }
    var written: [UInt8] = []
    for frame in whole.frames {
      guard let bytes = try? frame.encoded() else { return "\(frame) can be read and not written" }
      written += bytes
      guard let message = try? TransferMessage(frame) else { continue }
      if let found = difference(bytes, Result { try message.encoded() }, message) { return found }
    }
    guard bytes.starts(with: written), whole.isTooLarge || whole.isBetweenFrames == (written.count == bytes.count)
    else { return "\(whole) is written as \(written)" }
    return nil
  }
}
