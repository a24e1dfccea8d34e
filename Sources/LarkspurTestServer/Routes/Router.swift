/// Finds the route for a request.
struct Router: Sendable {
  /// What is to be done for a request.
  enum Answer {
    /// `delay`: how long the client is to wait for it. `complaint`: what was wrong with the route, for the failures.
    case response(TestServer.Response, delay: Duration = .zero, complaint: String? = nil)
    case script(TestServer.Script)
  }

  struct Route: Sendable {
    let method: String
    let pattern: PathPattern
    let answer: @Sendable (TestServer.Request) throws -> Answer

    init(_ method: String, _ path: String, answer: @escaping @Sendable (TestServer.Request) throws -> Answer) {
      self.method = method
      pattern = PathPattern(path)
      self.answer = answer
    }

    func takes(_ method: String) -> Bool {
      self.method == method || self.method == "*" || self.method == "GET" && method == "HEAD"
    }
  }

  /// A request that a route of the server's own cannot make sense of.
  struct BadRequest: Error {
    var status = 400
    let words: String
  }

  private var routes: [Route]

  static let builtIn = Router(
    routes: echoRoutes + contentRoutes + streamRoutes + statusRoutes + redirectRoutes + rangeRoutes + codingRoutes
      + faultRoutes)

  mutating func add(_ route: Route) { routes.insert(route, at: 0) }

  /// Answers, come what may. The request gets the parameters of its route.
  func answer(_ request: inout TestServer.Request) -> Answer {
    var allowed: [String] = []
    for route in routes {
      guard let parameters = route.pattern.match(request.path) else { continue }
      guard route.takes(request.method) else {
        allowed.append(route.method)
        continue
      }
      request.parameters = parameters
      do {
        return try route.answer(request)
      } catch let error as BadRequest {
        return .response(.json(["error": .string(error.words)], status: error.status))
      } catch {
        let words = "the route threw \(error)"
        return .response(.json(["error": .string(words)], status: 500), complaint: words)
      }
    }
    if request.target == "*" { return .response(TestServer.Response(status: 204)) }
    if allowed.isEmpty {
      return .response(.json(["error": "no such path", "path": .string(request.path)], status: 404))
    }
    var response = TestServer.Response.json(["error": "another method is wanted"], status: 405)
    response.fields["Allow"] = allowed.joined(separator: ", ")
    return .response(response)
  }
}

extension Router.Route {
  /// A route that answers with a response, as most do.
  static func get(
    _ path: String, _ respond: @escaping @Sendable (TestServer.Request) throws -> TestServer.Response
  ) -> Router.Route {
    Router.Route("GET", path) { .response(try respond($0)) }
  }
}

extension TestServer.Request {
  /// A path parameter of a route of the server's own, as a number.
  func number(_ name: String, in range: ClosedRange<Int> = 0...Int.max) throws -> Int {
    try Self.number(parameters[name] ?? "", name, range)
  }

  /// A number in the query; `standard` if it is not there.
  func queryNumber(_ name: String, in range: ClosedRange<Int> = 0...Int.max, else standard: Int) throws -> Int {
    guard let text = query[name] else { return standard }
    return try Self.number(text, name, range)
  }

  private static func number(_ text: String, _ name: String, _ range: ClosedRange<Int>) throws -> Int {
    guard let number = Int(text), range.contains(number) else {
      throw Router.BadRequest(words: "\(name) is to be a number from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  /// A switch in the query: `?name` or `?name=1`.
  func queryFlag(_ name: String) -> Bool {
    switch query[name] {
    case nil, "0", "false": false
    default: true
    }
  }
}
