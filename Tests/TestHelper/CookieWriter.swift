// Writes cookies into a file that other processes may write into at the same time.
//
//   TestHelper cookie-writer FOLDER NAME COUNT     sets the cookies NAME-a and NAME-b to 0, 1, 2, ..., both at once, and
//                                                  prints each number once it is on the disk; the last number is left
//                                                  for the exit of the process to write, and is not printed
//   TestHelper cookie-writer FOLDER NAME shared    sets the cookie NAME in the storage of this program, and exits

import Foundation
import Larkspur

private func set(_ name: String, _ value: String, in storage: HTTPCookieStorage) throws {
  let cookie = HTTPCookie(properties: [
    .name: name, .value: value, .domain: "example.com", .path: "/", .expires: Date(timeIntervalSinceNow: 3600),
  ])
  guard let cookie else { throw Failure("no cookie") }
  storage.setCookie(cookie)
}

func runCookieWriter(_ arguments: [String]) throws {
  guard arguments.count == 3 else { throw Failure.wrongArguments }
  let (folder, name) = (arguments[0], arguments[1])
  if arguments[2] == "shared" { return try set(name, "1", in: .shared) }
  let storage = HTTPCookieStorage(disk: CookieDisk(path: folder))
  guard let count = Int(arguments[2]) else { throw Failure.wrongArguments }
  for number in 0..<count {
    try set("\(name)-a", "\(number)", in: storage)
    try set("\(name)-b", "\(number)", in: storage)
    guard number < count - 1 else { break }
    var written = storage.write()
    while written == .busy { written = storage.write() }
    guard written == .done else { throw Failure("the cookies cannot be written") }
    say("\(number)")
  }
  // The storage is alive when the process exits: the exit writes the last number.
  withExtendedLifetime(storage) { exit(0) }
}
