import LarkspurHTTP
import Testing

@Suite struct URLResolutionTests {
  static let base = "http://a/b/c/d;p?q"

  /// RFC 3986, section 5.4.1.
  static let normal = [
    ("g:h", "g:h"), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"), ("/g", "http://a/g"),
    ("//g", "http://g"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"), ("#s", "http://a/b/c/d;p?q#s"),
    ("g#s", "http://a/b/c/g#s"), ("g?y#s", "http://a/b/c/g?y#s"), (";x", "http://a/b/c/;x"),
    ("g;x", "http://a/b/c/g;x"),
    ("g;x?y#s", "http://a/b/c/g;x?y#s"), ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"), ("./", "http://a/b/c/"),
    ("..", "http://a/b/"), ("../", "http://a/b/"), ("../g", "http://a/b/g"), ("../..", "http://a/"),
    ("../../", "http://a/"), ("../../g", "http://a/g"),
  ]

  /// Section 5.4.2.
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

  /// RFC 9110, section 10.2.2.
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
      ("/a#b#c", "/a#b%23c"), ("?a[]=1", "?a[]=1"), ("http://bücher.example/ä", "http://bücher.example/%C3%A4"),
      ("//bücher.example", "//bücher.example"), ("http://ho st/", "http://ho%20st/"),
      ("http:\\\\a\\b?c\\d", "http://a/b?c%5Cd"), ("\\\\evil\\x", "//evil/x"),
      ("http://evil\\@good/", "http://evil/@good/"),
      ("mailto:a\\b", "mailto:a%5Cb"), ("HTTPS://A/", "HTTPS://A/"), ("/a\0b", "/a%00b"), ("a:b", "a:b"),
    ])
  func reads(value: String, expected: String) {
    #expect(LocationValue.reference(value) == expected)
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

  /// What is made of a reference is not changed when it is read again.
  @Test func onceIsEnough() {
    for value in ["/a b%zz", "http://ü/ü", "\\\\a\\b", "/a#b#c", "/%"] {
      let once = LocationValue.reference(value)
      #expect(once.flatMap(LocationValue.reference) == once)
    }
  }
}
