import LarkspurEngine
import LarkspurHTTP

extension HTTPClient {
  /// Starts to download a file, over several connections and from several mirrors.
  ///
  /// ```swift
  /// let plan = DownloadPlan("https://example.org/model.bin", to: "/data/model.bin")
  /// let file = try await client.download(plan).value
  /// ```
  ///
  /// The requests are the client's, with its cookies, credentials, interceptors and limits: see `Download`. A file that
  /// an earlier download has left incomplete is continued. The client stays open until the download is over.
  public func download(_ plan: DownloadPlan) -> Download { Download(plan, by: self) }
}

extension HTTPClient: DownloadClient {
  package var downloadLanesMax: Int { max(1, options.connectionsPerHostMax) }

  package func fetch(
    _ url: String, _ fields: FieldList, head: (Int, FieldList) -> Bool, piece: ([UInt8]) async -> Bool
  ) async throws {
    try await perform(Request(url, fields: fields)) { response in
      guard head(response.status, response.fields) else { return }
      for try await bytes in response.body { guard await piece(bytes) else { return } }
    }
  }

  package func isOfConnection(_ error: any Error) -> Bool {
    (error as? HTTPClientError)?.cause?.isOfConnection ?? false
  }
}
