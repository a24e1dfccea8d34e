import LarkspurHTTP
import Testing

/// Tests lists of header fields.
@Suite struct FieldListTests {
  static let fields: FieldList = [
    Field("Accept", "text/*"), Field("x-a", "1, \"2, 3\" ,, 4"), Field("ACCEPT", "image/*"), Field("X-A", " 5 "),
  ]

  @Test func namesAreCaseless() {
    #expect(Self.fields.values(named: "accept") == ["text/*", "image/*"])
    #expect(Self.fields.firstValue(named: "aCCept") == "text/*" && Self.fields.firstValue(named: "Accep") == nil)
    #expect(Self.fields.contains(named: "X-a") && !Self.fields.contains(named: ""))
  }

  @Test func members() {
    #expect(Self.fields.members(named: "X-A") == ["1", "\"2, 3\"", "4", "5"])
    #expect(Self.fields.members(named: "Y") == [])
  }

  @Test func changes() {
    var fields = Self.fields
    fields.replace("accept", with: "*/*")
    #expect(fields == [Self.fields[1], Self.fields[3], Field("accept", "*/*")])
    fields.removeAll(named: "x-A")
    #expect(fields == [Field("accept", "*/*")])
  }
}
