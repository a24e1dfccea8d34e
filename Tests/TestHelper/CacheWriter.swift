// Stores responses in a cache directory that other processes may write into at the same time.
//
//   TestHelper cache-writer FOLDER NAME COUNT             stores COUNT bodies that begin with 0, 1, 2, ... for eight URLs
//                                                         in turn, and prints each number once its body is on the disk
//   TestHelper cache-writer FOLDER load URL               loads URL and exits at once
//   TestHelper cache-writer FOLDER revalidate URL         loads URL again and again, and prints the field `X-Number` of
//                                                         each response once the response is on the disk
//   TestHelper cache-writer FOLDER revalidate-once URL    loads URL twice and exits at once

import Foundation
import Larkspur

/// Exits while the cache is alive: the exit finishes the cache's writes.
private func endProcess(with cache: URLCache, _ status: Int32) -> Never {
  withExtendedLifetime(cache) { exit(status) }
}

func runCacheWriter(_ arguments: [String]) async throws {
  guard arguments.count == 3 else { throw Failure.wrongArguments }
  let cache = URLCache(memoryCapacity: 0, diskCapacity: 4 << 20, directory: URL(filePath: arguments[0]))
  if arguments[1] == "load", let url = URL(string: arguments[2]) {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = cache
    let (data, _) = try await URLSession(configuration: configuration).data(from: url)
    endProcess(with: cache, data.isEmpty ? 1 : 0)
  }
  if arguments[1].hasPrefix("revalidate"), let url = URL(string: arguments[2]) {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = cache
    let session = URLSession(configuration: configuration)
    for round in 1... {
      let (data, response) = try await session.data(from: url)
      if arguments[1] == "revalidate-once" {
        if round == 2 { endProcess(with: cache, data.isEmpty ? 1 : 0) }
        continue
      }
      await session.flush()
      say((response as? HTTPURLResponse)?.value(forHTTPHeaderField: "X-Number") ?? "-")
    }
  }
  guard let count = Int(arguments[2]) else { throw Failure.wrongArguments }
  for number in 0..<count {
    guard let url = URL(string: "http://cache.test/\(arguments[1])/\(number % 8)") else { throw Failure.wrongArguments }
    // Most bodies are long enough that the disk writes them in more than one piece.
    let body = Data("\(number):".utf8) + Data(repeating: UInt8(number % 251), count: number * 7919 % 100_000)
    let response = URLResponse(
      url: url, mimeType: "text/plain", expectedContentLength: body.count, textEncodingName: nil)
    cache.storeCachedResponse(CachedURLResponse(response: response, data: body), for: URLRequest(url: url))
    // `currentDiskUsage` waits for the writes to the disk.
    guard cache.currentDiskUsage > 0 else { throw Failure("nothing is on the disk") }
    say("\(number)")
  }
  endProcess(with: cache, 0)
}
