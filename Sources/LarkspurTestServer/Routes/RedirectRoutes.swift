// Routes that redirect.
//
//   /redirect/N       302 to /redirect/N-1 and so on, finally to /get; ?absolute=1 for absolute URLs
//   /redirect-to      ?url=... (percent-encoded) &status=302; any method

let redirectRoutes: [Router.Route] = [
  .get("/redirect/{count}") { request in
    let count = try request.number("count", in: 1...1_000_000)
    let isAbsolute = request.queryFlag("absolute")
    let next = count == 1 ? "/get" : "/redirect/\(count - 1)" + (isAbsolute ? "?absolute=1" : "")
    return .redirect(to: (isAbsolute ? request.origin : "") + next)
  },
  Router.Route("*", "/redirect-to") { request in
    guard let url = request.query["url"], !url.utf8.contains(where: { $0 < 0x20 }) else {
      throw Router.BadRequest(message: "url is to be given in the query")
    }
    return .response(.redirect(to: url, status: try request.queryNumber("status", in: 300...399, else: 302)))
  },
]
