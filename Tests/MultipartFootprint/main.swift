// How much memory forms take that are sent from files, many at a time.
//
// Called as
//   MultipartFootprint COUNT MIB         sends COUNT forms at the same time, each with a file of MIB mebibytes, from a
//                                        process of its own to a server here
//   MultipartFootprint COUNT MIB URL     is that process, and may be sent to any server
// Prints how many forms have arrived whole, and the highest resident size of the process that sends, in
// KiB.

import AFNetworking
import Foundation
import LarkspurTestServer
import Synchronization
import TestKit

/// Prints at once, to whoever waits for it.
func say(_ text: String) {
  print(text)
  fflush(nil)
}

/// In KiB.
func peak() -> Int {
  let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
  let line = text.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
  return line.flatMap { Int($0.filter(\.isNumber)) } ?? 0
}

/// Gives forms, as a manager does.
final class Sender: NSObject, URLSessionTaskDelegate, URLSessionDataDelegate {
  let succeeded = Atomic(0)
  private let (ends, end) = AsyncStream<Void>.makeStream()

  func urlSession(
    _ session: URLSession, task: URLSessionTask,
    needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
  ) {
    completionHandler((task.originalRequest?.httpBodyStream as? any NSCopying)?.copy(with: nil) as? InputStream)
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    let length = task.originalRequest?.value(forHTTPHeaderField: "Content-Length")
    let response = task.response as? HTTPURLResponse
    if error == nil, response?.statusCode == 200, "\(task.countOfBytesSent)" == length {
      succeeded.add(1, ordering: .relaxed)
    }
    end.yield()
  }

  func wait(for count: Int) async {
    var left = count
    for await _ in ends {
      left -= 1
      if left == 0 { return }
    }
  }
}

func send(_ count: Int, mebibytes: Int, to url: String) async throws -> Int {
  let file = FileManager.default.temporaryDirectory.appending(path: "larkspur-footprint-\(UUID().uuidString).bin")
  defer { try? FileManager.default.removeItem(at: file) }
  try Data().write(to: file)
  // A file of holes: it is read like any other, and takes no room on the disk.
  try FileHandle(forWritingTo: file).truncate(atOffset: UInt64(mebibytes) << 20)
  let configuration = URLSessionConfiguration.ephemeral
  configuration.httpMaximumConnectionsPerHost = count
  configuration.timeoutIntervalForRequest = 600
  let sender = Sender()
  let session = URLSession(configuration: configuration, delegate: sender, delegateQueue: nil)
  let serializer = AFHTTPRequestSerializer()
  for number in 0..<count {
    let form = try serializer.multipartFormRequest(
      withMethod: "POST", urlString: url, parameters: ["number": number],
      constructingBodyWith: { try? $0.appendPart(withFileURL: file, name: "file") })
    session.uploadTask(withStreamedRequest: form as URLRequest).resume()
  }
  await sender.wait(for: count)
  return sender.succeeded.load(ordering: .relaxed)
}

let arguments = Array(CommandLine.arguments.dropFirst())
guard arguments.count >= 2, let count = Int(arguments[0]), let mebibytes = Int(arguments[1]) else { exit(2) }
if arguments.count > 2 {
  let arrived = try await send(count, mebibytes: mebibytes, to: arguments[2])
  say("\(arrived) \(peak())")
} else {
  var options = TestServer.Options()
  options.bodyBytesKept = 0
  let server = try TestServer(options)
  server.route("POST", "/forms") { request in .text("\(request.bodyCount)") }
  say(try SiblingProcess("MultipartFootprint", arguments + [server.url("/forms")]).text())
}
