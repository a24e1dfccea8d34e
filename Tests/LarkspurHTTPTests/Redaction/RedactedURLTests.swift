import LarkspurHTTP
import Testing

@Suite struct RedactedURLTests {
  @Test(arguments: [
    ("http://a.example/", "http://a.example/"), ("http://me@a.example/", "http://a.example/"),
    ("http://me:secret@a.example:81/x?y@z#@", "http://a.example:81/x?y@z#@"),
    ("ftp://me:se@cret@a.example", "ftp://a.example"), ("http://a.example?me:secret@", "http://a.example?me:secret@"),
    ("mailto:a@b.example", "mailto:a@b.example"), ("http://", "http://"), ("", ""), ("http://@", "http://"),
  ])
  func withoutUserinfo(text: String, expected: String) { #expect(text.withoutUserinfo == expected) }
}
