import LarkspurHTTP
import Testing

/// Cache files with right checksums and with content that no cache writes are refused.
@Suite struct UntrustedCacheRecordTests {
  private func http(
    status: Int = 200, version: String = "HTTP/1.1", _ name: String = "X-One", _ value: String = "1\t\u{E9}",
    times: [Double] = [0, 0, 0]
  ) -> CacheRecord {
    let stored = StoredResponse(
      status: status, fields: [Field(name, value)], requestTime: times[0], responseTime: times[1],
      bodyCount: 0)
    return CacheRecord(key: "k", uri: "http://a/", storedTime: times[2], kind: .http(version: version, stored))
  }

  private func plain(_ type: String?, _ count: Int64, _ name: String?) -> CacheRecord {
    CacheRecord(
      key: "k", uri: "http://a/", storedTime: 0,
      kind: .plain(.init(mimeType: type, expectedCount: count, textEncodingName: name)))
  }

  private func read(_ record: CacheRecord) throws -> CacheRecord? {
    let body: [UInt8] = []
    let head = record.head(body: body.span)
    return CacheRecord.parse(try #require(head))?.record
  }

  @Test func possibleOnes() throws {
    #expect(try read(http()) != nil && read(http(status: 999)) != nil && read(plain("a/b", 5, "utf-8")) != nil)
  }

  @Test func impossibleOnes() throws {
    for record in [
      http(status: 1000), http(status: .max), http(status: 206), http(version: "HTTP/1.1\r\n"), http("X\r\nY"),
      http(""), http("a b"),
      http("X", "1\r\nY: 2"), http("X", "\0"), plain("a/b\r\nX: 1", 5, nil), plain("a/b", 5, "utf-8\r\n"),
      http(times: [.nan, 0, 0]), http(times: [0, .infinity, 0]), http(times: [0, 0, -.infinity]),
    ] {
      #expect(try read(record) == nil)
    }
  }

  @Test(arguments: [(-1, -1), (-2, -1), (Int64.min, -1), (Int64.max, .max)] as [(Int64, Int64)])
  func lengths(written: Int64, shown: Int64) throws {
    guard case .plain(let plain)? = try read(plain("a/b", written, nil))?.kind else { throw Problem() }
    #expect(plain.expectedCount == shown)
  }

  private struct Problem: Error {}
}
