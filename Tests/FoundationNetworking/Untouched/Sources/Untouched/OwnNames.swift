import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

// Names that Larkspur has and the toolchain's module has not.

public struct ServerSentEvent {
  public let text: String

  public init(text: String) { self.text = text }
}

extension URLSession {
  public struct AsyncBytes {
    public let text: String
  }

  public func ownBytes() -> AsyncBytes { AsyncBytes(text: "own") }
}

extension HTTPURLResponse {
  public convenience init() {
    self.init(url: URL(fileURLWithPath: "/own"), mimeType: nil, expectedContentLength: 0, textEncodingName: nil)
  }
}

public func ownResponse() -> HTTPURLResponse { HTTPURLResponse() }
