import Foundation
import LarkspurHTTP

/// Reads events from the pieces of a body, or from lines that its owner collects. One task at a time uses it.
@usableFromInline
final class EventReader {
  private let pieces: URLSession.AsyncBytes.Reader?
  private(set) var parser: EventStreamParser

  init(_ pieces: URLSession.AsyncBytes.Reader?, _ parser: EventStreamParser) {
    self.pieces = pieces
    self.parser = parser
  }

  @usableFromInline var readsPieces: Bool { pieces != nil }

  /// Returns the next event of the piece that arrived last, or `nil` if the piece has no whole one.
  ///
  /// Performance: a piece is parsed where it lies.
  @usableFromInline
  func nextArrived() throws(URLError) -> ServerSentEvent? {
    guard let pieces else { return nil }
    return try nextOfPiece(pieces).map { ServerSentEvent($0) }
  }

  /// Returns the next event of the pieces, or `nil` at the end of the body.
  @usableFromInline
  func next(isolation actor: isolated (any Actor)?) async throws -> ServerSentEvent? {
    guard let pieces else { return nil }
    repeat {
      if let event = try nextArrived() { return event }
    } while try await pieces.nextPiece(isolation: actor)
    return nil
  }

  /// Parses bytes that have at most one line end, at their end.
  ///
  /// - Parameter bytes: Empty on return.
  @usableFromInline
  func event(in bytes: inout [UInt8]) throws -> ServerSentEvent? {
    defer { bytes.removeAll(keepingCapacity: true) }
    var position = 0
    do throws(EventStreamError) {
      return try parser.next(in: bytes.span, from: &position).map { ServerSentEvent($0) }
    } catch {
      throw URLError(error)
    }
  }

  private func nextOfPiece(_ pieces: URLSession.AsyncBytes.Reader) throws(URLError) -> EventStreamEvent? {
    do throws(EventStreamError) {
      return try pieces.consume { (bytes, position) throws(EventStreamError) -> EventStreamEvent? in
        try parser.next(in: bytes, from: &position)
      }
    } catch {
      throw URLError(error)
    }
  }
}

extension URLError {
  /// Creates the error for an event stream that exceeds a limit.
  init(_ error: EventStreamError) { self = .make(.dataLengthExceedsMaximum, "\(error)") }
}
