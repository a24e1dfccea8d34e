import AFNetworking
import Foundation
import Testing

@Suite struct JSONPatchApplyingTests {
  typealias Operation = AFJSONPatchOperation

  /// Each operation on each kind of place, beyond the public test suite.
  @Test(arguments: [
    // The whole document.
    ("1", #"[{"op":"add","path":"","value":[2]}]"#, "[2]"),
    ("{}", #"[{"op":"replace","path":"","value":null}]"#, "null"),
    (#"{"a":[1]}"#, #"[{"op":"move","from":"/a","path":""}]"#, "[1]"),
    (#"{"a":1}"#, #"[{"op":"copy","from":"","path":"/b"}]"#, #"{"a":1,"b":{"a":1}}"#),
    (#"{"a":{"b":1}}"#, #"[{"op":"copy","from":"","path":"/a/c"}]"#, #"{"a":{"b":1,"c":{"a":{"b":1}}}}"#),
    ("[1,2]", #"[{"op":"copy","from":"","path":"/-"}]"#, "[1,2,[1,2]]"),
    (#""x""#, #"[{"op":"test","path":"","value":"x"},{"op":"add","path":"","value":"y"}]"#, #""y""#),
    // A move to its own place, to a place before or behind its own, and out of a value.
    ("[1,2]", #"[{"op":"move","from":"/0","path":"/0"}]"#, "[1,2]"),
    ("[1,2,3]", #"[{"op":"move","from":"/0","path":"/2"}]"#, "[2,3,1]"),
    ("[1,2,3]", #"[{"op":"move","from":"/2","path":"/0"}]"#, "[3,1,2]"),
    ("[1,2,3]", #"[{"op":"move","from":"/0","path":"/-"}]"#, "[2,3,1]"),
    (#"{"a":{"b":1}}"#, #"[{"op":"move","from":"/a/b","path":"/a"}]"#, #"{"a":1}"#),
    (#"{"a":1,"ab":{}}"#, #"[{"op":"move","from":"/a","path":"/ab/c"}]"#, #"{"ab":{"c":1}}"#),
    // Names that look like indexes, and the token for the end of an array, in an object.
    (#"{"0":1,"-":2}"#, #"[{"op":"remove","path":"/0"},{"op":"replace","path":"/-","value":3}]"#, #"{"-":3}"#),
    (#"{"":{"":1}}"#, #"[{"op":"replace","path":"//","value":2}]"#, #"{"":{"":2}}"#),
    (#"{"a/b":{"m~n":1}}"#, #"[{"op":"add","path":"/a~1b/m~0n","value":2}]"#, #"{"a/b":{"m~n":2}}"#),
    // Deep places, and one operation upon another.
    (#"{"a":[{"b":[[0]]}]}"#, #"[{"op":"add","path":"/a/0/b/0/0","value":1}]"#, #"{"a":[{"b":[[1,0]]}]}"#),
    (
      "{}",
      #"[{"op":"add","path":"/a","value":{}},{"op":"add","path":"/a/b","value":[]},{"op":"add","path":"/a/b/-","value":1}]"#,
      #"{"a":{"b":[1]}}"#
    ), ("[]", "[]", "[]"),
  ])
  func applies(document: String, patch: String, expected: String) throws {
    #expect(try JSONPatchTexts.apply(patch, to: document) == expected)
  }

  @Test(
    arguments: [
      ("{}", #"{"op":"remove","path":""}"#, .removesDocument),
      (#"{"a":{"b":1}}"#, #"{"op":"move","from":"/a","path":"/a/b"}"#, .movesIntoItself("/a/b")),
      ("{}", #"{"op":"move","from":"","path":"/a"}"#, .movesIntoItself("/a")),
      // A missing value is moved neither to its own place nor into itself.
      ("{}", #"{"op":"move","from":"/a","path":"/a"}"#, .missingTarget("/a")),
      ("{}", #"{"op":"move","from":"/a","path":"/a/b"}"#, .missingTarget("/a")),
      ("[1]", #"{"op":"replace","path":"/1","value":0}"#, .missingTarget("/1")),
      ("[1]", #"{"op":"replace","path":"/-","value":0}"#, .missingTarget("/-")),
      ("[1]", #"{"op":"remove","path":"/-"}"#, .missingTarget("/-")),
      ("[1]", #"{"op":"test","path":"/-","value":1}"#, .missingTarget("/-")),
      ("[1]", #"{"op":"copy","from":"/-","path":"/0"}"#, .missingTarget("/-")),
      ("[1]", #"{"op":"add","path":"/2","value":0}"#, .missingTarget("/2")),
      ("[1]", #"{"op":"add","path":"/9223372036854775808","value":0}"#, .missingTarget("/9223372036854775808")),
      ("[[1]]", #"{"op":"add","path":"/-/0","value":0}"#, .missingTarget("/-/0")),
      ("[[1]]", #"{"op":"add","path":"/1/0","value":0}"#, .missingTarget("/1/0")),
      // The place exists before the value is removed, and not after.
      ("[1,2]", #"{"op":"move","from":"/0","path":"/2"}"#, .missingTarget("/2")),
      ("7", #"{"op":"add","path":"/a","value":0}"#, .missingTarget("/a")),
      (#""abc""#, #"{"op":"test","path":"/0","value":"a"}"#, .missingTarget("/0")),
      (#"{"a":null}"#, #"{"op":"add","path":"/a/b","value":0}"#, .missingTarget("/a/b")),
      (#"{"a":true}"#, #"{"op":"remove","path":"/a/b"}"#, .missingTarget("/a/b")),
      (#"{"a":1}"#, #"{"op":"replace","path":"/b","value":0}"#, .missingTarget("/b")),
      (#"{"a":null}"#, #"{"op":"test","path":"/b","value":null}"#, .missingTarget("/b")),
    ] as [(String, String, AFJSONPatchError.Reason)])
  func refuses(document: String, operation: String, reason: AFJSONPatchError.Reason) throws {
    #expect(try JSONPatchTexts.reason("[\(operation)]", to: document) == reason)
  }

  /// RFC 6902, section 4.6.
  @Test(arguments: [
    ("1", "1.0", true), ("100", "1e2", true), ("0", "-0", true), ("0", "-0.0", true), ("1", "2", false),
    ("1", "1.5", false), ("0.1", "0.10", true), ("9007199254740993", "9007199254740992.0", false),
    ("9007199254740993", "9007199254740993", true), ("9223372036854775807", "9223372036854775808.0", false),
    ("18446744073709551615", "18446744073709551615", true), ("18446744073709551615", "18446744073709551616", false),
    ("18446744073709551615", "-1", false), ("-9223372036854775808", "-9223372036854775808", true),
    ("-9223372036854775808", "-9223372036854775808.0", true), ("123456789012345678901234567890", "1.5", false),
    ("123456789012345678901234567890", "123456789012345678901234567890", true),
    ("123456789012345678901234567890", "123456789012345678901234567891", false), ("1", "true", false),
    ("0", "false", false), ("true", "true", true), ("true", "false", false), ("null", "null", true),
    ("null", "false", false), ("null", "0", false), (#""1""#, "1", false), (#""""#, "null", false),
    (#""é""#, #""\u00e9""#, true), (#""\u00e9""#, #""e\u0301""#, false), (#""a\u0000b""#, #""a\u0000b""#, true),
    (#""\ud83d\ude00""#, #""😀""#, true), ("[]", "[]", true), ("[]", "{}", false), ("[1,2]", "[2,1]", false),
    ("[1]", "[1,1]", false), ("[[1],{}]", "[[1.0],{}]", true), (#"{"a":1,"b":2}"#, #"{"b":2,"a":1.0}"#, true),
    (#"{"a":1}"#, #"{"a":1,"b":2}"#, false), (#"{"a":1}"#, #"{"b":1}"#, false), (#"{"a":null}"#, "{}", false),
    (#"{"\u00e9":1}"#, #"{"e\u0301":1}"#, false), (#"{"a":true}"#, #"{"a":1}"#, false),
  ])
  func tests(found: String, value: String, isEqual: Bool) throws {
    for (one, other) in [(found, value), (value, found)] {
      let document = #"{"x":[\#(one)]}"#
      let reason = try JSONPatchTexts.reason(#"[{"op":"test","path":"/x/0","value":\#(other)}]"#, to: document)
      #expect(reason == (isEqual ? nil : .testFailed("/x/0")))
    }
  }

  /// Swift's values and Foundation's are equal, whatever type has the number.
  @Test func valuesOfPrograms() throws {
    let ones: [Any] = [1, 1.0, Int8(1), UInt64(1), Float(1), Decimal(1), NSNumber(value: 1), NSDecimalNumber(value: 1)]
    let booleans: [Any] = [true, NSNumber(value: true)]
    for one in ones {
      for other in ones { _ = try Operation.testOperation(withPath: "", value: other).apply(to: one) }
      for boolean in booleans {
        #expect(throws: AFJSONPatchError(.testFailed(""), operationIndex: 0)) {
          try Operation.testOperation(withPath: "", value: boolean).apply(to: one)
        }
      }
    }
    for one in booleans {
      for other in booleans { _ = try Operation.testOperation(withPath: "", value: other).apply(to: one) }
    }
    _ = try Operation.testOperation(withPath: "", value: "a" as NSString).apply(to: "a")
    _ = try Operation.testOperation(withPath: "", value: UInt64.max).apply(to: NSNumber(value: UInt64.max))
    for value in [Date(), Data(), Double.nan, Double.infinity, [1: 2], Set([1])] as [Any] {
      for operation in [
        Operation.addOperation(withPath: "/a", value: [value]),
        Operation.replaceOperation(withPath: "/a", value: value),
        Operation.testOperation(withPath: "/a", value: value),
      ] {
        #expect(throws: AFJSONPatchError(.notJSON("/a"), operationIndex: 0)) { try operation.apply(to: ["a": value]) }
      }
    }
    // The document may contain such values: they are carried along.
    let document: [String: Any] = ["a": Date(timeIntervalSince1970: 0), "b": 1]
    let moved = try Operation.moveOperation(from: "/a", to: "/c").apply(to: document) as? [String: Any]
    #expect(moved?["c"] as? Date == Date(timeIntervalSince1970: 0) && moved?.count == 2)
  }

  /// Foundation's containers, Swift's containers with other types of members, and mutable ones, which stay unchanged.
  @Test func containersOfPrograms() throws {
    let array = NSMutableArray(array: [1, 2])
    let dictionary = NSMutableDictionary(dictionary: ["a": array, "b": NSDictionary(dictionary: ["c": "d"])])
    let patch = try JSONPatchTexts.operations(
      #"[{"op":"add","path":"/a/0","value":0},{"op":"replace","path":"/b/c","value":"e"},{"op":"remove","path":"/a/2"}]"#
    )
    #expect(try JSONPatchTexts.text(Operation.apply(patch, to: dictionary)) == #"{"a":[0,1],"b":{"c":"e"}}"#)
    #expect(array.count == 2 && dictionary.count == 2)
    #expect((dictionary["b"] as? NSDictionary)?["c"] as? String == "d")
    let numbers: [String: [Int]] = ["a": [1]]
    let added = Operation.addOperation(withPath: "/a/-", value: "x")
    #expect(try JSONPatchTexts.text(added.apply(to: numbers)) == #"{"a":[1,"x"]}"#)
    #expect(
      try JSONPatchTexts.text(Operation.addOperation(withPath: "/b", value: 1).apply(to: ["a": "x"]))
        == #"{"a":"x","b":1}"#)
  }

  /// A patch that fails at any of its operations leaves the document as it was, and says which operation failed.
  @Test func wholeOrNotAtAll() throws {
    let text = #"{"a":[1,{"b":[2,3]}],"c":{"d":"e"}}"#
    let document = try JSONPatchTexts.value(text)
    let changes = [
      #"{"op":"add","path":"/a/1/b/0","value":9}"#, #"{"op":"remove","path":"/c/d"}"#,
      #"{"op":"replace","path":"/a/0","value":[]}"#, #"{"op":"move","from":"/a/1","path":"/c/x"}"#,
      #"{"op":"copy","from":"/c","path":"/y"}"#,
    ]
    let failures = [
      #"{"op":"test","path":"/c","value":1}"#, #"{"op":"remove","path":"/c/x/b/7"}"#,
      #"{"op":"add","path":"/a/0/z/0","value":1}"#, #"{"op":"replace","path":"/a/5","value":1}"#,
      #"{"op":"move","from":"/c","path":"/c/q"}"#, #"{"op":"copy","from":"/q","path":"/r"}"#,
      #"{"op":"remove","path":""}"#,
    ]
    for failure in failures {
      for count in 0...changes.count {
        let patch = try JSONPatchTexts.operations("[\((changes[..<count] + [failure]).joined(separator: ","))]")
        do {
          _ = try Operation.apply(patch, to: document)
          Issue.record("\(failure) after \(count)")
        } catch let error as AFJSONPatchError {
          #expect(error.operationIndex == count)
        }
        #expect(try JSONPatchTexts.text(document) == text)
      }
    }
    // Without the failure the patch changes the result, and the document stays.
    let all = try JSONPatchTexts.operations("[\(changes.joined(separator: ","))]")
    let expected = #"{"a":[[]],"c":{"x":{"b":[9,2,3]}},"y":{"x":{"b":[9,2,3]}}}"#
    for _ in 0..<2 { #expect(try JSONPatchTexts.text(Operation.apply(all, to: document)) == expected) }
    #expect(try JSONPatchTexts.text(document) == text)
  }

  /// Names are compared by code points: a Swift dictionary, by canonical equivalence.
  @Test func namesThatAreAlmostEqual() throws {
    let document: [String: Any] = ["\u{e9}": 1]
    let name = "/e\u{301}"
    for operation in [
      Operation.removeOperation(withPath: name), Operation.replaceOperation(withPath: name, value: 2),
      Operation.testOperation(withPath: name, value: 1), Operation.copyOperation(from: name, to: "/x"),
    ] {
      #expect(throws: AFJSONPatchError(.missingTarget(name), operationIndex: 0)) { try operation.apply(to: document) }
    }
    #expect(throws: AFJSONPatchError(.indistinguishableName(name), operationIndex: 0)) {
      try Operation.addOperation(withPath: name, value: 2).apply(to: document)
    }
    let changed = try Operation.addOperation(withPath: "/\u{e9}", value: 2).apply(to: document) as? [String: Any]
    #expect(changed?["\u{e9}"] as? Int == 2)
    // A name that makes way for the other one.
    let patch = [Operation.removeOperation(withPath: "/\u{e9}"), Operation.addOperation(withPath: name, value: 3)]
    let other = try Operation.apply(patch, to: document) as? [String: Any]
    #expect(other?.keys.first.map { Array($0.unicodeScalars) } == ["e", "\u{301}"])
  }
}
