/// The Unicode scalars of UTF-8 bytes as they arrive, like `bytes.unicodeScalars` on Darwin.
///
/// Invalid bytes become U+FFFD, one for each maximal part of a scalar (Unicode 3.9, WHATWG Encoding).
public struct AsyncUnicodeScalarSequence<Base: AsyncSequence>: AsyncSequence where Base.Element == UInt8 {
  public typealias Element = Unicode.Scalar

  private let base: Base

  init(_ base: Base) { self.base = base }

  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base.makeAsyncIterator()) }

  /// Collects bytes until a scalar is complete. Throws the errors of the bytes.
  ///
  /// Performance: `@inlinable`, because specialised code takes a tenth of the time.
  public struct AsyncIterator: AsyncIteratorProtocol {
    @usableFromInline var bytes: Base.AsyncIterator
    @usableFromInline var part = ScalarPart()
    /// The byte that has ended the previous scalar and starts the next one.
    @usableFromInline var held: UInt8?

    init(_ bytes: Base.AsyncIterator) { self.bytes = bytes }

    @inlinable
    public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Unicode.Scalar? {
      while true {
        var next = held.take()
        if next == nil {
          do {
            next = try await bytes.next(isolation: actor)
          } catch {
            part = ScalarPart()
            throw error
          }
        }
        guard let byte = next else { return part.isEmpty ? nil : part.breakOff() }
        switch part.take(byte) {
        case .scalar(let scalar): return scalar
        case .part: continue
        case .other:
          held = byte
          return part.breakOff()
        }
      }
    }
  }
}

/// The characters of UTF-8 bytes as they arrive, like `bytes.characters` on Darwin. A character is complete when the
/// next one starts or the bytes end.
public struct AsyncCharacterSequence<Base: AsyncSequence>: AsyncSequence where Base.Element == UInt8 {
  public typealias Element = Character

  private let scalars: AsyncUnicodeScalarSequence<Base>

  init(_ base: Base) { scalars = AsyncUnicodeScalarSequence(base) }

  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(scalars.makeAsyncIterator()) }

  /// Collects scalars until a character is complete. Throws the errors of the bytes.
  public struct AsyncIterator: AsyncIteratorProtocol {
    @usableFromInline var scalars: AsyncUnicodeScalarSequence<Base>.AsyncIterator
    @usableFromInline var text = ""

    init(_ scalars: AsyncUnicodeScalarSequence<Base>.AsyncIterator) { self.scalars = scalars }

    @inlinable
    public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Character? {
      do {
        while let scalar = try await scalars.next(isolation: actor) {
          text.unicodeScalars.append(scalar)
          if text.count > 1 { return text.removeFirst() }
        }
      } catch {
        text = ""
        throw error
      }
      return text.isEmpty ? nil : text.removeFirst()
    }
  }
}

extension AsyncUnicodeScalarSequence: Sendable where Base: Sendable {}
extension AsyncCharacterSequence: Sendable where Base: Sendable {}

/// The text of bytes. A program's own declarations with these names take precedence.
extension AsyncSequence where Element == UInt8 {
  /// The lines of the text as they arrive, without empty lines as on Darwin: see ``AsyncLineSequence``.
  @_disfavoredOverload
  public var lines: AsyncLineSequence<Self> { AsyncLineSequence(self) }

  /// The characters of the text as they arrive.
  @_disfavoredOverload
  public var characters: AsyncCharacterSequence<Self> { AsyncCharacterSequence(self) }

  /// The Unicode scalars of the text as they arrive.
  @_disfavoredOverload
  public var unicodeScalars: AsyncUnicodeScalarSequence<Self> { AsyncUnicodeScalarSequence(self) }
}

/// The bytes of an incomplete scalar: the UTF-8 decoder of WHATWG's Encoding.
@usableFromInline
struct ScalarPart {
  @usableFromInline
  enum Step {
    case scalar(Unicode.Scalar)
    case part
    /// The byte does not continue the incomplete scalar.
    case other
  }

  private var value: UInt32 = 0
  private var bytesToCome = 0
  /// The range of the next byte. Behind some first bytes, fewer continuation bytes than usual are valid.
  private var next: ClosedRange<UInt8> = 0x80...0xBF

  @usableFromInline init() {}

  @usableFromInline var isEmpty: Bool { bytesToCome == 0 }

  @usableFromInline
  mutating func breakOff() -> Unicode.Scalar {
    self = Self()
    return "\u{FFFD}"
  }

  @usableFromInline
  mutating func take(_ byte: UInt8) -> Step {
    guard !isEmpty else { return start(byte) }
    guard next.contains(byte) else { return .other }
    next = 0x80...0xBF
    value = value << 6 | UInt32(byte & 0x3F)
    bytesToCome -= 1
    return isEmpty ? end() : .part
  }

  private mutating func start(_ byte: UInt8) -> Step {
    switch byte {
    case 0...0x7F: return .scalar(Unicode.Scalar(byte))
    case 0xC2...0xDF: (value, bytesToCome) = (UInt32(byte & 0x1F), 1)
    case 0xE0...0xEF:
      (value, bytesToCome) = (UInt32(byte & 0x0F), 2)
      // No overlong forms, no surrogates.
      if byte == 0xE0 { next = 0xA0...0xBF } else if byte == 0xED { next = 0x80...0x9F }
    case 0xF0...0xF4:
      (value, bytesToCome) = (UInt32(byte & 0x07), 3)
      // No overlong forms, nothing above U+10FFFF.
      if byte == 0xF0 { next = 0x90...0xBF } else if byte == 0xF4 { next = 0x80...0x8F }
    default: return .scalar("\u{FFFD}")
    }
    return .part
  }

  private mutating func end() -> Step {
    defer { self = Self() }
    return .scalar(Unicode.Scalar(value) ?? "\u{FFFD}")
  }
}
