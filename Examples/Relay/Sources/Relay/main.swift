// Relays each request to an upstream: `relay http://127.0.0.1:8000 8080`.

import Hummingbird
import LarkspurClient

guard CommandLine.arguments.count == 3, let port = Int(CommandLine.arguments[2]) else {
  fatalError("usage: relay UPSTREAM PORT")
}
let upstream = CommandLine.arguments[1]

// A relay passes on what the upstream sends: redirections, and content as it is encoded.
var options = HTTPClient.Options()
options.followsRedirects = false
options.decodesContent = false
options.connectionsPerHostMax = 64
let client = HTTPClient(options)

let router = Router()
for method in [HTTPRequest.Method.get, .head, .post, .put, .patch, .delete] {
  router.on("**", method: method) { request, _ in
    do {
      return try await Relay(request, to: upstream, by: client).response()
    } catch let error as HTTPClientError {
      throw HTTPError(error.code == .timedOut ? .gatewayTimeout : .badGateway, message: error.reason)
    }
  }
}
let application = Application(
  router: router, configuration: .init(address: .hostname("127.0.0.1", port: port)))
try await application.runService()
