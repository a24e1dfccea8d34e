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

  /// The time limits of the parts of connections and exchanges: `resolve`, `connect`, `secure`, `send`, `firstByte`,
  /// `idle`, `total`, and `lowestRate`, which ends a stalled transfer. No limits by default. A task that exceeds one fails
  /// with `URLError.timedOut`, and the error's text names the phase and the limit.
  ///
  /// Connections are opened for a host and not for one task: when `resolve`, `connect` or `secure` is exceeded, the tasks
  /// fail that wait for the connection. With limits for exchanges, requests are not pipelined. A redirection and a login
  /// make further exchanges, each with its own time; `timeoutIntervalForRequest` and `timeoutIntervalForResource` apply
  /// as well. Works in background sessions, whose failed transfers are tried again.
  public var timeouts: Timeouts {
    get { storage.settings.timeouts }
    set { storage.settings.timeouts = newValue }
  }
}
