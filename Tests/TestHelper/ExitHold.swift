// An operation that delays the exit of its process. Prints "exiting" when the exit begins:
//
//   TestHelper exit-hold URL

import AFNetworking
import Foundation
import Larkspur

func runExitHold(_ arguments: [String]) throws {
  guard arguments.count == 1, let url = URL(string: arguments[0]) else { throw Failure.wrongArguments }
  // The shared cookies are there before the operation.
  _ = HTTPCookieStorage.shared.cookies
  let operation = AFURLConnectionOperation(request: URLRequest(url: url))
  operation.setShouldExecuteAsBackgroundTaskWithExpirationHandler { say("expired") }
  operation.start()
  // Exit handlers run in reverse order: the library's run after this one.
  atexit { say("exiting") }
  withExtendedLifetime(operation) { exit(0) }
}
