import AFNetworking
import AFNetworkingXML
import Foundation
import LarkspurTestServer
import Testing

@Suite struct HTTPClientTests {
  let server: TestServer
  let client: AFHTTPClient

  init() throws {
    server = try TestServer()
    client = AFHTTPClient(baseURL: try #require(URL(string: server.url())))
    client.completionQueue = OperationKit.queue
  }

  private func body(_ request: NSMutableURLRequest) -> String {
    String(decoding: request.httpBody ?? Data(), as: UTF8.self)
  }

  @Test func aNewOne() throws {
    #expect(client.stringEncoding == String.Encoding.utf8.rawValue && client.parameterEncoding == .form)
    #expect(client.defaultValue(forHeader: "Accept-Language") != nil)
    #expect(client.defaultValue(forHeader: "user-agent") != nil)
    #expect(client.defaultSSLPinningMode == .none && !client.allowsInvalidSSLCertificate)
    let other = AFHTTPClient.client(withBaseURL: try #require(URL(string: "http://a.example/v1")))
    #expect(other.baseURL.absoluteString == "http://a.example/v1/" && other.description.contains("a.example"))
    #expect(AFFormURLParameterEncoding == .form && AFPropertyListParameterEncoding == .propertyList)
  }

  @Test func defaultFields() {
    client.setDefaultHeader("x-some-key", value: "SomeValue")
    #expect(client.defaultValue(forHeader: "X-Some-Key") == "SomeValue")
    let request = client.request(withMethod: "GET", path: "/path", parameters: nil)
    #expect(request.value(forHTTPHeaderField: "x-some-key") == "SomeValue")
    client.setDefaultHeader("X-SOME-KEY", value: nil)
    #expect(client.defaultValue(forHeader: "x-some-key") == nil)
    client.setAuthorizationHeaderWithToken("abc")
    #expect(client.defaultValue(forHeader: "Authorization") == "Token token=\"abc\"")
    client.setAuthorizationHeaderWithUsername("user", password: "pass")
    #expect(client.defaultValue(forHeader: "Authorization") == "Basic dXNlcjpwYXNz")
    client.clearAuthorizationHeader()
    #expect(client.request(withMethod: "GET", path: "/").value(forHTTPHeaderField: "Authorization") == nil)
  }

  @Test func reachability() async throws {
    let results = Results<AFNetworkReachabilityStatus>()
    #expect(client.networkReachabilityStatus == .unknown || client.networkReachabilityStatus == .reachableViaWiFi)
    client.setReachabilityStatusChangeBlock { results.add($0) }
    // The server is on this machine, so the loopback interface reaches it.
    while try await results.next() != .reachableViaWiFi {}
    #expect(client.networkReachabilityStatus == .reachableViaWiFi)
  }

  // MARK: - Requests

  @Test func parametersInTheQuery() {
    for method in ["GET", "HEAD", "DELETE"] {
      let request = client.request(withMethod: method, path: "a?b=c", parameters: ["d": "e f", "n": NSNull()])
      #expect(request.url?.absoluteString == server.url("/a?b=c&d=e%20f&n") && request.httpBody == nil)
      #expect(request.httpMethod == method)
    }
    #expect(client.request(withMethod: "GET", path: nil).url?.absoluteString == server.url("/"))
  }

  @Test func parametersInTheBody() {
    let form = client.request(withMethod: "POST", path: "post", parameters: ["key": "value"])
    #expect(body(form) == "key=value")
    #expect(form.value(forHTTPHeaderField: "Content-Type") == "application/x-www-form-urlencoded; charset=utf-8")
    client.parameterEncoding = AFJSONParameterEncoding
    let json = client.request(withMethod: "POST", path: "post", parameters: ["key": "value"])
    #expect(body(json) == "{\"key\":\"value\"}")
    #expect(json.value(forHTTPHeaderField: "Content-Type") == "application/json; charset=utf-8")
    client.parameterEncoding = .propertyList
    let list = client.request(withMethod: "PUT", path: "put", parameters: ["key": "value"])
    #expect(body(list).hasPrefix("<?xml") && body(list).contains("<key>key</key>\n\t<string>value</string>"))
    #expect(list.value(forHTTPHeaderField: "Content-Type") == "application/x-plist; charset=utf-8")
  }

  /// Parameters that cannot be encoded fail the request, and nothing is sent.
  @Test func whatCannotBeWrittenFails() async throws {
    client.parameterEncoding = .json
    let request = client.request(withMethod: "POST", path: "post", parameters: ["date": Date()])
    #expect(request.url == nil)
    client.parameterEncoding = .propertyList
    #expect(client.request(withMethod: "POST", path: "post", parameters: ["n": NSNull()]).url == nil)
    let results = Results<Bool>()
    client.postPath("post", parameters: ["n": NSNull()]) { _, _ in
      results.add(false)
    } failure: { (_: AFHTTPRequestOperation, _: any Error) in
      results.add(true)
    }
    #expect(try await results.next())
    #expect(server.requestsReceived == 0)
    #expect(client.multipartFormRequest(withMethod: "GET", path: "a", constructingBodyWith: nil).url == nil)
  }

  @Test func queries() {
    let utf8 = String.Encoding.utf8.rawValue
    #expect(AFQueryStringFromParametersWithEncoding(["key": "value"], utf8) == "key=value")
    let nested: [AnyHashable: Any] = ["key1": "value1", "key2": ["key": [1, "value"] as [Any]]]
    #expect(
      AFQueryStringFromParametersWithEncoding(nested, utf8) == "key1=value1&key2[key][]=1&key2[key][]=value")
    #expect(AFQueryStringFromParametersWithEncoding(["key1": "\u{e4}"], utf8) == "key1=%C3%A4")
    #expect(
      AFQueryStringFromParametersWithEncoding(["a": "\u{e4}[]"], String.Encoding.isoLatin1.rawValue) == "a=%E4%5B%5D")
    #expect(
      AFQueryStringFromParametersWithEncoding(["a:": ":/?&=;+!@#$()',*~-._"], utf8)
        == "a%3A=%3A%2F%3F%26%3D%3B%2B%21%40%23%24%28%29%27%2C%2A~-._")
    #expect(AFQueryStringFromParametersWithEncoding(nil, utf8) == "")
    #expect(AFQueryStringFromParametersWithEncoding(["s": Set(["b", "a"])], utf8) == "s=a&s=b")
  }

  // MARK: - Operations

  private func type(_ request: NSMutableURLRequest) -> AFHTTPRequestOperation.Type {
    Swift.type(of: client.httpRequestOperation(with: request as URLRequest, success: nil, failure: nil))
  }

  @Test(arguments: [
    ("application/json", AFJSONRequestOperation.self as AFHTTPRequestOperation.Type),
    ("application/xml", AFXMLRequestOperation.self), ("image/png", AFImageRequestOperation.self),
    ("application/x-plist", AFPropertyListRequestOperation.self),
  ])
  func classesChooseThemselves(accept: String, kind: AFHTTPRequestOperation.Type) {
    let request = client.request(withMethod: "GET", path: "/path", parameters: nil)
    request.setValue(accept, forHTTPHeaderField: "Accept")
    #expect(type(request) == AFHTTPRequestOperation.self)
    #expect(client.registerHTTPOperationClass(kind))
    #expect(type(request) == kind)
    client.unregisterHTTPOperationClass(kind)
    #expect(type(request) == AFHTTPRequestOperation.self)
    #expect(!client.registerHTTPOperationClass(NSObject.self))
  }

  final class Always: AFHTTPRequestOperation, @unchecked Sendable {
    override class func canProcess(_ urlRequest: URLRequest) -> Bool { true }
  }

  @Test func theLatestClassGoesFirst() {
    let request = client.request(withMethod: "GET", path: "/a.json", parameters: nil)
    client.registerHTTPOperationClass(AFJSONRequestOperation.self)
    client.registerHTTPOperationClass(Always.self)
    #expect(type(request) == Always.self)
    client.registerHTTPOperationClass(AFJSONRequestOperation.self)
    #expect(type(request) == AFJSONRequestOperation.self)
  }

  @Test func operationsHaveTheClientsSettings() throws {
    let credential = URLCredential(user: "username", password: "password", persistence: .none)
    client.setDefaultCredential(credential)
    client.allowsInvalidSSLCertificate = true
    let request = client.request(withMethod: "GET", path: "/") as URLRequest
    let operation = client.httpRequestOperation(with: request, success: nil, failure: nil)
    #expect(operation.credential === credential && operation.securityPolicy.allowInvalidCertificates)
    #expect(!operation.securityPolicy.validatesDomainName)
    client.allowsInvalidSSLCertificate = false
    client.defaultSSLPinningMode = .publicKey
    let pinned = client.httpRequestOperation(with: request, success: nil, failure: nil)
    #expect(pinned.securityPolicy.sslPinningMode == .publicKey && !pinned.securityPolicy.allowInvalidCertificates)
    let next = client.httpRequestOperation(with: request, success: nil, failure: nil)
    #expect(pinned.securityPolicy === next.securityPolicy)
  }

  @Test func onlyWhatMatchesIsCancelled() throws {
    client.operationQueue.isSuspended = true
    let requests = [("GET", "/ip"), ("GET", "/path"), ("POST", "/path")].map {
      client.request(withMethod: $0, path: $1, parameters: nil)
    }
    client.enqueueBatchOfHTTPRequestOperations(withRequests: requests)
    client.cancelAllHTTPOperations(withMethod: "GET", path: "/path")
    let operations = client.operationQueue.operations.compactMap { $0 as? AFHTTPRequestOperation }
    #expect(operations.map(\.isCancelled) == [false, true, false])
    client.cancelAllHTTPOperations(withMethod: nil, path: "path?query")
    #expect(operations.map(\.isCancelled) == [false, true, true])
    client.operationQueue.cancelAllOperations()
    client.operationQueue.isSuspended = false
  }

  @Test func aBatchEndsBehindItsOperations() async throws {
    let results = Results<String>()
    let request = client.request(withMethod: "GET", path: "/get", parameters: nil) as URLRequest
    let operations = (0..<2).map { _ in
      client.httpRequestOperation(with: request, success: { _, _ in results.add("one") }, failure: nil)
    }
    client.enqueueBatchOfHTTPRequestOperations(operations) { finished, total in
      #expect(finished > 0 && finished <= 2 && total == 2)
    } completionBlock: { finished in
      results.add("all \(finished.count)")
    }
    #expect(try await [results.next(), results.next(), results.next()] == ["one", "one", "all 2"])
  }

  @Test func aBatchOfRequestsHasTheRegisteredClasses() {
    client.registerHTTPOperationClass(AFJSONRequestOperation.self)
    client.registerHTTPOperationClass(AFImageRequestOperation.self)
    let requests = ["application/json", "image/png"].map { type in
      let request = client.request(withMethod: "GET", path: "/", parameters: nil)
      request.setValue(type, forHTTPHeaderField: "Accept")
      return request as URLRequest
    }
    client.operationQueue.isSuspended = true
    client.enqueueBatchOfHTTPRequestOperations(withRequests: requests)
    let operations = client.operationQueue.operations
    #expect(operations.count == 3 && operations[0] is AFJSONRequestOperation)
    #expect(operations[1] is AFImageRequestOperation && operations[2] is BlockOperation)
    client.operationQueue.cancelAllOperations()
    client.operationQueue.isSuspended = false
  }

  // MARK: - Verbs

  @Test func theVerbs() async throws {
    let results = Results<Int>()
    for run in [client.getPath, client.postPath, client.putPath, client.deletePath, client.patchPath] {
      run("/anything/a", ["b": "c"], { operation, _ in results.add(operation.response.statusCode) }, nil)
      #expect(try await results.next() == 200)
    }
    #expect(server.requests.map(\.method) == ["GET", "POST", "PUT", "DELETE", "PATCH"])
    let queries = server.requests.map { $0.target.hasSuffix("?b=c") }
    #expect(queries == [true, false, false, true, false])
    #expect(server.requests.map(\.bodyText) == ["", "b=c", "b=c", "", "b=c"])
  }

  @Test func authorization() async throws {
    server.route("GET", "/secret") { request in
      .init(status: request.fields["authorization"] == "Basic dXNlcjpwYXNz" ? 200 : 401)
    }
    let results = Results<Int>()
    client.getPath("/secret", failure: { operation, _ in results.add(operation.response.statusCode) })
    #expect(try await results.next() == 401)
    client.setAuthorizationHeaderWithUsername("user", password: "pass")
    client.getPath("/secret", success: { operation, _ in results.add(operation.response.statusCode) })
    #expect(try await results.next() == 200)
  }

  /// CVE-2025-27152: an absolute URL of another server gets no credentials; the other default headers are sent.
  @Test(arguments: ["http://b.example/", "//b.example/", "https://127.0.0.1/"])
  func credentialsAreNotSentToAnotherServer(path: String) {
    client.setAuthorizationHeaderWithUsername("user", password: "pass")
    client.setDefaultHeader("X-Own", value: "own")
    for request in [
      client.request(withMethod: "GET", path: path, parameters: nil),
      client.multipartFormRequest(withMethod: "POST", path: path, parameters: nil) { _ in },
    ] {
      #expect(request.value(forHTTPHeaderField: "Authorization") == nil)
      #expect(request.value(forHTTPHeaderField: "X-Own") == "own")
    }
    let whole = client.request(withMethod: "GET", path: server.url("/x"), parameters: nil)
    #expect(whole.value(forHTTPHeaderField: "Authorization") != nil)
  }

  @Test func formsInParts() async throws {
    client.setDefaultHeader("X-Own", value: "own")
    client.setDefaultHeader("Accept-Language", value: "xx")
    let request = client.multipartFormRequest(withMethod: "POST", path: "/post", parameters: ["foo": "bar"]) { form in
      form.appendPart(
        withFileData: Data("image".utf8), name: "icon[image]", fileName: "icon.png", mimeType: "image/png")
    }
    let operation = client.httpRequestOperation(with: request as URLRequest, success: nil, failure: nil)
    client.enqueueHTTPRequestOperation(operation)
    await operation.isOver()
    #expect(operation.error == nil)
    let sent = try #require(server.requests.first)
    #expect(sent.bodyText.contains("name=\"foo\"\r\n\r\nbar") && sent.bodyText.contains("\r\n\r\nimage\r\n"))
    #expect(sent.fields["x-own"] == "own" && sent.fields["accept-language"] == "xx")
  }

  // MARK: - Archives and copies

  @Test func archivesAndCopies() throws {
    client.setDefaultHeader("X-Own", value: "own")
    client.parameterEncoding = .json
    client.registerHTTPOperationClass(Always.self)
    let data = try NSKeyedArchiver.archivedData(withRootObject: client, requiringSecureCoding: false)
    let archive = try NSKeyedUnarchiver(forReadingFrom: data)
    archive.requiresSecureCoding = false
    let read = try #require(archive.decodeObject(forKey: NSKeyedArchiveRootObjectKey) as? AFHTTPClient)
    for other in [read, try #require(client.copy() as? AFHTTPClient)] {
      #expect(other.baseURL == client.baseURL && other.parameterEncoding == .json)
      #expect(other.defaultValue(forHeader: "X-Own") == "own" && other.stringEncoding == client.stringEncoding)
      #expect(other.operationQueue !== client.operationQueue)
    }
  }
}
