import LarkspurHTTP
import Testing

@Suite struct WebSocketExtensionTests {
  static let lists: [(value: String, list: [String]?)] = [
    ("a", ["a"]), (" a , b ", ["a", "b"]), (",, a ,,b,", ["a", "b"]),
    ("a;b", ["a;b"]), ("a ; b = 1 ;c=\"2\", d", ["a;b=1;c=2", "d"]), ("a;b=\"\\1\\0\"", ["a;b=10"]),
    ("", nil), (" ", nil), (",", nil), (";a", nil), ("a;", nil), ("a;=1", nil), ("a;b=", nil), ("a b", nil),
    ("a;b c", nil), ("a;b=1 2", nil), ("a;b=\"", nil), ("a;b=\"1", nil), ("a;b=\"\"", nil), ("a;b=\"1 2\"", nil),
    ("a;b=\"1\\", nil), ("a;b=\"1\"2", nil), ("ä", nil), ("a/b", nil), ("a=1", nil), ("a,;", nil),
  ]

  @Test(arguments: lists.indices) func list(index: Int) {
    let row = Self.lists[index]
    let list = WebSocketExtension.list(row.value)?.map { element in
      let parameters = element.parameters.map { parameter in
        parameter.value.map { "\(parameter.name)=\($0)" } ?? parameter.name
      }
      return ([element.name] + parameters).joined(separator: ";")
    }
    #expect(list == row.list, "\(row.value)")
  }
}
