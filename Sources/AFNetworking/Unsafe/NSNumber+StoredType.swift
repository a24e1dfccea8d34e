import Foundation

extension NSNumber {
  /// The stored type of a number, as far as JSON distinguishes it.
  enum StoredType: Hashable {
    case boolean
    case signed
    case unsigned
    case floating
  }

  /// The type that the number stores. Casts do not show it: `1 as NSNumber` casts to `Bool`.
  var storedType: StoredType {
    // Safe: the pointer leads to a constant string of Foundation, the letter of the type and a zero.
    switch unsafe UInt8(bitPattern: objCType.pointee) {
    // On Linux, no other number has the letter of `char`: an `Int8` is stored as a longer integer.
    case UInt8(ascii: "c"), UInt8(ascii: "B"): .boolean
    case UInt8(ascii: "Q"): .unsigned
    case UInt8(ascii: "f"), UInt8(ascii: "d"): .floating
    default: .signed
    }
  }
}
