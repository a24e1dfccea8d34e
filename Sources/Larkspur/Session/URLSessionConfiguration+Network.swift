import Foundation
import LarkspurIO
import LarkspurTransport

@_exported import struct LarkspurIO.LocalEndpoint
@_exported import struct LarkspurTransport.HostOverrides

/// How a session's connections are made and used. Additions of Larkspur's: <doc:ConfiguringSessions> sorts them by
/// purpose.
///
/// A value that cannot be used fails the tasks that it concerns with `URLError.cannotConnectToHost` before anything is
/// sent, and the error's text names the property.
extension URLSessionConfiguration {
  /// Other places for hosts: addresses, another host, or a Unix socket. Empty by default. TLS, the `Host` field,
  /// cookies and the cache keep the URL's host. See `HostOverrides`; curl calls them `--resolve`, `--connect-to` and
  /// `--unix-socket`.
  ///
  /// The overrides apply to data, download, upload, WebSocket and stream tasks, and to those of background sessions, for
  /// which a relative path of a socket is made absolute.
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

  /// The local address or the interface that connections begin at, or `nil`, the default, to let the kernel choose. curl
  /// calls it `--interface`.
  ///
  /// Connections to proxies begin there, too, and those to Unix sockets have no such end. Names are looked up by the
  /// system's resolver, which does not know the option. An interface that does not exist, and an address that is not this
  /// machine's, fail all tasks with `URLError.cannotConnectToHost`. An interface needs `CAP_NET_RAW` before Linux 5.7.
  /// Works in background sessions.
  public var localEndpoint: LocalEndpoint? {
    get { storage.settings.localEndpoint }
    set { storage.settings.localEndpoint = newValue }
  }

  /// The use of multipath TCP (RFC 8684), for which Darwin has this property. With any value but `none`, the default,
  /// connections are made by MPTCP where the kernel has it (Linux 5.6, `net.mptcp.enabled`), and fall back to TCP where
  /// the server or a machine on the way does not. The kernel's path manager decides about the paths, so the other values
  /// are one. ``URLSessionTaskTransactionMetrics/isMultipath`` has the outcome. curl: `--mptcp`. Works in background
  /// sessions.
  public var multipathServiceType: MultipathServiceType {
    get { storage.settings.multipathServiceType }
    set { storage.settings.multipathServiceType = newValue }
  }

  /// How download tasks load their files in segments, over several connections at once; `nil`, the default, for one request
  /// each. For large files of servers that limit the rate of a connection.
  ///
  /// The setting applies to GET requests over `http` and `https` that set no conditions, ranges or codings. Progress,
  /// resume data, challenges and redirections are those of the task. The engine of ``URLSession/download(_:)`` loads
  /// the file, and so repeats requests that fail. The content of an error comes by a separate request. Resume data has
  /// the segments that are on the disk, and is continued in segments by any session. Small files cost a sync of the
  /// disk. Works in background sessions, where the segments survive the process. See <doc:LargeDownloads>.
  public var segmentedDownloads: SegmentedDownloads? {
    get { storage.settings.segmentedDownloads }
    set { storage.settings.segmentedDownloads = newValue }
  }

  /// Upper limits on the rates of the session's connections: bytes a second, of all together and for each host, and
  /// requests a second for each host. No limits by default. curl: `--limit-rate`, `--rate`.
  ///
  /// A server that sends more is slowed down by TCP's window. A request that waits for its turn waits as in the queue for
  /// a connection: that time counts towards ``timeoutIntervalForResource`` only. WebSocket and stream tasks have no limit
  /// once they are open. In a background session the limits hold for the runner's connections.
  public var rateLimits: RateLimits {
    get { storage.settings.rateLimits }
    set { storage.settings.rateLimits = newValue }
  }
}
