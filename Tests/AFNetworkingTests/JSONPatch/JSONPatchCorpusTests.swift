import AFNetworking
import Foundation
import TestKit
import Testing

/// The public test suite of JSON Patch: its own cases, and the examples of RFC 6902.
@Suite(.enabled(if: Corpora.shouldRun, "\(Corpora.absence)")) struct JSONPatchCorpusTests {
  @Test(arguments: [("tests", 95, 3), ("spec_tests", 17, 1)])
  func cases(file: String, count: Int, disabled: Int) throws {
    let json = try JSONSerialization.jsonObject(with: try Corpora.data("json-patch-tests/\(file).json"))
    let rows = try #require(json as? [[String: Any]])
    #expect(rows.count == count)
    var skipped = 0
    for (number, row) in rows.enumerated() {
      if row["disabled"] != nil {
        skipped += 1
        continue
      }
      let name: Comment = "\(file) \(number): \(row["comment"] as? String ?? "")"
      let document = try #require(row["doc"], name)
      let patch = try #require(row["patch"], name)
      let before = try JSONPatchTexts.text(document)
      do {
        let operations = try AFJSONPatchOperation.operations(withPatch: patch)
        let result = try AFJSONPatchOperation.apply(operations, to: document)
        #expect(row["error"] == nil, name)
        if let expected = row["expected"] {
          #expect(try JSONPatchTexts.text(result) == JSONPatchTexts.text(expected), name)
        }
      } catch {
        #expect(row["error"] != nil, "\(name): \(error)")
        #expect(error is AFJSONPatchError, name)
      }
      #expect(try JSONPatchTexts.text(document) == before, name)
    }
    #expect(skipped == disabled)
  }
}

/// JSON as text.
enum JSONPatchTexts {
  static func text(_ value: Any) throws -> String {
    let options: JSONSerialization.WritingOptions = [.fragmentsAllowed, .sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try JSONSerialization.data(withJSONObject: value, options: options), as: UTF8.self)
  }

  static func value(_ text: String) throws -> Any {
    try JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed)
  }

  static func operations(_ text: String) throws -> [AFJSONPatchOperation] {
    try AFJSONPatchOperation.operations(withPatch: value(text))
  }

  /// Applies a patch to a document, both as text.
  static func apply(_ patch: String, to document: String, limits: AFJSONPatchLimits = AFJSONPatchLimits()) throws
    -> String
  {
    try text(AFJSONPatchOperation.apply(operations(patch), to: value(document), limits: limits))
  }

  /// Returns the reason why a patch cannot be read or applied, or `nil` if it can.
  static func reason(
    _ patch: String, to document: String, limits: AFJSONPatchLimits = AFJSONPatchLimits()
  ) throws -> AFJSONPatchError.Reason? {
    do {
      _ = try apply(patch, to: document, limits: limits)
      return nil
    } catch let error as AFJSONPatchError {
      return error.reason
    }
  }
}
