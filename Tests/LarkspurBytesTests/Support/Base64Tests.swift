import LarkspurBytes
import Testing

@Suite struct Base64Tests {
  /// The test vectors of RFC 4648, section 10.
  @Test(arguments: [
    ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
    ("foobar", "Zm9vYmFy"),
  ]) func vectors(text: String, encoded: String) {
    #expect(Base64.encode(Array(text.utf8)) == encoded)
    #expect(Base64.decode(encoded.utf8) == Array(text.utf8))
    #expect(Base64.decodeForgiving(encoded.utf8) == Array(text.utf8))
  }

  @Test func allBytes() {
    let bytes = (0...255).map { UInt8($0) }
    for count in [253, 254, 255, 256] {
      let part = Array(bytes.prefix(count))
      #expect(Base64.decode(Base64.encode(part).utf8) == part)
    }
  }

  /// The canonical form has padding, no white space, and unused bits of zero.
  @Test(arguments: ["Zg", "Zg=", "Zh==", " Zg==", "Zg==\n", "Zg==Zg==", "Z", "Zm9v=", "Zm-v", "=", "===="])
  func notCanonical(text: String) { #expect(Base64.decode(text.utf8) == nil) }

  @Test(arguments: [("Zg", true), ("Zh==", true), (" Z g = = ", true), ("Z", false), ("Zg=", false), ("Zm-v", false)])
  func forgiving(text: String, isDecoded: Bool) {
    #expect((Base64.decodeForgiving(text.utf8) != nil) == isDecoded)
  }
}
