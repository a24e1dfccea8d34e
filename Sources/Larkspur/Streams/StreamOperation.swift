import Foundation
import LarkspurBytes
import LarkspurEngine
import LarkspurTransport

/// One call on a stream task.
final class StreamOperation: LiveOperation, @unchecked Sendable {
  enum Kind {
    case read(min: Int, max: Int)
    case write(Data)
    case closeRead
    case closeWrite
    case startSecureConnection
    case captureStreams
  }

  let kind: Kind
  /// The time limit of the operation, or `nil` for none.
  let timeout: Duration?

  // These belong to the loop until the operation is finished.
  /// The bytes that have been read.
  var data = Data()
  var isAtEnd = false
  /// The number of bytes that have been given to the connection.
  var written = 0
  var timer: ClientLoop.Timer?

  private let queue: DelegateQueue?
  private let handle: (@Sendable (StreamOperation) -> Void)?

  init(
    _ kind: Kind, timeout: TimeInterval = 0, through gate: LiveGate, on queue: DelegateQueue? = nil,
    handle: (@Sendable (StreamOperation) -> Void)? = nil
  ) {
    self.kind = kind
    self.queue = queue
    self.handle = handle
    // As on Darwin, 0 stands for no limit.
    self.timeout = timeout > 0 ? Duration(interval: timeout) : nil
    super.init(through: gate, isHandled: handle != nil)
  }

  override func handleResult(for owner: AnyObject?) { call({ [self] in handle?(self) }, on: queue, for: owner) }
}
