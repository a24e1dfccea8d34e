import AFNetworking
import AFNetworkingXML
import Foundation
import LarkspurTestServer
import Testing

/// Tests the operations of AFNetworking 1 for the formats of responses.
@Suite struct FormatOperationTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  private func serve(_ type: String, _ bytes: [UInt8], status: Int = 200) {
    server.route("GET", "/content") { _ in .init(status: status, fields: ["Content-Type": type], body: .bytes(bytes)) }
  }

  private func serve(_ type: String, _ text: String, status: Int = 200) {
    serve(type, Array(text.utf8), status: status)
  }

  private func run<Kind: AFHTTPRequestOperation>(_ type: Kind.Type) async throws -> Kind {
    let operation = try OperationKit.operation(type, server.url("/content"))
    await operation.run()
    return operation
  }

  // MARK: - JSON

  @Test(arguments: ["application/json", "text/json", "text/javascript"]) func json(type: String) async throws {
    serve(type, "{\"a\": [1, null]}")
    let operation = try await run(AFJSONRequestOperation.self)
    #expect(operation.error == nil)
    let object = operation.responseJSON as? [String: Any]
    #expect((object?["a"] as? [Any])?.count == 2)
  }

  @Test func jsonOfAnotherType() async throws {
    serve("application/no-json", "{}")
    let operation = try await run(AFJSONRequestOperation.self)
    let error = operation.error as NSError
    #expect(error.domain == AFNetworkingErrorDomain && error.code == NSURLErrorCannotDecodeContentData)
    #expect(error.userInfo[AFNetworkingOperationFailingURLRequestErrorKey] as? URLRequest == operation.request)
    #expect(error.userInfo[AFNetworkingOperationFailingURLResponseErrorKey] is HTTPURLResponse)
    #expect(error.localizedRecoverySuggestion == "{}" && operation.responseJSON == nil)
  }

  @Test func jsonOfAStatus() async throws {
    serve("text/plain", "no", status: 404)
    let operation = try await run(AFJSONRequestOperation.self)
    #expect(operation.responseJSON == nil && (operation.error as NSError).code == NSURLErrorBadServerResponse)
  }

  @Test func jsonThatIsNone() async throws {
    serve("application/json", "{")
    let operation = try await run(AFJSONRequestOperation.self)
    #expect(operation.responseJSON == nil && operation.error != nil)
    serve("application/json", " ")
    let empty = try await run(AFJSONRequestOperation.self)
    #expect(empty.responseJSON == nil && empty.error == nil)
  }

  @Test func jsonBlocks() async throws {
    serve("application/json", "3")
    let results = Results<(Int?, Int?)>()
    let operation = AFJSONRequestOperation(request: try OperationKit.request(server.url("/content"))) {
      results.add(($1?.statusCode, $2 as? Int))
    } failure: { _, _, error, _ in
      Issue.record(error)
    }
    operation.jsonReadingOptions = .fragmentsAllowed
    #expect(operation.jsonReadingOptions == .fragmentsAllowed)
    operation.start()
    #expect(try await results.next() == (200, 3))
    // The failure block gets the JSON object of the response together with the error.
    serve("application/json", "{\"why\": 1}", status: 400)
    let failures = Results<(Int, Any?)>()
    let failing = AFJSONRequestOperation(
      request: try OperationKit.request(server.url("/content")),
      success: { _, _, _ in Issue.record("400 is no success") },
      failure: { failures.add((($2 as NSError).code, $3)) })
    failing.start()
    let (code, object) = try await failures.next()
    #expect(code == NSURLErrorBadServerResponse && (object as? [String: Int]) == ["why": 1])
  }

  // MARK: - Property lists

  @Test func propertyLists() async throws {
    let list = try PropertyListSerialization.data(fromPropertyList: ["a": 1], format: .binary, options: 0)
    serve("application/x-plist", Array(list))
    let operation = try await run(AFPropertyListRequestOperation.self)
    #expect(operation.error == nil && (operation.responsePropertyList as? [String: Int]) == ["a": 1])
    serve("application/x-plist", "nonsense <")
    let results = Results<(any Error, Any?)>()
    let failing = AFPropertyListRequestOperation(
      request: try OperationKit.request(server.url("/content")), success: { _, _, _ in Issue.record("it is no list") },
      failure: { results.add(($2, $3)) })
    failing.propertyListReadOptions = .mutableContainers
    #expect(failing.propertyListReadOptions == .mutableContainers)
    failing.start()
    #expect(try await results.next().1 == nil)
  }

  // MARK: - Images

  /// The signature and the first chunk of a PNG with 3 columns and 2 rows.
  static let image: [UInt8] = [
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52, 0, 0, 0, 3, 0, 0, 0, 2, 8, 2,
    0,
    0, 0, 0, 0, 0, 0,
  ]

  @Test func images() async throws {
    serve("image/png", Self.image)
    let operation = try await run(AFImageRequestOperation.self)
    #expect(operation.error == nil && operation.responseImage.pixelWidth == 3)
    #expect(operation.imageScale == 1 && operation.automaticallyInflatesResponseImage)
    let results = Results<(Int?, CGFloat?)>()
    let scaled = AFImageRequestOperation(
      request: try OperationKit.request(server.url("/content")),
      imageProcessingBlock: { AFImage(data: $0.data, scale: 2) },
      success: { results.add(($2?.pixelHeight, $2?.scale)) })
    scaled.start()
    #expect(try await results.next() == (2, 2))
    let simple = AFImageRequestOperation(request: try OperationKit.request(server.url("/content"))) { image in
      results.add((image?.pixelWidth, image?.scale))
    }
    simple.start()
    #expect(try await results.next() == (3, 1))
    serve("text/plain", "no image")
    let wrong = try await run(AFImageRequestOperation.self)
    #expect(wrong.responseImage == nil && (wrong.error as NSError).domain == AFNetworkingErrorDomain)
  }

  // MARK: - XML

  @Test func xml() async throws {
    serve("application/xml", "<a><b>1</b></a>")
    let operation = try await run(AFXMLRequestOperation.self)
    #expect(operation.error == nil && operation.responseXMLParser.parse())
    #expect(operation.responseXMLDocument.rootElement()?.name == "a" && operation.error == nil)
    let results = Results<(Bool, String?)>()
    let parser = AFXMLRequestOperation.xmlParserRequestOperation(
      with: try OperationKit.request(server.url("/content")), success: { results.add(($2?.parse() == true, nil)) })
    parser.start()
    #expect(try await results.next() == (true, nil))
    let document = AFXMLRequestOperation.xmlDocumentRequestOperation(
      with: try OperationKit.request(server.url("/content")),
      success: { results.add((true, $2?.rootElement()?.elements(forName: "b").first?.stringValue)) })
    document.start()
    #expect(try await results.next() == (true, "1"))
  }

  @Test(arguments: ["<a><b></a>", "<a/><b/>", "nonsense", "{}"]) func xmlThatIsNone(text: String) async throws {
    serve("text/xml", text)
    let operation = try await run(AFXMLRequestOperation.self)
    #expect(operation.error == nil && operation.responseXMLDocument == nil && operation.error != nil)
    let results = Results<Int>()
    let document = AFXMLRequestOperation.xmlDocumentRequestOperation(
      with: try OperationKit.request(server.url("/content")), success: { _, _, _ in results.add(1) },
      failure: { _, _, _, document in results.add(document == nil ? 2 : 3) })
    document.start()
    #expect(try await results.next() == 2)
    serve("text/html", "<a/>")
    let wrong = try await run(AFXMLRequestOperation.self)
    #expect((wrong.error as NSError).domain == AFNetworkingErrorDomain && wrong.responseXMLParser == nil)
  }

  /// External entities are not resolved, so a document cannot read local files.
  @Test func foreignEntities() async throws {
    let file = FileManager.default.temporaryDirectory.appending(path: "larkspur-entity-\(UUID().uuidString)")
    try Data("secret".utf8).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    serve("text/xml", #"<!DOCTYPE a [<!ENTITY e SYSTEM "\#(file.absoluteString)">]><a>&e;</a>"#)
    let operation = try await run(AFXMLRequestOperation.self)
    #expect(operation.responseXMLDocument?.rootElement()?.stringValue?.contains("secret") != true)
    #expect(operation.responseXMLDocument?.xmlString.contains("secret") != true)
  }

  @Test func whichRequests() throws {
    for (path, type) in [
      ("/a.json", AFJSONRequestOperation.self as AFHTTPRequestOperation.Type), ("/a.xml", AFXMLRequestOperation.self),
      ("/a.plist", AFPropertyListRequestOperation.self), ("/a.gif", AFImageRequestOperation.self),
    ] {
      #expect(type.canProcess(try OperationKit.request("http://a.example" + path)))
      #expect(!type.canProcess(try OperationKit.request("http://a.example/a")))
    }
    var request = try OperationKit.request("http://a.example/a")
    request.setValue("text/xml", forHTTPHeaderField: "Accept")
    #expect(AFXMLRequestOperation.canProcess(request))
  }
}
