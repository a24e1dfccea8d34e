import LarkspurHTTP
import LarkspurIO

/// The error of a download.
public struct DownloadError: Error, Sendable {
  /// The kind of an error.
  public enum Code: String, Hashable, Sendable {
    /// A part of the plan cannot be used. Nothing was requested.
    case invalidPlan
    /// Another download, in this or another process, writes the file.
    case inUse
    /// No mirror can be used: the last one answered with ``DownloadError/status``.
    case status
    /// No mirror can be used: the last request failed with ``DownloadError/underlying``.
    case requestFailed
    /// No mirror can be used: the last request was slower than the plan's lowest rate.
    case tooSlow
    /// The plan requires a download that can be continued, and this one could not.
    case notResumable
    /// The size is not the plan's, or mirrors have different ones.
    case size
    /// The file changed again and again while it was downloaded.
    case changing
    /// The responses contradict themselves.
    case badResponse
    /// The bytes do not have the checksum, also after they have been fetched once more.
    case checksum
    /// The disk has no room. The bytes that were synced stay, and the plan continues them.
    case diskFull
    /// A file operation failed with ``DownloadError/errno``.
    case disk
    /// The download, or a task that waits for it, was cancelled. The bytes that were synced stay.
    case cancelled
  }

  /// The kind of the error.
  public let code: Code
  /// The reason in plain words, with the part of the plan, the sizes or the status.
  public let reason: String
  /// The URL of the request that failed, without user and password, or an empty text.
  public let url: String
  /// The path of the file.
  public let destination: String
  /// The status of the last response, for ``Code/status``.
  public let status: Int?
  /// The `errno` of the file operation, for ``Code/disk``.
  public let errno: Int32?
  /// The client's error, for ``Code/requestFailed``: a `URLError` of a session, or an `HTTPClientError`.
  public let underlying: (any Error)?

  init(
    _ code: Code, _ reason: String, url: String = "", destination: String = "", status: Int? = nil,
    errno: Int32? = nil, underlying: (any Error)? = nil
  ) {
    self.code = code
    self.reason = reason
    self.url = url.withoutUserinfo
    self.destination = destination
    self.status = status
    self.errno = errno
    self.underlying = underlying
  }

  static func invalid(_ part: String, _ reason: String) -> DownloadError {
    DownloadError(.invalidPlan, "\(part): \(reason)")
  }
}

extension DownloadError: CustomStringConvertible {
  public var description: String {
    let place = url.isEmpty ? destination : url
    return place.isEmpty ? reason : "\(place): \(reason)"
  }
}

extension DownloadError {
  /// - Parameters:
  ///   - url: The mirror of the last failure, or an empty text.
  ///   - underlying: The client's error of the last failure.
  init(_ failure: DownloadFailure, _ plan: DownloadPlan, url: String = "", _ underlying: (any Error)? = nil) {
    let destination = plan.destination
    switch failure {
    case .status(let status):
      self.init(
        .status, "the server answered with the status \(status)", url: url, destination: destination, status: status)
    case .lane:
      let text = underlying.map { "\($0)" } ?? "the request failed"
      self.init(.requestFailed, text, url: url, destination: destination, underlying: underlying)
    case .tooSlow:
      self.init(
        .tooSlow, "the connections were slower than \(plan.lowestRate) bytes per second", url: url,
        destination: destination)
    case .notResumable:
      self.init(
        .notResumable, "the download could not be continued: the server has no strong validator or accepts no ranges",
        url: url, destination: destination)
    case .size(let expected, let found):
      self.init(
        .size, "the file has \(found) bytes in place of \(expected)", url: url, destination: destination)
    case .changing:
      self.init(.changing, "the file changed again and again during the download", url: url, destination: destination)
    case .badResponse:
      self.init(.badResponse, "the responses contradict themselves", url: url, destination: destination)
    case .checksum:
      self.init(.checksum, "the bytes do not have the checksum", destination: destination)
    case .diskFull:
      self.init(.diskFull, "the disk has no room for the download", destination: destination)
    case .disk(let number):
      self.init(.disk, "\(Errno(rawValue: number))", destination: destination, errno: number)
    case .cancelled:
      self.init(.cancelled, "the download was cancelled", destination: destination)
    }
  }
}

extension DownloadError {
  init(_ error: Errno, _ plan: DownloadPlan) { self.init(error.isFull ? .diskFull : .disk(error.rawValue), plan) }

  init(_ failure: DownloadStore.Failure, _ plan: DownloadPlan) {
    let destination = plan.destination
    switch failure {
    case .inUse: self.init(.inUse, "another download writes the file", destination: destination)
    case .name: self = .invalid("destination", "\(destination.debugDescription) is no name of a file")
    case .destination(let kind): self = .invalid("destination", "\(destination.debugDescription) is \(kind.text)")
    case .foreign(let name):
      self.init(
        .disk, "\(name) beside the file is no regular file of this user with one name", destination: destination)
    case .disk(.noSuchFile), .disk(.notDirectory):
      self = .invalid("destination", "the directory of \(destination.debugDescription) does not exist")
    case .disk(let error): self.init(error, plan)
    }
  }
}

extension OpenDirectory.Kind {
  fileprivate var text: String {
    switch self {
    case .directory: "a directory"
    case .regularFile: "a file"
    case .symbolicLink: "a symbolic link"
    case .other: "a device, a pipe or a socket"
    }
  }
}
