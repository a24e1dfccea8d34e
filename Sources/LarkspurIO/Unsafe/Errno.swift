import Glibc

/// An error number of the kernel.
public struct Errno: Error, Hashable, Sendable {
  public let rawValue: Int32

  public init(rawValue: Int32) {
    self.rawValue = rawValue
  }

  /// The value of `errno` that the latest call left.
  static var current: Errno { Errno(rawValue: errno) }

  /// Nothing to read, or no room to write, on a non-blocking descriptor.
  public static let wouldBlock = Errno(rawValue: EAGAIN)
  /// A signal arrived before the call did anything. Make the call again.
  public static let interrupted = Errno(rawValue: EINTR)
  /// A non-blocking connect is in progress. It has ended once the descriptor is writable.
  public static let inProgress = Errno(rawValue: EINPROGRESS)
  /// The peer reset the connection, or closed it with bytes unread on its side.
  public static let connectionReset = Errno(rawValue: ECONNRESET)
  /// The machine's administrator has closed the connection.
  public static let connectionAborted = Errno(rawValue: ECONNABORTED)
  /// Nothing listens at the address.
  public static let connectionRefused = Errno(rawValue: ECONNREFUSED)
  /// The peer did not acknowledge the kernel's retransmissions.
  public static let timedOut = Errno(rawValue: ETIMEDOUT)
  /// No route leads to the host.
  public static let hostUnreachable = Errno(rawValue: EHOSTUNREACH)
  /// No route leads to the network, or the address family has no interface at all.
  public static let networkUnreachable = Errno(rawValue: ENETUNREACH)
  /// The interface that the route uses is down.
  public static let networkDown = Errno(rawValue: ENETDOWN)
  /// A write after the peer closed the connection, or after a shutdown on this side.
  public static let brokenPipe = Errno(rawValue: EPIPE)
  /// The process has as many open descriptors as it may have.
  public static let tooManyDescriptors = Errno(rawValue: EMFILE)
  /// The system has as many open descriptors as it may have.
  public static let tooManyDescriptorsInSystem = Errno(rawValue: ENFILE)
  /// All local ports for the remote address are in use, or the local address to bind is not one of the machine's.
  public static let addressNotAvailable = Errno(rawValue: EADDRNOTAVAIL)
  /// The address to listen on is in use.
  public static let addressInUse = Errno(rawValue: EADDRINUSE)
  /// The kernel does not support the address family.
  public static let familyNotSupported = Errno(rawValue: EAFNOSUPPORT)
  /// A local firewall rule forbids the operation, the address is reserved, or a file or directory belongs to another
  /// user.
  public static let notPermitted = Errno(rawValue: EPERM)
  public static let accessDenied = Errno(rawValue: EACCES)
  public static let noMemory = Errno(rawValue: ENOMEM)
  public static let noBufferSpace = Errno(rawValue: ENOBUFS)
  public static let notConnected = Errno(rawValue: ENOTCONN)
  public static let badDescriptor = Errno(rawValue: EBADF)
  public static let invalidArgument = Errno(rawValue: EINVAL)
  /// A file to create exists already.
  public static let fileExists = Errno(rawValue: EEXIST)
  public static let noSuchFile = Errno(rawValue: ENOENT)
  public static let isDirectory = Errno(rawValue: EISDIR)
  public static let notDirectory = Errno(rawValue: ENOTDIR)
  /// A directory to remove has entries.
  public static let notEmpty = Errno(rawValue: ENOTEMPTY)
  public static let readOnlyFileSystem = Errno(rawValue: EROFS)
  /// The device failed, or a call did nothing and gave no reason.
  public static let inputOutput = Errno(rawValue: EIO)
  public static let fileTooLarge = Errno(rawValue: EFBIG)
  /// The kernel has no such system call.
  public static let notImplemented = Errno(rawValue: ENOSYS)
  /// A file cannot be moved to another file system.
  public static let crossesFileSystems = Errno(rawValue: EXDEV)
  public static let noSpace = Errno(rawValue: ENOSPC)
  /// The user has as many bytes on the file system as the quota allows.
  public static let overQuota = Errno(rawValue: EDQUOT)
  /// The file system has no such operation.
  public static let notSupported = Errno(rawValue: EOPNOTSUPP)
  /// A path, or a part of it, is longer than the kernel accepts.
  public static let nameTooLong = Errno(rawValue: ENAMETOOLONG)
  public static let tooManyLinks = Errno(rawValue: ELOOP)
  /// No network interface has the name.
  public static let noSuchDevice = Errno(rawValue: ENODEV)

  /// Whether the process or the system lacks a resource, so that a second attempt fails as well.
  public var isShortage: Bool {
    switch self {
    case .tooManyDescriptors, .tooManyDescriptorsInSystem, .noMemory, .noBufferSpace: true
    default: false
    }
  }

  /// Whether a write needs more room than the user has on the file system.
  public var isFull: Bool { self == .noSpace || self == .overQuota }

  /// Whether the error of a send leaves the other direction whole. A broken pipe that no other error precedes follows
  /// the orderly end of the peer's stream, so that everything that the peer sent arrives.
  public var followsOrderlyEnd: Bool { self == .brokenPipe }

  /// Whether the kernel reports with this error that a connection has broken. The error of a call that reads a file as
  /// well may also be the file's.
  public var isConnectionLoss: Bool {
    switch self {
    case .connectionReset, .connectionAborted, .timedOut, .hostUnreachable, .networkUnreachable, .networkDown: true
    default: false
    }
  }

  private static let names: [Errno: String] = [
    .wouldBlock: "EAGAIN", .interrupted: "EINTR", .inProgress: "EINPROGRESS", .connectionReset: "ECONNRESET",
    .connectionAborted: "ECONNABORTED", .connectionRefused: "ECONNREFUSED", .timedOut: "ETIMEDOUT",
    .hostUnreachable: "EHOSTUNREACH",
    .networkUnreachable: "ENETUNREACH", .networkDown: "ENETDOWN", .notConnected: "ENOTCONN", .brokenPipe: "EPIPE",
    .tooManyDescriptors: "EMFILE",
    .tooManyDescriptorsInSystem: "ENFILE", .addressNotAvailable: "EADDRNOTAVAIL", .addressInUse: "EADDRINUSE",
    .familyNotSupported: "EAFNOSUPPORT", .notPermitted: "EPERM", .accessDenied: "EACCES", .noMemory: "ENOMEM",
    .noBufferSpace: "ENOBUFS", .badDescriptor: "EBADF", .invalidArgument: "EINVAL",
    .fileExists: "EEXIST", .noSuchFile: "ENOENT", .isDirectory: "EISDIR", .notDirectory: "ENOTDIR",
    .notEmpty: "ENOTEMPTY",
    .readOnlyFileSystem: "EROFS", .crossesFileSystems: "EXDEV", .noSpace: "ENOSPC", .nameTooLong: "ENAMETOOLONG",
    .noSuchDevice: "ENODEV", .overQuota: "EDQUOT", .notSupported: "EOPNOTSUPP",
    .tooManyLinks: "ELOOP", .inputOutput: "EIO", .fileTooLarge: "EFBIG", .notImplemented: "ENOSYS",
  ]
}

extension Errno: CustomStringConvertible {
  /// The kernel's message with the constant's name, for example `Connection refused (ECONNREFUSED)`.
  public var description: String {
    // Safe: the call writes a NUL-terminated message, or fails.
    let message = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 128) { buffer in
      guard let text = buffer.baseAddress, unsafe strerror_r(rawValue, text, buffer.count) == 0 else {
        return "Unknown error"
      }
      return unsafe String(cString: text)
    }
    return "\(message) (\(Self.names[self] ?? "errno \(rawValue)"))"
  }
}
