import Foundation
import Larkspur
import Testing

@Suite struct URLCacheTaskTests {
  @Test func aTaskStandsForItsRequest() async throws {
    let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
    let url = try #require(URL(string: "http://a.example/"))
    let task = URLSession(configuration: .ephemeral).dataTask(with: url)
    let response = try #require(HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: nil))
    func stored() async -> Data? {
      await withCheckedContinuation { continuation in
        cache.getCachedResponse(for: task) { continuation.resume(returning: $0?.data) }
      }
    }
    #expect(await stored() == nil)
    cache.storeCachedResponse(CachedURLResponse(response: response, data: Data("x".utf8)), for: task)
    #expect(await stored() == Data("x".utf8))
    #expect(cache.cachedResponse(for: URLRequest(url: url))?.data == Data("x".utf8))
    cache.removeCachedResponse(for: task)
    #expect(await stored() == nil)
    task.cancel()
  }
}
