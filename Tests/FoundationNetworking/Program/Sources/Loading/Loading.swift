import Foundation
import FoundationNetworking
import FoundationXML
import HTTPTypes
import HTTPTypesFoundation
import Untouched

/// Calls everything that the program uses of its packages, by name. The server has `text` and `elements.xml`.
public struct Loading {
  public let server: URL

  public init(server: URL) { self.server = server }

  private var text: URL { server.appending(path: "text") }

  /// Runs all checks.
  ///
  /// - Returns: A message for each check that failed; empty if none did.
  public func problems() async throws -> [String] {
    var problems: [String] = []
    func check(_ name: String, _ found: some Equatable, _ expected: some Equatable) {
      if "\(found)" != "\(expected)" { problems.append("\(name): \(found) instead of \(expected)") }
    }
    check("URLSession's module", String(reflecting: FoundationNetworking.URLSession.self), "Larkspur.URLSession")
    check("a package's request", String(reflecting: NetworkRequest.self), "Larkspur.URLRequest")

    let own = try await Client().text(at: text)
    check("a package's session", "\(own)", "(status: 200, text: \"hello\")")
    let mocked = try await Client(transport: MockTransport()).text(at: text)
    check("a package's mock", mocked.text, "GET text/plain")

    let configuration = URLSessionConfiguration.ephemeral
    configuration.protocolClasses = [StubProtocol.self]
    let stubbed = makeSession(configuration)
    guard let stub = URL(string: "http://a.stub/path") else { return ["no URL"] }
    let (data, response) = try await stubbed.data(from: stub)
    check("a package's protocol", String(decoding: data, as: UTF8.self), "/path")
    check("its status", (response as? HTTPURLResponse)?.statusCode ?? 0, 203)

    let request = HTTPRequest(method: .get, url: text)
    let (body, answer) = try await URLSession.shared.data(for: request)
    check("HTTPTypes' status", answer.status.code, 200)
    check("HTTPTypes' body", String(decoding: body, as: UTF8.self), "hello")
    check("HTTPTypes' request", URLRequest(httpRequest: request)?.url ?? server, text)

    let bytes = await withCheckedContinuation { continuation in
      let recorder = Recorder { continuation.resume(returning: $0) }
      let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
      session.dataTask(with: text).resume()
      session.finishTasksAndInvalidate()
    }
    check("a package's delegate", bytes, 5)
    let late = await withCheckedContinuation { continuation in
      Client.load(text) { data, _, _ in continuation.resume(returning: data?.count ?? -1) }
    }
    check("a package's completion handler", late, 5)
    check("a package's event", ServerSentEvent(text: "event").text, "event")
    let ownBytes: URLSession.AsyncBytes = URLSession.shared.ownBytes()
    check("a package's bytes", ownBytes.text, "own")
    check("a package's initializer", ownResponse().url?.path ?? "", "/own")
    problems += try byFoundation()
    return problems
  }

  /// Checks Foundation's own loading functions, in a file that imports this module by Foundation's name.
  private func byFoundation() throws -> [String] {
    var problems: [String] = []
    if NSData(contentsOf: text)?.length != 5 { problems.append("NSData(contentsOf:)") }
    if try NSString(contentsOf: text, encoding: 4) != "hello" { problems.append("NSString(contentsOf:encoding:)") }
    if try Data(contentsOf: text).count != 5 { problems.append("Data(contentsOf:)") }
    if NSData(contentsOf: server.appending(path: "nothing")) != nil { problems.append("NSData of what is not there") }
    let parser = XMLParser(contentsOf: server.appending(path: "elements.xml"))
    if parser?.parse() != true { problems.append("XMLParser(contentsOf:)") }
    return problems
  }
}
