import AFNetworking
import Testing

/// Code as programs for Apple's systems have it: it must compile and do the same.
@Suite struct ImportedSpellingTests {
  /// A program's own serializer, which overrides the methods that can be overridden.
  private final class TokenSerializer: AFJSONRequestSerializer, @unchecked Sendable {
    override func request(
      withMethod method: String, urlString URLString: String, parameters: Any?, error: NSErrorPointer
    )
      -> NSMutableURLRequest
    {
      let request = super.request(withMethod: method, urlString: URLString, parameters: parameters, error: error)
      request.setValue("token", forHTTPHeaderField: "X-Token")
      return request
    }

    override func request(
      bySerializingRequest request: URLRequest, withParameters parameters: Any?, error: NSErrorPointer
    )
      -> URLRequest?
    {
      guard var params = parameters as? [AnyHashable: Any] else {
        error?.pointee = NSError(domain: "Parameters", code: 1, userInfo: nil)
        return nil
      }
      params["version"] = "1"
      return super.request(bySerializingRequest: request, withParameters: params, error: error)
    }
  }

  @Test func anOverriddenSerializerIsAsked() throws {
    let serializer = TokenSerializer(writingOptions: .sortedKeys)
    let request = serializer.request(
      withMethod: "POST", urlString: "http://a", parameters: ["a": "b"], error: nil)
    #expect(request.value(forHTTPHeaderField: "X-Token") == "token")
    let body = try #require(request.httpBody)
    #expect(String(decoding: body, as: UTF8.self) == "{\"a\":\"b\",\"version\":\"1\"}")
    var error: NSError?
    _ = serializer.request(withMethod: "POST", urlString: "http://a", parameters: nil, error: &error)
    #expect(error?.domain == "Parameters")
  }

  /// The functions accept `error: nil`, `error: &error` and an `NSErrorPointer`, and can be called with `try`.
  @Test func errorsAreTakenInEveryWay() throws {
    let serializer = AFHTTPRequestSerializer.serializer()
    let one = AFHTTPRequestSerializer().request(withMethod: "GET", urlString: "http://a", parameters: nil, error: nil)
    one.addValue("application/json", forHTTPHeaderField: "Accept")
    let two = serializer.request(withMethod: "GET", urlString: "http://a", parameters: nil, error: nil) as URLRequest
    #expect(two.httpMethod == "GET")
    let three = try? AFJSONRequestSerializer().request(withMethod: "POST", urlString: "http://a", parameters: ["a": 1])
    #expect(three?.httpBody != nil)
    let pointer: NSErrorPointer = nil
    #expect(serializer.request(bySerializingRequest: two, withParameters: nil, error: pointer) != nil)
  }

  @Test func formsAreBuiltInEveryWay() throws {
    var error: NSError?
    let first: NSMutableURLRequest = AFHTTPRequestSerializer().multipartFormRequest(
      withMethod: "POST", urlString: "http://a", parameters: nil,
      constructingBodyWith: { (formData: (any AFMultipartFormData)!) -> Void in
        formData.appendPart(withFileData: Data([1]), name: "avatar", fileName: "avatar.jpg", mimeType: "image/jpeg")
        formData.appendPart(withForm: Data([2]), name: "file")
        formData.appendPart(withHeaders: nil, body: Data([3]))
        formData.appendPart(
          with: InputStream(data: Data([4])), name: "stream", fileName: "s", length: Int64(1), mimeType: "a/b")
        formData.throttleBandwidth(
          withPacketSize: kAFUploadStream3GSuggestedPacketSize, delay: kAFUploadStream3GSuggestedDelay)
      }, error: &error)
    #expect(error == nil)
    #expect(first.httpBodyStream != nil)
    let second = AFHTTPRequestSerializer().multipartFormRequest(
      withMethod: "PUT", urlString: "http://a", parameters: ["a": 1],
      constructingBodyWith: { formData in
        do {
          try formData.appendPart(withFileURL: URL(fileURLWithPath: "/missing"), name: "file")
        } catch {
          formData.appendPart(withForm: Data(), name: "missing")
        }
        try? formData.appendPart(
          withFileURL: URL(fileURLWithPath: "/missing"), name: "file", fileName: "yy.mp4", mimeType: "video/mp4")
      }, error: nil)
    #expect(second.value(forHTTPHeaderField: "Content-Type")?.hasPrefix("multipart/form-data; boundary=") == true)
    #expect(kAFUploadStream3GSuggestedPacketSize == 16_384)
    #expect(kAFUploadStream3GSuggestedDelay == 0.2)
  }

  @Test func namesAndNumbersAreThoseOfAFNetworking() {
    #expect(AFURLRequestSerializationErrorDomain == "com.alamofire.error.serialization.request")
    #expect(AFNetworkingOperationFailingURLRequestErrorKey == "com.alamofire.serialization.request.error.response")
    #expect(AFHTTPRequestQueryStringSerializationStyle.defaultStyle.rawValue == 0)
    #expect(AFJSONRequestSerializer.supportsSecureCoding)
    let serializer: any AFURLRequestSerialization = AFPropertyListRequestSerializer.serializer()
    #expect(serializer.copy(with: nil) is AFPropertyListRequestSerializer)
  }
}
