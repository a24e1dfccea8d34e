import Foundation

open class URLCache: NSObject, @unchecked Sendable {
  open class var shared: URLCache { URLCache(memoryCapacity: 0, diskCapacity: 0, diskPath: nil) }
  public init(memoryCapacity: Int, diskCapacity: Int, diskPath path: String?) {}
  open func removeAllCachedResponses() {}
}
open class CachedURLResponse: NSObject, @unchecked Sendable {}