/// The lines of UTF-8 text as their bytes arrive, like `bytes.lines` on Darwin.
///
/// A line ends with LF, CR, CR LF, VT, FF, or with Unicode's next line (U+0085), line separator (U+2028) or paragraph
/// separator (U+2029). The line does not contain its ending. As on Darwin, empty lines are left out: programs that need
/// empty lines, such as readers of event streams, read the bytes instead. Invalid bytes become U+FFFD. Memory alone
/// limits the length of a line.
public struct AsyncLineSequence<Base: AsyncSequence>: AsyncSequence where Base.Element == UInt8 {
  public typealias Element = String

  private let base: Base

  init(_ base: Base) { self.base = base }

  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base.makeAsyncIterator()) }

  /// Collects bytes until a line is complete. Throws the errors of the bytes; the incomplete line is lost then.
  ///
  /// Performance: `@inlinable`, because specialised code takes a tenth of the time.
  public struct AsyncIterator: AsyncIteratorProtocol {
    @usableFromInline var bytes: Base.AsyncIterator
    @usableFromInline var line: [UInt8] = []

    init(_ bytes: Base.AsyncIterator) { self.bytes = bytes }

    @inlinable
    public mutating func next(isolation actor: isolated (any Actor)?) async throws -> String? {
      do {
        while let byte = try await bytes.next(isolation: actor) {
          if takesEnd(byte), let text = takeLine() { return text }
        }
      } catch {
        line = []
        throw error
      }
      return takeLine()
    }

    /// Adds a byte, and returns whether the byte ends a line.
    @inlinable
    mutating func takesEnd(_ byte: UInt8) -> Bool {
      line.append(byte)
      let ending =
        switch byte {
        case 0x0A...0x0D: 1
        case 0x85 where line.hasSuffix(0xC2): 2
        case 0xA8 where line.hasSuffix(0xE2, 0x80), 0xA9 where line.hasSuffix(0xE2, 0x80): 3
        default: 0
        }
      // The LF of a CR LF ends an empty line, which is left out.
      line.removeLast(ending)
      return ending > 0
    }

    @inlinable
    mutating func takeLine() -> String? {
      guard !line.isEmpty else { return nil }
      defer { line.removeAll(keepingCapacity: true) }
      return String(decoding: line, as: UTF8.self)
    }
  }
}

extension AsyncLineSequence: Sendable where Base: Sendable {}

extension [UInt8] {
  /// Returns whether the elements before the last one end with these bytes.
  @usableFromInline
  func hasSuffix(_ bytes: UInt8...) -> Bool { dropLast().suffix(bytes.count).elementsEqual(bytes) }
}
