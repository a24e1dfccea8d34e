/// Lines of text from bytes of UTF-8, as they come: what `bytes.lines` is on Darwin.
///
/// A line ends with LF, CR, CR LF, VT, FF, or with Unicode's next line (U+0085), line separator (U+2028) or paragraph
/// separator (U+2029). What it ends with is not in it. As on Darwin empty lines are left out: whoever needs them, as
/// readers of event streams do, reads the bytes. Bytes that are no UTF-8 become U+FFFD. A line has no limit but memory.
public struct AsyncLineSequence<Base: AsyncSequence>: AsyncSequence where Base.Element == UInt8 {
  public typealias Element = String

  private let base: Base

  init(_ base: Base) { self.base = base }

  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base.makeAsyncIterator()) }

  /// Collects bytes until a line is there. It throws what the bytes throw; what had come of the line is lost then.
  ///
  /// (`@inlinable`: what the compiler makes for one kind of bytes takes a tenth of the time.)
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

    /// Adds a byte, and says whether a line ends with it.
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
      // The LF behind a CR ends an empty line, and those are left out.
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
  /// Whether these stand before the last one.
  @usableFromInline
  func hasSuffix(_ bytes: UInt8...) -> Bool { dropLast().suffix(bytes.count).elementsEqual(bytes) }
}
