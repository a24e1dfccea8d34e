// The memory that multipart forms take when they are sent from files, many at a time.
//
//   TestHelper multipart-footprint COUNT MIB        starts a server, and a second process that sends COUNT forms to it
//                                                   at the same time, each with a file of MIB mebibytes
//   TestHelper multipart-footprint COUNT MIB URL    is that second process, and can send to any server
//
// Prints how many forms have arrived whole, and the highest resident size of the sending process, in KiB.

import AFNetworking
import Foundation
import LarkspurTestServer
import TestKit

private func send(_ count: Int, mebibytes: Int, to url: String) async throws -> Int {
  let file = FileManager.default.temporaryDirectory.appending(path: "larkspur-footprint-\(UUID().uuidString).bin")
  defer { try? FileManager.default.removeItem(at: file) }
  try Data().write(to: file)
  // A sparse file reads like any other, and takes no room on the disk.
  try FileHandle(forWritingTo: file).truncate(atOffset: UInt64(mebibytes) << 20)
  let configuration = URLSessionConfiguration.ephemeral
  configuration.httpMaximumConnectionsPerHost = count
  configuration.timeoutIntervalForRequest = 600
  let manager = AFHTTPSessionManager(sessionConfiguration: configuration)
  manager.responseSerializer = AFHTTPResponseSerializer()
  return await withTaskGroup(of: Bool.self) { group in
    for number in 0..<count {
      group.addTask {
        let answer = try? await manager.post(
          url, parameters: ["number": number],
          constructingBodyWith: { try? $0.appendPart(withFileURL: file, name: "file") },
          progress: { _ in })
        // The server answers with the number of bytes that it has read.
        let text = (answer?.value as? Data).map { String(decoding: $0, as: UTF8.self) }
        return text.flatMap { Int($0) }.map { $0 > mebibytes << 20 } ?? false
      }
    }
    return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
  }
}

func runMultipartFootprint(_ arguments: [String]) async throws {
  guard arguments.count >= 2, let count = Int(arguments[0]), let mebibytes = Int(arguments[1]) else {
    throw Failure.wrongArguments
  }
  if arguments.count > 2 {
    let arrived = try await send(count, mebibytes: mebibytes, to: arguments[2])
    say("\(arrived) \(statusKiB("VmHWM"))")
  } else {
    var options = TestServer.Options()
    options.bodyBytesKept = 0
    let server = try TestServer(options)
    server.route("POST", "/forms") { request in .text("\(request.bodyCount)") }
    say(try SiblingProcess("multipart-footprint", arguments + [server.url("/forms")]).text())
  }
}
