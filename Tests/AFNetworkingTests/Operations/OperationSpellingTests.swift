import AFNetworking
import Foundation
import LarkspurTestServer
import Testing

/// Code as tutorials show it: it must compile and run.
@Suite struct OperationSpellingTests {
  @Test func aDownloadWithProgress() async throws {
    let server = try TestServer()
    let file = try OperationKit.directory().appending(path: "file")
    defer { try? FileManager.default.removeItem(at: file.deletingLastPathComponent()) }
    let done = Results<String>()

    let request = URLRequest(url: URL(string: server.url("/bytes/1000"))!)
    let operation = AFHTTPRequestOperation(request: request)
    operation.outputStream = OutputStream(toFileAtPath: file.path, append: false)
    operation.setDownloadProgressBlock { bytesRead, totalBytesRead, totalBytesExpectedToRead in
      let progress = Float(totalBytesRead) / Float(totalBytesExpectedToRead)
      print("progress: \(progress), \(bytesRead)")
    }
    operation.setCompletionBlockWithSuccess(
      { (operation, responseObject) in
        done.add("saved \(operation.response.statusCode)")
      },
      failure: { (operation, error) in
        done.add("failed \(error.localizedDescription)")
      })
    operation.start()

    #expect(try await done.next() == "saved 200")
    #expect(try Data(contentsOf: file).count == 1000)
  }

  @Test func aManagerOfVersionTwo() async throws {
    let server = try TestServer()
    let done = Results<String>()

    let manager = AFHTTPRequestOperationManager(baseURL: URL(string: server.url()))
    manager.requestSerializer = AFJSONRequestSerializer()
    manager.responseSerializer = AFJSONResponseSerializer()
    manager.post(
      "/post", parameters: ["user": "a"],
      success: { (operation: AFHTTPRequestOperation, responseObject: Any) in
        done.add("JSON: \((responseObject as? [String: Any])?["data"] ?? "")")
      },
      failure: { (operation: AFHTTPRequestOperation?, error: Error) in
        done.add("Error: " + error.localizedDescription)
      })
    #expect(try await done.next() == "JSON: {\"user\":\"a\"}")

    manager.GET(
      "/status/404", parameters: nil,
      success: { operation, responseObject in done.add("success") },
      failure: { operation, error in done.add("\(operation?.response?.statusCode ?? 0)") })
    #expect(try await done.next() == "404")
  }

  @Test func aBatchOfUploads() async throws {
    let server = try TestServer()
    let done = Results<Int>()
    var operations = [AFHTTPRequestOperation]()
    let serializer = AFHTTPRequestSerializer()
    for number in 0..<3 {
      let request = serializer.multipartFormRequest(
        withMethod: "POST", urlString: server.url("/post"), parameters: nil,
        constructingBodyWith: { formData in
          formData.appendPart(withForm: Data("\(number)".utf8), name: "number")
        }, error: nil)
      operations.append(AFHTTPRequestOperation(request: request as URLRequest))
    }
    let batch = AFURLConnectionOperation.batch(
      ofRequestOperations: operations,
      progressBlock: { (numberOfFinishedOperations, totalNumberOfOperations) in
        print("\(numberOfFinishedOperations) of \(totalNumberOfOperations) complete")
      },
      completionBlock: { (operations) in done.add(operations.count) })
    func enqueue() { OperationQueue.main.addOperations(batch as! [Operation], waitUntilFinished: false) }
    enqueue()
    #expect(try await done.next() == 3)
    #expect(server.requestsReceived == 3)
  }

  @Test func aClientOfVersionOne() async throws {
    let server = try TestServer()
    let done = Results<String>()

    let client = AFHTTPClient(baseURL: URL(string: server.url())!)
    client.registerHTTPOperationClass(AFJSONRequestOperation.self)
    client.setDefaultHeader("Accept", value: "application/json")
    client.parameterEncoding = AFJSONParameterEncoding
    client.postPath(
      "/post", parameters: ["a": "b"],
      success: { operation, JSON in done.add("\((JSON as? [String: Any])?["data"] ?? "")") },
      failure: { operation, error in done.add("\(error)") })
    #expect(try await done.next() == "{\"a\":\"b\"}")
    // The signatures that an Objective-C header without nullability annotations produces.
    client.getPath(
      "/get", parameters: nil,
      success: { (operation: AFHTTPRequestOperation?, JSON: Any?) in
        done.add(operation?.response?.url?.path ?? "")
      },
      failure: { (operation: AFHTTPRequestOperation?, error: Error?) in done.add("failed") })
    #expect(try await done.next() == "/get")
    client.getPath(
      "/status/404", parameters: nil, success: { (operation: AFHTTPRequestOperation?, JSON: Any?) in done.add("200") },
      failure: { (operation: AFHTTPRequestOperation?, error: Error?) in done.add("failed \(error != nil)") })
    #expect(try await done.next() == "failed true")
  }

  @Test func anOperationOfVersionOne() async throws {
    let authority = try TestCA()
    let server = try TestServer(tls: TestServer.TLS(certificate: try authority.issue()))
    let done = Results<String>()

    let operation = AFJSONRequestOperation(
      request: URLRequest(url: URL(string: server.url("/redirect/1"))!),
      success: { request, response, JSON in done.add(response?.url?.path ?? "") },
      failure: { request, response, error, JSON in done.add("\(error)") })
    operation.allowsInvalidSSLCertificate = true
    operation.setRedirectResponseBlock { (connection: NSURLConnection?, request: URLRequest?, response: URLResponse?) in
      done.add(connection?.originalRequest.url?.path ?? "")
      return request
    }
    operation.setCacheResponseBlock { connection, cachedResponse in nil }
    operation.start()
    #expect(try await [done.next(), done.next()] == ["/redirect/1", "/get"])

    #expect(operation.sslPinningMode == .none && operation.allowsInvalidSSLCertificate)
    operation.sslPinningMode = .certificate
    #expect(operation.securityPolicy.sslPinningMode == .certificate && operation.allowsInvalidSSLCertificate)
    operation.sslPinningMode = .none
    operation.allowsInvalidSSLCertificate = false
    #expect(operation.securityPolicy.validatesDomainName && !operation.securityPolicy.allowInvalidCertificates)
  }
}
