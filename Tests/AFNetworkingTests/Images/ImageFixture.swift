import LarkspurTestServer
import Synchronization
import Testing

@testable import AFNetworking

/// A toolkit's picture, of four bytes for each pixel.
final class Picture: AFDecodedImage {
  let name: String
  let decodedByteCount: UInt64

  init(_ name: String = "", bytes: UInt64 = 4) {
    self.name = name
    decodedByteCount = bytes
  }
}

/// Makes pictures of the PNG heads that ``PNG`` makes. Pixels are not decoded.
struct PictureDecoder: AFIncrementalImageDecoding {
  struct Failure: Error {}

  func image(from data: Data, response: URLResponse?, scale: CGFloat, inflates: Bool) throws -> Any? {
    if data.starts(with: Data("broken".utf8)) { throw Failure() }
    if data.starts(with: Data("text".utf8)) { return "text" }
    guard let head = try? AFImage(validating: data, pixelCountMax: .max) else { return nil }
    return Picture(
      response?.url?.lastPathComponent ?? "", bytes: UInt64(head.pixelWidth) * UInt64(head.pixelHeight) * 4)
  }

  final class Incremental: AFIncrementalImageDecoder {
    var count = 0

    func append(_ piece: Data) throws -> (any AFDecodedImage)? {
      count += piece.count
      return Picture("first \(count) bytes")
    }
  }

  func makeIncrementalDecoder(scale: CGFloat) -> any AFIncrementalImageDecoder { Incremental() }
}

enum PNG {
  static func head(_ width: Int, _ height: Int, padding: Int = 0) -> Data {
    func number(_ value: Int) -> [UInt8] { (0..<4).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) } }
    let signature: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]
    return Data(
      signature + number(13) + Array("IHDR".utf8) + number(width) + number(height) + [8, 6, 0, 0, 0]
        + [UInt8](repeating: 0, count: padding))
  }
}

/// A server that has images at `/image/{name}`, and a downloader for it.
final class ImageFixture: Sendable {
  let server: TestServer
  let manager: AFHTTPSessionManager
  let downloader: AFImageDownloader
  let cache = AFAutoPurgingImageCache()
  private let counts = Mutex<[String: Int]>([:])

  private final class Clock: Sendable {
    let seconds = Mutex<UInt64>(0)
  }

  private let time = Clock()

  init(
    activeMax: Int = 4, _ prioritization: AFImageDownloadPrioritization = .FIFO, scheduler: AFViewScheduler? = nil
  ) throws {
    MainQueue.mark()
    server = try TestServer()
    manager = AFHTTPSessionManager(sessionConfiguration: .ephemeral)
    let serializer = AFImageResponseSerializer()
    serializer.imageDecoder = PictureDecoder()
    manager.responseSerializer = serializer
    let time = time
    downloader = AFImageDownloader(
      manager, prioritization, activeMax, cache, ownsManager: false,
      now: { time.seconds.withLock { $0 } * 1_000_000_000 })
    downloader.scheduler = scheduler
    server.route("GET", "/image/{name}") { [weak self] request in
      self?.counts.withLock { $0[request.parameters["name"] ?? "", default: 0] += 1 }
      return TestServer.Response(fields: ["Content-Type": "image/png"], body: .bytes(Array(PNG.head(20, 10))))
    }
    server.route("GET", "/missing/{status}") { [weak self] request in
      let status = request.parameters["status"] ?? ""
      self?.counts.withLock { $0[status, default: 0] += 1 }
      return TestServer.Response(status: Int(status) ?? 404)
    }
  }

  deinit { manager.invalidateSessionCancelingTasks(true, resetSession: false) }

  /// Serves an image of one pixel that comes after a signal.
  func serve(_ path: String, after signal: TestServer.Signal) {
    let image = TestServer.Response(fields: ["Content-Type": "image/png"], body: .bytes(Array(PNG.head(1, 1))))
    server.route("GET", path, script: [.wait(signal), .respond(image), .close])
  }

  /// The number of requests for each name.
  var requestCounts: [String: Int] { counts.withLock { $0 } }

  func setTime(_ seconds: UInt64) { time.seconds.withLock { $0 = seconds } }

  func request(_ path: String) throws -> URLRequest {
    URLRequest(url: try #require(URL(string: server.url(path))))
  }
}

/// The result of a download.
struct Downloaded: Sendable {
  var response: HTTPURLResponse?
  var image: (any AFDecodedImage)?
  var error: NSError?
  var isOnMain = false

  var name: String? { (image as? Picture)?.name }
}

extension AFImageDownloader {
  /// Downloads an image, and waits for either block.
  func download(
    _ request: URLRequest, options: AFImageDownloadOptions = AFImageDownloadOptions(),
    started: (AFImageDownloadReceipt?) -> Void = { _ in }
  ) async -> Downloaded {
    await withCheckedContinuation { continuation in
      let receipt = downloadImage(for: request, options: options) { _, response, image in
        continuation.resume(returning: Downloaded(response: response, image: image, isOnMain: MainQueue.isCurrent))
      } failure: { _, response, error in
        continuation.resume(
          returning: Downloaded(response: response, error: error as NSError, isOnMain: MainQueue.isCurrent))
      }
      started(receipt)
    }
  }
}
