import LarkspurClient
import LarkspurEngine
import LarkspurHTTP
import LarkspurTransport

/// The writer of the heads of scripts' requests: as a user of the pool writes them, or as a client does.
struct ScriptHeads {
  let hosts: [String]
  let users: Scenario.Users
  /// The time limit of a client's requests, in nanoseconds.
  let timeMax: UInt64?
  private let composer = RequestComposer(additional: Scenario.clientFields, program: [])

  func head(
    _ method: String, _ number: Int, _ fields: FieldList, _ body: RequestWriter.Body, _ endpoint: Int
  ) throws -> RequestHead {
    guard users == .pool else {
      let target = try LoadTarget("http://\(hosts[endpoint])/\(number)") { nil }
      let form = RequestComposer.Form(method: method, path: target.path, fields: fields.isEmpty ? nil : fields)
      return try composer.head(for: form, to: target, cache: nil, body: body, additions: .init())
    }
    var writer = try RequestWriter(method: method, target: "/\(number)", host: "a.example")
    for field in fields { try writer.field(field.name, field.value) }
    return writer.finish(body: body)
  }
}

/// Worlds whose scripts use a client without Foundation in place of its pool.
extension Scenario {
  static let clientFields = [Field("User-Agent", "simulated")]

  static func client(
    on loop: ClientLoop, _ options: Pool.Options, _ interceptors: [any HTTPClient.Interceptor], timeMax: UInt64?
  ) -> HTTPClient {
    var own = HTTPClient.Options()
    own.fields = clientFields
    own.timeouts = Timeouts()
    own.timeouts.total = timeMax.map { .nanoseconds($0) }
    own.interceptors = interceptors
    own.proxy = .none
    return HTTPClient(own, on: loop, options)
  }

  func make(_ script: ClientScript, by client: HTTPClient) async {
    for plan in script.plans {
      let began = began(plan)
      ended(plan, of: script, began: began, await outcome(of: plan, by: client))
    }
  }

  private func outcome(of plan: ClientScript.Plan, by client: HTTPClient) async -> Outcome {
    let url = "http://\(names[plan.endpoint].text)/\(plan.number)"
    let hasBody = plan.method == "PUT" || plan.method == "POST"
    let request = HTTPClient.Request(
      url, method: plan.method, fields: plan.fields, body: hasBody ? .bytes(plan.body) : .none)
    do {
      return try await client.perform(request) { response in try await read(response, plan) }
    } catch {
      return .failed(Self.transportError(error))
    }
  }

  private static func transportError(_ error: any Error) -> TransportError {
    guard let error = error as? HTTPClientError else { return error as? TransportError ?? .internalInconsistency }
    return switch error.code {
    case .cancelled: .cancelled
    case .tooLarge: .localMisuse(.bodyTooLarge)
    // Of a limit that is up between two attempts.
    case .timedOut: error.cause ?? .timedOut(.queueing)
    default: error.cause ?? .internalInconsistency
    }
  }

  private func read(_ response: HTTPClient.Response, _ plan: ClientScript.Plan) async throws -> Outcome {
    var reader = reader(ofAnswer: response.value(of: "X-Answer"), for: plan)
    switch plan.reading {
    case .all: for try await piece in response.body { reader.take(piece.span) }
    case .collect(let bytesMax):
      let body = try await response.body.collect(upTo: bytesMax)
      reader.take(body.span)
    case .slowly(let time):
      for try await piece in response.body {
        reader.take(piece.span)
        await pause(time)
      }
    case .parts(let most):
      var pieces = response.body.makeAsyncIterator()
      for _ in 0..<most {
        guard let piece = try await pieces.next() else { break }
        reader.take(piece.span)
      }
      return .left
    case .abandon(let error): throw error
    case .nothing, .closeConnection, .cancel: return .left
    }
    return reader.completed()
  }
}
