import LarkspurIO
import Testing

@Suite struct FileNameTests {
  @Test(arguments: [
    ("a", "a"), ("../x", "%2E.%2Fx"), (".", "%2E"), ("", "%"), ("a/b", "a%2Fb"), ("a%2Fb", "a%252Fb"),
    ("é", "%C3%A9"), ("Az09-_. ~", "Az09-_. %7E"), ("\0", "%00"),
  ])
  func component(name: String, expected: String) { #expect(FileName.component(name) == expected) }

  @Test func longNames() {
    let long = String(repeating: "x", count: 300)
    #expect(FileName.component(long).utf8.count < 256)
    #expect(FileName.component(long) != FileName.component(long + "y"))
    #expect(FileName.component(String(repeating: "x", count: 200)) == String(repeating: "x", count: 200))
  }
}
