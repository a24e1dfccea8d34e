import LarkspurHTTP
import Testing

@Suite struct URLResolutionTests {
  static let base = "http://a/b/c/d;p?q"

  /// The examples of RFC 3986, section 5.4.1.
  static let normal = [
    ("g:h", "g:h"), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"), ("/g", "http://a/g"),
    ("//g", "http://g"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"), ("#s", "http://a/b/c/d;p?q#s"),
    ("g#s", "http://a/b/c/g#s"), ("g?y#s", "http://a/b/c/g?y#s"), (";x", "http://a/b/c/;x"),
    ("g;x", "http://a/b/c/g;x"),
    ("g;x?y#s", "http://a/b/c/g;x?y#s"), ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"), ("./", "http://a/b/c/"),
    ("..", "http://a/b/"), ("../", "http://a/b/"), ("../g", "http://a/b/g"), ("../..", "http://a/"),
    ("../../", "http://a/"), ("../../g", "http://a/g"),
  ]

  /// The examples of RFC 3986, section 5.4.2.
  static let abnormal = [
    ("../../../g", "http://a/g"), ("../../../../g", "http://a/g"), ("/./g", "http://a/g"), ("/../g", "http://a/g"),
    ("g.", "http://a/b/c/g."), (".g", "http://a/b/c/.g"), ("g..", "http://a/b/c/g.."), ("..g", "http://a/b/c/..g"),
    ("./../g", "http://a/b/g"), ("./g/.", "http://a/b/c/g/"), ("g/./h", "http://a/b/c/g/h"),
    ("g/../h", "http://a/b/c/h"), ("g;x=1/./y", "http://a/b/c/g;x=1/y"), ("g;x=1/../y", "http://a/b/c/y"),
    ("g?y/./x", "http://a/b/c/g?y/./x"), ("g?y/../x", "http://a/b/c/g?y/../x"), ("g#s/./x", "http://a/b/c/g#s/./x"),
    ("g#s/../x", "http://a/b/c/g#s/../x"), ("http:g", "http:g"),
  ]

  @Test(arguments: normal + abnormal) func theStandardsExamples(reference: String, expected: String) {
    #expect(URLResolution.resolve(reference, against: Self.base) == expected)
  }

  @Test(
    arguments: [
      ("http://a", "g", "http://a/g"), ("http://a?q", "g", "http://a/g"), ("http://a", "?y", "http://a?y"),
      ("http://a", "../g", "http://a/g"), ("http://a/b?q#f", "?y", "http://a/b?y"), ("http://a/b#f", "", "http://a/b"),
      ("http://a/", "//b/../c", "http://b/c"), ("http://a/x", "http://b/../c/./d", "http://b/c/d"),
      ("http://u:p@a:80/x/y", "z", "http://u:p@a:80/x/z"), ("http://a/b//c", "g", "http://a/b//g"),
      ("http://a/b//c", "../g", "http://a/b/g"), ("http://a/b/c", "..//g", "http://a//g"),
      ("http://a/b/c", "%2e%2e/g", "http://a/b/%2e%2e/g"), ("http://a/b/c", "./x:y", "http://a/b/x:y"),
      ("http://a/b/c", "g?", "http://a/b/g?"), ("http://a/b/c", "#", "http://a/b/c#"),
      ("http://a/..", "", "http://a/.."),
      ("http://[::1]:8080/a", "b", "http://[::1]:8080/b"), ("http://a/ü/b", "ö", "http://a/ü/ö"),
      ("http://a/b", "mailto:x/../y", "mailto:y"), ("x:/a", "..//b", "x:/.//b"),
      ("http://a/b/c", "1:y", "http://a/b/1:y"),
    ])
  func others(base: String, reference: String, expected: String) {
    #expect(URLResolution.resolve(reference, against: base) == expected)
  }

  /// Fragments are inherited as in RFC 9110, section 10.2.2.
  @Test(
    arguments: [
      ("http://a/b#f", "c", "http://a/c#f"), ("http://a/b#f", "c#g", "http://a/c#g"),
      ("http://a/b#f", "c#", "http://a/c#"),
      ("http://a/b", "c", "http://a/c"), ("http://a/b#f", "http://x/", "http://x/#f"),
      ("http://a/b#f", "", "http://a/b#f"),
    ])
  func fragments(base: String, reference: String, expected: String) {
    #expect(URLResolution.resolve(reference, against: base, inheritsFragment: true) == expected)
  }
}

@Suite struct LocationValueTests {
  @Test(
    arguments: [
      ("/a b", "/a%20b"), ("/ü?ü#ü", "/%C3%BC?%C3%BC#%C3%BC"), ("/a%20b%zz%", "/a%20b%25zz%25"),
      ("/a%c3%bc", "/a%c3%bc"),
      (" \t/a\u{1} ", "/a"), ("/a\tb\r\nc", "/abc"), ("/a\"<b>^`{|}", "/a%22%3Cb%3E%5E%60%7B%7C%7D"),
      ("/a#b#c", "/a#b%23c"), ("?a[]=1", "?a%5B%5D=1"), ("http://bücher.example/ä", "http://bücher.example/%C3%A4"),
      ("//bücher.example", "//bücher.example"), ("http://ho st/", "http://ho%20st/"),
      ("http:\\\\a\\b?c\\d", "http://a/b?c%5Cd"), ("\\\\evil\\x", "//evil/x"),
      ("http://evil\\@good/", "http://evil/@good/"),
      ("/search?filter[name]=J%C3%BCrgen", "/search?filter%5Bname%5D=J%C3%BCrgen"),
      ("/a%20b[1]#%5b[", "/a%20b%5B1%5D#%5b%5B"), ("a]%2", "a%5D%252"), ("/%5B[%5b]%5D", "/%5B%5B%5b%5D%5D"),
      ("/%2F%%%41%4%g1", "/%2F%25%25%41%254%25g1"), ("mock:[a]%7B", "mock:%5Ba%5D%7B"),
      ("mailto:a\\b", "mailto:a%5Cb"), ("HTTPS://A/", "HTTPS://A/"), ("/a\0b", "/a%00b"), ("a:b", "a:b"),
    ])
  func reads(value: String, expected: String) {
    #expect(LocationValue.reference(value) == expected)
  }

  /// Brackets and colons stay only where the grammar allows them.
  @Test(arguments: [
    ("[::1]", "[::1]"), ("[::1]:80", "[::1]:80"), ("[::1]:", "[::1]:"),
    ("u:p@[2001:DB8::1]:80", "u:p@[2001:DB8::1]:80"),
    ("[fe80::1%25lo]:80", "[fe80::1%25lo]:80"), ("[fe80::1%lo]", "[fe80::1%25lo]"),
    ("[fe80::1%dead]", "[fe80::1%25dead]"), ("[fe80::1%25dead]", "[fe80::1%25dead]"),
    ("[fe80::1%25]", "[fe80::1%2525]"),
    ("[fe80::1%a b]", "%5Bfe80%3A%3A1%25a%20b%5D"), ("[oops", "%5Boops"), ("oops]", "oops%5D"),
    ("[oops]", "%5Boops%5D"),
    ("[]", "%5B%5D"), ("[::1]x", "%5B%3A%3A1%5Dx"), ("[::1]:x", "%5B%3A%3A1%5D%3Ax"),
    ("[[::1]]", "%5B%5B%3A%3A1%5D%5D"),
    ("[192.0.2.1]", "%5B192.0.2.1%5D"), ("::1", "%3A%3A1"), ("a:80", "a:80"), ("a:", "a:"), (":80", ":80"),
    ("a:-1", "a%3A-1"), ("a:b", "a%3Ab"), ("a:1:2", "a%3A1%3A2"), ("a:99999", "a:99999"),
    ("us[er:p^w%41%@a", "us%5Ber:p%5Ew%41%25@a"), ("a@b@c", "a%40b@c"), ("a[@[::1]", "a%5B@[::1]"), ("@a", "@a"),
    ("a|b%7C", "a%7Cb%7C"), ("a%zz", "a%25zz"), ("b\u{fc}%C3%BC", "b%C3%BC%C3%BC"), ("\u{fc}:80", "\u{fc}:80"),
    ("\u{fc}@\u{fc}", "%C3%BC@\u{fc}"),
  ])
  func authorities(value: String, expected: String) {
    for (before, behind) in [("http://", "/a[%41"), ("//", ""), ("mock://", "?[%41"), ("https://", "#[%41")] {
      let tail = behind.replacing("[", with: "%5B")
      #expect(LocationValue.reference(before + value + behind) == before + expected + tail)
    }
  }

  /// A server that redirects to the requested URL in decoded form leads to one URL, however often the redirect is
  /// followed.
  @Test(arguments: ["/%5B1%5D", "/%5E%7C?%7B[%7D#%5B", "/a%20b", "/%25zz"]) func decodedAnswersDoNotGrow(path: String) {
    var url = "http://a.example\(path)"
    var lengths: Set<Int> = []
    for _ in 0..<30 {
      let value = PercentCoding.decoded(url.utf8.dropFirst("http://a.example".utf8.count))
      url = LocationValue.target(value, from: url) ?? ""
      lengths.insert(url.utf8.count)
    }
    #expect(lengths.count == 1 && url.hasPrefix("http://a.example/"))
  }

  @Test func inASCII() {
    #expect(LocationValue.ascii("http://\u{fc}/%41") == "http://%C3%BC/%41")
    #expect(LocationValue.ascii("/%41?[") == "/%41?[")
  }

  @Test(arguments: ["", " ", "\t\r\n", "\u{1}"]) func nothing(value: String) {
    #expect(LocationValue.reference(value) == nil)
    #expect(LocationValue.target(Array(value.utf8), from: "http://a/") == nil)
  }

  @Test func bytesThatAreNoText() {
    #expect(LocationValue.reference([0x2f, 0xe4]) == "/%E4")
    #expect(LocationValue.reference(Array("//a".utf8) + [0xe4]) == "//a%E4")
  }

  @Test func target() {
    #expect(LocationValue.target(Array("../x y".utf8), from: "http://a/b/c#f") == "http://a/x%20y#f")
  }

  /// A resolved reference does not change when it is read again.
  @Test func onceIsEnough() {
    for value in [
      "/a b%zz", "http://ü/ü", "\\\\a\\b", "/a#b#c", "/%", "//[fe80::1%lo]/[", "//[x/", "//a@b@c:-1", "?[]%",
    ] {
      let once = LocationValue.reference(value)
      #expect(once.flatMap(LocationValue.reference) == once)
    }
  }
}
