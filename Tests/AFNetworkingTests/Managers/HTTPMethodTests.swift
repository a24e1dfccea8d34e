import AFNetworking
import LarkspurTestServer
import Testing

/// Tests the functions that take a method's path and parameters, and the values that their blocks get.
@Suite struct HTTPMethodTests {
  let fixture: ManagerFixture
  var manager: AFHTTPSessionManager { fixture.manager }

  init() throws {
    fixture = try ManagerFixture()
    fixture.manager.requestSerializer.setValue("default value", forHTTPHeaderField: "Field")
  }

  @Test func get() async {
    let outcome = await outcome {
      manager.get("get", parameters: ["key": "value"], headers: nil, progress: nil, success: $0, failure: $1)
    }
    #expect(outcome["args", "key"] == "value" && outcome["headers", "Field"] == "default value")
    #expect(outcome.error == nil && outcome.task?.state == .completed)
    #expect(outcome.isOnMain)
  }

  @Test func head() async {
    let outcome = await outcome { success, failure in
      manager.head("get", parameters: nil, headers: nil, success: { success($0, nil) }, failure: failure)
    }
    #expect(outcome.error == nil && outcome.task?.originalRequest?.httpMethod == "HEAD")
    #expect((outcome.response as? HTTPURLResponse)?.statusCode == 200)
  }

  @Test func post() async {
    let outcome = await outcome {
      manager.post(
        "post", parameters: ["key": "value"], headers: ["Field": "value"], progress: nil, success: $0, failure: $1)
    }
    #expect(outcome.task?.originalRequest?.allHTTPHeaderFields?["Field"] == "value")
    #expect(outcome["form", "key"] == "value" && outcome["headers", "Field"] == "value")
  }

  @Test func postOfAForm() async throws {
    let outcome = await outcome {
      manager.post(
        "post", parameters: ["key": "value"], headers: ["Field": "value"],
        constructingBodyWith: { form in
          form.appendPart(withFileData: Data("Data".utf8), name: "DataName", fileName: "DataFileName", mimeType: "data")
        }, progress: nil, success: $0, failure: $1)
    }
    let body = try #require(outcome["data"])
    #expect(outcome["headers", "Field"] == "value")
    #expect(outcome["headers", "Content-Type"]?.hasPrefix("multipart/form-data; boundary=") == true)
    #expect(body.contains("name=\"key\"\r\n\r\nvalue\r\n"))
    #expect(body.contains("name=\"DataName\"; filename=\"DataFileName\"\r\n"))
    #expect(outcome["bodyCount"] == outcome["headers", "Content-Length"])
  }

  @Test func put() async {
    let outcome = await outcome {
      manager.put("put", parameters: ["key": "value"], headers: ["Field": "value"], success: $0, failure: $1)
    }
    #expect(outcome["form", "key"] == "value" && outcome["headers", "Field"] == "value" && outcome["method"] == "PUT")
  }

  @Test func patch() async {
    let outcome = await outcome {
      manager.patch("patch", parameters: ["key": "value"], headers: ["Field": "value"], success: $0, failure: $1)
    }
    #expect(outcome["form", "key"] == "value" && outcome["headers", "Field"] == "value" && outcome["method"] == "PATCH")
  }

  @Test func delete() async {
    let outcome = await outcome {
      manager.delete("delete", parameters: ["key": "value"], headers: ["Field": "value"], success: $0, failure: $1)
    }
    #expect(
      outcome["args", "key"] == "value" && outcome["headers", "Field"] == "value" && outcome["method"] == "DELETE")
  }

  /// The functions of versions 2 and 3 have fewer parameters.
  @Test func spellingsOfEarlierVersions() async {
    let first = await outcome { manager.get("get", parameters: nil, success: $0, failure: $1) }
    let second = await outcome { manager.get("get", parameters: nil, progress: nil, success: $0, failure: $1) }
    let third = await outcome {
      manager.post(
        "post", parameters: nil,
        constructingBodyWith: { $0.appendPart(withForm: Data("x".utf8), name: "y") },
        success: $0, failure: $1)
    }
    #expect(first.error == nil && second.error == nil && third.error == nil)
  }

  @Test func anyMethod() async throws {
    let outcome = await outcome { success, failure in
      manager.dataTask(
        withHTTPMethod: "OPTIONS", urlString: "anything", parameters: nil, headers: ["X-Foo": "request value"],
        uploadProgress: nil, downloadProgress: nil, success: success, failure: failure)?.resume()
    }
    #expect(outcome["method"] == "OPTIONS" && outcome["headers", "X-Foo"] == "request value")
  }

  /// A field given with a request replaces the serializer's field for this request only.
  @Test func fieldsOfOneRequest() async {
    manager.requestSerializer.setValue("foo value", forHTTPHeaderField: "X-Foo")
    manager.requestSerializer.setValue("bar value", forHTTPHeaderField: "X-Bar")
    let first = await outcome {
      manager.get("get", parameters: nil, headers: ["X-Foo": "request value"], progress: nil, success: $0, failure: $1)
    }
    #expect(first["headers", "X-Foo"] == "request value" && first["headers", "X-Bar"] == "bar value")
    let second = await outcome {
      manager.get("get", parameters: nil, headers: nil, progress: nil, success: $0, failure: $1)
    }
    #expect(second["headers", "X-Foo"] == "foo value")
  }

  @Test func statusDecides() async throws {
    let good = await outcome { manager.get("status/200", parameters: nil, success: $0, failure: $1) }
    #expect(good.error == nil)
    let bad = await outcome { manager.get("status/404", parameters: nil, success: $0, failure: $1) }
    let error = try #require(bad.error)
    #expect(error.domain == AFURLResponseSerializationErrorDomain && error.code == NSURLErrorBadServerResponse)
    #expect(error.userInfo[AFNetworkingOperationFailingURLResponseErrorKey] as? HTTPURLResponse === bad.response)
    #expect(error.userInfo[AFNetworkingOperationFailingURLResponseDataErrorKey] is Data)
    #expect(bad.task != nil)
    let empty = await outcome { manager.get("status/204", parameters: nil, success: $0, failure: $1) }
    #expect(empty.error == nil && empty.object == nil && empty.task != nil)
  }

  /// A response with an unacceptable status yields its object together with the error.
  @Test func errorAndObject() async throws {
    let request = try fixture.request("/status/404")
    let outcome = await outcome { manager.dataTask(with: request, completionHandler: $0).resume() }
    #expect(outcome.error != nil && outcome["status"] == "404")
    #expect((outcome.response as? HTTPURLResponse)?.statusCode == 404)
  }

  /// If the parameters cannot be encoded, the failure block runs on the completion queue, and no task is made.
  @Test func parametersThatCannotBeWritten() async throws {
    manager.requestSerializer.setQueryStringSerializationWith { _, _, error in
      error?.pointee = NSError(domain: "Custom", code: -1, userInfo: nil)
      return ""
    }
    let journal = Journal()
    let outcome = await outcome { success, failure in
      let task = manager.get("test", parameters: ["key": "value"], success: success, failure: failure)
      journal.note(task == nil ? "no task" : "task")
    }
    #expect(outcome.task == nil && outcome.error?.domain == "Custom" && outcome.isOnMain)
    await journal.wait(for: "no task")

    let queue = DispatchQueue(label: "completion")
    queue.setSpecific(key: Self.key, value: 7)
    manager.completionQueue = queue
    let other = await withCheckedContinuation { continuation in
      manager.post(
        "http://[", parameters: nil, constructingBodyWith: { _ in }, success: nil,
        failure: { _, error in continuation.resume(returning: DispatchQueue.getSpecific(key: Self.key)) })
    }
    #expect(other == 7)
    #expect(manager.tasks.isEmpty)
  }

  private static let key = DispatchSpecificKey<Int>()

  /// All blocks may be `nil`.
  @Test func blocksMayBeNil() async throws {
    manager.get("get", parameters: nil, headers: nil, progress: nil, success: nil, failure: nil)
    manager.get("http://[", parameters: nil, headers: nil, progress: nil, success: nil, failure: nil)
    _ = try await fixture.server.waitForRequests(1)
  }

  // MARK: - Base URLs

  @Test(arguments: [
    ("", ""), ("/v1", "/v1/"), ("/v1/", "/v1/"), ("/a/b", "/a/b/"),
  ])
  func baseURLsEndWithASlash(path: String, directory: String) throws {
    let manager = AFHTTPSessionManager(baseURL: URL(string: "https://example.com" + path))
    #expect(manager.baseURL?.absoluteString == "https://example.com" + directory)
    #expect(AFHTTPSessionManager().baseURL == nil)
    #expect(AFHTTPSessionManager(sessionConfiguration: .ephemeral).baseURL == nil)
    #expect(AFHTTPSessionManager.manager().baseURL == nil)
  }

  @Test(arguments: [
    ("foo", "/anything/v1/foo"), ("foo?bar=baz", "/anything/v1/foo?bar=baz"), ("/anything/foo", "/anything/foo"),
    ("foo/", "/anything/v1/foo/"), ("../foo", "/anything/foo"), ("", "/anything/v1/"),
  ])
  func pathsAreRelative(path: String, target: String) async throws {
    let manager = AFHTTPSessionManager(baseURL: try fixture.url("/anything/v1"), sessionConfiguration: .ephemeral)
    defer { manager.invalidateSessionCancelingTasks(true, resetSession: false) }
    let outcome = await outcome { manager.get(path, parameters: nil, success: $0, failure: $1) }
    #expect(outcome["target"] == target)
  }

  @Test func wholeURLs() async throws {
    let manager = AFHTTPSessionManager(
      baseURL: URL(string: "http://nowhere.invalid/"), sessionConfiguration: .ephemeral)
    defer { manager.invalidateSessionCancelingTasks(true, resetSession: false) }
    let url = fixture.server.url("/get")
    let outcome = await outcome { manager.get(url, parameters: nil, success: $0, failure: $1) }
    #expect(outcome["target"] == "/get")
  }

  // MARK: - Credentials

  /// CVE-2025-27152: the credentials for the server of the base URL are not sent to another server that an absolute URL
  /// names. A call may set its own credentials for it.
  @Test func credentialsAreNotSentToAnotherServer() async throws {
    let other = try TestServer()
    manager.requestSerializer.setAuthorizationHeaderFieldWithUsername("user", password: "password")
    for url in [other.url("/anything"), "//\(other.authority)/anything"] {
      #expect(await outcome { manager.get(url, parameters: nil, success: $0, failure: $1) }.error == nil)
      let posted = await outcome {
        manager.post(
          url, parameters: nil,
          constructingBodyWith: { $0.appendPart(withForm: Data("b".utf8), name: "a") }, success: $0, failure: $1)
      }
      #expect(posted.error == nil)
    }
    let own = ["Authorization": "mine"]
    _ = await outcome { manager.get(other.url("/get"), parameters: nil, headers: own, success: $0, failure: $1) }
    #expect(other.requests.map { $0.fields["authorization"] } == [nil, nil, nil, nil, "mine"])
    for url in [fixture.server.url("/get"), "//\(fixture.server.authority)/get"] {
      _ = await outcome { manager.get(url, parameters: nil, success: $0, failure: $1) }
    }
    #expect(fixture.server.requests.allSatisfy { $0.fields["authorization"] != nil })
  }

  @Test func credentialsOfTheSerializer() async {
    manager.requestSerializer.setAuthorizationHeaderFieldWithUsername("user", password: "password")
    let outcome = await outcome { manager.get("secret", parameters: nil, success: $0, failure: $1) }
    #expect(outcome.error == nil)
    #expect(fixture.server.requestsReceived == 1)
  }

  /// A call that equals the previous one makes an equal request until the serializer changes. The next request shows
  /// the change.
  @Test func requestsThatFollowOneAnother() {
    let serializer = manager.requestSerializer
    func made(_ method: String, _ path: String, _ parameters: Any? = nil) -> URLRequest? {
      manager.dataTask(
        withHTTPMethod: method, urlString: path, parameters: parameters, success: nil, failure: nil)?.originalRequest
    }
    let first = made("GET", "get")
    #expect(first != nil && made("GET", "get") == first)
    #expect(made("GET", "get", ["key": "value"])?.url?.query == "key=value")
    #expect(made("GET", "get") == first)
    #expect(made("GET", "other")?.url?.path == "/other")
    #expect(made("HEAD", "other")?.httpMethod == "HEAD")
    serializer.setValue("another value", forHTTPHeaderField: "Field")
    #expect(made("HEAD", "other")?.value(forHTTPHeaderField: "Field") == "another value")
    serializer.timeoutInterval = 17
    #expect(made("HEAD", "other")?.timeoutInterval == 17)
    #expect(made("POST", "other")?.httpBody != nil)
    serializer.httpMethodsEncodingParametersInURI.insert("POST")
    #expect(made("POST", "other")?.httpBody == nil)
  }

  // MARK: - Serializers

  /// `responseSerializer` has the serializer's own type, so its content types can be changed in place.
  @Test func contentTypesInPlace() async {
    manager.responseSerializer.acceptableContentTypes?.insert("text/plain")
    #expect(manager.responseSerializer.acceptableContentTypes?.contains("application/json") == true)
    #expect((manager as AFURLSessionManager).responseSerializer === manager.responseSerializer)
    manager.responseSerializer = AFHTTPResponseSerializer()
    let outcome = await outcome { manager.get("get", parameters: nil, success: $0, failure: $1) }
    #expect(outcome.object is Data)
  }
}
