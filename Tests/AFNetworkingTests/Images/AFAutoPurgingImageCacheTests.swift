import AFNetworking
import Testing

/// AFNetworking's tests of its image cache, by their names.
@Suite struct AFAutoPurgingImageCacheTests {
  static let size: UInt64 = 13600

  let cache = AFAutoPurgingImageCache(memoryCapacity: 100 << 20, preferredMemoryCapacity: 60 << 20)
  let image = Picture("logo", bytes: size)
  let request: URLRequest

  init() throws { request = URLRequest(url: try #require(URL(string: "http://test.com/image"))) }

  // MARK: - Images that are returned

  @Test func imageIsReturnedFromCacheForIdentifier() {
    cache.add(image, withIdentifier: "logo")
    #expect(cache.image(withIdentifier: "logo") === image)
  }

  @Test func imageIsReturnedFromCacheForURLRequest() {
    cache.add(image, for: request, withAdditionalIdentifier: nil)
    #expect(cache.imagefor(request, withAdditionalIdentifier: nil) === image)
  }

  @Test func imageIsReturnedFromCacheForURLRequestWithAdditionalIdentifier() {
    cache.add(image, for: request, withAdditionalIdentifier: "filter")
    #expect(cache.imagefor(request, withAdditionalIdentifier: "filter") === image)
  }

  @Test func imageIsNotReturnedWhenAdditionalIdentifierIsNotSet() {
    cache.add(image, for: request, withAdditionalIdentifier: "filter")
    #expect(cache.imagefor(request, withAdditionalIdentifier: nil) == nil)
  }

  @Test func imageIsNotReturnedWhenURLDoesntMatch() throws {
    cache.add(image, for: request, withAdditionalIdentifier: nil)
    let other = URLRequest(url: try #require(URL(string: "http://test.com/differentImage")))
    #expect(cache.imagefor(other, withAdditionalIdentifier: nil) == nil)
  }

  @Test func duplicateImageAddedToCacheIsReturned() {
    let new = Picture("new", bytes: 5)
    cache.add(image, for: request, withAdditionalIdentifier: nil)
    cache.add(new, for: request, withAdditionalIdentifier: nil)
    #expect(cache.imagefor(request, withAdditionalIdentifier: nil) === new && cache.memoryUsage == 5)
  }

  // MARK: - Images that are removed

  @Test func imageIsRemovedWithIdentifier() {
    cache.add(image, withIdentifier: "logo")
    #expect(cache.removeImage(withIdentifier: "logo"))
    #expect(!cache.removeImage(withIdentifier: "logo") && cache.image(withIdentifier: "logo") == nil)
  }

  private func isRemoved(_ identifier: String?, addedWith added: String?) -> Bool {
    cache.add(image, for: request, withAdditionalIdentifier: added)
    let isRemoved = cache.removeImagefor(request, withAdditionalIdentifier: identifier)
    #expect(!cache.removeImagefor(request, withAdditionalIdentifier: identifier))
    #expect((cache.imagefor(request, withAdditionalIdentifier: added) == nil) == isRemoved)
    return isRemoved
  }

  @Test func imageIsRemovedWithURLRequest() { #expect(isRemoved(nil, addedWith: nil)) }

  @Test func imageIsRemovedWithURLRequestWithAdditionalIdentifier() {
    #expect(isRemoved("filter", addedWith: "filter"))
  }

  @Test func imageIsNotRemovedWithURLRequestAndNilIdentifier() { #expect(!isRemoved(nil, addedWith: "filter")) }

  @Test func imageIsNotRemovedWithURLRequestAndIncorrectIdentifier() {
    #expect(!isRemoved("nofilter", addedWith: "filter"))
  }

  // MARK: - Memory

  @Test func thatMemoryUsageIncreasesWhenAddingImage() {
    #expect(cache.memoryUsage == 0)
    cache.add(image, withIdentifier: "logo")
    #expect(cache.memoryUsage == Self.size)
  }

  @Test func thatMemoryUsageDecreasesWhenRemovingImage() {
    cache.add(image, withIdentifier: "logo")
    cache.removeImage(withIdentifier: "logo")
    #expect(cache.memoryUsage == 0)
  }

  private func smallCache() -> AFAutoPurgingImageCache {
    AFAutoPurgingImageCache(memoryCapacity: 10 * Self.size, preferredMemoryCapacity: 6 * Self.size)
  }

  @Test func thatImagesArePurgedWhenCapcityIsReached() {
    let cache = smallCache()
    for number in 1...10 {
      cache.add(image, withIdentifier: "image-\(number)")
      #expect(cache.memoryUsage == UInt64(number) * Self.size)
    }
    cache.add(image, withIdentifier: "image-11")
    #expect(cache.memoryUsage == 6 * Self.size)
  }

  @Test func thatPrioritizedImagesWithOldestLastAccessDatesAreRemovedDuringPurge() {
    let cache = smallCache()
    for number in 0..<10 { cache.add(image, withIdentifier: "image-\(number)") }
    // The first image is used, so that it is not the oldest.
    #expect(cache.image(withIdentifier: "image-0") != nil)
    cache.add(image, withIdentifier: "image-10")
    for number in 0...10 {
      #expect((cache.image(withIdentifier: "image-\(number)") != nil) == (number == 0 || number >= 6))
    }
  }
}
