import AFNetworking
import Foundation
import Testing

@Suite struct JSONResponseSerializerTests {
  let serializer = AFJSONResponseSerializer()

  @Test(arguments: ["application/json", "text/json", "text/javascript", "application/json; charset=utf-8"])
  func types(_ type: String) throws {
    let (object, error) = serializer.read(try Responses.make(type: type), #"{"foo":"bar"}"#)
    #expect((object as? [String: Any])?["foo"] as? String == "bar")
    #expect(error == nil)
  }

  @Test(arguments: ["nonstandard/json", "text/html", nil]) func otherTypes(_ type: String?) throws {
    let (object, error) = serializer.read(try Responses.make(type: type), #"{"foo":"bar"}"#)
    #expect(object == nil && error?.code == NSURLErrorCannotDecodeContentData)
  }

  /// A response with a wrong status also yields its object, which often explains the error.
  @Test func aWrongStatusHasItsObject() throws {
    let (object, error) = serializer.read(try Responses.make(422, type: "application/json"), #"{"why":"x"}"#)
    #expect((object as? [String: Any])?["why"] as? String == "x")
    #expect(error?.code == NSURLErrorBadServerResponse)
    let page = serializer.read(try Responses.make(502, type: "text/html"), "<html>")
    #expect(page.object == nil && page.error?.code == NSURLErrorBadServerResponse)
  }

  @Test(arguments: ["{invalid}", "{", #"{"a":1} x"#]) func invalid(_ text: String) throws {
    let (object, error) = serializer.read(try Responses.make(type: "text/json"), text)
    #expect(object == nil && error?.domain == NSCocoaErrorDomain)
    // The status is wrong, too, but the error of the parser takes precedence.
    let late = try #require(serializer.read(try Responses.make(500, type: "text/json"), text).error)
    #expect(late.domain == NSCocoaErrorDomain)
  }

  @Test(arguments: ["", " "]) func nothing(_ text: String) throws {
    let (object, error) = serializer.read(try Responses.make(type: "text/json"), text)
    #expect(object == nil && error == nil)
    #expect(serializer.read(try Responses.make(204, type: nil), nil).error == nil)
  }

  @Test func fragments() throws {
    let response = try Responses.make(type: "text/json")
    #expect(AFJSONResponseSerializer(readingOptions: .fragmentsAllowed).read(response, "7").object as? Int == 7)
    serializer.readingOptions = .fragmentsAllowed
    #expect(serializer.read(response, #""x""#).object as? String == "x")
  }

  @Test func otherEncodings() throws {
    let data = try #require(#"{"ä":"€"}"#.data(using: .utf16))
    let object = serializer.read(try Responses.make(type: "text/json"), data).object as? [String: Any]
    #expect(object?["ä"] as? String == "€")
  }

  @Test func nulls() throws {
    let text = #"{"key":"value","null":null,"array":[{"null":null},null,[null],1],"inner":{"null":null,"a":[]}}"#
    let response = try Responses.make(type: "text/json")
    let whole = try #require(serializer.read(response, text).object as? [String: Any])
    #expect(whole["null"] is NSNull && (whole["array"] as? [Any])?.count == 4)
    serializer.removesKeysWithNullValues = true
    let rest = try #require(serializer.read(response, text).object as? [String: Any])
    #expect(Set(rest.keys) == ["key", "array", "inner"])
    let array = try #require(rest["array"] as? [Any])
    #expect(array.count == 3 && (array[0] as? [String: Any])?.isEmpty == true && (array[1] as? [Any])?.isEmpty == true)
    #expect((rest["inner"] as? [String: Any])?.count == 1)
    #expect(AFJSONObjectByRemovingKeysWithNullValues("x", []) as? String == "x")
    #expect(AFJSONObjectByRemovingKeysWithNullValues(NSNull(), []) is NSNull)
  }

  @Test func copies() throws {
    serializer.readingOptions = [.fragmentsAllowed, .mutableContainers]
    serializer.removesKeysWithNullValues = true
    serializer.acceptableContentTypes?.insert("text/html")
    let copy = try #require(serializer.copy() as? AFJSONResponseSerializer)
    for other in [copy, try Archive.roundTrip(serializer)] {
      #expect(other !== serializer && other.readingOptions == serializer.readingOptions)
      #expect(other.removesKeysWithNullValues && other.acceptableContentTypes?.count == 4)
    }
    let plain = try Archive.roundTrip(AFJSONResponseSerializer.serializer())
    #expect(plain.readingOptions == [] && !plain.removesKeysWithNullValues)
  }
}
