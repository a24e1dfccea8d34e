import Foundation
import LarkspurTLS

open class URLCache: NSObject, @unchecked Sendable {
  open class var shared: URLCache { URLCache(memoryCapacity: 0, diskCapacity: 0, diskPath: nil) }
  public init(memoryCapacity: Int, diskCapacity: Int, diskPath path: String?) {}
  open func removeAllCachedResponses() {}
}
open class CachedURLResponse: NSObject, @unchecked Sendable {}
open class URLCredential: NSObject, @unchecked Sendable {}
open class URLCredentialStorage: NSObject, @unchecked Sendable {
  open class var shared: URLCredentialStorage { URLCredentialStorage() }
  static func ephemeral() -> URLCredentialStorage { URLCredentialStorage() }
  func removeAll() {}
}
open class URLAuthenticationChallenge: NSObject, @unchecked Sendable { func delegateHasNoWord() {} }
struct TLSTrustSettings: Sendable { var isStandard: Bool { true }; func apply(to c: inout TLSConfiguration) {} }
