import Foundation
import LarkspurHTTP

/// The cookies with which a background task is made and that are in no file: those that end with the session, those of
/// a storage in memory, and those that a program's subclass of the storage chooses. They are kept in the task's record.
///
/// Only the cookies for the task's first URL travel. The runner's storage takes them where it has no cookie of their
/// name, as cookies that end with the session.
enum TransferCookies {
  /// Maximum size in bytes. Servers accept much less in a field. Cookies beyond it stay behind.
  static let bytesMax = 64 << 10
  /// The time for which the form calls the cookies valid, in seconds. A reader pays no attention to it.
  private static let validSeconds = 86_400.0

  static func bytes(for request: URLRequest, of storage: HTTPCookieStorage) -> [UInt8]? {
    let isInFile = storage.disk != nil && !storage.isSubclass
    let now = CookieTime(Date())
    var cookies = (storage.chosenCookies(for: request) ?? []).map { $0.content.cookie(now: now) }
      .filter { !(isInFile && $0.isPersistent) }
    for index in cookies.indices {
      cookies[index].expiry = CookieTime(seconds: now.seconds + validSeconds)
      cookies[index].legacy?.isDiscarded = false
    }
    while !cookies.isEmpty {
      let bytes = CookieFile.bytes(of: cookies)
      if bytes.count <= bytesMax { return bytes }
      cookies.removeLast()
    }
    return nil
  }

  /// Gives cookies of a record, which is untrusted, to a storage. A program's subclass of the storage chooses its
  /// cookies itself.
  static func restore(_ bytes: [UInt8], to storage: HTTPCookieStorage) {
    guard !storage.isSubclass, bytes.count <= bytesMax, case .cookies(let cookies) = CookieFile.read(bytes) else {
      return
    }
    let now = CookieTime(Date())
    _ = storage.change { state in
      let revision = state.jar.revision
      for cookie in cookies {
        var cookie = cookie
        cookie.expiry = nil
        if !state.jar.has(cookie, at: now) { state.jar.put(cookie, now: now) }
      }
      return state.jar.revision != revision
    }
  }
}
