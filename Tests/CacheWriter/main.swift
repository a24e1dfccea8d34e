// Stores responses in a cache directory that other processes may write into at the same time.
//
// `CacheWriter FOLDER NAME COUNT` stores COUNT bodies that begin with 0, 1, 2, ... for eight URLs in turn, and prints
// each number once its body is on the disk.
//
// `CacheWriter FOLDER load URL` loads URL and exits at once.
//
// `CacheWriter FOLDER revalidate URL` loads URL again and again, and prints the field `X-Number` of each response once
// the response is on the disk. With `revalidate-once` it loads URL twice and exits at once.

import Foundation
import Larkspur

let arguments = CommandLine.arguments
guard arguments.count == 4 else { exit(2) }
let cache = URLCache(memoryCapacity: 0, diskCapacity: 4 << 20, directory: URL(filePath: arguments[1]))
if arguments[2] == "load", let url = URL(string: arguments[3]) {
  let configuration = URLSessionConfiguration.ephemeral
  configuration.urlCache = cache
  let (data, _) = try await URLSession(configuration: configuration).data(from: url)
  exit(data.isEmpty ? 5 : 0)
}
if arguments[2].hasPrefix("revalidate"), let url = URL(string: arguments[3]) {
  let configuration = URLSessionConfiguration.ephemeral
  configuration.urlCache = cache
  let session = URLSession(configuration: configuration)
  for round in 1... {
    let (data, response) = try await session.data(from: url)
    if arguments[2] == "revalidate-once" {
      if round == 2 { exit(data.isEmpty ? 5 : 0) }
      continue
    }
    await session.flush()
    print((response as? HTTPURLResponse)?.value(forHTTPHeaderField: "X-Number") ?? "-")
    fflush(nil)
  }
}
guard let count = Int(arguments[3]) else { exit(2) }
for number in 0..<count {
  guard let url = URL(string: "http://cache.test/\(arguments[2])/\(number % 8)") else { exit(3) }
  // Most bodies are long enough that the disk writes them in more than one piece.
  let body = Data("\(number):".utf8) + Data(repeating: UInt8(number % 251), count: number * 7919 % 100_000)
  let response = URLResponse(
    url: url, mimeType: "text/plain", expectedContentLength: body.count, textEncodingName: nil)
  cache.storeCachedResponse(CachedURLResponse(response: response, data: body), for: URLRequest(url: url))
  // `currentDiskUsage` waits for the writes to the disk.
  guard cache.currentDiskUsage > 0 else { exit(4) }
  print(number)
  fflush(nil)
}
exit(0)
