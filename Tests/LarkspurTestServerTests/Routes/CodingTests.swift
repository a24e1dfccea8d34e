import LarkspurCoding
import LarkspurTestServer
import Testing

@Suite struct CodingTests {
  @Test func checksumOfTheStandardsExample() {
    #expect(TestServer.Checksum(Array("123456789".utf8)).description == "cbf43926")
    #expect(TestServer.Checksum([]).value == 0)
    var sum = TestServer.Checksum(Array("1234".utf8))
    sum.update([])
    sum.update(Array("56789".utf8))
    #expect(sum.value == 0xcbf4_3926)
  }

  @Test func formatsBeginAsTheyMust() throws {
    let bytes = Array("hello hello hello hello".utf8)
    let gzip = try compressed(bytes, as: .gzip)
    #expect(gzip.prefix(3) == [0x1f, 0x8b, 8])
    // RFC 1952: the checksum and the length are at the end, in little-endian order.
    let sum = TestServer.Checksum(bytes).value
    let end = (0..<4).map { UInt8(truncatingIfNeeded: sum >> ($0 * 8)) } + [UInt8(bytes.count), 0, 0, 0]
    #expect(Array(gzip.suffix(8)) == end)
    let zlib = try compressed(bytes, as: .zlib)
    // RFC 1950: the first two bytes, as a number, are a multiple of 31.
    #expect((Int(zlib[0]) << 8 | Int(zlib[1])) % 31 == 0)
    let raw = try compressed(bytes, as: .rawDeflate)
    #expect(Array(zlib.dropFirst(2).dropLast(4)) == raw)
    #expect(Array(gzip.dropFirst(10).dropLast(8)) == raw)
    #expect(raw.count < bytes.count)
  }

  @Test func stored() throws {
    // Level 0 stores the bytes without compression (RFC 1951 3.2.4).
    var compressor = try Compressor(.rawDeflate, level: 0)
    var output: [UInt8] = []
    let bytes = Array("stored".utf8)
    try compressor.compress(bytes.span, into: &output)
    try compressor.finish(into: &output)
    #expect(output == [1, 6, 0, 0xf9, 0xff] + bytes)
  }

  @Test func routesSayTheirCoding() throws {
    let server = try TestServer()
    let client = try RawClient(server)
    let gzip = try client.get("/gzip")
    #expect(gzip.field("Content-Encoding") == "gzip")
    #expect(gzip.body.prefix(2) == [0x1f, 0x8b])
    let deflate = try client.get("/deflate")
    #expect(deflate.field("Content-Encoding") == "deflate")
    #expect(deflate.body.first == 0x78)
    #expect(try client.get("/deflate?raw=1").body.first != 0x78)
    #expect(try client.get("/gzip/300000").body == compressed(TestServer.content(count: 300_000), as: .gzip))
    #expect(try client.get("/deflate/0").body == compressed([], as: .zlib))
  }
}
