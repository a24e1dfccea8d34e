import AFNetworking
import Foundation
import TestKit
import Testing

/// Each limit: at its value, and one past it.
@Suite struct JSONPatchLimitTests {
  typealias Operation = AFJSONPatchOperation

  private func nested(_ depth: Int) -> String {
    String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
  }

  @Test func depthOfValues() throws {
    #expect(AFJSONPatchLimits().depthMax == 512)
    // The document's own array, and then that of the value.
    #expect(try JSONPatchTexts.reason(#"[{"op":"add","path":"/0","value":\#(nested(500))}]"#, to: "[]") == nil)
    var limits = AFJSONPatchLimits()
    limits.depthMax = 5
    for operation in ["add", "replace", "test"] {
      let patch = #"[{"op":"\#(operation)","path":"/0","value":\#(nested(4))}]"#
      #expect(try JSONPatchTexts.reason(patch, to: "[\(nested(4))]", limits: limits) == nil)
      let deeper = #"[{"op":"\#(operation)","path":"/0","value":\#(nested(5))}]"#
      #expect(try JSONPatchTexts.reason(deeper, to: "[\(nested(5))]", limits: limits) == .tooDeep("/0"))
    }
    for operation in ["copy", "move"] {
      let patch = #"[{"op":"\#(operation)","from":"/a","path":"/b/c"}]"#
      #expect(try JSONPatchTexts.reason(patch, to: #"{"a":\#(nested(3)),"b":{}}"#, limits: limits) == nil)
      let reason = try JSONPatchTexts.reason(patch, to: #"{"a":\#(nested(4)),"b":{}}"#, limits: limits)
      #expect(reason == .tooDeep("/b/c"))
    }
    let object = #"{"a":{"b":{"c":{"d":1}}}}"#
    for (path, reason) in [("/a/b/c/d", nil), ("/a/b/c/d/e", .missingTarget("/a/b/c/d/e"))]
      as [(String, AFJSONPatchError.Reason?)]
    {
      #expect(
        try JSONPatchTexts.reason(#"[{"op":"add","path":"\#(path)","value":1}]"#, to: object, limits: limits) == reason)
    }
    let long = #"[{"op":"remove","path":"/a/b/c/d/e/f"}]"#
    #expect(try JSONPatchTexts.reason(long, to: object, limits: limits) == .tooDeep("/a/b/c/d/e/f"))
    limits.depthMax = .min
    #expect(
      try JSONPatchTexts.reason(#"[{"op":"add","path":"/a","value":1}]"#, to: "{}", limits: limits) == .tooDeep("/a"))
  }

  /// A path of a million tokens, and a document that is deeper than any limit.
  @Test func depthOfPathsAndDocuments() throws {
    let path = String(repeating: "/a", count: 1_000_000)
    #expect(throws: AFJSONPatchError(.tooDeep(path), operationIndex: 0)) {
      try Operation.addOperation(withPath: path, value: 1).apply(to: [String: Any]())
    }
    var deep: Any = [Any]()
    for _ in 0..<2000 { deep = [deep] }
    let document: [String: Any] = ["a": deep, "b": 1]
    for operation in [
      Operation.copyOperation(from: "/a", to: "/c"), Operation.testOperation(withPath: "/a", value: deep),
      Operation.replaceOperation(withPath: "/b", value: deep),
    ] {
      #expect(throws: AFJSONPatchError.self) { try operation.apply(to: document) }
    }
    #expect(throws: AFJSONPatchError(.testFailed("/a"), operationIndex: 0)) {
      try Operation.testOperation(withPath: "/a", value: [1]).apply(to: document)
    }
    let changed = try Operation.replaceOperation(withPath: "/b", value: 2).apply(to: document) as? [String: Any]
    #expect(changed?["b"] as? Int == 2)
  }

  /// Copies that double the document: 2, 4, 8, ... values.
  @Test func doubling() throws {
    let patch = (0..<64).map { #"{"op":"copy","from":"","path":"/\#($0)"}"# }.joined(separator: ",")
    #expect(try JSONPatchTexts.reason("[\(patch)]", to: "{}") == .tooMuchWork("/20"))
    let nested = (0..<64).map { _ in #"{"op":"copy","from":"/a","path":"/a/a"}"# }.joined(separator: ",")
    #expect(try JSONPatchTexts.reason("[\(nested)]", to: #"{"a":{"a":{}}}"#) == nil)
  }

  @Test func carriedValues() throws {
    #expect(AFJSONPatchLimits().carriedValuesMax == 1 << 20)
    var limits = AFJSONPatchLimits()
    // An array of three counts as four.
    let copies = #"[{"op":"copy","from":"/a","path":"/b"},{"op":"copy","from":"/a","path":"/c"}]"#
    let document = #"{"a":[1,2,3],"z":{}}"#
    limits.carriedValuesMax = 8
    #expect(try JSONPatchTexts.reason(copies, to: document, limits: limits) == nil)
    limits.carriedValuesMax = 7
    #expect(try JSONPatchTexts.reason(copies, to: document, limits: limits) == .tooMuchWork("/c"))
    // A move counts if it goes deeper.
    let deeper = #"[{"op":"move","from":"/a","path":"/z/a"}]"#
    limits.carriedValuesMax = 4
    #expect(try JSONPatchTexts.reason(deeper, to: document, limits: limits) == nil)
    limits.carriedValuesMax = 3
    #expect(try JSONPatchTexts.reason(deeper, to: document, limits: limits) == .tooMuchWork("/z/a"))
    limits.carriedValuesMax = 0
    let beside = #"[{"op":"move","from":"/a","path":"/b"},{"op":"add","path":"/c","value":[1,2,3]}]"#
    #expect(try JSONPatchTexts.reason(beside, to: document, limits: limits) == nil)
    limits.carriedValuesMax = .min
    #expect(try JSONPatchTexts.reason(copies, to: document, limits: limits) == .tooMuchWork("/b"))
  }

  /// A text of 100 KB, which a patch copies 3,000 times.
  @Test func copiesOfALongText() throws {
    let text = String(repeating: "x", count: 100_000)
    let copies = (0..<3000).map { Operation.copyOperation(from: "/a", to: "/\($0)") }
    #expect(throws: AFJSONPatchError(.tooMuchWork("/167"), operationIndex: 167)) {
      try Operation.apply(copies, to: ["a": text])
    }
    // A name counts as a text does.
    #expect(throws: AFJSONPatchError(.tooMuchWork("/167"), operationIndex: 167)) {
      try Operation.apply(copies, to: ["a": [text: true]])
    }
  }

  @Test func carriedBytes() throws {
    #expect(AFJSONPatchLimits().carriedBytesMax == 1 << 24)
    let copy = #"[{"op":"copy","from":"/a","path":"/b"}]"#
    for (json, count) in [
      ("null", 4), ("true", 5), ("1", 20), ("1.5", 24), (#""""#, 2), (#""é""#, 4), (##""\u0001\"\\""##, 12), ("[]", 2),
      ("[[],[]]", 8), (#"{"n":null}"#, 11),
    ] {
      var limits = AFJSONPatchLimits()
      limits.carriedBytesMax = count
      #expect(try JSONPatchTexts.reason(copy, to: #"{"a":\#(json)}"#, limits: limits) == nil, "\(json)")
      limits.carriedBytesMax = count - 1
      #expect(try JSONPatchTexts.reason(copy, to: #"{"a":\#(json)}"#, limits: limits) == .tooMuchWork("/b"), "\(json)")
    }
    var limits = AFJSONPatchLimits()
    // A move counts if it goes deeper.
    limits.carriedBytesMax = 0
    let moves = [
      (#"[{"op":"move","from":"/a","path":"/b"}]"#, nil), (#"[{"op":"move","from":"/a","path":"/z/a"}]"#, "/z/a"),
    ]
    for (move, path) in moves {
      let reason = try JSONPatchTexts.reason(move, to: #"{"a":"x","z":{}}"#, limits: limits)
      #expect(reason == path.map { .tooMuchWork($0) })
    }
    limits.carriedBytesMax = .min
    #expect(try JSONPatchTexts.reason(copy, to: #"{"a":1}"#, limits: limits) == .tooMuchWork("/b"))
  }

  @Test func shiftedElements() throws {
    #expect(AFJSONPatchLimits().shiftedElementsMax == 1 << 28)
    var limits = AFJSONPatchLimits()
    // An insertion before three elements, and a removal with three behind it.
    let patch = #"[{"op":"add","path":"/0","value":0},{"op":"add","path":"/-","value":4},{"op":"remove","path":"/1"}]"#
    limits.shiftedElementsMax = 7
    #expect(try JSONPatchTexts.apply(patch, to: "[1,2,3]", limits: limits) == "[0,2,3,4]")
    limits.shiftedElementsMax = 6
    #expect(try JSONPatchTexts.reason(patch, to: "[1,2,3]", limits: limits) == .tooMuchWork("/1"))
    limits.shiftedElementsMax = 0
    #expect(try JSONPatchTexts.reason(#"[{"op":"add","path":"/3","value":4}]"#, to: "[1,2,3]", limits: limits) == nil)
    limits.shiftedElementsMax = -1
    #expect(try JSONPatchTexts.reason(patch, to: "[1,2,3]", limits: limits) == .tooMuchWork("/0"))
  }

  /// Twenty thousand changes of a container of twenty thousand: each is made in place.
  @Test(.ownThread) func manyOperations() throws {
    let count = 20_000
    let document: [String: Any] = ["list": [Any](repeating: 0, count: count), "other": [1]]
    var operations = (0..<count).map { Operation.replaceOperation(withPath: "/list/\($0)", value: $0) }
    operations += (0..<count).map { _ in Operation.addOperation(withPath: "/list/-", value: [String: Any]()) }
    operations += (0..<count).map { Operation.addOperation(withPath: "/list/\(count + $0)/x", value: $0) }
    let result = try Operation.apply(operations, to: document) as? [String: Any]
    let list = try #require(result?["list"] as? [Any])
    #expect(list.count == 2 * count && list[count - 1] as? Int == count - 1)
    #expect((list.last as? [String: Any])?["x"] as? Int == count - 1)
    #expect((document["list"] as? [Any])?[1] as? Int == 0)
  }
}
