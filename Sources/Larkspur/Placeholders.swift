import Foundation
import LarkspurTLS

open class HTTPCookie: NSObject, @unchecked Sendable {
  public enum AcceptPolicy: UInt, Sendable { case always, never, onlyFromMainDocumentDomain }
}
open class HTTPCookieStorage: NSObject, @unchecked Sendable {
  open class var shared: HTTPCookieStorage { HTTPCookieStorage() }
  static func ephemeral() -> HTTPCookieStorage { HTTPCookieStorage() }
  open var cookieAcceptPolicy: HTTPCookie.AcceptPolicy { .always }
  open func removeCookies(since date: Date) {}
  func cookieField(for url: URL, mainDocument: URL?, isSafeMethod: Bool, isTopLevel: Bool, now: Date) -> String? { nil }
  func store(setCookieFields: [String], from url: URL, mainDocument: URL?, now: Date) {}
}
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
