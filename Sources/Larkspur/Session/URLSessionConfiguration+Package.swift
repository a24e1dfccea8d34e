import Foundation
import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTransport

/// Settings for the package's own command, which Darwin does not have.
extension URLSessionConfiguration {
  /// How long opening a connection may take, in seconds: looking up the name, connecting, the proxy's tunnel, TLS. A
  /// task whose connection takes longer fails with `URLError.timedOut`, and `URLError.transportError` says in which
  /// phase the time was up. `nil`, the default, and 0 set 60 seconds, or `timeoutIntervalForRequest` if that is longer.
  package var timeoutIntervalForConnection: TimeInterval? {
    get { storage.settings.timeoutForConnection }
    set { storage.settings.timeoutForConnection = newValue }
  }

  /// The directory for the journals of background sessions, in place of `XDG_STATE_HOME`.
  package var transferStateHome: String? {
    get { storage.transferStateHome }
    set { storage.transferStateHome = newValue }
  }

  /// The only kind of addresses to connect to, or `nil`, the default, for all. A task whose host has no such address
  /// fails with `URLError.cannotFindHost`. The tasks of a background session that another process carries out connect to
  /// all.
  package var addressFamily: SocketAddress.Family? {
    get { storage.addressFamily }
    set { storage.addressFamily = newValue }
  }

  /// How often and after which delays an upload that broke off continues by itself. `nil`, the default, sets three
  /// tries without progress after 0.5 to 4 s, and no limit for background sessions.
  package var uploadRetry: UploadRetry? {
    get { storage.uploadRetry }
    set { storage.uploadRetry = newValue }
  }
}
