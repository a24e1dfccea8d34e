/// Finds the route for a request.
struct Router: Sendable {
  /// A route's answer to a request.
  enum Answer {
    /// A response, sent after `delay`. `complaint` is an error of the route, for the server's failures.
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

  /// A request with a parameter that a built-in route cannot accept.
  struct BadRequest: Error {
    var status = 400
    let message: String
  }

  private var routes: [Route]

  static let builtIn = Router(
    routes: echoRoutes + contentRoutes + streamRoutes + statusRoutes + redirectRoutes + rangeRoutes + codingRoutes
      + faultRoutes + webSocketRoutes + eventRoutes)

  /// A router of one route.
  init(only route: Route) { routes = [route] }

  private init(routes: [Route]) { self.routes = routes }

  mutating func add(_ route: Route) { routes.insert(route, at: 0) }

  /// Returns the answer of the first matching route, or an error response. Sets the request's parameters from the path.
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
        return .response(.json(["error": .string(error.message)], status: error.status))
      } catch {
        let message = "the route threw \(error)"
        return .response(.json(["error": .string(message)], status: 500), complaint: message)
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
  /// Makes a route for GET and HEAD that answers with a response.
  static func get(
    _ path: String, _ respond: @escaping @Sendable (TestServer.Request) throws -> TestServer.Response
  ) -> Router.Route {
    Router.Route("GET", path) { .response(try respond($0)) }
  }
}

extension TestServer.Request {
  /// Returns a parameter of the path as a number, for the built-in routes.
  func number(_ name: String, in range: ClosedRange<Int> = 0...Int.max) throws -> Int {
    try Self.number(parameters[name] ?? "", name, range)
  }

  /// Returns a number from the query, or `standard` if the query does not have the name.
  func queryNumber(_ name: String, in range: ClosedRange<Int> = 0...Int.max, else standard: Int) throws -> Int {
    guard let text = query[name] else { return standard }
    return try Self.number(text, name, range)
  }

  private static func number(_ text: String, _ name: String, _ range: ClosedRange<Int>) throws -> Int {
    guard let number = Int(text), range.contains(number) else {
      throw Router.BadRequest(message: "\(name) is to be a number from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  /// Whether the query has a switch: `?name` or `?name=1`.
  func queryFlag(_ name: String) -> Bool {
    switch query[name] {
    case nil, "0", "false": false
    default: true
    }
  }
}
