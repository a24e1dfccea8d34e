import AFNetworking
import TestKit
import Testing

/// What AFNetworking's own tests of the image cache leave open: spellings, sizes and limits.
@Suite struct AutoPurgingImageCacheTests {
  let cache = AFAutoPurgingImageCache(memoryCapacity: 100 << 20, preferredMemoryCapacity: 60 << 20)
  let image = Picture("logo", bytes: 13600)
  let request: URLRequest

  init() throws { request = URLRequest(url: try #require(URL(string: "http://test.com/image"))) }

  @Test(arguments: [nil, "filter"]) func byRequest(identifier: String?) throws {
    #expect(cache.shouldCache(image, for: request, withAdditionalIdentifier: identifier))
    cache.add(image, for: request, withAdditionalIdentifier: identifier)
    #expect(cache.imagefor(request, withAdditionalIdentifier: identifier) === image)
    #expect(cache.image(for: request, withAdditionalIdentifier: identifier) === image)
    #expect(cache.image(withIdentifier: "http://test.com/image" + (identifier ?? "")) === image)
    let other = URLRequest(url: try #require(URL(string: "http://test.com/differentImage")))
    #expect(cache.imagefor(other, withAdditionalIdentifier: identifier) == nil)
    #expect(!cache.removeImagefor(request, withAdditionalIdentifier: "nofilter"))
    #expect(cache.imagefor(request, withAdditionalIdentifier: "nofilter") == nil)
    #expect(cache.removeImagefor(request, withAdditionalIdentifier: identifier))
    #expect(!cache.removeImage(for: request, withAdditionalIdentifier: identifier) && cache.memoryUsage == 0)
  }

  @Test func memoryUsage() {
    #expect(cache.memoryUsage == 0)
    cache.add(image, withIdentifier: "logo")
    #expect(cache.memoryUsage == 13600)
    cache.add(Picture(bytes: 0), withIdentifier: "empty")
    #expect(cache.memoryUsage == 13601)
    cache.removeImage(withIdentifier: "logo")
    #expect(cache.memoryUsage == 1)
    #expect(cache.removeAllImages() && cache.memoryUsage == 0)
  }

  @Test func capacities() {
    #expect(AFAutoPurgingImageCache().memoryCapacity == 100 << 20)
    #expect(AFAutoPurgingImageCache().preferredMemoryUsageAfterPurge == 60 << 20)
    for number in 0..<10 { cache.add(image, withIdentifier: "\(number)") }
    cache.memoryCapacity = 50000
    #expect(cache.memoryUsage == 40800 && cache.preferredMemoryUsageAfterPurge == 50000)
    cache.preferredMemoryUsageAfterPurge = 20000
    cache.add(image, withIdentifier: "last")
    #expect(cache.memoryUsage == 13600 && cache.image(withIdentifier: "last") === image)
    // An image that exceeds the capacity is not kept, whatever size it states.
    for size in [50001, UInt64.max] {
      cache.add(Picture(bytes: size), withIdentifier: "giant")
      #expect(cache.image(withIdentifier: "giant") == nil && cache.memoryUsage <= 50000)
    }
  }

  /// A cache of any content releases each image once, and its sum is that of its images.
  @Test func sums() {
    var random = SeededGenerator(seed: 7)
    let cache = AFAutoPurgingImageCache(memoryCapacity: 1000, preferredMemoryCapacity: 500)
    for _ in 0..<5000 {
      let name = "\(Int.random(in: 0..<40, using: &random))"
      switch Int.random(in: 0..<3, using: &random) {
      case 0: _ = cache.image(withIdentifier: name)
      case 1: cache.removeImage(withIdentifier: name)
      default: cache.add(Picture(bytes: UInt64.random(in: 1...200, using: &random)), withIdentifier: name)
      }
      let sum = (0..<40).reduce(UInt64(0)) { $0 + (cache.image(withIdentifier: "\($1)")?.decodedByteCount ?? 0) }
      #expect(sum == cache.memoryUsage && sum <= 1000)
    }
  }
}
