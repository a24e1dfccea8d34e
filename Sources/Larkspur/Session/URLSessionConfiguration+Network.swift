import Foundation
import LarkspurTransport

@_exported import struct LarkspurTransport.HostOverrides

/// How a session's connections are made and used. Additions of Larkspur's: <doc:ConfiguringSessions> sorts them by
/// purpose.
///
/// A value that cannot be used fails the tasks that it concerns with `URLError.cannotConnectToHost` before anything is
/// sent, and the error's text names the property.
extension URLSessionConfiguration {
  /// Other places for hosts: addresses, another host, or a Unix socket. Empty by default. TLS, the `Host` field,
  /// cookies and the cache keep the URL's host. See ``HostOverrides``; curl calls them `--resolve`, `--connect-to` and
  /// `--unix-socket`.
  ///
  /// The overrides apply to data, download, upload, WebSocket and stream tasks, and to those of background sessions. The
  /// executor of a background session may have another current directory: give it absolute paths of sockets.
  public var hostOverrides: HostOverrides {
    get { storage.settings.hostOverrides }
    set { storage.settings.hostOverrides = newValue }
  }
}
