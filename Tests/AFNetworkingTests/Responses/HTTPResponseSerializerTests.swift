import AFNetworking
import Foundation
import Testing

@Suite struct HTTPResponseSerializerTests {
  let serializer = AFHTTPResponseSerializer()

  @Test func defaults() {
    #expect(serializer.acceptableStatusCodes == IndexSet(integersIn: 200..<300))
    #expect(serializer.acceptableContentTypes == nil)
    #expect(serializer.stringEncoding == String.Encoding.utf8.rawValue)
    #expect(AFHTTPResponseSerializer.serializer() !== AFHTTPResponseSerializer.serializer())
  }

  @Test(arguments: 100..<600) func statusCodes(_ status: Int) throws {
    let response = try Responses.make(status, type: "text/html")
    let isGood = 200..<300 ~= status
    let isValid = (try? serializer.validate(response, data: Data("text".utf8))) != nil
    #expect(isValid == isGood)
    let (object, error) = serializer.read(response, "text")
    // The data is returned even with an error.
    #expect(object as? Data == Data("text".utf8))
    #expect((error == nil) == isGood)
  }

  @Test func whatAStatusErrorSays() throws {
    let response = try Responses.make(404, type: "text/plain")
    let error = try #require(serializer.read(response, "no").error)
    #expect(error.domain == "com.alamofire.error.serialization.response")
    #expect(error.domain == AFURLResponseSerializationErrorDomain && error.code == NSURLErrorBadServerResponse)
    #expect(error.localizedDescription == "Request failed: not found (404)")
    #expect(error.userInfo[AFNetworkingOperationFailingURLResponseErrorKey] as? HTTPURLResponse === response)
    #expect(error.userInfo[AFNetworkingOperationFailingURLResponseDataErrorKey] as? Data == Data("no".utf8))
    #expect(error.userInfo[NSURLErrorFailingURLErrorKey] as? URL == response.url)
    #expect(error.userInfo[NSUnderlyingErrorKey] == nil)
    let empty = try #require(serializer.read(response, nil).error)
    #expect(empty.userInfo[AFNetworkingOperationFailingURLResponseDataErrorKey] == nil)
    #expect(
      AFNetworkingOperationFailingURLResponseErrorKey == "com.alamofire.serialization.response.error.response")
    #expect(AFNetworkingOperationFailingURLResponseDataErrorKey == "com.alamofire.serialization.response.error.data")
  }

  @Test func contentTypes() throws {
    serializer.acceptableContentTypes = ["text/html"]
    let text = Data("text".utf8)
    for type in ["text/html", "TEXT/HTML; charset=utf-8"] {
      try serializer.validate(try Responses.make(type: type), data: text)
    }
    for (type, words) in [("text/plain", "text/plain"), (nil, "(null)")] {
      let response = try Responses.make(type: type)
      let error = try #require(serializer.read(response, text).error)
      #expect(error.code == NSURLErrorCannotDecodeContentData)
      #expect(error.localizedDescription == "Request failed: unacceptable content-type: \(words)")
      #expect(error.userInfo[AFNetworkingOperationFailingURLResponseDataErrorKey] as? Data == text)
    }
    serializer.acceptableContentTypes = nil
    try serializer.validate(try Responses.make(type: "x/y"), data: text)
  }

  /// An empty response has no content whose type could be wrong.
  @Test func emptyResponsesNeedNoType() throws {
    serializer.acceptableContentTypes = ["text/html"]
    for type in [nil, "text/plain"] {
      try serializer.validate(try Responses.make(205, type: type), data: nil)
      try serializer.validate(try Responses.make(205, type: type), data: Data())
    }
    #expect(throws: NSError.self) {
      try serializer.validate(try Responses.make(205, type: nil), data: Data("test".utf8))
    }
  }

  @Test func bothAreWrong() throws {
    serializer.acceptableContentTypes = ["text/html"]
    let error = try #require(serializer.read(try Responses.make(500, type: "a/b"), "x").error)
    #expect(error.code == NSURLErrorBadServerResponse)
    let underlying = try #require(error.userInfo[NSUnderlyingErrorKey] as? NSError)
    #expect(underlying.code == NSURLErrorCannotDecodeContentData)
    serializer.acceptableStatusCodes = nil
    #expect(serializer.read(try Responses.make(500, type: "text/html"), "x").error == nil)
  }

  @Test func otherResponsesAreTaken() throws {
    let url = try #require(URL(string: "data:,x"))
    let response = URLResponse(url: url, mimeType: "a/b", expectedContentLength: 1, textEncodingName: nil)
    serializer.acceptableContentTypes = ["text/html"]
    #expect(serializer.read(response, "x").error == nil)
    #expect(serializer.read(nil, "x").object as? Data == Data("x".utf8))
    #expect(serializer.read(nil, nil).object == nil)
  }

  /// A caller can pass no error pointer, and the variable stays unchanged on success.
  @Test func errorPointersAreOptional() throws {
    let response = try Responses.make(404, type: nil)
    #expect(serializer.responseObject(for: response, data: Data(), error: nil) as? Data == Data())
    var error: NSError? = NSError(domain: "before", code: 1)
    _ = serializer.responseObject(for: try Responses.make(type: nil), data: nil, error: &error)
    #expect(error?.domain == "before")
  }

  // MARK: - Archives and copies

  @Test func copies() throws {
    serializer.acceptableStatusCodes = IndexSet([100, 404]).union(IndexSet(integersIn: 200...204))
    serializer.acceptableContentTypes = ["test/type"]
    serializer.stringEncoding = String.Encoding.isoLatin1.rawValue
    let copy = try #require(serializer.copy() as? AFHTTPResponseSerializer)
    let archived = try Archive.roundTrip(serializer)
    for other in [copy, archived] {
      #expect(other !== serializer)
      #expect(other.acceptableStatusCodes == serializer.acceptableStatusCodes)
      #expect(other.acceptableContentTypes == serializer.acceptableContentTypes)
      #expect(other.stringEncoding == serializer.stringEncoding)
    }
    copy.acceptableContentTypes = []
    #expect(serializer.acceptableContentTypes == ["test/type"])
    #expect(AFHTTPResponseSerializer.supportsSecureCoding)
  }

  /// `nil` (everything is acceptable) survives a copy and an archive, although a new serializer has other values.
  @Test func copiesOfNothing() throws {
    serializer.acceptableStatusCodes = nil
    let copy = try #require(serializer.copy() as? AFHTTPResponseSerializer)
    let archived = try Archive.roundTrip(serializer)
    #expect(copy.acceptableStatusCodes == nil && archived.acceptableStatusCodes == nil)
    let json = AFJSONResponseSerializer()
    json.acceptableContentTypes = nil
    #expect(try Archive.roundTrip(json).acceptableContentTypes == nil)
    #expect((json.copy() as? AFJSONResponseSerializer)?.acceptableContentTypes == nil)
    json.acceptableStatusCodes = IndexSet()
    #expect(try Archive.roundTrip(json).acceptableStatusCodes == IndexSet())
  }

  /// A program's subclass keeps its class when copied.
  @Test func subclasses() throws {
    let own = Uppercase()
    own.acceptableContentTypes = ["a/b"]
    let copy = try #require(own.copy() as? Uppercase)
    #expect(copy !== own && copy.acceptableContentTypes == ["a/b"])
    #expect(copy.read(try Responses.make(type: "a/b"), "abc").object as? String == "ABC")
    let error = copy.read(try Responses.make(type: "a/b"), "").error
    #expect(error?.domain == "empty")
  }
}

/// A serializer as programs write it.
private final class Uppercase: AFHTTPResponseSerializer, @unchecked Sendable {
  override func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? {
    guard let bytes = super.responseObject(for: response, data: data, error: error) as? Data, !bytes.isEmpty else {
      error?.pointee = NSError(domain: "empty", code: 0)
      return nil
    }
    return String(decoding: bytes, as: UTF8.self).uppercased()
  }
}
