import AFNetworking
import Foundation
import Testing

/// Tests request bodies in JSON and as property lists.
@Suite struct BodySerializerTests {
  private func text(_ data: Data?) -> String? { data.map { String(decoding: $0, as: UTF8.self) } }

  // MARK: - JSON

  @Test func jsonIsABody() throws {
    let serializer = AFJSONRequestSerializer()
    let object = try serializer.request(withMethod: "POST", urlString: "http://a", parameters: ["key": "value"])
    #expect(text(object.httpBody) == "{\"key\":\"value\"}")
    #expect(object.value(forHTTPHeaderField: "Content-Type") == "application/json")
    #expect(object.value(forHTTPHeaderField: "User-Agent") != nil)
    let array = try serializer.request(withMethod: "POST", urlString: "http://a", parameters: [["key": "value"]])
    #expect(text(array.httpBody) == "[{\"key\":\"value\"}]")
  }

  @Test func jsonGoesIntoTheQueryOfAGet() throws {
    let request = try AFJSONRequestSerializer().request(
      withMethod: "GET", urlString: "http://a/b", parameters: ["key": "value"])
    #expect(request.url?.absoluteString == "http://a/b?key=value")
    #expect(request.httpBody == nil)
  }

  @Test func noParametersAreNoBody() throws {
    for serializer in [AFJSONRequestSerializer(), AFPropertyListRequestSerializer()] {
      let request = try serializer.request(withMethod: "POST", urlString: "http://a", parameters: nil)
      #expect(request.httpBody == nil)
      #expect(request.value(forHTTPHeaderField: "Content-Type") == nil)
    }
  }

  @Test func writingOptionsCount() throws {
    let serializer = AFJSONRequestSerializer(writingOptions: [.sortedKeys, .withoutEscapingSlashes])
    #expect(serializer.writingOptions == [.sortedKeys, .withoutEscapingSlashes])
    let request = try serializer.request(withMethod: "PATCH", urlString: "http://a", parameters: ["b": "/", "a": "1"])
    #expect(text(request.httpBody) == "{\"a\":\"1\",\"b\":\"/\"}")
    #expect(AFJSONRequestSerializer().writingOptions == [])
  }

  @Test(arguments: ["date", "nan", "fragment"])
  func whatIsNoJSONIsAnError(kind: String) {
    let parameters: Any =
      switch kind {
      case "date": ["key": Date()]
      case "nan": ["key": Double.nan]
      default: "text"
      }
    var error: NSError?
    let request = AFJSONRequestSerializer().request(
      withMethod: "POST", urlString: "http://a", parameters: parameters, error: &error)
    #expect(request.url == nil)
    #expect(error?.domain == AFURLRequestSerializationErrorDomain)
    #expect(error?.code == URLError.Code.cannotDecodeContentData.rawValue)
    #expect(error?.localizedFailureReason == "The `parameters` argument is not valid JSON.")
  }

  // MARK: - Property lists

  @Test(arguments: [PropertyListSerialization.PropertyListFormat.xml, .binary])
  func propertyListsAreABody(format: PropertyListSerialization.PropertyListFormat) throws {
    let serializer = AFPropertyListRequestSerializer(format: format, writeOptions: 0)
    let request = try serializer.request(
      withMethod: "POST", urlString: "http://a", parameters: ["key": "value", "data": Data([1, 2])])
    #expect(request.value(forHTTPHeaderField: "Content-Type") == "application/x-plist")
    var found = PropertyListSerialization.PropertyListFormat.openStep
    let list = try PropertyListSerialization.propertyList(
      from: #require(request.httpBody), options: [], format: &found)
    let dictionary = try #require(list as? [String: Any])
    #expect(dictionary["key"] as? String == "value")
    #expect(dictionary["data"] as? Data == Data([1, 2]))
    #expect(found == format)
  }

  @Test func propertyListsAreXMLByDefault() {
    #expect(AFPropertyListRequestSerializer().format == .xml)
    #expect(AFPropertyListRequestSerializer().writeOptions == 0)
  }

  @Test func aPropertyListGoesIntoTheQueryOfAHead() throws {
    let request = try AFPropertyListRequestSerializer().request(
      withMethod: "HEAD", urlString: "http://a", parameters: ["key": "value"])
    #expect(request.url?.absoluteString == "http://a?key=value")
  }

  @Test(arguments: [PropertyListSerialization.PropertyListFormat.xml, .binary, .openStep])
  func whatIsNoPropertyListIsAnError(format: PropertyListSerialization.PropertyListFormat) {
    let serializer = AFPropertyListRequestSerializer(format: format, writeOptions: 0)
    let parameters: Any = format == .openStep ? ["key": "value"] : [42: "value"]
    let error = #expect(throws: NSError.self) {
      try serializer.request(withMethod: "POST", urlString: "http://a", parameters: parameters)
    }
    #expect(error?.domain == NSCocoaErrorDomain)
    let codes = [CocoaError.propertyListWriteInvalid.rawValue, CocoaError.propertyListWriteStream.rawValue]
    #expect(codes.contains(error?.code ?? 0))
  }
}
