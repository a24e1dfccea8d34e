import AFNetworking
import Foundation
import Larkspur
import Testing

/// Tests the parameters and header fields of requests.
@Suite struct RequestSerializerTests {
  let serializer = AFHTTPRequestSerializer()

  private func request(_ url: String = "http://example.com", method: String = "GET") throws -> URLRequest {
    var request = URLRequest(url: try #require(URL(string: url)))
    request.httpMethod = method
    return request
  }

  private func text(_ data: Data?) -> String? { data.map { String(decoding: $0, as: UTF8.self) } }

  // MARK: - Places of parameters

  @Test func aPostHasAForm() throws {
    let result = try #require(
      serializer.request(bySerializingRequest: request(method: "POST"), withParameters: ["key": "value"], error: nil))
    #expect(result.value(forHTTPHeaderField: "Content-Type") == "application/x-www-form-urlencoded")
    #expect(text(result.httpBody) == "key=value")
    #expect(result.url?.query == nil)
  }

  @Test func aPostWithoutParametersHasAnEmptyForm() throws {
    let result = try serializer.request(bySerializingRequest: request(method: "POST"), withParameters: nil)
    #expect(result.value(forHTTPHeaderField: "Content-Type") == "application/x-www-form-urlencoded")
    #expect(result.httpBody == Data())
  }

  @Test(arguments: ["GET", "HEAD", "DELETE", "get"])
  func theseMethodsHaveAQuery(method: String) throws {
    let result = try serializer.request(
      bySerializingRequest: request(method: method), withParameters: ["key": "value"])
    #expect(result.url?.query == "key=value")
    #expect(result.httpBody == nil)
    #expect(result.value(forHTTPHeaderField: "Content-Type") == nil)
  }

  @Test func whichMethodsHaveAQueryCanBeSet() throws {
    serializer.httpMethodsEncodingParametersInURI = ["POST"]
    let post = try serializer.request(bySerializingRequest: request(method: "POST"), withParameters: ["a": 1])
    #expect(post.url?.absoluteString == "http://example.com?a=1")
    let delete = try serializer.request(bySerializingRequest: request(method: "DELETE"), withParameters: ["a": 1])
    #expect(text(delete.httpBody) == "a=1")
  }

  @Test(arguments: [
    ("http://example.com", "http://example.com?a=1"), ("http://example.com/p?q=2", "http://example.com/p?q=2&a=1"),
    ("http://example.com/p#there", "http://example.com/p?a=1#there"),
    ("http://example.com/?", "http://example.com/?&a=1"),
  ])
  func aQueryGoesBehindWhatIsThere(url: String, expected: String) throws {
    let result = try serializer.request(bySerializingRequest: request(url), withParameters: ["a": 1])
    #expect(result.url?.absoluteString == expected)
  }

  @Test func noParametersLeaveTheURLAlone() throws {
    for parameters in [nil, [String: Any]()] {
      let result = try serializer.request(bySerializingRequest: request(), withParameters: parameters)
      #expect(result.url?.absoluteString == "http://example.com")
    }
  }

  @Test func aContentTypeThatIsThereStays() throws {
    var post = try request(method: "POST")
    post.setValue("application/x-own", forHTTPHeaderField: "content-type")
    let result = try serializer.request(bySerializingRequest: post, withParameters: ["a": 1])
    #expect(result.value(forHTTPHeaderField: "Content-Type") == "application/x-own")
  }

  @Test func aFormIsInTheSerializersEncoding() throws {
    serializer.stringEncoding = String.Encoding.utf16LittleEndian.rawValue
    let result = try serializer.request(bySerializingRequest: request(method: "POST"), withParameters: ["a": 1])
    #expect(result.httpBody == "a=1".data(using: .utf16LittleEndian))
    serializer.stringEncoding = 9_999
    var error: NSError?
    #expect(
      try serializer.request(
        bySerializingRequest: request(method: "POST"), withParameters: ["a": 1], error: &error) == nil)
    #expect(error?.domain == AFURLRequestSerializationErrorDomain)
    let failing = error?.userInfo[AFNetworkingOperationFailingURLRequestErrorKey] as? URLRequest
    #expect(failing?.url == URL(string: "http://example.com"))
  }

  // MARK: - Blocks

  @Test func aBlockWritesQueries() throws {
    serializer.setQueryStringSerializationWith { request, parameters, _ in
      let dictionary = parameters as? [String: String] ?? [:]
      return dictionary.map { "\($0)**\($1)\(request.httpMethod ?? "")" }.joined()
    }
    let result = try serializer.request(bySerializingRequest: request(), withParameters: ["key": "value"])
    #expect(result.url?.query == "key**valueGET")
    let post = try serializer.request(bySerializingRequest: request(method: "POST"), withParameters: ["key": "value"])
    #expect(text(post.httpBody) == "key**valuePOST")
    serializer.setQueryStringSerializationWith(.defaultStyle)
    let usual = try serializer.request(bySerializingRequest: request(), withParameters: ["key": "value"])
    #expect(usual.url?.query == "key=value")
  }

  @Test func aBlockMayFail() throws {
    let problem = NSError(domain: "TestDomain", code: 7)
    serializer.setQueryStringSerializationWith { _, _, error in
      error?.pointee = problem
      return nil
    }
    var error: NSError?
    #expect(try serializer.request(bySerializingRequest: request(), withParameters: ["a": 1], error: &error) == nil)
    #expect(error == problem)
    let thrown = #expect(throws: NSError.self) {
      try serializer.request(withMethod: "GET", urlString: "url", parameters: [String: Any]())
    }
    #expect(thrown == problem)
    // The block is not called without parameters.
    _ = try serializer.request(withMethod: "GET", urlString: "url", parameters: nil)
  }

  @Test func aFailureWithoutErrorPointerGivesARequestWithoutURL() {
    serializer.setQueryStringSerializationWith { _, _, error in
      error?.pointee = NSError(domain: "TestDomain", code: 7)
      return ""
    }
    let request = serializer.request(withMethod: "POST", urlString: "http://a", parameters: ["a": 1], error: nil)
    #expect(request.url == nil)
    #expect(request.httpMethod == "POST")
    var error: NSError?
    _ = serializer.request(withMethod: "POST", urlString: "http://a", parameters: ["a": 1], error: &error)
    #expect(error?.domain == "TestDomain")
  }

  @Test func aURLThatIsNoneIsAnError() {
    let error = #expect(throws: NSError.self) {
      try serializer.request(withMethod: "GET", urlString: "http://[", parameters: nil)
    }
    #expect(error?.domain == AFURLRequestSerializationErrorDomain)
    #expect(error?.code == URLError.Code.badURL.rawValue)
  }

  // MARK: - Properties of requests

  @Test func requestsHaveOnlyWhatHasBeenSet() throws {
    let plain = try serializer.request(withMethod: "PUT", urlString: "http://a/b", parameters: nil)
    #expect(plain.httpMethod == "PUT")
    #expect(plain.url?.absoluteString == "http://a/b")
    #expect(plain.timeoutInterval == 60)
    #expect(plain.allowsCellularAccess)
    serializer.timeoutInterval = 12.5
    serializer.allowsCellularAccess = false
    serializer.cachePolicy = .returnCacheDataElseLoad
    serializer.httpShouldHandleCookies = false
    serializer.httpShouldUsePipelining = true
    serializer.networkServiceType = .background
    let set = try serializer.request(withMethod: "PUT", urlString: "http://a/b", parameters: nil)
    #expect(set.timeoutInterval == 12.5)
    #expect(!set.allowsCellularAccess)
    #expect(set.cachePolicy == .returnCacheDataElseLoad)
    #expect(!set.httpShouldHandleCookies)
    #expect(set.httpShouldUsePipelining)
    #expect(set.networkServiceType == .background)
    // A request that the program made keeps its own properties.
    #expect(try serializer.request(bySerializingRequest: request(), withParameters: nil).timeoutInterval == 60)
  }

  @Test func theDefaultsAreTheDocumentedOnes() {
    #expect(serializer.stringEncoding == String.Encoding.utf8.rawValue)
    #expect(serializer.allowsCellularAccess)
    #expect(serializer.cachePolicy == .useProtocolCachePolicy)
    #expect(serializer.httpShouldHandleCookies)
    #expect(!serializer.httpShouldUsePipelining)
    #expect(serializer.networkServiceType == .default)
    #expect(serializer.timeoutInterval == 60)
    #expect(serializer.httpMethodsEncodingParametersInURI == ["GET", "HEAD", "DELETE"])
  }

  // MARK: - Header fields

  @Test func fieldsAreSetReadAndRemoved() throws {
    #expect(serializer.value(forHTTPHeaderField: "X-Unset") == nil)
    serializer.setValue("one", forHTTPHeaderField: "X-Own")
    #expect(serializer.value(forHTTPHeaderField: "x-own") == "one")
    serializer.setValue("two", forHTTPHeaderField: "x-own")
    #expect(serializer.httpRequestHeaders.filter { $0.key.lowercased() == "x-own" } == ["x-own": "two"])
    let get = try serializer.request(bySerializingRequest: request(), withParameters: nil)
    #expect(get.value(forHTTPHeaderField: "X-Own") == "two")
    serializer.setValue(nil, forHTTPHeaderField: "X-Own")
    #expect(serializer.value(forHTTPHeaderField: "x-own") == nil)
    #expect(serializer.httpRequestHeaders.keys.allSatisfy { $0.lowercased() != "x-own" })
  }

  @Test func aRequestsOwnFieldsStay() throws {
    serializer.setValue("default", forHTTPHeaderField: "X-Own")
    var get = try request()
    get.setValue("own", forHTTPHeaderField: "x-own")
    let result = try serializer.request(bySerializingRequest: get, withParameters: nil)
    #expect(result.value(forHTTPHeaderField: "X-Own") == "own")
  }

  @Test func authorizationIsBasicInUTF8() {
    serializer.setAuthorizationHeaderFieldWithUsername("Aladdin", password: "open sesame")
    #expect(serializer.value(forHTTPHeaderField: "Authorization") == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
    serializer.setAuthorizationHeaderFieldWithUsername("test", password: "123\u{A3}")
    #expect(serializer.value(forHTTPHeaderField: "Authorization") == "Basic dGVzdDoxMjPCow==")
    serializer.clearAuthorizationHeader()
    #expect(serializer.value(forHTTPHeaderField: "Authorization") == nil)
  }

  @Test func fieldsMayBeSetOnManyThreads() async {
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<1_000 {
        group.addTask { [serializer] in
          serializer.setValue("value \(number)", forHTTPHeaderField: "X-Frequent")
          _ = serializer.httpRequestHeaders
        }
      }
    }
    #expect(serializer.value(forHTTPHeaderField: "X-Frequent")?.hasPrefix("value ") == true)
  }
}
