import Foundation

extension TaskPerformer {
  /// Takes the whole content of a stored response. An owner that gets the content as a whole shares the cache's bytes: nothing is
  /// copied, however long it is.
  func take(stored data: Data) {
    guard file == nil, content.data.isEmpty, content.kept == nil else { return take(data.span) }
    switch task.output {
    case .dataHandler, .dataResult, .delegate:
      content.pendingCount += data.count
      content.data = data
    case .bytes, .fileHandler, .fileResult: take(data.span)
    }
  }
}
