import Foundation

/// What a task has received so far.
struct TaskContent {
  var response: URLResponse?
  /// The length that the response has said, in bytes, or -1 if it is not known.
  var expectedCount: Int64 = 0
  var data = Data()
  /// For a reader of bytes.
  var piece: [UInt8] = []
  /// Whether the delegate gets at the end what is in `data`.
  var isHeldBack = false
  /// Bytes that have been taken since the owner last heard.
  var pendingCount = 0
  /// Why the content cannot be taken.
  var failure: URLError?
  /// Why nothing comes behind what has been taken.
  var lateFailure: URLError?
  /// A copy for the cache, where the owner's own is not there at the end. Nil: none is kept.
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
