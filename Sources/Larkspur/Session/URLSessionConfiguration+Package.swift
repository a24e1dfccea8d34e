import Foundation
import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTransport

/// Settings for the package's own command, which Darwin does not have.
extension URLSessionConfiguration {
  /// Maximum time for opening a connection, in seconds: look-up of the name, connecting, the proxy's tunnel, and TLS. A
  /// task whose connection takes longer fails with `URLError.timedOut`, and `URLError.transportError` has the phase in
  /// which the time ran out. If the value is 0 or `nil`, the default, the maximum is 60 seconds or
  /// `timeoutIntervalForRequest`, whichever is longer.
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
