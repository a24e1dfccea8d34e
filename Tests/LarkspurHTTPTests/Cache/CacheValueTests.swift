import LarkspurBytes
import LarkspurHTTP
import TestKit
import Testing

@Suite struct ContentRangeTests {
  @Test func reads() {
    #expect(ContentRange("bytes 0-4/10") == ContentRange(bytes: 0..<5, total: 10))
    #expect(ContentRange("BYTES 4-4/*") == ContentRange(bytes: 4..<5, total: nil))
    #expect(ContentRange("bytes 0-9/10")?.isWhole == true && ContentRange("bytes 0-8/10")?.isWhole == false)
    for text in [
      "", "bytes", "bytes 0-4", "bytes 5-4/10", "bytes 0-10/10", "bytes */10", "bytes 0-4/x", "lines 0-4/10",
      "bytes -1-4/10", "bytes +0-4/10", "bytes 0-99999999999999999999/*", "bytes 0-4/10/10", "bytes 0--4/10",
    ] {
      #expect(ContentRange(text) == nil, "\(text)")
    }
    #expect(ContentRange(bytes: 3..<5, total: nil).text == "bytes 3-4/*")
  }

  @Test func largestNumbers() {
    let nines = String(repeating: "9", count: 18)
    #expect(ContentRange("bytes 0-\(nines)/*")?.bytes.upperBound == 1_000_000_000_000_000_000)
    #expect(RequestedRange("bytes=0-\(nines)")?.bytes(ofTotal: nil) == 0..<1_000_000_000_000_000_000)
    #expect(RequestedRange("bytes=-\(nines)")?.bytes(ofTotal: 5) == 0..<5)
    #expect(RequestedRange("bytes=\(nines)9-") == nil)
  }
}

@Suite struct CacheKeyTests {
  @Test(
    arguments: [
      ("HTTP://Example.ORG", "http://example.org/"), ("http://example.org:80/A", "http://example.org/A"),
      ("https://example.org:443", "https://example.org/"), ("https://example.org:80", "https://example.org:80/"),
      ("http://example.org:", "http://example.org/"), ("http://example.org?q#f", "http://example.org/?q"),
      ("http://example.org/a?b=c#d", "http://example.org/a?b=c"), ("http://[::1]:80/", "http://[::1]/"),
      ("http://[::1]", "http://[::1]/"), ("http://user:secret@h/", "http://user@h/"), ("http://u@h/", "http://u@h/"),
      ("http://h/a@b:80", "http://h/a@b:80"), ("data:,x#y", "data:,x"), ("file:///A", "file:///A"),
      ("http://", "http:///"), ("x:", "x:"),
    ])
  func keys(uri: String, key: String) {
    #expect(CacheKey.make(method: "GET", uri: uri) == key)
    #expect(CacheKey.make(method: "HEAD", uri: uri) == key)
    #expect(
      CacheKey.make(method: "GET", uri: uri, host: "Other.example") == key + "#other.example" || !key.contains("://"))
    #expect(CacheKey.make(method: "POST", uri: uri) == "POST " + key)
  }

  @Test func noKeys() {
    for uri in ["", "/a", "a", ":x", "#a:b", "a#b:c"] {
      #expect(CacheKey.make(method: "GET", uri: uri) == nil, "\(uri)")
    }
  }

  @Test func origins() {
    #expect(CacheKey.origin(of: "http://h:1/a?b") == "http://h:1")
    #expect(CacheKey.origin(of: "POST http://h/a") == "http://h")
    #expect(CacheKey.origin(of: "http://h/?x=http://i/") == "http://h")
    #expect(CacheKey.origin(of: "data:,x") == "data:,x")
  }
}

@Suite struct RecencyLedgerTests {
  /// The ledger agrees with an array in order of use.
  @Test func model() {
    for seed in UInt64(1)...40 {
      var generator = SeededGenerator(seed: seed)
      var ledger = RecencyLedger<Int>()
      var model: [(key: Int, cost: Int)] = []
      for _ in 0..<300 {
        let key = Int.random(in: 0..<20, using: &generator)
        let index = model.firstIndex { $0.key == key }
        switch Int.random(in: 0..<4, using: &generator) {
        case 0:
          #expect(ledger.remove(key) == (index != nil))
          if let index { model.remove(at: index) }
        case 1:
          ledger.touch(key)
          if let index { model.append(model.remove(at: index)) }
        default:
          let cost = Int.random(in: 0..<100, using: &generator)
          ledger.insert(key, cost: cost)
          if let index { model.remove(at: index) }
          model.append((key, cost))
        }
        #expect(ledger.oldest == model.first?.key, "seed \(seed)")
        #expect(ledger.cost == model.reduce(0) { $0 + $1.cost } && ledger.count == model.count, "seed \(seed)")
      }
      var order: [Int] = []
      while let oldest = ledger.oldest {
        order.append(oldest)
        ledger.remove(oldest)
      }
      #expect(order == model.map(\.key) && ledger.isEmpty && ledger.cost == 0, "seed \(seed)")
    }
  }
}

@Suite struct CacheRecordTests {
  static let body = Array("the body".utf8)

  static var record: CacheRecord {
    let response = stored(
      [Field("A", "1"), Field("A", ""), Field("unicode", "π")], status: 206, requestTime: 1.5, responseTime: 2.5,
      selection: CacheSelection(fields: [(name: "a", value: nil), (name: "b", value: "x")]),
      part: ContentRange(bytes: 2..<10, total: nil), bodyCount: 8, isDecoded: true)
    return CacheRecord(
      key: "http://h/", uri: "http://H/#f", storedTime: 3.25, kind: .http(version: "HTTP/1.0", response),
      userInfo: [1, 2])
  }

  static func file(_ record: CacheRecord, _ body: [UInt8] = body) throws -> [UInt8] {
    let head = record.head(body: body.span)
    return try #require(head) + body
  }

  @Test func comesBack() throws {
    let file = try Self.file(Self.record)
    let (record, body) = try #require(CacheRecord.parse(file))
    #expect(Array(file[body]) == Self.body && record.key == "http://h/" && record.uri == "http://H/#f")
    #expect(record.storedTime == 3.25 && record.userInfo == [1, 2])
    guard case .http("HTTP/1.0", let response) = record.kind else {
      Issue.record("another kind")
      return
    }
    #expect(response.fields.map { "\($0.name)=\($0.value)" } == ["A=1", "A=", "unicode=π"])
    #expect(response.status == 206 && response.requestTime == 1.5 && response.responseTime == 2.5)
    #expect(response.selection.fields.map { "\($0.name)=\($0.value ?? "-")" } == ["a=-", "b=x"])
    #expect(response.part == ContentRange(bytes: 2..<10, total: nil) && response.bodyCount == 8 && response.isDecoded)
    let head = Array(file[..<body.lowerBound])
    #expect(CacheRecord.parse(head, checksBody: false)?.record.key == "http://h/")
  }

  @Test func plainOnesComeBack() throws {
    let plain = CacheRecord.Plain(mimeType: "a/b", expectedCount: -1, textEncodingName: nil)
    let file = try Self.file(CacheRecord(key: "k:", uri: "", storedTime: 0, kind: .plain(plain)), [])
    guard case .plain(let found)? = CacheRecord.parse(file)?.record.kind else {
      Issue.record("another kind")
      return
    }
    #expect(found.mimeType == "a/b" && found.expectedCount == -1 && found.textEncodingName == nil)
  }

  /// A record that is cut, longer by one byte, or has one wrong bit is not read.
  @Test func tornFilesAreNone() throws {
    let file = try Self.file(Self.record)
    for count in 0..<file.count { #expect(CacheRecord.parse(Array(file[..<count])) == nil, "\(count) bytes") }
    #expect(CacheRecord.parse(file + [0]) == nil)
    for index in file.indices {
      for bit in 0..<8 {
        var other = file
        other[index] ^= 1 << bit
        #expect(CacheRecord.parse(other) == nil, "byte \(index)")
      }
    }
  }

  /// Wrong sizes in a head with a right checksum do no harm: the reader compares them with the bytes that are there.
  @Test func sizesThatLie() throws {
    for seed in UInt64(1)...3000 {
      var generator = SeededGenerator(seed: seed)
      var head = Array(try Self.file(Self.record, []).dropFirst(CacheRecord.prefixCount))
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        head[Int.random(in: 0..<head.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
      }
      // The result may be anything that does not reach past the bytes.
      if let (record, body) = CacheRecord.parse(Self.sealed(head)) {
        #expect(body.isEmpty && record.key.utf8.count <= head.count, "seed \(seed)")
      }
    }
  }

  /// A head alone can be read as a head, but not as an entry, and not at all if it is damaged.
  @Test func headsAlone() throws {
    var record = Self.record
    record.generation = 77
    let file = try #require(record.headAlone(bodyCount: 8))
    let (found, bodyCount) = try #require(CacheRecord.parseHead(file))
    #expect(found.generation == 77 && bodyCount == 8 && found.key == "http://h/" && found.storedTime == 3.25)
    let entry = try Self.file(Self.record, [])
    #expect(CacheRecord.parse(file) == nil && CacheRecord.parseHead(entry) == nil)
    #expect(try CacheRecord.parse(Self.file(record))?.record.generation == 77)
    for count in 0..<file.count { #expect(CacheRecord.parseHead(Array(file[..<count])) == nil, "\(count) bytes") }
    #expect(CacheRecord.parseHead(file + [0]) == nil)
    for index in file.indices {
      for bit in 0..<8 {
        var other = file
        other[index] ^= 1 << bit
        #expect(CacheRecord.parseHead(other) == nil, "byte \(index)")
      }
    }
  }

  /// A file of the previous format is not read.
  @Test func earlierFormatsAreNone() throws {
    var file = try Self.file(Self.record)
    file[3] = UInt8(ascii: "1")
    #expect(CacheRecord.parse(file) == nil && CacheRecord.headEnd(prefix: file) == nil)
  }

  @Test func headsHaveALimit() throws {
    func record(_ count: Int) -> CacheRecord {
      let empty = CacheRecord.Plain(mimeType: nil, expectedCount: -1, textEncodingName: nil)
      return CacheRecord(
        key: "", uri: "", storedTime: 0, kind: .plain(empty), userInfo: Array(repeating: 7, count: count))
    }
    let nothing: [UInt8] = []
    let smallest = record(0).head(body: nothing.span)
    let overhead = try #require(smallest).count - CacheRecord.prefixCount
    let largest = CacheRecord.headBytesMax - overhead
    let sealed = record(largest).head(body: nothing.span)
    let file = try #require(sealed)
    #expect(CacheRecord.parse(file)?.record.userInfo.count == largest)
    let tooLarge = record(largest + 1).head(body: nothing.span)
    #expect(tooLarge == nil)
    var lying = file
    lying.replaceSubrange(4..<8, with: [1, 0, 16, 0])
    #expect(CacheRecord.headEnd(prefix: file) == file.count && CacheRecord.headEnd(prefix: lying) == nil)
  }

  /// Returns a file without a body, with the right checksums for this head.
  private static func sealed(_ head: [UInt8]) -> [UInt8] {
    func sum(_ bytes: [UInt8]) -> [UInt8] { little(Checksum.of(bytes.span), 8) }
    func little(_ number: UInt64, _ count: Int) -> [UInt8] {
      (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }
    let covered = little(7, 8) + little(0, 8) + sum([]) + head
    return Array("LKC2".utf8) + little(UInt64(head.count), 4) + sum(covered) + covered
  }
}
