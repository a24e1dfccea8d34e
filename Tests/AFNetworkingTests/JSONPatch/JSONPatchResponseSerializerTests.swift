import AFNetworking
import Foundation
import Testing

@Suite struct JSONPatchResponseSerializerTests {
  let serializer = AFJSONPatchResponseSerializer()
  let patch = #"[{"op":"add","path":"/a","value":null},{"op":"remove","path":"/b"}]"#
  let type = "application/json-patch+json"

  @Test func operations() throws {
    for type in [type, "application/json-patch+json; charset=utf-8"] {
      let (object, error) = serializer.read(try Responses.make(type: type), patch)
      let operations = try #require(object as? [AFJSONPatchOperation])
      #expect(operations.map(\.type) == [.addOperationType, .removeOperationType] && error == nil)
    }
    #expect((serializer.read(try Responses.make(type: type), "[]").object as? [AFJSONPatchOperation])?.isEmpty == true)
  }

  @Test func otherTypes() throws {
    for type in ["application/json", "text/html", nil] {
      let (object, error) = serializer.read(try Responses.make(type: type), patch)
      #expect(object == nil && error?.code == NSURLErrorCannotDecodeContentData)
    }
    let wide = AFJSONPatchResponseSerializer.serializer()
    wide.acceptableContentTypes?.insert("application/json")
    #expect(wide.read(try Responses.make(type: "application/json"), patch).error == nil)
  }

  /// One invalid operation, or JSON of another kind, is an error, and gives no operations.
  @Test(arguments: [
    (#"[{"op":"add","path":"/a","value":1},{"op":"add","path":"/b"}]"#, 2), ("[1]", 1), (#"{"op":"remove"}"#, 1),
  ])
  func invalid(text: String, code: Int) throws {
    let (object, error) = serializer.read(try Responses.make(type: type), text)
    #expect(object == nil && error?.domain == AFJSONPatchErrorDomain && error?.code == code)
  }

  @Test func noPatchAtAll() throws {
    let broken = serializer.read(try Responses.make(type: type), "[{")
    #expect(broken.object == nil && broken.error?.domain == NSCocoaErrorDomain)
    let empty = serializer.read(try Responses.make(204, type: nil), nil)
    #expect(empty.object == nil && empty.error == nil)
  }

  @Test func aWrongStatus() throws {
    let (object, error) = serializer.read(try Responses.make(409, type: type), patch)
    #expect((object as? [AFJSONPatchOperation])?.count == 2 && error?.code == NSURLErrorBadServerResponse)
    let other = serializer.read(try Responses.make(409, type: type), #"{"title":"conflict"}"#)
    #expect(other.object == nil && other.error?.domain == AFJSONPatchErrorDomain)
    let underlying = other.error?.userInfo[NSUnderlyingErrorKey] as? NSError
    #expect(underlying?.code == NSURLErrorBadServerResponse)
  }

  /// A null is the value of an operation.
  @Test func nullsStay() throws {
    serializer.removesKeysWithNullValues = true
    let object = serializer.read(try Responses.make(type: type), patch).object
    #expect((object as? [AFJSONPatchOperation])?.first?.value is NSNull)
  }

  @Test func copies() throws {
    serializer.acceptableContentTypes = ["a/b"]
    serializer.readingOptions = .fragmentsAllowed
    let copy = try #require(serializer.copy() as? AFJSONPatchResponseSerializer)
    for other in [copy, try Archive.roundTrip(serializer)] {
      #expect(other !== serializer && other.acceptableContentTypes == ["a/b"])
      #expect(other.readingOptions == .fragmentsAllowed)
    }
  }
}
