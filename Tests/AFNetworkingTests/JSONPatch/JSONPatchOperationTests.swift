import AFNetworking
import Foundation
import Testing

@Suite struct JSONPatchOperationTests {
  typealias Operation = AFJSONPatchOperation

  /// Code as programs have it for AFRocketClient: most of the test is that it compiles.
  @Test func spelling() throws {
    let operations: [AFJSONPatchOperation] = [
      AFJSONPatchOperation.addOperation(withPath: "/resources/-", value: ["id": 1]),
      AFJSONPatchOperation.removeOperation(withPath: "/a"),
      AFJSONPatchOperation.replaceOperation(withPath: "/a/b/c", value: 42),
      AFJSONPatchOperation.moveOperation(from: "/a/b/c", to: "/a/b/d"),
      AFJSONPatchOperation.copyOperation(from: "/a/b/d", to: "/a/b/e"),
      AFJSONPatchOperation.testOperation(withPath: "/a/b/c", value: "foo"),
      try AFJSONPatchOperation(dictionary: ["op": "remove", "path": "/a"]),
    ]
    var resources: [Any] = []
    for operation in operations {
      switch operation.type {
      case .addOperationType: resources.append(operation.value as Any)
      case .moveOperationType: #expect(operation.from == "/a/b/c" && operation.path.hasSuffix("d"))
      default: break
      }
    }
    #expect(resources.count == 1)
    #expect(operations.map(\.type.rawValue) == [1, 2, 3, 4, 5, 6, 2])
  }

  static let dictionaries: [String] = [
    #"{"op":"add","path":"/a","value":{"b":[1,true,null,"x"]}}"#, #"{"op":"add","path":"","value":null}"#,
    #"{"op":"remove","path":"/a~1b"}"#, #"{"op":"replace","path":"/0","value":0.5}"#,
    #"{"from":"/a","op":"move","path":"/b"}"#, #"{"from":"","op":"copy","path":"/b"}"#,
    #"{"op":"test","path":"/-","value":"é"}"#, #"{"op":"test","path":"/","value":false}"#,
    #"{"op":"add","path":"/n","value":123456789012345678901234567890}"#,
  ]

  @Test(arguments: dictionaries) func dictionaryRepresentation(text: String) throws {
    let dictionary = try #require(try JSONPatchTexts.value(text) as? [String: Any])
    let operation = try Operation(dictionary: dictionary)
    #expect(try JSONPatchTexts.text(operation.dictionaryRepresentation) == text)
    let again = try Operation(dictionary: operation.dictionaryRepresentation)
    #expect(again == operation && again.hash == operation.hash && again !== operation)
  }

  @Test func membersOfOtherOperationsAreIgnored() throws {
    let text = #"{"op":"remove","path":"/a","value":1,"from":7,"note":"x"}"#
    let operation = try Operation(dictionary: try #require(try JSONPatchTexts.value(text) as? [String: Any]))
    #expect(operation.value == nil && operation.from == nil)
    #expect(try JSONPatchTexts.text(operation.dictionaryRepresentation) == #"{"op":"remove","path":"/a"}"#)
  }

  @Test(
    arguments: [
      (#"{}"#, .missingMember("op")), (#"{"path":"/a"}"#, .missingMember("op")),
      (#"{"op":1,"path":"/a"}"#, .invalidMember("op")), (#"{"op":null,"path":"/a"}"#, .invalidMember("op")),
      (#"{"op":"spam","path":"/a"}"#, .unknownOperation("spam")),
      (#"{"op":"Add","path":"/a"}"#, .unknownOperation("Add")),
      (#"{"op":"","path":"/a"}"#, .unknownOperation("")),
      (#"{"op":"add","value":1}"#, .missingMember("path")), (#"{"op":"add","path":null}"#, .invalidMember("path")),
      (#"{"op":"add","path":["a"],"value":1}"#, .invalidMember("path")),
      (#"{"op":"add","path":"a","value":1}"#, .invalidPointer("a")),
      (#"{"op":"remove","path":"/~"}"#, .invalidPointer("/~")),
      (#"{"op":"add","path":"/a"}"#, .missingMember("value")), (#"{"op":"test","path":""}"#, .missingMember("value")),
      (#"{"op":"replace","path":"/a"}"#, .missingMember("value")),
      (#"{"op":"move","path":"/a"}"#, .missingMember("from")), (#"{"op":"copy","path":"/a"}"#, .missingMember("from")),
      (#"{"op":"copy","path":"/a","from":1}"#, .invalidMember("from")),
      (#"{"op":"move","path":"/a","from":"b"}"#, .invalidPointer("b")),
    ] as [(String, AFJSONPatchError.Reason)])
  func invalidDictionaries(text: String, reason: AFJSONPatchError.Reason) throws {
    let dictionary = try #require(try JSONPatchTexts.value(text) as? [String: Any])
    #expect(throws: AFJSONPatchError(reason)) { try Operation(dictionary: dictionary) }
    // The other forms of the initializer.
    var error: NSError?
    #expect(Operation(dictionary: dictionary, error: &error) == nil)
    #expect(error?.domain == AFJSONPatchErrorDomain)
    #expect(error?.code == AFJSONPatchError(reason).errorCode)
    #expect(error?.localizedDescription == AFJSONPatchError(reason).description)
    #expect(Operation(dictionary: dictionary, error: nil) == nil)
    // Within a patch, the whole patch is invalid.
    #expect(throws: AFJSONPatchError(reason, operationIndex: 1)) {
      try JSONPatchTexts.operations(#"[{"op":"remove","path":"/x"},\#(text),{"op":"remove","path":"/y"}]"#)
    }
  }

  @Test func noDictionary() {
    #expect(throws: AFJSONPatchError(.missingMember("op"))) { try Operation(dictionary: nil) }
    var error: NSError? = NSError(domain: "before", code: 1)
    #expect(Operation(dictionary: ["op": "remove", "path": ""], error: &error) != nil && error?.domain == "before")
  }

  @Test(arguments: [(#"{}"#, nil), ("1", nil), (#"{"op":"remove","path":""}"#, nil), ("[1]", 0), ("[[]]", 0)])
  func whatIsNoPatch(text: String, index: Int?) {
    #expect(throws: AFJSONPatchError(.notAPatch, operationIndex: index)) { try JSONPatchTexts.operations(text) }
  }

  @Test func noValueIsNull() throws {
    let operation = Operation.addOperation(withPath: "/a", value: nil)
    #expect(operation.value is NSNull)
    #expect(try JSONPatchTexts.text(operation.apply(to: [String: Any]())) == #"{"a":null}"#)
  }

  /// An operation that a program has created with a wrong path fails when it is applied.
  @Test func wrongPaths() {
    for operation in [
      Operation.removeOperation(withPath: "a"), Operation.moveOperation(from: "a", to: "/b"),
      Operation.copyOperation(from: "/a", to: "a"),
    ] {
      #expect(throws: AFJSONPatchError(.invalidPointer("a"), operationIndex: 0)) { try operation.apply(to: ["a": 1]) }
    }
  }

  @Test func equality() throws {
    let one = Operation.addOperation(withPath: "/a", value: [1, 2.0, NSNull(), ["x": true]] as [Any])
    #expect(one == Operation.addOperation(withPath: "/a", value: [1.0, 2, NSNull(), ["x": true]] as [Any]))
    #expect(one != Operation.addOperation(withPath: "/a", value: [1, 2, NSNull(), ["x": 1]] as [Any]))
    #expect(one != Operation.replaceOperation(withPath: "/a", value: one.value))
    #expect(one != Operation.addOperation(withPath: "/b", value: one.value))
    #expect(Operation.moveOperation(from: "/a", to: "/b") != Operation.moveOperation(from: "/c", to: "/b"))
    #expect(Operation.removeOperation(withPath: "/\u{e9}") != Operation.removeOperation(withPath: "/e\u{301}"))
    #expect(!one.isEqual("add"))
    #expect("\(one)" == "add /a" && "\(Operation.moveOperation(from: "/a", to: "/b"))" == "move /a to /b")
  }

  // MARK: - Archives and copies

  @Test(arguments: dictionaries) func coding(text: String) throws {
    let dictionary = try #require(try JSONPatchTexts.value(text) as? [String: Any])
    let operation = try Operation(dictionary: dictionary)
    let other = try Archive.roundTrip(operation)
    #expect(other == operation && other !== operation)
    #expect(try JSONPatchTexts.text(other.dictionaryRepresentation) == text)
    #expect(operation.copy() as? Operation === operation)
  }

  @Test func codingOfWhatIsNotJSON() throws {
    var deep: Any = 1
    for _ in 0..<2000 { deep = [deep] }
    for value in [Date(), Double.nan, [Data()], deep] as [Any] {
      let operation = Operation.addOperation(withPath: "", value: value)
      let data = try NSKeyedArchiver.archivedData(withRootObject: operation, requiringSecureCoding: true)
      #expect((try? NSKeyedUnarchiver.unarchivedObject(ofClass: Operation.self, from: data)) == nil)
    }
  }

  /// Archives with something missing, wrong, or hostile.
  @Test func codingFromElsewhere() throws {
    func read(_ write: (NSKeyedArchiver) -> Void) throws -> Operation? {
      let archiver = NSKeyedArchiver(requiringSecureCoding: true)
      write(archiver)
      archiver.finishEncoding()
      let decoder = try NSKeyedUnarchiver(forReadingFrom: archiver.encodedData)
      decoder.decodingFailurePolicy = .setErrorAndReturn
      return Operation(coder: decoder)
    }
    func write(_ archiver: NSKeyedArchiver, _ type: Int64, _ texts: [String: String], _ value: String?) {
      archiver.encode(type, forKey: "type")
      for (key, text) in texts { archiver.encode(text as NSString, forKey: key) }
      if let value { archiver.encode(Data(value.utf8) as NSData, forKey: "value") }
    }
    #expect(try read { write($0, 1, ["path": "/a"], "[1]") } == Operation.addOperation(withPath: "/a", value: [1]))
    #expect(try read { write($0, 4, ["path": "/a", "from": ""], nil) } == Operation.moveOperation(from: "", to: "/a"))
    for type in [0, 7, -1, .min, .max] as [Int64] { #expect(try read { write($0, type, ["path": ""], "1") } == nil) }
    #expect(try read { write($0, 1, [:], "1") } == nil)
    #expect(try read { write($0, 5, ["path": ""], "1") } == nil)
    for text in [nil, "", "[", "[1] 2", "\u{feff}", "x"] {
      #expect(try read { write($0, 3, ["path": ""], text) } == nil)
    }
    let deep = String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000)
    #expect(try read { write($0, 1, ["path": ""], deep) } == nil)
  }

  /// A program's own subclass, which the functions create.
  @Test func subclasses() throws {
    final class Change: AFJSONPatchOperation, @unchecked Sendable {}
    #expect(Change.addOperation(withPath: "/a", value: 1).isMember(of: Change.self))
    let patch = try Change.operations(withPatch: try JSONPatchTexts.value(#"[{"op":"remove","path":"/a"}]"#))
    #expect(patch.first?.isMember(of: Change.self) == true)
    #expect(try JSONPatchTexts.text(Change.apply(patch, to: ["a": 1])) == "{}")
  }
}
