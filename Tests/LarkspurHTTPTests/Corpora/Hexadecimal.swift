/// The error for a malformed corpus file, as opposed to a malformed response.
struct NotHexadecimal: Error {
  var text: String
}

func bytes(hex text: String) throws -> [UInt8] {
  let digits = Array(text)
  guard digits.count % 2 == 0 else { throw NotHexadecimal(text: text) }
  return try stride(from: 0, to: digits.count, by: 2).map { index in
    guard let byte = UInt8(String(digits[index...index + 1]), radix: 16) else { throw NotHexadecimal(text: text) }
    return byte
  }
}
