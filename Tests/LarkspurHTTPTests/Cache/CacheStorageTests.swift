import LarkspurBytes
import LarkspurHTTP
import Testing

@Suite struct CacheStorageTests {
  private func isStored(
    _ fields: FieldList, status: Int = 200, request: FieldList = [], method: String = "GET", hasBody: Bool = false,
    isWanted: Bool = false
  ) -> Bool {
    CacheStorage.proposal(
      request: CacheRequest(method: method, fields: request, hasBody: hasBody), status: status, fields: fields,
      isWanted: isWanted, now: 1000) != nil
  }

  @Test func whatIsStored() {
    #expect(isStored([Field("Cache-Control", "max-age=5")]))
    #expect(isStored([Field("ETag", "\"a\"")]))
    #expect(isStored([Field("last-modified", date(0))]))
    #expect(isStored([Field("Expires", "0")]))
    #expect(isStored([Field("Cache-Control", "private, max-age=5")], request: [Field("Authorization", "x")]))
    #expect(isStored([Field("Cache-Control", "no-cache")]))
    #expect(!isStored([]), "nothing says that it could be used again")
    #expect(isStored([], isWanted: true))
  }

  @Test func whatIsNot() {
    let fresh: FieldList = [Field("Cache-Control", "max-age=5")]
    #expect(!isStored([Field("Cache-Control", "max-age=5, No-Store")]))
    #expect(!isStored([Field("Cache-Control", "no-store")], isWanted: true))
    #expect(!isStored(fresh, request: [Field("Cache-Control", "no-store")]))
    #expect(!isStored(fresh, method: "POST") && !isStored(fresh, method: "HEAD") && !isStored(fresh, method: "get"))
    #expect(!isStored(fresh, hasBody: true))
    #expect(!isStored(fresh + [Field("Vary", "*")]) && !isStored(fresh + [Field("Vary", "a, *")]))
    #expect(!isStored(fresh + [Field("Vary", ""), Field("Vary", ", *")]))
    let names = (0...CacheSelection.fieldsMax).map { "x\($0)" }
    #expect(isStored(fresh + [Field("Vary", names.dropLast().joined(separator: ","))]))
    #expect(!isStored(fresh + names.map { Field("Vary", $0) }))
  }

  @Test func statuses() {
    let fresh: FieldList = [Field("Cache-Control", "max-age=5")]
    let validated: FieldList = [Field("ETag", "\"a\"")]
    for status in 100...599 {
      let isHeuristic = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501].contains(status)
      #expect(isStored(validated, status: status) == isHeuristic, "\(status)")
      let isNever =
        status < 200 || [206, 304, 401, 407, 408, 412, 416, 417, 421, 425, 426, 428, 511].contains(status)
      #expect(isStored(fresh, status: status) == !isNever, "\(status)")
    }
    #expect(!isStored(fresh, status: 600) && !isStored(fresh, status: 0) && !isStored(fresh, status: -1))
    #expect(isStored(fresh + [Field("Content-Range", "bytes 0-4/10")], status: 206))
    #expect(!isStored(fresh + [Field("Content-Range", "bytes 5-4/10")], status: 206))
    // Heads that contradict themselves.
    let part: FieldList = fresh + [Field("Content-Range", "bytes 0-4/10")]
    #expect(!isStored(part) && !isStored(part + [Field("Content-Length", "6")], status: 206))
    #expect(!isStored(part + [Field("Content-Type", "multipart/byteranges; boundary=x")], status: 206))
    #expect(!isStored(part + part, status: 206))
  }

  /// RFC 9111 3.3 and 3.4: a part whose range is not understood is not stored, and none is stored as the whole.
  @Test(arguments: [
    (206, "bytes 0-4/10", 5, true), (206, "bytes 0-4/10", 4, false), (206, "bytes 4-0/10", 5, false),
    (206, nil, 5, false), (206, "lines 0-4/10", 5, false), (200, "bytes 0-4/10", 5, false), (200, nil, 5, true),
    (200, "bytes 0-4/5", 5, true), (404, "bytes 0-4/10", 5, true),
  ])
  func statedParts(status: Int, range: String?, bodyCount: Int, isStored: Bool) {
    let stored = StoredResponse(
      statedBy: status, fields: range.map { [Field("Content-Range", $0)] } ?? [], requestTime: 0, responseTime: 0,
      selection: CacheSelection(), bodyCount: bodyCount, isDecoded: false)
    #expect((stored != nil) == isStored)
    if let stored { #expect((stored.part != nil) == (status == 206)) }
  }

  /// RFC 9111 5.2.2.3: `must-understand` overrides `no-store` for statuses that the cache understands.
  @Test func mustUnderstand() {
    let fields: FieldList = [Field("Cache-Control", "max-age=5, no-store, must-understand")]
    #expect(isStored(fields) && !isStored(fields, status: 599) && !isStored(fields, status: 299))
  }

  @Test func fieldsThatAreNotStored() {
    let fields: FieldList = [
      Field("Cache-Control", "max-age=5, no-cache=\"secret, x\""), Field("Connection", "a, B"), Field("A", "1"),
      Field("b", "2"),
      Field("c", "3"), Field("Keep-Alive", "x"), Field("Proxy-Authenticate", "x"),
      Field("Proxy-Authentication-Info", "x"),
      Field("Proxy-Authorization", "x"), Field("Proxy-Connection", "x"), Field("TE", "x"), Field("Trailer", "x"),
      Field("Transfer-Encoding", "x"), Field("Upgrade", "x"), Field("Secret", "s"), Field("Set-Cookie", "a=b"),
      Field("Set-Cookie", "c=d"),
    ]
    let kept = CacheStorage.storable(fields, now: 0).map { "\($0.name): \($0.value)" }
    #expect(
      kept == [
        "Cache-Control: max-age=5, no-cache=\"secret, x\"", "c: 3", "Set-Cookie: a=b", "Set-Cookie: c=d",
        "Date: Thu, 01 Jan 1970 00:00:00 GMT",
      ])
    #expect(CacheStorage.storable([Field("Date", "foo")], now: 0).map(\.value) == ["foo"])
  }

  private func table(_ fields: FieldList) -> (FieldTable, [UInt8]) {
    var bytes: [UInt8] = []
    var table = FieldTable()
    for field in fields {
      let start = bytes.count
      bytes += field.name.utf8
      let end = bytes.count
      bytes += field.value.utf8
      table.append(FieldPosition(name: start..<end, value: end..<bytes.count))
    }
    return (table, bytes)
  }

  /// The quick look at a response's bytes refuses only what the parser of `Cache-Control` refuses, too.
  @Test(arguments: [
    ("no-store", false), ("No-Store", false), ("private, no-store", false), ("no-store,max-age=60", false),
    (" ,no-store\t,", false), ("no-cache, no-store, must-revalidate", false), ("max-age=60", true), ("", true),
    ("no-store, must-understand", true), ("private=\"no-store\"", true), ("no-stored", true), ("x=no-store", true),
    ("private=\"a\", no-store", true), ("\r\n no-store", false),
  ]) func aQuickLook(value: String, isPossible: Bool) {
    for fields: FieldList in [
      [Field("Cache-Control", value)], [Field("cache-control", "public"), Field("Cache-Control", value)],
    ] {
      let (table, bytes) = table(fields + [Field("ETag", "\"e\"")])
      let mayBeStored = CacheStorage.mayBeStored(table, in: bytes.span)
      #expect(mayBeStored == isPossible, "\(fields)")
      let proposal = CacheStorage.proposal(
        request: CacheRequest(method: "GET", fields: []), status: 200, fields: fields + [Field("ETag", "\"e\"")], now: 0
      )
      if !isPossible { #expect(proposal == nil, "\(fields)") }
    }
    let (unused, bytes) = table([Field("Server", "x"), Field("Content-Type", "a/b")])
    let mayBeStored = CacheStorage.mayBeStored(unused, in: bytes.span)
    #expect(!mayBeStored)
  }

  /// However many names `Connection` lists.
  @Test func manyConnectionFields() {
    for count in [1, 15, 16, 17, 500] {
      let names = (0..<count).map { "X-\($0)" }
      let fields: FieldList =
        [Field("connection", names.joined(separator: ", ")), Field("Kept", "1"), Field("Date", "x")]
        + names.map { Field($0.lowercased(), "v") }
      #expect(CacheStorage.storable(fields, now: 0).map(\.name) == ["Kept", "Date"])
    }
  }

  @Test func bytesAreLookedAtAsTextIs() {
    for name in ["ETag", "etag", "EXPIRES", "Cache-Control", "last-modified", "Server", "Date", "Content-Type", "Etax"]
    {
      let fields: FieldList = [Field("Server", "x"), Field("Content-Length", "1"), Field(name, "v")]
      var bytes: [UInt8] = []
      var table = FieldTable()
      for field in fields {
        let start = bytes.count
        bytes += field.name.utf8
        table.append(FieldPosition(name: start..<bytes.count, value: bytes.count..<(bytes.count + 1)))
        bytes += field.value.utf8
      }
      #expect(CacheStorage.isOfUse(table, in: bytes.span) == CacheStorage.isOfUse(fields), "\(name)")
    }
  }
}

@Suite struct CacheSelectionTests {
  private func matches(_ vary: String, _ first: FieldList, _ second: FieldList, isLenient: Bool = false) -> Bool {
    CacheSelection(response: [Field("Vary", vary)], request: first)?.matches(second, isLenient: isLenient) ?? false
  }

  @Test func requestsThatMatch() {
    #expect(matches("Foo", [Field("Foo", "1")], [Field("foo", "1")]))
    #expect(!matches("Foo", [Field("Foo", "1")], [Field("Foo", "2")]))
    #expect(!matches("Foo", [], [Field("Foo", "1")]) && !matches("Foo", [Field("Foo", "1")], []))
    #expect(!matches("Foo", [], [Field("Foo", "")]), "empty is something else than absent")
    #expect(matches("Foo", [], []) && matches("", [Field("Foo", "1")], []))
    #expect(
      matches(
        "Foo, Bar", [Field("Foo", "1"), Field("Bar", "2")], [Field("Bar", "2"), Field("Foo", "1"), Field("Baz", "3")]))
    #expect(!matches("foo, Bar", [Field("Foo", "1"), Field("Bar", "2")], [Field("Bar", "3"), Field("Foo", "1")]))
    #expect(matches("Foo", [Field("Foo", "1, 2")], [Field("Foo", "1"), Field("Foo", "2")]))
    #expect(matches("Foo", [Field("Foo", "1,2")], [Field("Foo", " 1, 2 ")]))
    #expect(!matches("Foo", [Field("Foo", "\"1,2\"")], [Field("Foo", "\"1, 2\"")]))
    #expect(
      matches("Accept-Language", [Field("Accept-Language", "en, de;q=0.5")], [Field("Accept-Language", "DE; q=0.5,En")])
    )
    #expect(!matches("Accept", [Field("Accept", "a/b, c/d")], [Field("Accept", "c/d, a/b")]))
    #expect(!matches("*", [], []) && !matches("Foo, *", [Field("Foo", "1")], [Field("Foo", "1")]))
    #expect(matches("Foo", [Field("Foo", "1")], [], isLenient: true))
    #expect(!matches("Foo", [Field("Foo", "1")], [Field("Foo", "2")], isLenient: true))
  }

  /// A response to one user is not served to another one, unless a shared cache could store it (RFC 9111 3.5).
  @Test(
    arguments: [
      ("max-age=5", false), ("private, max-age=5", false), ("public, max-age=5", true), ("s-maxage=5", true),
      ("must-revalidate, max-age=5", true), ("private, must-revalidate", false), ("public, private", false),
    ])
  func authorizations(control: String, isShared: Bool) throws {
    let selection = try #require(
      CacheSelection(response: [Field("Cache-Control", control)], request: [Field("Authorization", "Bearer secret")]))
    #expect(selection.matches([Field("Authorization", "Bearer secret")]))
    #expect(selection.matches([Field("Authorization", "Bearer other")]) == isShared)
    #expect(selection.matches([]) == isShared)
    #expect(!selection.fields.contains { $0.value?.contains("secret") == true })
  }

  @Test func variantsHaveHashes() throws {
    func hash(_ vary: String, _ request: FieldList) -> CacheHash? {
      CacheSelection(response: [Field("Vary", vary)], request: request)?.hash
    }
    #expect(hash("Foo", [Field("Foo", "1")]) == hash("foo", [Field("FOO", "1")]))
    #expect(hash("Foo", [Field("Foo", "1")]) != hash("Foo", [Field("Foo", "2")]))
    #expect(hash("Foo", [Field("Foo", "")]) != hash("Foo", []))
    #expect(hash("", []) == CacheHash() && hash("Foo", []) != CacheHash())
    #expect(hash("a, b", [Field("a", "b")]) != hash("a, b", [Field("b", "b")]))
    let hash = CacheHash("x")
    #expect(CacheHash(hexadecimal: hash.hexadecimal) == hash && hash.hexadecimal.utf8.count == 32)
    // The published 128-bit FNV-1a value for no bytes.
    #expect(CacheHash().hexadecimal == "6c62272e07bb014262b821756295c58d")
    #expect(CacheHash(hexadecimal: "+" + hash.hexadecimal.dropFirst()) == nil && CacheHash(hexadecimal: "12") == nil)
    #expect(CacheHash(value: 0xab).hexadecimal == String(repeating: "0", count: 30) + "ab")
  }
}
