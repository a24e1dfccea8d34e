import LarkspurHTTP
import Testing

@testable import LarkspurCommand

@Suite struct NetrcFileTests {
  private static let file = """
    # machine example.org login no password no
    machine example.org login me password secret
    machine quoted.example login "two words" password "a\\"b\\\\c\\n\\x"
    macdef init
    machine macro.example login no password no

    MACHINE lines.example
      account x
      login first login second # a word without a meaning
      password
        p
    machine user.example login u
    machine only.example password p
    machine none.example
    machine example.org login late password late
    default login anonymous password me@example.org
    machine after.example login no password no
    """

  @Test(arguments: [
    ("example.org", "me:secret"), ("EXAMPLE.org", "me:secret"), ("quoted.example", "two words:a\"b\\c\nx"),
    ("lines.example", "first:p"), ("user.example", "u:"), ("only.example", ":p"), ("none.example", nil),
    ("macro.example", "anonymous:me@example.org"), ("after.example", "anonymous:me@example.org"),
    ("sub.example.org", "anonymous:me@example.org"),
  ])
  func hosts(host: String, credentials: String?) throws {
    for bytes in [Array(Self.file.utf8), Array(Self.file.replacing("\n", with: "\r\n").utf8)] {
      let found = try NetrcFile(bytes).credentials(host: host)
      #expect(found.map { String(decoding: $0.bytes, as: UTF8.self) } == credentials)
    }
  }

  /// Credentials before the first host belong to no host.
  @Test(arguments: ["", "login a password b", "machine other login a password b", "#", "macdef x\nmachine a login b"])
  func without(text: String) throws {
    #expect(try NetrcFile(Array(text.utf8)).credentials(host: "a") == nil)
  }

  @Test(arguments: [
    ("machine a login \"b", "line 1: the closing quote is missing"),
    ("machine a\nlogin \"b\\", "line 2: the closing quote is missing"),
    ("machine a\nlogin b password\n", "line 2: a word is missing after password"),
    ("\n\nmachine", "line 3: a word is missing after machine"),
  ])
  func errors(text: String, message: String) {
    let error = #expect(throws: NetrcFile.Invalid.self) { try NetrcFile(Array(text.utf8)) }
    #expect(error?.description == message)
  }
}
