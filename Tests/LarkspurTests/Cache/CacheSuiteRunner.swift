import Foundation
import LarkspurBytes
import LarkspurHTTP

/// A client with a cache, as the suite's runner uses it. The origin is behind the client.
protocol CacheSuiteClient {
  /// Loads one request of the test.
  ///
  /// - Parameter mode: The cache mode of the Fetch standard, if the test has one.
  mutating func fetch(
    method: String, path: String, fields: FieldList, body: String?, mode: String?
  ) async throws -> CacheSuiteResponse

  /// Advances the time.
  mutating func pause(seconds: Int) async

  /// The requests that reached the origin.
  mutating func seen() async -> [CacheSuiteOrigin.Seen]
}

struct CacheSuiteResponse: Sendable {
  var status: Int
  var fields: FieldList
  var body: String

  func value(_ name: String) -> String? {
    let values = fields.values(named: name)
    return values.isEmpty ? nil : values.joined(separator: ", ")
  }
}

/// Runs a test of the suite by the suite's client rules: its steps and its checks.
struct CacheSuiteRunner {
  enum Outcome: Equatable {
    case pass
    /// The test failed before it reached the behaviour under test.
    case setup(String)
    case fail(String)
  }

  private struct Failure: Error {
    var isSetup: Bool
    var message: String
  }

  let test: CacheSuite.Test
  let id: String

  func run(_ client: inout some CacheSuiteClient) async -> Outcome {
    do {
      var responses: [CacheSuiteResponse?] = []
      for index in test.requests.indices {
        responses.append(try await step(index, &client, responses.last ?? nil))
        if test.requests[index].pause_after == true { await client.pause(seconds: 3) }
      }
      try await check(client.seen(), responses)
      return .pass
    } catch let failure as Failure {
      return failure.isSetup ? .setup(failure.message) : .fail(failure.message)
    } catch {
      return .fail("\(error)")
    }
  }

  private func assert(_ isSetup: Bool, _ condition: Bool, _ message: @autoclosure () -> String) throws {
    if !condition { throw Failure(isSetup: isSetup, message: message()) }
  }

  private func step(
    _ index: Int, _ client: inout some CacheSuiteClient, _ previous: CacheSuiteResponse?
  ) async throws -> CacheSuiteResponse? {
    let script = test.requests[index]
    var path = "/test/\(id)"
    if let name = script.filename { path += "/\(name)" }
    if let query = script.query_arg { path += "?\(query)" }
    var fields: FieldList = []
    for field in script.request_headers ?? [] {
      guard let name = field.first?.text, field.count > 1 else { continue }
      let serverNow = previous?.value("Server-Now").flatMap(Double.init).map { $0 / 1000 }
      let isMagic = script.magic_ims == true && name.lowercased() == "if-modified-since"
      fields.append(
        Field(
          name,
          CacheSuiteOrigin.fixed(name, field[1], script: script, base: nil, serverNow: isMagic ? serverNow : nil)
        ))
    }
    fields += [Field("Test-ID", test.id), Field("Req-Num", "\(index + 1)")]
    let response: CacheSuiteResponse
    do {
      response = try await client.fetch(
        method: script.request_method ?? "GET", path: path, fields: fields, body: script.request_body,
        mode: script.cache)
    } catch {
      // The suite lets a proxy turn a cut connection into a response. A client fails instead, which passes if the test
      // expects no stored response.
      if script.disconnect == true, script.expected_status?.isNull == true { return nil }
      throw error
    }
    try check(response, script, number: index + 1)
    return response
  }

  private func check(_ response: CacheSuiteResponse, _ script: CacheSuite.Request, number: Int) throws {
    let answered = response.value("Server-Request-Count").flatMap(Int.init)
    let seen = response.value("Request-Numbers")?.split(separator: " ") ?? []
    try assert(true, Set(seen).count == seen.count, "retry")
    let isTypeSetup = script.isSetup("expected_type")
    if script.expected_type == "cached", response.status != 304 || answered != nil {
      try assert(isTypeSetup, answered.map { $0 < number } == true, "response \(number) is not out of the cache")
    }
    if script.expected_type == "not_cached" {
      try assert(isTypeSetup, answered == number, "response \(number) is out of the cache")
    }
    let about = "response \(number) has status \(response.status)"
    if let expected = script.expected_status {
      if let status = expected.number {
        try assert(script.isSetup("expected_status"), response.status == status, about)
      }
    } else if script.response_status != nil {
      try assert(true, response.status == script.status, about)
    } else if response.status == 999 {
      try assert(isTypeSetup, false, "request \(number) was not conditional")
    } else {
      try assert(true, response.status == 200, about)
    }
    try checkFields(response, script, number: number)
    try checkBody(response, script)
  }

  private func checkFields(_ response: CacheSuiteResponse, _ script: CacheSuite.Request, number: Int) throws {
    let isSetup = script.isSetup("expected_response_headers")
    for expected in script.expected_response_headers ?? [] {
      let parts = expected.list ?? [expected]
      guard let name = parts.first?.text else { continue }
      let value = response.value(name)
      try assert(isSetup, value != nil || parts.count == 2, "response \(number) has no \(name)")
      if parts.count == 3, parts[1].text == "=" {
        try assert(
          isSetup, value == response.value(parts[2].text ?? ""), "response \(number): \(name) is \(value ?? "-")")
      } else if parts.count == 3 {
        let limit = parts[2].number ?? 0
        try assert(isSetup, (value.flatMap(Int.init) ?? -1) > limit, "response \(number): \(name) is \(value ?? "-")")
      } else if parts.count == 2 {
        let wanted = CacheSuiteOrigin.fixed(
          name, parts[1], script: script, base: response.value("Server-Base-Url"),
          serverNow: response.value("Server-Now").flatMap(Double.init).map { $0 / 1000 })
        try assert(isSetup, value == wanted, "response \(number): \(name) is \(value ?? "-"), not \(wanted)")
      }
    }
    let isMissingSetup = script.isSetup("expected_response_headers_missing")
    for unexpected in script.expected_response_headers_missing ?? [] {
      if let name = unexpected.text {
        try assert(isMissingSetup, response.value(name) == nil, "response \(number) has \(name)")
      } else if let name = unexpected.list?.first?.text, let text = unexpected.list?.last?.text {
        try assert(isMissingSetup, response.value(name)?.contains(text) != true, "response \(number) has \(name)")
      }
    }
  }

  private func checkBody(_ response: CacheSuiteResponse, _ script: CacheSuite.Request) throws {
    guard script.check_body != false else { return }
    if let expected = script.expected_response_text {
      guard let text = expected.text else { return }
      try assert(script.isSetup("expected_response_text"), response.body == text, "body is \(response.body)")
    } else if let text = script.response_body?.text {
      try assert(true, response.body == text, "body is \(response.body)")
    } else if response.status != 204, response.status != 304, script.request_method != "HEAD" {
      try assert(true, response.body == id, "body is \(response.body)")
    }
  }

  // MARK: - Requests at the origin

  private func check(_ seen: [CacheSuiteOrigin.Seen], _ responses: [CacheSuiteResponse?]) throws {
    var position = 0
    for (index, script) in test.requests.enumerated() {
      if script.expected_type == "cached" { continue }
      let request = seen.indices.contains(position) ? seen[position] : nil
      let isTypeSetup = script.isSetup("expected_type")
      if script.expected_type == "not_cached" {
        try assert(isTypeSetup, request?.number == index + 1, "request \(index + 1) did not reach the origin")
      }
      position += 1
      let conditions = ["etag_validated": "If-None-Match", "lm_validated": "If-Modified-Since"]
      if let condition = script.expected_type.flatMap({ conditions[$0] }) {
        try assert(
          isTypeSetup, request?.fields.contains(named: condition) == true, "request \(index + 1) has no \(condition)")
      }
      try checkRequest(request, script, number: index + 1)
      for field in request?.shownFields ?? [] where !field.name.equalsIgnoringCase("Date") {
        guard let response = responses[index] else { continue }
        try assert(
          true, response.value(field.name) == field.value,
          "response \(index + 1): \(field.name) is \(response.value(field.name) ?? "-"), not \(field.value)")
      }
    }
  }

  private func checkRequest(_ request: CacheSuiteOrigin.Seen?, _ script: CacheSuite.Request, number: Int) throws {
    func value(_ name: String) -> String? {
      let values = request?.fields.values(named: name) ?? []
      return values.isEmpty ? nil : values.joined(separator: ", ")
    }
    for expected in script.expected_request_headers ?? [] {
      let isSetup = script.isSetup("expected_request_headers")
      if let name = expected.text {
        try assert(isSetup, value(name) != nil, "request \(number) has no \(name)")
      } else if let name = expected.list?.first?.text {
        try assert(
          isSetup, value(name) == expected.list?.last?.text, "request \(number): \(name) is \(value(name) ?? "-")")
      }
    }
    for unexpected in script.expected_request_headers_missing ?? [] {
      let isSetup = script.isSetup("expected_request_headers_missing")
      if let name = unexpected.text {
        try assert(isSetup, value(name) == nil, "request \(number) has \(name)")
      } else if let name = unexpected.list?.first?.text {
        try assert(isSetup, value(name) != unexpected.list?.last?.text, "request \(number) has \(name)")
      }
    }
    if let method = script.expected_method {
      try assert(script.isSetup("expected_method"), request?.method == method, "request \(number) had another method")
    }
  }
}
