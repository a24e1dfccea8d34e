// Routes that misbehave. Scripts do the same in finer detail.
//
//   /lie/N     announces N bytes more than it sends, then closes; ?bytes=100 is the number that it sends
//   /close     closes without an answer
//   /reset     resets without an answer
//   /hang      does not answer

let faultRoutes: [Router.Route] = [
  .get("/lie/{count}") { request in
    let sent = try request.queryNumber("bytes", in: 0...(1 << 40), else: 100)
    var response = TestServer.Response.content(count: sent)
    response.fields["Content-Length"] = String(sent + (try request.number("count", in: 1...(1 << 40))))
    response.closesConnection = true
    return response
  },
  Router.Route("*", "/close") { _ in .script([.close]) },
  Router.Route("*", "/reset") { _ in .script([.reset]) },
  Router.Route("*", "/hang") { _ in .script([.hang]) },
]
