import Builtin

/// Sixteen bytes that are compared at once, with one bit for each byte as the result: the first byte is bit 0. Swift's
/// SIMD types cannot move the result of a comparison into an integer register, which fast scanning needs, and the
/// release compiler makes loops of their comparisons. Here each operation is an instruction: of SSE2 on x86-64, of NEON
/// on arm64 (a few for the bits).
@safe
struct Bytes16 {
  private let value: Builtin.Vec16xInt8

  /// Loads the bytes from `start` on.
  @unsafe @inline(__always)
  init(_ start: UnsafeRawPointer) {
    // Safe: the caller promises that there are 16 bytes.
    self.init(unsafe start.loadUnaligned(as: SIMD16<UInt8>.self))
  }

  @inline(__always)
  private init(_ bytes: SIMD16<UInt8>) { value = bytes._storage._value }

  @inline(__always)
  private static func all(_ byte: UInt8) -> Builtin.Vec16xInt8 { Self(SIMD16(repeating: byte)).value }

  @inline(__always)
  private static func bits(_ lanes: Builtin.Vec16xInt1) -> UInt32 {
    UInt32(UInt16(Builtin.bitcast_Vec16xInt1_Int16(lanes)))
  }

  @inline(__always)
  private func equal(_ byte: UInt8) -> UInt32 { Self.bits(Builtin.cmp_eq_Vec16xInt8(value, Self.all(byte))) }

  /// The bytes of the `count` values from `first` on. Letters of both cases count if `ignoresCase` is true, and `first`
  /// is a small letter.
  ///
  /// Performance: vectors compare signed bytes in one instruction and unsigned bytes in two. So the ranges are shifted
  /// to begin at -128.
  @inline(__always)
  private func within(_ first: UInt8, count: UInt8, ignoresCase: Bool = false) -> UInt32 {
    let folded = ignoresCase ? Builtin.or_Vec16xInt8(value, Self.all(0x20)) : value
    let shifted = Builtin.sub_Vec16xInt8(folded, Self.all(first ^ 0x80))
    return Self.bits(Builtin.cmp_slt_Vec16xInt8(shifted, Self.all(count ^ 0x80)))
  }

  /// The bytes that end the simple part of a field name: all except letters, digits and '-'. The caller checks the byte:
  /// ':' ends the name, and a rarer token character belongs to it.
  @inline(__always)
  var nameStops: UInt32 {
    (within(0x61, count: 26, ignoresCase: true) | within(0x30, count: 10) | equal(0x2d)) ^ 0xffff
  }

  /// The bytes that end the simple part of a field value or a reason phrase: control characters and DEL. The caller
  /// checks the byte: HTAB, which is rare, belongs to the value.
  @inline(__always)
  var valueStops: UInt32 { within(0, count: 0x20) | equal(0x7f) }

  /// The bytes that end a line of an event stream: LF and CR.
  @inline(__always)
  var lineStops: UInt32 { equal(0x0a) | equal(0x0d) }

  /// The bytes outside ASCII.
  @inline(__always)
  var highBits: UInt32 { within(0x80, count: 0x80) }
}
