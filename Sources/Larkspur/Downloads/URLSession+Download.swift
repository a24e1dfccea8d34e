import Foundation
import LarkspurEngine
import LarkspurHTTP

@_exported import class LarkspurEngine.Download
@_exported import struct LarkspurEngine.DownloadChecksum
@_exported import struct LarkspurEngine.DownloadError
@_exported import struct LarkspurEngine.DownloadPieceHashes
@_exported import struct LarkspurEngine.DownloadPlan

extension URLSession {
  /// Starts to download a file, over several connections and from several mirrors.
  ///
  /// ```swift
  /// let plan = DownloadPlan(url, to: URL(filePath: "/data/model.bin"))
  /// let file = try await session.download(plan).value
  /// ```
  ///
  /// The requests are the session's: its cookies, credentials, interceptors, delegate and limits hold, and its cache has no
  /// part in them. A file that an earlier download has left incomplete is continued. Invalidating the session ends the
  /// download.
  public func download(_ plan: DownloadPlan) -> Download { Download(plan, by: self) }
}

extension DownloadPlan {
  /// Creates a plan for a URL.
  public init(_ url: URL, to destination: URL) { self.init([url], to: destination) }

  /// Creates a plan for a file with mirrors. Nothing of a plan is checked before it is used: a destination that is no file
  /// URL is an error of the download.
  public init(_ urls: [URL], to destination: URL) {
    self.init(urls.map(\.absoluteString), to: destination.isFileURL ? destination.path(percentEncoded: false) : "")
  }
}

extension DownloadPlan {
  /// Sets a field of all requests, in place of an earlier one of the name. A value of `nil` removes the field. A value with
  /// a line break changes nothing.
  public mutating func setValue(_ value: String?, forHTTPHeaderField field: String) { fields.set(field, to: value) }
}

extension Download.File {
  /// The file's URL.
  public var url: URL { URL(filePath: path) }
}

extension DownloadError: LocalizedError {
  /// The reason, with the URL or the path.
  public var errorDescription: String? { description }
}

extension URLSession: DownloadClient {
  package var downloadLanesMax: Int { max(1, core.settings.maximumConnectionsPerHost) }

  package func fetch(
    _ url: String, _ fields: FieldList, head: (Int, FieldList) -> Bool, piece: ([UInt8]) async -> Bool
  ) async throws {
    guard let location = URL(string: url) else { throw URLError.make(.badURL) }
    if core.isBackground {
      throw URLError(.optionInvalid("download(_:)", "a background session has no connections"), url: location)
    }
    var request = URLRequest(url: location)
    for field in fields { request.addValue(field.value, forHTTPHeaderField: field.name) }
    try await unstartedBytes(for: request, isCached: false).deliver {
      head($0.statusCode, $0.fields.list)
    } piece: {
      await piece($0)
    }
  }

  package func isOfConnection(_ error: any Error) -> Bool { (error as? URLError)?.isOfConnection ?? false }
}

extension URLSessionAsyncBytes {
  /// Starts the task, and passes the response and the pieces of its body on, as `DownloadClient.fetch` describes.
  func deliver(head: (HTTPURLResponse) throws -> Bool, piece: ([UInt8]) async -> Bool) async throws {
    guard let response = try await response() as? HTTPURLResponse else {
      throw URLError.make(.badServerResponse, url: task.originalRequest?.url)
    }
    guard try head(response) else { return }
    while let bytes = try await nextPiece() { guard await piece(bytes) else { return } }
  }
}
