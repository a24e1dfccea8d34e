// Writes cookies into a file that other processes may write into at the same time.
//
// `CookieWriter FOLDER NAME COUNT` sets the cookies NAME-a and NAME-b to 0, 1, 2, ..., both at once, and prints each
// number once it is on the disk. The last number is left for the exit of the process to write, and is not printed.
//
// With COUNT `shared` it sets the cookie NAME in the storage of this program, and exits.

import Foundation
import Larkspur

let arguments = CommandLine.arguments
guard arguments.count == 4 else { exit(2) }

func set(_ name: String, _ value: String, in storage: HTTPCookieStorage) {
  let cookie = HTTPCookie(properties: [
    .name: name, .value: value, .domain: "example.com", .path: "/", .expires: Date(timeIntervalSinceNow: 3600),
  ])
  guard let cookie else { exit(3) }
  storage.setCookie(cookie)
}

if arguments[3] == "shared" {
  set(arguments[2], "1", in: .shared)
  exit(0)
}
let storage = HTTPCookieStorage(disk: CookieDisk(path: arguments[1]))
guard let count = Int(arguments[3]) else { exit(2) }
for number in 0..<count {
  set("\(arguments[2])-a", "\(number)", in: storage)
  set("\(arguments[2])-b", "\(number)", in: storage)
  guard number < count - 1 else { break }
  var written = storage.write()
  while written == .busy { written = storage.write() }
  guard written == .done else { exit(4) }
  print(number)
  fflush(nil)
}
exit(0)
