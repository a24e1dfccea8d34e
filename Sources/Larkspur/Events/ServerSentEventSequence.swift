import Foundation
import LarkspurHTTP

extension AsyncSequence where Element == UInt8 {
  /// The events of an event stream, as its bytes arrive.
  ///
  /// ```swift
  /// let (bytes, response) = try await URLSession.shared.bytes(for: request)
  /// for try await event in bytes.serverSentEvents { print(event.data) }
  /// ```
  ///
  /// The sequence reads any bytes as an event stream: whether the response has status 200 and the type
  /// `text/event-stream` is for the program to check. The sequence ends with the bytes, and does not connect again. See
  /// ``URLSessionEventSource`` for that. Lines and events are limited to 16 MiB.
  public var serverSentEvents: ServerSentEventSequence<Self> { ServerSentEventSequence(self, EventStreamLimits()) }

  /// Returns the events of an event stream, as its bytes arrive.
  ///
  /// - Parameters:
  ///   - lineBytesMax: The length in bytes of the longest line that is read.
  ///   - eventBytesMax: The size in bytes of the largest event that is read. A longer line or a larger event ends the
  ///     sequence with `URLError.dataLengthExceedsMaximum`.
  public func serverSentEvents(lineBytesMax: Int, eventBytesMax: Int) -> ServerSentEventSequence<Self> {
    var limits = EventStreamLimits()
    limits.lineBytesMax = lineBytesMax
    limits.eventBytesMax = eventBytesMax
    return ServerSentEventSequence(self, limits)
  }
}

/// The events of an event stream: see `serverSentEvents`.
///
/// The stream is read as the WHATWG standard says: lines end with LF, CR or CR LF; a byte-order mark at the start is
/// skipped; invalid UTF-8 becomes U+FFFD; comments are skipped; an event without data is skipped; an event that the end
/// of the bytes cuts off is dropped. Nothing is read ahead, so a slow reader slows the server down.
///
/// From ``URLSession/AsyncBytes`` the events are read piece by piece. An iterator of events leaves the bytes behind its
/// latest event for the next iterator.
public struct ServerSentEventSequence<Base: AsyncSequence>: AsyncSequence where Base.Element == UInt8 {
  public typealias Element = ServerSentEvent

  private let base: Base
  private let limits: EventStreamLimits

  init(_ base: Base, _ limits: EventStreamLimits) {
    self.base = base
    self.limits = limits
  }

  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base.makeAsyncIterator(), limits) }

  /// Reads one event after the other. Throws the errors of the bytes, and then returns `nil`.
  ///
  /// Performance: of other sequences than ``URLSession/AsyncBytes`` a line is collected byte by byte, in code that the
  /// program's module specialises, and parsed as a whole.
  public struct AsyncIterator: AsyncIteratorProtocol {
    @usableFromInline var bytes: Base.AsyncIterator
    @usableFromInline let reader: EventReader
    @usableFromInline var line: [UInt8] = []
    @usableFromInline var isOver = false

    init(_ bytes: Base.AsyncIterator, _ limits: EventStreamLimits) {
      self.bytes = bytes
      reader = EventReader((bytes as? URLSession.AsyncBytes.Iterator)?.reader, EventStreamParser(limits: limits))
    }

    @inlinable
    public mutating func next(isolation actor: isolated (any Actor)?) async throws -> ServerSentEvent? {
      guard !isOver else { return nil }
      isOver = true
      // Performance: an event that has arrived costs no asynchronous call.
      var event = try reader.nextArrived()
      if event == nil { event = try await self.event(isolation: actor) }
      if let event {
        isOver = false
        return event
      }
      return nil
    }

    @inlinable
    mutating func event(isolation actor: isolated (any Actor)?) async throws -> ServerSentEvent? {
      if reader.readsPieces { return try await reader.next(isolation: actor) }
      while let byte = try await bytes.next(isolation: actor) {
        line.append(byte)
        guard byte == 0x0A || byte == 0x0D || line.count >= 4096 else { continue }
        if let event = try reader.event(in: &line) { return event }
      }
      return nil
    }
  }
}

extension ServerSentEventSequence: Sendable where Base: Sendable {}
