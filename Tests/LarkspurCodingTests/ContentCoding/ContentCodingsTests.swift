import LarkspurCoding
import Testing

@Suite struct ContentCodingsTests {
  @Test(
    arguments: [
      ([], []), ([""], []), (["gzip"], [.gzip]), (["GZip"], [.gzip]), (["x-gzip"], [.gzip]), (["deflate"], [.deflate]),
      (["identity"], []), (["gzip, deflate"], [.gzip, .deflate]), (["gzip", "deflate"], [.gzip, .deflate]),
      ([" ,\tgzip\t , "], [.gzip]), (["identity, gzip, IDENTITY"], [.gzip]),
    ] as [([String], [ContentCoding])])
  func reads(values: [String], layers: [ContentCoding]) throws {
    let codings = try ContentCodings(fieldValues: values)
    #expect(codings.layers == layers)
    #expect(!codings.hasUnknown)
    let hasDecompressor = if try Decompressor(codings) != nil { true } else { false }
    #expect(hasDecompressor == !layers.isEmpty)
  }

  /// A list with an unknown coding is not decoded at all.
  @Test(arguments: [
    ["br"], ["gzip, br"], ["br, gzip"], ["gzip", "zstd", "gzip"], ["compress"], ["gzip;q=1"], ["g zip"],
  ])
  func unknown(values: [String]) throws {
    let codings = try ContentCodings(fieldValues: values)
    #expect(codings.hasUnknown && codings.layers == [])
  }
}
