import Foundation
import LarkspurBytes
import LarkspurEngine
import LarkspurHTTP
import LarkspurIO
import LarkspurTransport
import Synchronization

/// An observer that writes the traffic of sessions and clients into a file in the HTTP Archive format (HAR 1.2), which
/// browsers' developer tools open, and `LarkspurTestServer` answers from.
///
/// ```swift
/// let recorder = try HARRecorder(URL(filePath: "traffic.har"))
/// configuration.eventObserver = recorder
/// ```
///
/// Each request on the wire is an entry: redirections, retries and challenges have separate entries, responses that the
/// cache serves have no entry. An entry is written when its exchange is over, and the file is complete JSON after each.
/// If the process ends by force, the file lacks the exchanges that were not over, and the last entry if that moment was
/// within its writing.
///
/// Secrets are left out, unless `includesSecrets` is `true`: user and password in URLs, fields such as `Authorization` and
/// `Cookie`, and parameters such as `access_token` in queries, forms and JSON. Other content is recorded as it is. The
/// file is readable by its owner only.
///
/// Any thread may use a recorder. A recorder serves one session or one client, because each numbers its tasks and connections by
/// itself. The file is written on a queue of the recorder, never on the loop.
public final class HARRecorder: HTTPEventObserver {
  /// Maximum number of bytes of each body to record.
  public let bodyBytesMax: Int
  private let includesSecrets: Bool
  private let file: HARFile
  private let ledger = Mutex(HARLedger())

  /// Creates the file, in place of an earlier one.
  ///
  /// - Parameters:
  ///   - url: The URL of the file.
  ///   - bodyBytesMax: Maximum number of bytes of each body to record. Of longer bodies the beginning is recorded, and the
  ///     entry says so. Bodies are in memory until the end of their exchange.
  ///   - includesSecrets: Whether secrets are recorded as well.
  /// - Throws: The error of creating the file.
  public init(_ url: URL, bodyBytesMax: Int = 1 << 20, includesSecrets: Bool = false) throws {
    self.bodyBytesMax = max(0, bodyBytesMax)
    self.includesSecrets = includesSecrets
    file = try HARFile(url)
  }

  /// Takes an event of the session or the client.
  public func observe(_ event: HTTPEvent) {
    guard let finished = ledger.withLock({ $0.note(event) }) else { return }
    let (bytesMax, includesSecrets) = (bodyBytesMax, includesSecrets)
    file.append(bytes: finished.requestBody.count + finished.responseBody.count) {
      HAREntry(finished, bodyBytesMax: bytesMax, includesSecrets: includesSecrets)
    }
  }

  /// Waits until the entries of all exchanges that are over have been written.
  ///
  /// Blocks the calling thread. Call it on any thread but a loop's.
  ///
  /// - Throws: The first error of writing the file, or `CocoaError.fileWriteUnknown` if entries were added so much faster than
  ///   they are written that 256 MiB of bodies waited. Later entries have not been written then.
  public func flush() throws { try file.flush() }
}

/// The exchanges that are not over.
struct HARLedger {
  /// The latest request of a task.
  private struct Request {
    var method: String
    var url: String
    var time: Deadline
    /// Whether a connection has carried the request.
    var isSent = false
  }

  /// An exchange: all that its entry is made of.
  struct Exchange {
    var method = ""
    var url = ""
    var connection: Int?
    var address: SocketAddress?
    var requested = Deadline.never
    /// The opening of the connection, if it was opened for this exchange.
    var opening: Opening?
    var started = Deadline.never
    var sent: Deadline?
    var answered: Deadline?
    var ended = Deadline.never
    var requestHead: [UInt8] = []
    var requestBody: [UInt8] = []
    var requestBodyCount = 0
    var status = 0
    var responseHead: [UInt8] = []
    var responseBody: [UInt8] = []
    var responseBodyCount = 0
    var failure: String?
    /// Whether secrets have been taken out of the request, and the response follows.
    var isRedacted = false
  }

  /// The times of the parts of opening a connection.
  struct Opening {
    var started: Deadline
    var lookUp: (start: Deadline, end: Deadline?)?
    var connect: (start: Deadline, end: Deadline?)?
    var handshake: (start: Deadline, end: Deadline?)?
  }

  private struct Link {
    var opening: Opening?
    var address: SocketAddress?
    var exchange: Exchange?
  }

  private var requests: [Int: Request] = [:]
  private var links: [Int: Link] = [:]

  /// - Returns: An exchange that is over.
  mutating func note(_ event: HTTPEvent) -> Exchange? {
    switch event.kind {
    case .started, .cache, .retry: return nil
    case .request(let method, let url):
      guard let task = event.task else { return nil }
      requests[task] = Request(method: method, url: url, time: event.moment)
      return nil
    case .ended(let error):
      guard let task = event.task, let request = requests.removeValue(forKey: task), !request.isSent, let error else {
        return nil
      }
      var exchange = Exchange(method: request.method, url: request.url, requested: request.time)
      (exchange.started, exchange.ended, exchange.failure) = (event.moment, event.moment, error)
      return exchange
    case .connection(let kind):
      guard let number = event.connection else { return nil }
      return note(kind, of: event, links[number] ?? Link(), number)
    }
  }

  private mutating func note(_ kind: ConnectionEvent, of event: HTTPEvent, _ former: Link, _ number: Int) -> Exchange? {
    var link = former
    let now = event.moment
    var finished: Exchange?
    var isOver = false
    switch kind {
    case .resolving:
      link.opening = link.opening ?? Opening(started: now)
      link.opening?.lookUp = (now, nil)
    case .resolved: link.opening?.lookUp?.end = now
    case .connecting:
      link.opening = link.opening ?? Opening(started: now)
      if link.opening?.connect == nil { link.opening?.connect = (now, nil) }
    case .connected(let address):
      link.address = address
      link.opening?.connect?.end = now
    case .securing: link.opening?.handshake = (now, nil)
    case .secured: link.opening?.handshake?.end = now
    case .openFailed: isOver = true
    case .requestStarted(let head, let bytes, _):
      link.exchange = begin(head, event, link)
      link.exchange?.requestBodyCount = max(0, bytes - head.count)
      link.opening = nil
    case .requestContent(let bytes): link.exchange?.requestBody += bytes
    case .bodySent(let bytes): link.exchange?.requestBodyCount = bytes
    case .requestSent: link.exchange?.sent = now
    case .headReceived(let status, let bytes):
      link.exchange?.status = status
      link.exchange?.responseHead = bytes
      link.exchange?.answered = now
    case .bodyReceived(let bytes): link.exchange?.responseBodyCount += bytes
    case .responseContent(let bytes): link.exchange?.responseBody += bytes
    case .completed, .handedOver:
      finished = link.exchange.take()
      isOver = { if case .handedOver = kind { true } else { false } }()
    case .failed(let error):
      link.exchange?.failure = "\(error)"
      finished = link.exchange.take()
    case .closed: isOver = true
    case .connectFailed, .tunnelling, .tunnelled, .interimReceived: break
    }
    links[number] = isOver ? nil : link
    finished?.ended = now
    return finished
  }

  private mutating func begin(_ head: [UInt8], _ event: HTTPEvent, _ link: Link) -> Exchange? {
    guard let task = event.task, let request = requests[task] else { return nil }
    requests[task]?.isSent = true
    var exchange = Exchange(method: request.method, url: request.url, connection: event.connection)
    exchange.requestHead = head
    exchange.requested = request.time
    exchange.started = event.moment
    exchange.address = link.address
    exchange.opening = link.opening
    return exchange
  }
}
