import LarkspurBytes

// Routes that send the client's request back to it.
//
//   /get, /post, /put, /patch, /delete   by the method of that name only
//   /anything, /anything/*               by any method
//   /headers                             the fields only

let echoRoutes: [Router.Route] =
  ["get", "post", "put", "patch", "delete"].map { name in
    Router.Route(name.uppercased(), "/" + name) { .response(.json(echo($0))) }
  } + [
    Router.Route("*", "/anything/*") { .response(.json(echo($0))) },
    Router.Route("*", "/anything") { .response(.json(echo($0))) },
    .get("/headers") { .json(["headers": members($0.fields)]) },
  ]

/// Returns the request as JSON. `data` is the body: as text if it is UTF-8, otherwise as a `data:` URL.
func echo(_ request: TestServer.Request) -> TestServer.JSON {
  let isForm = isSameName(
    trimmed((request.fields["Content-Type"] ?? "").prefix { $0 != ";" }), "application/x-www-form-urlencoded")
  let data =
    String(validating: request.body, as: UTF8.self) ?? "data:application/octet-stream;base64,"
    + Base64.encode(request.body)
  return [
    "method": .string(request.method),
    "target": .string(request.target),
    "url": .string(request.url),
    "version": .string(request.version),
    "args": members(TestServer.Fields(request.queryItems)),
    "headers": members(request.fields),
    "data": .string(data),
    "form": members(TestServer.Fields(isForm ? decodedPairs(request.bodyText) : [])),
    "trailers": members(request.trailers),
    "bodyCount": .integer(request.bodyCount),
    "bodyCRC32": .string(request.bodyChecksum.description),
    "connection": .integer(request.connection),
    "ordinal": .integer(request.ordinal),
  ]
}

/// Returns names with their values. A name that occurs more than once has a list of values.
private func members(_ fields: TestServer.Fields) -> TestServer.JSON {
  var seen: [String] = []
  var members: [TestServer.JSON.Member] = []
  for field in fields where !seen.contains(where: { isSameName($0, field.name) }) {
    seen.append(field.name)
    let values = fields.values(field.name).map { TestServer.JSON.string($0) }
    members.append(.init(field.name, values.count == 1 ? values[0] : .array(values)))
  }
  return .object(members)
}
