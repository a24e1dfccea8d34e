// Routes about the status line and the fields.
//
//   /status/N         that status, from 200 to 999
//   /early-hints      103 with Link fields, then 200
//   /etag/TAG         304 to If-None-Match, 412 to an If-Match without the tag, otherwise the tag;
//                     /etag is /etag/larkspur

let statusRoutes: [Router.Route] = [
  Router.Route("*", "/status/{status}") { request in
    let status = try request.number("status", in: 200...999)
    return .response(.json(["status": .integer(status)], status: status))
  },
  .get("/early-hints") { _ in
    var response = TestServer.Response.text("after the hints\n")
    response.interim = [
      TestServer.Interim(status: 103, fields: ["Link": "</style.css>; rel=preload; as=style"]),
      TestServer.Interim(status: 103, fields: ["Link": "</script.js>; rel=preload; as=script"]),
    ]
    return response
  },
  .get("/etag") { tagged($0, "larkspur") },
  .get("/etag/{tag}") { tagged($0, $0.parameters["tag"] ?? "") },
]

private func tagged(_ request: TestServer.Request, _ text: String) -> TestServer.Response {
  let tag = "\"\(text)\""
  var response = TestServer.Response.text("the tag is \(tag)\n")
  if !request.fields.values("If-Match").isEmpty, !request.fields.names(tag: tag, in: "If-Match") {
    response = .json(["error": "another tag was wanted"], status: 412)
  } else if request.fields.names(tag: tag, in: "If-None-Match") {
    response = TestServer.Response(status: 304)
  }
  response.fields["ETag"] = tag
  return response
}

extension TestServer.Fields {
  /// Whether a list of entity tags has this tag, weak or strong, or is `*` (RFC 9110, section 13.1).
  func names(tag: String, in name: String) -> Bool {
    contains(token: tag, in: name) || contains(token: "W/" + tag, in: name) || contains(token: "*", in: name)
  }
}
