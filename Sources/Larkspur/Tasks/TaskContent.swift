import Foundation

/// The content that a task has received so far.
struct TaskContent {
  var response: URLResponse?
  /// The length of the content according to the response, in bytes, or -1 if it is not known.
  var expectedCount: Int64 = 0
  var data = Data()
  /// The piece that a reader of bytes gets next.
  var piece: [UInt8] = []
  /// Whether `data` is kept until the end, when the delegate gets all of it in one call.
  var isBuffered = false
  /// Number of bytes that have been taken since the owner was last notified.
  var pendingCount = 0
  /// The error of taking content, such as that of writing to a file.
  var failure: URLError?
  /// The error after the content that has been taken. The content is delivered first.
  var lateFailure: URLError?
  /// A copy of the content for the cache, if the owner's content is not available at the end. `nil` if no copy is kept.
  private(set) var kept: Data?
  private var keptMax = 0

  mutating func takeData() -> Data {
    var taken = Data()
    swap(&taken, &data)
    return taken
  }

  mutating func keepsCopy(upTo bytesMax: Int, for output: TaskOutput) {
    switch output {
    case .dataHandler, .dataResult: return
    default: kept = Data()
    }
    keptMax = bytesMax
  }

  mutating func keep(_ piece: Span<UInt8>) {
    guard let count = kept?.count else { return }
    // A body that is too long is not stored at all.
    if count + piece.count > keptMax { kept = nil } else { kept?.append(copying: piece) }
  }
}
